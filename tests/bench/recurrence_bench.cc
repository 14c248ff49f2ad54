// Speed of the CPU's recurrent layers without their products: the delta rule, and the convolution before it,
// on every instruction set.
//
//   octavo_recurrence_bench [--isas avx512_vnni,avx2] [--threads 2] [--rows 1,16,512] [--heads 32] [--layers
//   24]
//                           [--key-dim 128] [--value-dim 128] [--seconds 0.5]
//
// Layers are worked off in turn, so that with one row their states (48 MiB by default) come from memory. Each
// figure is the median of the passes over all layers within the given time; with one thread in processor
// time, which other programs on the machine disturb less. For one row the bytes of state that are read and
// written a second stand beside the read bandwidth; for more, the multiply-adds beside the peak.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/mapped_memory.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/cpu/simd/machine_limits.h"
#include "kernels/cpu/thread_pool.h"

namespace octavo::kernels::cpu {
namespace {

struct Options {
  std::string isas, rows = "1,16,512";
  int threads = 2, heads = 32, layers = 24, key_dim = 128, value_dim = 128;
  double seconds = 0.5;
};

bool selected(const std::string& list, std::string_view name) {
  return list.empty() || ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
}

class Clock {
 public:
  explicit Clock(int num_threads) : id_(num_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  // Median of the calls that fit into the time limit, at least three.
  double median_seconds(double time_limit, const auto& function) const {
    std::vector<double> times;
    for (double total = 0; times.size() < 3 || total < time_limit; total += times.back()) {
      const double start = now();
      function();
      times.push_back(now() - start);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }

 private:
  double now() const {
    timespec time = {};
    ::clock_gettime(id_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  clockid_t id_;
};

std::vector<float> random_numbers(std::int64_t count, float scale) {
  std::mt19937 random(3);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = scale * (static_cast<float>(random() & 1023u) - 511.5f) / 512.0f;
  return numbers;
}

class Bench {
 public:
  Bench(InstructionSet isa, ThreadPool& pool, const Options& options)
      : kernels_(kernel_table(isa)),
        pool_(pool),
        options_(options),
        state_floats_(std::int64_t{options.heads} * options.key_dim * options.value_dim),
        states_(MappedMemory::create(state_floats_ * options.layers * 4, "states").value()) {
    measure_limits(machine_limit_kernels(isa));
    std::printf("%s, %d threads: reads %.1f GB/s, %.0f G float multiply-adds/s\n",
                instruction_set_name(isa).data(), options_.threads, read_bytes_per_s_ * 1e-9,
                multiply_adds_per_s_ * 1e-9);
  }

  void run(std::int64_t num_rows) {
    const std::int64_t layers = num_rows == 1 ? options_.layers : 1;
    const double seconds = delta_rule_seconds(num_rows, layers);
    const auto steps = static_cast<double>(layers * num_rows * options_.heads);
    std::printf("  %4lld rows: delta rule %7.1f ns per token and head", static_cast<long long>(num_rows),
                seconds / steps * 1e9);
    if (num_rows == 1) {
      const double bytes_per_s = 2.0 * 4.0 * static_cast<double>(state_floats_ * layers) / seconds;
      std::printf(", %.1f GB/s of state read and written (%.0f %% of reads)", bytes_per_s * 1e-9,
                  100 * bytes_per_s / read_bytes_per_s_);
    } else {
      const double rate = 3.0 * options_.key_dim * options_.value_dim * steps / seconds;
      std::printf(", %.1f G multiply-adds/s (%.0f %%)", rate * 1e-9, 100 * rate / multiply_adds_per_s_);
    }
    std::printf("; convolution %.0f ns per token and 1,000 channels\n", convolution_seconds(num_rows) * 1e9);
    std::fflush(stdout);
  }

 private:
  void measure_limits(const MachineLimitKernels& limits) {
    constexpr std::int64_t kBytes = std::int64_t{128} << 20, kPiece = std::int64_t{1} << 20,
                           kRounds = 1'000'000;
    const std::vector<std::byte> memory(kBytes, std::byte{1});
    read_bytes_per_s_ = static_cast<double>(kBytes) / clock_.median_seconds(0.2, [&] {
      pool_.parallel_for(kBytes / kPiece, [&](std::int64_t piece, std::int32_t) {
        limits.read(memory.data() + piece * kPiece, kPiece);
      });
    });
    const double seconds = clock_.median_seconds(0.1, [&] {
      pool_.parallel_for(options_.threads, [&](std::int64_t, std::int32_t) { limits.float_rounds(kRounds); });
    });
    multiply_adds_per_s_ =
        options_.threads * kRounds * static_cast<double>(limits.float_multiply_adds_per_round) / seconds;
  }

  // One pass: rows as wide as those of the layer, [queries | keys | values], two value heads to a key head.
  double delta_rule_seconds(std::int64_t num_rows, std::int64_t layers) {
    const std::int64_t heads = options_.heads, key_dim = options_.key_dim, value_dim = options_.value_dim;
    const std::int64_t key_heads = (heads + 1) / 2, width = 2 * key_heads * key_dim + heads * value_dim;
    std::vector<float> rows = random_numbers(num_rows * width, 0.1f);
    const std::vector<float> gates(static_cast<std::size_t>(num_rows * heads), 0.5f);
    auto* const states = reinterpret_cast<float*>(states_.data());
    std::fill_n(states, state_floats_ * layers, 0.01f);
    return clock_.median_seconds(options_.seconds, [&] {
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        pool_.parallel_for_in_runs(heads, [&](std::int64_t head, std::int32_t) {
          kernels_.delta_rule({.state = states + layer * state_floats_ + head * key_dim * value_dim,
                               .key_dim = options_.key_dim,
                               .value_dim = options_.value_dim,
                               .num_rows = num_rows,
                               .queries = rows.data() + head / 2 * key_dim,
                               .keys = rows.data() + (key_heads + head / 2) * key_dim,
                               .values = rows.data() + 2 * key_heads * key_dim + head * value_dim,
                               .row_stride = width,
                               .decays = gates.data() + head,
                               .betas = gates.data() + head,
                               .gate_stride = heads});
        });
      }
    });
  }

  // Of one token and 1,000 channels.
  double convolution_seconds(std::int64_t num_rows) {
    constexpr std::int64_t kChannels = 8'192, kPiece = 128;
    constexpr std::int32_t kTaps = 4;
    const std::vector<float> weights = random_numbers(kChannels * kTaps, 0.3f);
    std::vector<float> history((kTaps - 1) * kChannels), rows = random_numbers(num_rows * kChannels, 1.0f);
    std::vector<std::vector<float>> scratch(static_cast<std::size_t>(options_.threads),
                                            std::vector<float>(kPiece * kTaps));
    const double seconds = clock_.median_seconds(0.1, [&] {
      pool_.parallel_for_in_runs(kChannels / kPiece, [&](std::int64_t piece, std::int32_t worker) {
        const std::int64_t first = piece * kPiece;
        kernels_.convolve({.weights = weights.data() + first * kTaps,
                           .bias = nullptr,
                           .width = kTaps,
                           .history = history.data() + first,
                           .history_stride = kChannels,
                           .rows = rows.data() + first,
                           .row_stride = kChannels,
                           .num_rows = num_rows,
                           .count = kPiece,
                           .applies_silu = true},
                          scratch[static_cast<std::size_t>(worker)].data());
      });
    });
    return seconds / static_cast<double>(num_rows * kChannels) * 1'000;
  }

  const KernelTable& kernels_;
  ThreadPool& pool_;
  const Options& options_;
  const Clock clock_{options_.threads};
  const std::int64_t state_floats_;  // of a layer
  const MappedMemory states_;
  double read_bytes_per_s_ = 0, multiply_adds_per_s_ = 0;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--isas") options.isas = value;
    if (name == "--rows") options.rows = value;
    if (name == "--threads") options.threads = std::atoi(value.c_str());
    if (name == "--heads") options.heads = std::atoi(value.c_str());
    if (name == "--layers") options.layers = std::atoi(value.c_str());
    if (name == "--key-dim") options.key_dim = std::atoi(value.c_str());
    if (name == "--value-dim") options.value_dim = std::atoi(value.c_str());
    if (name == "--seconds") options.seconds = std::atof(value.c_str());
  }
  return options;
}

int run(const Options& options) {
  auto pool = ThreadPool::create(options.threads);
  if (!pool) {
    std::fprintf(stderr, "%s\n", pool.error().message.c_str());
    return 1;
  }
  for (const InstructionSet isa : usable_instruction_sets()) {
    if (!selected(options.isas, instruction_set_name(isa))) continue;
    Bench bench(isa, **pool, options);
    for (const std::int64_t rows : {1, 2, 4, 16, 64, 512}) {
      if (selected(options.rows, std::to_string(rows))) bench.run(rows);
    }
  }
  return 0;
}

}  // namespace
}  // namespace octavo::kernels::cpu

int main(int count, char** arguments) {
  return octavo::kernels::cpu::run(octavo::kernels::cpu::parse(count, arguments));
}
