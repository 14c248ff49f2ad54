// States of recurrent layers on the host's backends: their layout and size, and that they are cleared, copied
// and swapped byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/pool_size.h"
#include "tests/kernels/recurrent_layers.h"

namespace octavo::kernels::testing {
namespace {

TEST(StateLayout, ALayerBeginsOnACacheLineAndAStateIsOneRange) {
  const StateLayout layout{3, 5, 33};
  EXPECT_EQ(layout.convolution_offset(), 16);
  EXPECT_EQ(layout.layer_floats(), 16 + 48);
  EXPECT_EQ(layout.state_bytes(), 3 * 64 * 4);
  EXPECT_EQ(layout.layer_offset(2, 1), (2 * 3 + 1) * 64);
  EXPECT_TRUE(StateLayout{}.empty());
  EXPECT_EQ(layout.draft_bytes(), 0) << "nobody guesses";
}

TEST(StatePoolSize, IsThatOfItsStates) {
  const StateLayout layout{24, 32 * 128 * 128, 3 * 8192};
  EXPECT_EQ(state_pool_bytes(layout, 7).value(), 7 * layout.state_bytes());
}

TEST(StatePoolSize, OfWhatIsImpossibleIsAnErrorThatSaysTheNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [layout, num_states] :
       std::vector<std::pair<StateLayout, std::int32_t>>{{{0, 5, 5}, 1},
                                                         {{1, 0, 0}, 1},
                                                         {{1, 5, 5}, 0},
                                                         {{1, -5, 50}, 1},
                                                         {{1, 50, -5}, 1},
                                                         {{-1, 5, 5}, -1},
                                                         {{1, kMost, 1}, 1},
                                                         {{1, 1, kMost - 3}, 1},
                                                         {{1, kMost / 8, kMost / 8}, 1},
                                                         {{1 << 30, 1 << 30, 0}, 1 << 30}}) {
    const auto bytes = state_pool_bytes(layout, num_states);
    ASSERT_FALSE(bytes.has_value()) << layout.recurrent_floats << ", " << num_states;
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(bytes.error().message.find(std::to_string(num_states) + " states"), std::string::npos)
        << bytes.error().message;
  }
}

std::vector<std::unique_ptr<Backend>> backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(cpu_backend(cpu::usable_instruction_sets().front(), 3));
  backends.push_back(reference_backend());
  return backends;
}

