// Blocks on their way between the pools of any backend, against checksums that are kept aside.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "tests/kernels/test_backend.h"

namespace octavo::kernels::testing {

inline std::uint64_t checksum(const std::byte* bytes, std::int64_t num_bytes) {
  std::uint64_t sum = 1;
  std::int64_t i = 0;
  for (; i + 8 <= num_bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    sum = hash_combine(sum, word);
  }
  for (; i < num_bytes; ++i) sum = hash_combine(sum, static_cast<std::uint64_t>(bytes[i]));
  return sum;
}

// Two pools of a backend, and what each of their blocks must hold. Sum 0: nothing was put there.
class SwappedPools {
 public:
  SwappedPools(TestBackend& backend, const KvLayout& layout, std::int32_t num_device, std::int32_t num_host,
               std::uint64_t seed)
      : backend_(backend),
        random_(seed),
        device_(backend->allocate_kv_cache(layout, num_device).value()),
        host_(backend->allocate_host_kv_cache(layout, num_host).value()),
        device_sums_(static_cast<std::size_t>(num_device)),
        host_sums_(static_cast<std::size_t>(num_host)) {
    for (std::int32_t block = 0; block < num_device; ++block) fill(block);
  }

  // Does something at random, and looks at every block that it touched. Returns how many blocks moved.
  std::int64_t act() {
    const std::vector<std::int32_t> filled = blocks_with_contents();
    switch (random_() % 4) {
      case 0: fill(static_cast<std::int32_t>(random_() % device_sums_.size())); return 0;
      case 1: return swap_out();
      case 2: return filled.empty() ? 0 : swap_in(filled);
      default: return copy();
    }
  }

  void expect_all() const {
    for (std::size_t i = 0; i < device_sums_.size(); ++i) expect_device(static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < host_sums_.size(); ++i) expect_host(static_cast<std::int32_t>(i));
  }

 private:
  std::int64_t block_bytes() const { return device_->layout().block_bytes(); }
  std::uint64_t checksum_of(const std::byte* block) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(block_bytes()));
    backend_.read(bytes.data(), block, bytes.size());
    return checksum(bytes.data(), block_bytes());
  }
  std::byte* device_block(std::int32_t block) const {
    return backend_.pool(*device_) + block * block_bytes();
  }
  std::byte* host_block(std::int32_t block) const { return backend_.pool(*host_) + block * block_bytes(); }
  std::uint64_t& sum(std::vector<std::uint64_t>& sums, std::int32_t block) {
    return sums[static_cast<std::size_t>(block)];
  }

  void expect_device(std::int32_t block) const {
    ASSERT_EQ(checksum_of(device_block(block)), device_sums_[static_cast<std::size_t>(block)])
        << "device block " << block;
  }
  void expect_host(std::int32_t block) const {
    const std::uint64_t expected = host_sums_[static_cast<std::size_t>(block)];
    if (expected == 0) return;
    ASSERT_EQ(checksum_of(host_block(block)), expected) << "host block " << block;
  }

  void fill(std::int32_t block) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(block_bytes()));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    backend_.write(device_block(block), bytes.data(), bytes.size());
    sum(device_sums_, block) = checksum(bytes.data(), block_bytes());
  }

  std::vector<std::int32_t> blocks_with_contents() const {
    std::vector<std::int32_t> blocks;
    for (std::size_t i = 0; i < host_sums_.size(); ++i) {
      if (host_sums_[i] != 0) blocks.push_back(static_cast<std::int32_t>(i));
    }
    return blocks;
  }

  std::vector<std::int32_t> some_of(std::size_t num_blocks) {
    std::vector<std::int32_t> blocks(num_blocks);
    for (std::size_t i = 0; i < num_blocks; ++i) blocks[i] = static_cast<std::int32_t>(i);
    std::shuffle(blocks.begin(), blocks.end(), random_);
    blocks.resize(random_() % (num_blocks + 1));
    return blocks;
  }

  std::int64_t swap_out() {
    std::vector<BlockCopy> copies;
    for (const std::int32_t target : some_of(host_sums_.size()))
      copies.push_back({static_cast<std::int32_t>(random_() % device_sums_.size()), target});
    backend_->swap_out(*device_, *host_, copies);
    for (const BlockCopy& copy : copies) sum(host_sums_, copy.target) = sum(device_sums_, copy.source);
    for (const BlockCopy& copy : copies) expect_host(copy.target);
    return static_cast<std::int64_t>(copies.size());
  }

  std::int64_t swap_in(const std::vector<std::int32_t>& sources) {
    std::vector<BlockCopy> copies;
    for (const std::int32_t target : some_of(device_sums_.size()))
      copies.push_back({sources[random_() % sources.size()], target});
    backend_->swap_in(*host_, *device_, copies);
    for (const BlockCopy& copy : copies) sum(device_sums_, copy.target) = sum(host_sums_, copy.source);
    for (const BlockCopy& copy : copies) expect_device(copy.target);
    return static_cast<std::int64_t>(copies.size());
  }

  std::int64_t copy() {
    const std::vector<std::int32_t> chosen = some_of(device_sums_.size());
    std::vector<BlockCopy> copies;
    for (std::size_t i = 0; 2 * i + 1 < chosen.size(); ++i)
      copies.push_back({chosen[random_() % (chosen.size() / 2)], chosen[chosen.size() / 2 + i]});
    backend_->copy_blocks(*device_, copies);
    for (const BlockCopy& copy : copies) sum(device_sums_, copy.target) = sum(device_sums_, copy.source);
    for (const BlockCopy& copy : copies) expect_device(copy.target);
    return static_cast<std::int64_t>(copies.size());
  }

  TestBackend& backend_;
  std::mt19937_64 random_;
  std::unique_ptr<KvCache> device_;
  std::unique_ptr<HostKvCache> host_;
  std::vector<std::uint64_t> device_sums_, host_sums_;
};

inline KvLayout random_small_layout(std::mt19937_64& random) {
  const auto up_to = [&](std::uint64_t most) { return static_cast<std::int32_t>(1 + random() % most); };
  const std::int32_t block_size = random() % 8 == 0 ? up_to(256) : up_to(24);
  return {kEveryKvType[random() % std::size(kEveryKvType)], block_size, up_to(3), up_to(2), up_to(9)};
}

// Swaps and copies at random between pools of random layouts, until so many blocks have moved.
inline void expect_blocks_come_back(TestBackend& backend, std::int64_t num_blocks) {
  std::mt19937_64 random(7);
  std::int64_t num_moved = 0;
  while (num_moved < num_blocks && !::testing::Test::HasFatalFailure()) {
    const std::uint64_t seed = random();
    const KvLayout layout = random_small_layout(random);
    SCOPED_TRACE(std::string(backend->name()) + " " + name_of(layout.type) + " block size " +
                 std::to_string(layout.block_size) + " seed " + std::to_string(seed));
    const auto num_device = static_cast<std::int32_t>(1 + random() % 60);
    const auto num_host = static_cast<std::int32_t>(1 + random() % static_cast<std::uint64_t>(num_device));
    SwappedPools pools(backend, layout, num_device, num_host, seed);
    for (int i = 0; i < 60; ++i) num_moved += pools.act();
    pools.expect_all();
  }
  EXPECT_GE(num_moved, num_blocks);
}

}  // namespace octavo::kernels::testing
