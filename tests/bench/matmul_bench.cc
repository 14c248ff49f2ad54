// Speed of the CPU's matrix products, for each type of weights, kind of activations, instruction set and
// number of rows, beside what the machine can do.
//
//   octavo_matmul_bench [--types Q4_1,Q8_0|all] [--isas avx512_vnni,avx2] [--activations int8,int16,f32]
//                       [--shapes 1536x576] [--rows 1,16,512] [--threads 2] [--seconds 0.1] [--weights-mib
//                       64]
//
// Weights and activations are random. A shape's matrix is repeated until the weights are larger than the
// third-level cache (--weights-mib; 0: not at all) and the copies are multiplied in turn, so that one row
// measures memory; what a cache holds measures arithmetic alone. Each figure is the median of the calls
// within the given time; with one thread in processor time, which other programs on the machine disturb less.
// Figures are 10^9 multiply-adds a second with their share of the peak (8-bit ones for int8 and int16, so
// that int16 can reach half), and for one row the bytes of weights read a second with their share of the read
// bandwidth.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/simd/machine_limits.h"

namespace octavo::kernels::cpu {
namespace {

constexpr TensorType kTypes[] = {
    TensorType::kQ4_0,    TensorType::kQ4_1,    TensorType::kQ4_K,    TensorType::kQ5_0,
    TensorType::kQ5_1,    TensorType::kQ5_K,    TensorType::kQ8_0,    TensorType::kQ6_K,
    TensorType::kQ2_K,    TensorType::kQ3_K,    TensorType::kIQ4_NL,  TensorType::kIQ4_XS,
    TensorType::kIQ3_S,   TensorType::kIQ3_XXS, TensorType::kIQ2_S,   TensorType::kIQ2_XS,
    TensorType::kIQ2_XXS, TensorType::kIQ1_M,   TensorType::kIQ1_S,   TensorType::kTQ1_0,
    TensorType::kTQ2_0,   TensorType::kQ1_0,    TensorType::kQ2_0,    TensorType::kMXFP4,
    TensorType::kNVFP4,   TensorType::kU4_G32,  TensorType::kU4_G128, TensorType::kU8_G32,
    TensorType::kU8_G128, TensorType::kF8_G32,  TensorType::kF8_G128, TensorType::kF32,
    TensorType::kF16,     TensorType::kBF16};

struct NamedActivation {
  const char* name;
  Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"int8", Activation::kInt8}, {"int16", Activation::kInt16}, {"f32", Activation::kF32}};

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{576, 576},   {192, 576},   {1536, 576}, {576, 1536}, {49152, 576},
                             {2048, 2048}, {2048, 8192}, {768, 2048}, {2048, 768}};  // the last two: experts

struct Options {
  std::string types = "Q4_1,Q8_0", isas, activations, shapes;
  std::vector<std::int64_t> rows = {1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 64, 512};
  int threads = 2;
  double seconds = 0.1;
  std::int64_t weights_mib = 64;
};

bool selected(const std::string& list, std::string_view name) {
  return list.empty() || ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
}

std::string shape_name(Shape shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

// Random bytes whose 16-bit words are small positive half floats wherever a scale could stand.
std::vector<std::byte> random_weights(TensorType type, Shape shape) {
  const TensorTypeTraits& traits = traits_of(type);
  const auto size =
      static_cast<std::size_t>(shape.rows * shape.columns / traits.block_elements * traits.block_bytes);
  std::mt19937 random(7);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3bu);
  // Scales that are exponents or floats of 32 bits; no model has one whose products are denormal, which would
  // take most of the time.
  const auto block_bytes = static_cast<std::size_t>(traits.block_bytes);
  for (std::size_t at = 0; type == TensorType::kMXFP4 && at < size; at += block_bytes)
    bytes[at] |= std::byte{0x40};
  for (std::size_t at = 3; type >= TensorType::kU4_G32 && at < size; at += block_bytes)
    bytes[at] = std::byte{0x3b};
  return bytes;
}