TEST(States, PoolsThatCannotBeAreErrorsThatNameThem) {
  const StateLayout layout{24, 32 * 128 * 128, 3 * 8192};
  for (const auto& backend : backends()) {
    EXPECT_EQ(backend->allocate_state_cache(layout, 0).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(backend->allocate_host_state_cache(layout, -1).error().code, ErrorCode::kInvalidArgument);
    const auto device = backend->allocate_state_cache(layout, 2'000'000'000);
    const auto host = backend->allocate_host_state_cache(layout, 2'000'000'000);
    ASSERT_FALSE(device.has_value() || host.has_value()) << backend->name();
    EXPECT_EQ(device.error().code, ErrorCode::kOutOfMemory);
    EXPECT_NE(device.error().message.find("the pool of states"), std::string::npos) << device.error().message;
    EXPECT_NE(host.error().message.find("the host pool of states"), std::string::npos)
        << host.error().message;
  }
}

// Two pools of a backend beside what they must hold.
class MovedStates {
 public:
  MovedStates(Backend& backend, const StateLayout& layout, std::int32_t num_device, std::int32_t num_host,
              std::uint64_t seed)
      : backend_(backend),
        random_(seed),
        bytes_(static_cast<std::size_t>(layout.state_bytes())),
        device_(backend.allocate_state_cache(layout, num_device).value()),
        host_(backend.allocate_host_state_cache(layout, num_host).value()),
        device_bytes_(static_cast<std::size_t>(num_device) * bytes_),
        host_bytes_(static_cast<std::size_t>(num_host) * bytes_) {
    for (std::byte& byte : device_bytes_) byte = static_cast<std::byte>(random_());
    std::memcpy(state_floats(backend_, *device_), device_bytes_.data(), device_bytes_.size());
    std::memcpy(state_floats(backend_, *host_), host_bytes_.data(), host_bytes_.size());
  }

  // Something at random.
  void act() {
    std::vector<std::int32_t> targets = some_of(device_->num_states());
    const auto split = targets.begin() + static_cast<std::ptrdiff_t>(targets.size() / 2);
    switch (random_() % 4) {
      case 0:
        backend_.clear_states(*device_, targets);
        for (const std::int32_t state : targets) std::memset(of(device_bytes_, state), 0, bytes_);
        return;
      case 1: {
        const std::vector<std::int32_t> sources(targets.begin(), split);
        const auto copies = pairs(sources, {split, targets.end()});
        backend_.copy_states(*device_, copies);
        return expect_moved(device_bytes_, device_bytes_, copies);
      }
      case 2: {
        const auto copies = pairs(some_of(device_->num_states()), some_of(host_->num_states()));
        backend_.swap_states_out(*device_, *host_, copies);
        return expect_moved(device_bytes_, host_bytes_, copies);
      }
      default: {
        const auto copies = pairs(some_of(host_->num_states()), targets);
        backend_.swap_states_in(*host_, *device_, copies);
        return expect_moved(host_bytes_, device_bytes_, copies);
      }
    }
  }

  bool are_right() const {
    return std::memcmp(state_floats(backend_, *device_), device_bytes_.data(), device_bytes_.size()) == 0 &&
           std::memcmp(state_floats(backend_, *host_), host_bytes_.data(), host_bytes_.size()) == 0;
  }

 private:
  std::byte* of(std::vector<std::byte>& pool, std::int32_t state) const {
    return pool.data() + static_cast<std::size_t>(state) * bytes_;
  }
  void expect_moved(std::vector<std::byte>& from, std::vector<std::byte>& to,
                    const std::vector<BlockCopy>& copies) {
    for (const BlockCopy& copy : copies) std::memcpy(of(to, copy.target), of(from, copy.source), bytes_);
  }
  std::vector<std::int32_t> some_of(std::int32_t count) {
    std::vector<std::int32_t> states;
    for (std::int32_t i = 0; i < count; ++i) states.push_back(i);
    std::shuffle(states.begin(), states.end(), random_);
    states.resize(random_() % (states.size() + 1));
    return states;
  }
  // Each target from one of the sources.
  std::vector<BlockCopy> pairs(const std::vector<std::int32_t>& sources,
                               const std::vector<std::int32_t>& targets) {
    std::vector<BlockCopy> copies;
    if (sources.empty()) return copies;
    for (const std::int32_t target : targets) copies.push_back({sources[random_() % sources.size()], target});
    return copies;
  }

  Backend& backend_;
  std::mt19937_64 random_;
  std::size_t bytes_;
  std::unique_ptr<StateCache> device_;
  std::unique_ptr<HostStateCache> host_;
  std::vector<std::byte> device_bytes_, host_bytes_;
};

TEST(States, AreClearedCopiedAndSwappedByteByByte) {
  for (const auto& backend : backends()) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      MovedStates states(*backend, {3, 100 * static_cast<std::int64_t>(seed), 7}, 9, 5, seed);
      for (int i = 0; i < 200; ++i) {
        states.act();
        ASSERT_TRUE(states.are_right()) << backend->name() << ", seed " << seed << ", step " << i;
      }
    }
    // Larger than a piece of a copy.
    MovedStates large(*backend, {2, 100'000, 3'000}, 4, 3, 5);
    for (int i = 0; i < 30; ++i) {
      large.act();
      ASSERT_TRUE(large.are_right()) << backend->name() << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
