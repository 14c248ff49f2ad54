// Speed of the CPU's matrix products, for each type of weights, instruction set and number of rows.
//
//   octavo_matmul_bench [--types Q4_1,Q8_0] [--isas avx512_vnni,avx2] [--activations int8,f32] [--threads 2]
//   [--seconds 0.2]
//
// Weights and activations are random. A shape's matrix is repeated until the weights are larger than the
// third-level cache (64 MiB) and the copies are multiplied in turn, so that one row measures memory. Each
// figure is the median of the calls within the given time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/matmul.h"

namespace octavo::kernels::cpu {
namespace {

constexpr TensorType kTypes[] = {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ4_K, TensorType::kQ5_0,
                                 TensorType::kQ5_1, TensorType::kQ5_K, TensorType::kQ8_0, TensorType::kQ6_K,
                                 TensorType::kQ2_K, TensorType::kQ3_K, TensorType::kF32,  TensorType::kF16,
                                 TensorType::kBF16};
constexpr std::int64_t kRowCounts[] = {1, 2, 4, 8, 16, 64, 512};

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{576, 576}, {192, 576}, {1536, 576}, {576, 1536}, {49152, 576}};

struct Options {
  std::string types = "Q4_1,Q8_0", isas, activations = "int8,f32", shapes;
  int threads = 2;
  double seconds = 0.1;
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
  return bytes;
}

double seconds_of(const auto& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Median of the calls function(0), function(1), ... that fit into the time limit.
double median_seconds(double time_limit, const auto& function) {
  std::vector<double> times;
  for (double total = 0; times.size() < 3 || total < time_limit; total += times.back()) {
    times.push_back(seconds_of([&] { function(times.size()); }));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

class Bench {
 public:
  Bench(InstructionSet isa, ThreadPool& pool, const Options& options)
      : isa_(isa), pool_(pool), options_(options) {}

  void run(TensorType type, Activation activation, Shape shape) {
    const std::vector<std::byte> bytes = random_weights(type, shape);
    PackedMemory memory;
    std::vector<std::unique_ptr<PackedMatrix>> copies;
    std::int64_t packed_bytes = 0;
    double pack_seconds = 0;
    while (packed_bytes < (std::int64_t{64} << 20)) {
      pack_seconds += seconds_of([&] {
        copies.push_back(
            *pack_matrix({type, shape.rows, shape.columns, bytes}, activation, isa_, pool_, memory));
      });
      packed_bytes += copies.back()->memory_bytes();
    }
    std::printf("%-5s %-4s %-11s %-10s %5.2f bits/weight, packs %.2f GB/s:", traits_of(type).name.data(),
                activation == Activation::kInt8 ? "int8" : "f32", instruction_set_name(isa_).data(),
                shape_name(shape).c_str(),
                8.0 * static_cast<double>(copies[0]->memory_bytes()) /
                    static_cast<double>(shape.rows * shape.columns),
                static_cast<double>(packed_bytes) / pack_seconds * 1e-9);
    for (const std::int64_t rows : kRowCounts) measure(copies, rows);
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
    const double matrix_seconds = median_seconds(options_.seconds, [&](std::size_t call) {
      multiply(*copies[call % copies.size()], activations, view);
    });
    const double weight_count = static_cast<double>(weights.rows() * weights.columns());
    if (rows == 1)
      std::printf(" %5.1f GB/s;", static_cast<double>(weights.memory_bytes()) / matrix_seconds * 1e-9);
    std::printf(" %lld: %.0f (%.0f GMAC/s)", static_cast<long long>(rows),
                static_cast<double>(rows) / matrix_seconds,
                static_cast<double>(rows) * weight_count / matrix_seconds * 1e-9);
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
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--types") options.types = value == "all" ? "" : value;
    if (name == "--isas") options.isas = value;
    if (name == "--activations") options.activations = value;
    if (name == "--shapes") options.shapes = value;
    if (name == "--threads") options.threads = std::atoi(value.c_str());
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
  std::printf("rows: rows/s (GMAC/s), %d threads\n", options.threads);
  for (const InstructionSet isa : usable_instruction_sets()) {
    if (!selected(options.isas, instruction_set_name(isa))) continue;
    Bench bench(isa, **pool, options);
    for (const TensorType type : kTypes) {
      if (!selected(options.types, traits_of(type).name)) continue;
      for (const Activation activation : {Activation::kInt8, Activation::kF32}) {
        const bool int8 = activation == Activation::kInt8;
        if (!selected(options.activations, int8 ? "int8" : "f32") || (int8 && !traits_of(type).quantised))
          continue;
        for (const Shape shape : kShapes) {
          if (!selected(options.shapes, shape_name(shape)) ||
              shape.columns % traits_of(type).block_elements != 0)
            continue;
          bench.run(type, activation, shape);
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace octavo::kernels::cpu

int main(int count, char** arguments) {
  return octavo::kernels::cpu::run(octavo::kernels::cpu::parse(count, arguments));
}