class Clock {
 public:
  explicit Clock(int num_threads) : id_(num_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  double seconds_of(const auto& function) const {
    const double start = now();
    function();
    return now() - start;
  }

  // Median of the calls function(0), function(1), ... that fit into the time limit.
  double median_seconds(double time_limit, const auto& function) const {
    std::vector<double> times;
    for (double total = 0; times.size() < 3 || total < time_limit; total += times.back()) {
      times.push_back(seconds_of([&] { function(times.size()); }));
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

// Of all threads together.
struct Limits {
  double read_bytes_per_s, int8_per_s, float_per_s;
};

Limits measure_limits(InstructionSet isa, ThreadPool& pool, const Clock& clock) {
  constexpr std::int64_t kBytes = std::int64_t{128} << 20, kPiece = std::int64_t{1} << 20,
                         kRounds = 1'000'000;
  const MachineLimitKernels& kernels = machine_limit_kernels(isa);
  const std::vector<std::byte> memory(kBytes, std::byte{1});
  const double threads = pool.num_threads();
  const double read_seconds = clock.median_seconds(0.2, [&](std::size_t) {
    pool.parallel_for(kBytes / kPiece, [&](std::int64_t piece, std::int32_t) {
      kernels.read(memory.data() + piece * kPiece, kPiece);
    });
  });
  const double int8_seconds = clock.median_seconds(0.1, [&](std::size_t) {
    pool.parallel_for(pool.num_threads(), [&](std::int64_t, std::int32_t) { kernels.int8_rounds(kRounds); });
  });
  const double float_seconds = clock.median_seconds(0.1, [&](std::size_t) {
    pool.parallel_for(pool.num_threads(), [&](std::int64_t, std::int32_t) { kernels.float_rounds(kRounds); });
  });
  return {static_cast<double>(kBytes) / read_seconds,
          threads * kRounds * static_cast<double>(kernels.int8_multiply_adds_per_round) / int8_seconds,
          threads * kRounds * static_cast<double>(kernels.float_multiply_adds_per_round) / float_seconds};
}

class Bench {
 public:
  Bench(InstructionSet isa, ThreadPool& pool, const Options& options)
      : isa_(isa), pool_(pool), options_(options), limits_(measure_limits(isa, pool, clock_)) {
    std::printf("%s, %d threads: reads %.1f GB/s, %.0f G 8-bit and %.0f G float multiply-adds/s\n",
                instruction_set_name(isa_).data(), options_.threads, limits_.read_bytes_per_s * 1e-9,
                limits_.int8_per_s * 1e-9, limits_.float_per_s * 1e-9);
  }

  void run(TensorType type, const NamedActivation& kind, Shape shape) {
    const std::vector<std::byte> bytes = random_weights(type, shape);
    PackedMemory memory;
    std::vector<std::unique_ptr<PackedMatrix>> copies;
    std::int64_t packed_bytes = 0;
    double pack_seconds = 0;
    do {
      pack_seconds += clock_.seconds_of([&] {
        copies.push_back(
            *pack_matrix({type, shape.rows, shape.columns, bytes}, kind.activation, isa_, pool_, memory));
      });
      packed_bytes += copies.back()->memory_bytes();
    } while (packed_bytes < options_.weights_mib << 20);
    std::printf("%-5s %-5s %-11s %-10s packs %.1f GB/s;", traits_of(type).name.data(), kind.name,
                instruction_set_name(isa_).data(), shape_name(shape).c_str(),
                static_cast<double>(packed_bytes) / pack_seconds * 1e-9);
    for (const std::int64_t rows : options_.rows) measure(copies, rows);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void measure(const std::vector<std::unique_ptr<PackedMatrix>>& copies, std::int64_t rows) {
    const PackedMatrix& weights = *copies[0];
    ActivationRows activations(isa_);
    activations.reserve(rows, weights.columns(), weights.activation_form());
    std::mt19937 random(3);
    std::vector<float> row(static_cast<std::size_t>(weights.columns()));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (float& value : row) value = static_cast<float>(static_cast<int>(random() & 1023u) - 512) / 512.0f;
      activations.set_row(r, row.data());
    }
    std::vector<float> out(static_cast<std::size_t>(rows * weights.rows()));
    const MatrixView view = {out.data(), rows, weights.rows(), weights.rows()};
    const double seconds = clock_.median_seconds(options_.seconds, [&](std::size_t call) {
      multiply(*copies[call % copies.size()], activations, view);
    });
    const double peak =
        weights.activation_form() == ActivationForm::kFloat ? limits_.float_per_s : limits_.int8_per_s;
    const double rate = static_cast<double>(rows * weights.rows() * weights.columns()) / seconds;
    if (rows == 1) {
      const double bytes_per_s = static_cast<double>(weights.memory_bytes()) / seconds;
      std::printf(" %.1f GB/s (%.0f %%)", bytes_per_s * 1e-9, 100 * bytes_per_s / limits_.read_bytes_per_s);
    }
    std::printf(" %lld: %.0f (%.0f %%)", static_cast<long long>(rows), rate * 1e-9, 100 * rate / peak);
  }

  void multiply(const PackedMatrix& weights, const ActivationRows& activations, MatrixView out) {
    const std::int64_t num_parts = std::min<std::int64_t>(weights.num_panels(), 2 * pool_.num_threads());
    pool_.parallel_for(num_parts, [&](std::int64_t part, std::int32_t) {
      multiply_panels(weights, activations, weights.num_panels() * part / num_parts,
                      weights.num_panels() * (part + 1) / num_parts, out);
    });
  }

  InstructionSet isa_;
  ThreadPool& pool_;
  const Options& options_;
  const Clock clock_{pool_.num_threads()};
  const Limits limits_;
};

std::vector<std::int64_t> parse_numbers(const std::string& list) {
  std::vector<std::int64_t> numbers;
  std::istringstream stream(list);
  for (std::string number; std::getline(stream, number, ',');) numbers.push_back(std::atoll(number.c_str()));
  return numbers;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--types") options.types = value == "all" ? "" : value;
    if (name == "--isas") options.isas = value;
    if (name == "--activations") options.activations = value;
    if (name == "--shapes") options.shapes = value;
    if (name == "--rows") options.rows = parse_numbers(value);
    if (name == "--threads") options.threads = std::atoi(value.c_str());
    if (name == "--seconds") options.seconds = std::atof(value.c_str());
    if (name == "--weights-mib") options.weights_mib = std::atoll(value.c_str());
  }
  return options;
}

void run_type(Bench& bench, TensorType type, const Options& options) {
  const TensorTypeTraits& traits = traits_of(type);
  for (const NamedActivation& kind : kActivations) {
    if (!selected(options.activations, kind.name)) continue;
    if (!traits.quantised && kind.activation != Activation::kF32) continue;
    for (const Shape shape : kShapes) {
      if (selected(options.shapes, shape_name(shape)) && shape.columns % traits.block_elements == 0) {
        bench.run(type, kind, shape);
      }
    }
  }
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
    for (const TensorType type : kTypes) {
      if (selected(options.types, traits_of(type).name)) run_type(bench, type, options);
    }
  }
  return 0;
}

}  // namespace
}  // namespace octavo::kernels::cpu

int main(int count, char** arguments) {
  return octavo::kernels::cpu::run(octavo::kernels::cpu::parse(count, arguments));
}
