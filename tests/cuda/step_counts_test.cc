// What a step costs before its kernels do anything: how many kernels it starts in each layer and outside of
// layers, how often it copies between host and device, and how many bytes. Counted by the emulated device;
// kernels/cuda/RESOURCES.md has the numbers in a table.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/cuda/device_runner.h"

namespace octavo {
namespace {

using kernels::TensorType;
using runner::DirectSequence;
using runner::ModelRunner;
using runner::RunnerOutput;

constexpr std::int32_t kBlockSize = 16;

struct Counts {
  std::int64_t kernels = 0;  // started alone or in a graph
  std::int64_t starts = 0;   // of a kernel alone, or of a graph
  std::int64_t copies_to_device = 0, bytes_to_device = 0, copies_to_host = 0, bytes_to_host = 0;

  static Counts now() {
    const emulation::Copies to_device = emulation::copies_to_device(), to_host = emulation::copies_to_host();
    return {emulation::num_launches(),
            emulation::num_single_launches() + emulation::num_graph_launches(),
            to_device.count,
            to_device.bytes,
            to_host.count,
            to_host.bytes};
  }
  Counts operator-(const Counts& other) const {
    return {kernels - other.kernels,
            starts - other.starts,
            copies_to_device - other.copies_to_device,
            bytes_to_device - other.bytes_to_device,
            copies_to_host - other.copies_to_host,
            bytes_to_host - other.bytes_to_host};
  }
};

// Sequences of one step: so many tokens are known, the last `num_rows` of them are computed.
struct Rows {
  std::size_t num_known, num_rows;
};

std::vector<Rows> decodes(std::size_t count, std::size_t num_known = 20) {
  return std::vector<Rows>(count, {num_known, 1});
}

class StepCounts : public ::testing::Test {
 protected:
  // Each launch once: what races is found where each kernel is tested.
  void SetUp() override { emulation::settings().finds_races = false; }

  // Steps of up to 8 sequences are recorded, others started kernel by kernel: recording takes its time.
  static bool are_recorded(const std::vector<Rows>& rows) { return rows.size() <= kMostRecorded; }

  ModelRunner& runner_of(TensorType type, std::uint32_t num_layers, bool is_recorded) {
    std::unique_ptr<ModelRunner>& runner = runners_[{type, num_layers, is_recorded}];
    if (runner == nullptr) runner = load(type, num_layers, is_recorded);
    return *runner;
  }

  Counts count(TensorType type, std::uint32_t num_layers, const std::vector<Rows>& rows,
               const SamplingParams& sampling) {
    ModelRunner& runner = runner_of(type, num_layers, are_recorded(rows));
    std::vector<DirectSequence> sequences;
    for (std::size_t i = 0; i < rows.size(); ++i)
      sequences.push_back(made_up_sequence(i, rows[i].num_known, rows[i].num_rows, sampling));
    scheduler::SchedulerOutput step;
    for (std::size_t i = 0; i < rows.size(); ++i)
      step.sequences.push_back(runner::scheduled(sequences[i], rows[i].num_rows));
    const Counts before = Counts::now();
    const RunnerOutput output = runner::execute(runner, step);
    EXPECT_EQ(output.tokens.size(), rows.size());
    return Counts::now() - before;
  }

  struct Parts {
    std::int64_t of_layer = 0;
    Counts step;  // of one layer
    std::int64_t outside() const { return step.kernels - of_layer; }
  };

  // Of models that differ in their number of layers alone.
  Parts parts_of(const char* name, TensorType type, const std::vector<Rows>& rows,
                 const SamplingParams& sampling) {
    const Counts one = count(type, 1, rows, sampling), two = count(type, 2, rows, sampling);
    EXPECT_EQ(one.copies_to_device, two.copies_to_device);
    EXPECT_EQ(one.bytes_to_device, two.bytes_to_device);
    const Parts parts{two.kernels - one.kernels, one};
    std::printf(
        "%-5s %-24s %2lld a layer, %2lld outside, %3lld starts, to the device %lld copies of %lld bytes, "
        "back %lld of %lld\n",
        kernels::traits_of(type).name.data(), name, static_cast<long long>(parts.of_layer),
        static_cast<long long>(parts.outside()), static_cast<long long>(one.starts),
        static_cast<long long>(one.copies_to_device), static_cast<long long>(one.bytes_to_device),
        static_cast<long long>(one.copies_to_host), static_cast<long long>(one.bytes_to_host));
    return parts;
  }

 private:
  static constexpr std::int32_t kMostRecorded = 8;

  static std::unique_ptr<ModelRunner> load(TensorType type, std::uint32_t num_layers, bool is_recorded) {
    EngineOptions options;
    options.max_model_len = kBlockSize * kBlocksOfSequence;
    options.max_num_batched_tokens = 128;
    options.max_num_seqs = is_recorded ? kMostRecorded : 64;
    options.block_size = kBlockSize;
    options.num_kv_blocks = 64 * kBlocksOfSequence;
    return load_on_device(type, num_layers, options, {.graphs = is_recorded});
  }

  std::map<std::tuple<TensorType, std::uint32_t, bool>, std::unique_ptr<ModelRunner>> runners_;
};

// Exactly, so that the table says no more than is true, and no less. Of F16 what the library's products give
// is finished by a launch of our own for those of one input, from 16 rows on; its own are not counted.
TEST_F(StepCounts, AreWhatTheTableSays) {
  std::vector<Rows> mixed = decodes(7);
  mixed.push_back({60, 60});
  const SamplingParams greedy{.temperature = 0.0}, random{.temperature = 0.8, .top_p = 0.9};
  struct Case {
    const char* name;
    std::vector<Rows> rows;
    SamplingParams sampling;
    std::int64_t of_layer, outside, bytes_to_device;
  };
  const std::vector<Case> cases = {{"1 row", decodes(1), greedy, 6, 5, 128},
                                   {"1 row, 300 tokens", decodes(1, 300), greedy, 7, 5, 192},
                                   {"1 row, drawn", decodes(1), random, 6, 10, 192},
                                   {"8 rows", decodes(8), greedy, 10, 6, 288},
                                   {"64 rows", decodes(64), greedy, 10, 6, 2080},
                                   {"8 rows, drawn", decodes(8), random, 10, 11, 736},
                                   {"5 rows of a sequence", {{24, 5}}, greedy, 10, 5, 224},
                                   {"7 rows and a prompt of 60", mixed, greedy, 11, 6, 1856}};
  for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
    for (const Case& each : cases) {
      const Parts parts = parts_of(each.name, type, each.rows, each.sampling);
      EXPECT_EQ(parts.of_layer, each.of_layer) << each.name;
      EXPECT_EQ(parts.outside(), each.outside) << each.name;
      EXPECT_EQ(parts.step.copies_to_device, 1) << each.name;
      EXPECT_EQ(parts.step.bytes_to_device, each.bytes_to_device) << each.name;
      EXPECT_EQ(parts.step.copies_to_host, 1) << each.name;
      EXPECT_EQ(parts.step.bytes_to_host, std::int64_t{8} * std::ssize(each.rows)) << each.name;
      // A recorded step is two starts, of its layers and of its draws, whatever it is made of.
      EXPECT_EQ(parts.step.starts, are_recorded(each.rows) ? 2 : parts.step.kernels) << each.name;
    }
  }
}

}  // namespace
}  // namespace octavo
