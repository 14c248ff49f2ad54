// What recurrence costs on the CPU beside the rest of its layer, and what it could cost as products of
// chunks.
//
//   octavo_recurrence_bench [--models qwen3.5-4b,granite-4-h-micro] [--threads 2] [--rows 1,16,512]
//                           [--isa avx2] [--seconds 1]
//
// Layer: a recurrent layer with its feed-forward layer as a step runs it, on random 4-bit weights and 16-bit
// activations. Several layers' weights and states take turns, more than the caches hold. Recurrence and
// convolution: the same kernels on numbers of the same shape, alone, cut among the threads as the layer cuts
// them. All are medians of the passes within the given time; with one thread in processor time, which other
// programs on the machine disturb less.
//
// Chunked: what taking 64 tokens at a time as products of matrices would take at the least: its multiply-adds
// at the rate of a loop that does nothing else. A bound of our own making, not a measurement: copies,
// exponentials and products of small matrices come on top.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/half.h"
#include "kernels/backends.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/cpu/simd/machine_limits.h"
#include "kernels/cpu/thread_pool.h"

namespace octavo::kernels::cpu {
namespace {

constexpr std::int32_t kChunk = 64;         // tokens of the chunked form
constexpr std::int32_t kSetsOfWeights = 4;  // which layers take turns at

struct Options {
  std::string models, rows = "1,16,512", isa;
  int threads = 2;
  double seconds = 1.0;
};

// One of the two shapes has heads.
struct Model {
  std::string_view name;
  std::int32_t num_layers;  // recurrent ones
  std::int64_t width, hidden;
  DeltaNetShape delta_net = {};
  StateSpaceShape state_space = {};

  bool is_delta_net() const { return delta_net.num_value_heads > 0; }
  std::int64_t heads() const { return is_delta_net() ? delta_net.num_value_heads : state_space.num_heads; }
  std::int64_t columns() const {
    return is_delta_net() ? delta_net.value_columns() : state_space.inner_columns();
  }
  std::int64_t channels() const { return is_delta_net() ? delta_net.channels() : state_space.channels(); }
  StateLayout layout() const {
    return {num_layers, delta_net.recurrent_floats() + state_space.recurrent_floats(),
            delta_net.convolution_floats() + state_space.convolution_floats()};
  }
  // Of one token in all heads of a layer. Both read S for what a token asks of it and write what it brings,
  // and with chunks in both directions; within a chunk half of the pairs of tokens count.
  double chunked_multiply_adds() const {
    constexpr double kPairs = kChunk / 2.0;
    if (is_delta_net()) {
      const double key = delta_net.key_dim, value = delta_net.value_dim;
      const double within = kPairs * (3 * key + 2 * value) + kChunk * kChunk / 6.0;  // and the substitution
      return static_cast<double>(heads()) * (3 * key * value + within);
    }
    const double state = state_space.state_size, dim = state_space.head_dim;
    return static_cast<double>(heads()) * (2 * state * dim + kPairs * dim) +
           state_space.num_groups * kPairs * state;
  }
};

constexpr Model kModels[] = {
    {.name = "qwen3.5-4b",
     .num_layers = 24,
     .width = 2560,
     .hidden = 9216,
     .delta_net = {16, 32, 128, 128, 4, KeyHeadOrder::kTiled}},
    {.name = "granite-4-h-micro",
     .num_layers = 36,
     .width = 2048,
     .hidden = 8192,
     .state_space = {64, 64, 1, 128, 4}},
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
    function();
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

MatrixView view_of(std::vector<float>& numbers, std::int64_t rows) {
  const auto columns = static_cast<std::int64_t>(numbers.size()) / rows;
  return {numbers.data(), rows, columns, columns};
}

// The recurrent layers of a model, with fewer sets of weights than layers.
class Layers {
 public:
  Layers(const Model& model, Backend& backend)
      : model_(model),
        backend_(backend),
        states_(backend.allocate_state_cache(model.layout(), 1).value()),
        ones_(static_cast<std::size_t>(std::max(model.width, model.columns())), 1.0f),
        taps_(random_numbers(model.channels() * 4, 0.3f)),
        heads_(static_cast<std::size_t>(model.heads()), -0.5f) {
    for (auto& set : sets_) {
      set = {matrix(model.channels(), model.width), matrix(model.columns(), model.width),
             matrix(model.heads(), model.width),    matrix(model.heads(), model.width),
             matrix(model.width, model.columns()),  matrix(model.hidden, model.width),
             matrix(model.hidden, model.width),     matrix(model.width, model.hidden)};
    }
    const std::int32_t first[] = {0};
    backend.clear_states(*states_, first);
  }

  // Some layers of the model once.
  void run(std::int32_t num_layers, std::int64_t num_rows, MatrixView x, MatrixView mixed,
           MatrixView hidden) {
    const std::int32_t query_start[] = {0, static_cast<std::int32_t>(num_rows)}, states[] = {0};
    PagedBatch batch;
    batch.num_tokens = query_start[1];
    batch.num_sequences = 1;
    batch.query_start = query_start;
    batch.states = states;
    for (std::int32_t layer = 0; layer < num_layers; ++layer) {
      const auto& set = sets_[layer % kSetsOfWeights];
      const NormWeights norm = {.weight = std::span(ones_).first(static_cast<std::size_t>(model_.width)),
                                .epsilon = 1e-6f};
      run_recurrent(set, norm, batch, layer, x, mixed);
      backend_.project_residual({.matrix = set[4].get()}, mixed, x);
      backend_.feed_forward_input({.norm = norm, .gate = set[5].get(), .up = set[6].get()}, x, hidden);
      backend_.project_residual({.matrix = set[7].get()}, hidden, x);
    }
  }

 private:
  using Set = std::array<std::unique_ptr<Matrix>, 8>;

  void run_recurrent(const Set& set, const NormWeights& norm, const PagedBatch& batch, std::int32_t layer,
                     MatrixView x, MatrixView mixed) {
    if (model_.is_delta_net()) {
      const auto value_dim = static_cast<std::size_t>(model_.delta_net.value_dim);
      backend_.gated_delta_net(
          {.norm = norm,
           .query_key_value = set[0].get(),
           .gate = set[1].get(),
           .alpha = set[2].get(),
           .beta = set[3].get(),
           .convolution = taps_,
           .time_bias = heads_,
           .decay = heads_,
           .output_norm = {.weight = std::span(ones_).first(value_dim), .epsilon = 1e-6f}},
          model_.delta_net, batch, layer, x, *states_, mixed);
      return;
    }
    const auto columns = static_cast<std::size_t>(model_.columns());
    backend_.state_space({.norm = norm,
                          .input = set[0].get(),
                          .gate = set[1].get(),
                          .time_step = set[2].get(),
                          .convolution = taps_,
                          .time_bias = heads_,
                          .decay = heads_,
                          .skip = heads_,
                          .output_norm = {.weight = std::span(ones_).first(columns), .epsilon = 1e-6f}},
                         model_.state_space, batch, layer, x, *states_, mixed);
  }

  // Of Q4_0: a scale for each 32, by which products of rows of ones stay near one.
  std::unique_ptr<Matrix> matrix(std::int64_t rows, std::int64_t columns) {
    constexpr std::size_t kBlockBytes = 18;
    const std::uint16_t scale = float_to_half(0.005f);
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows * columns / 32) * kBlockBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random_() >> 24);
    for (std::size_t i = 0; i < bytes.size(); i += kBlockBytes) std::memcpy(&bytes[i], &scale, sizeof scale);
    return backend_.prepare_matrix({TensorType::kQ4_0, rows, columns, bytes}).value();
  }

  const Model& model_;
  Backend& backend_;
  std::unique_ptr<StateCache> states_;
  std::vector<float> ones_, taps_, heads_;
  std::mt19937 random_{5};
  Set sets_[kSetsOfWeights];
};

class Bench {
 public:
  Bench(InstructionSet isa, ThreadPool& pool, Backend& backend, const Options& options)
      : kernels_(kernel_table(isa)), pool_(pool), backend_(backend), options_(options) {
    const MachineLimitKernels& limits = machine_limit_kernels(isa);
    constexpr std::int64_t kRounds = 1'000'000;
    const double seconds = clock_.median_seconds(0.2, [&] {
      pool_.parallel_for(options_.threads, [&](std::int64_t, std::int32_t) { limits.float_rounds(kRounds); });
    });
    multiply_adds_per_s_ =
        options_.threads * kRounds * static_cast<double>(limits.float_multiply_adds_per_round) / seconds;
    std::printf("%s, %d threads: %.0f G float multiply-adds/s\n", instruction_set_name(isa).data(),
                options_.threads, multiply_adds_per_s_ * 1e-9);
  }

  void run(const Model& model) {
    Layers layers(model, backend_);
    std::printf("%.*s, microseconds for a token and layer\n", static_cast<int>(model.name.size()),
                model.name.data());
    for (const std::int64_t rows : {1, 2, 4, 16, 64, 512}) {
      if (!selected(options_.rows, std::to_string(rows))) continue;
      const double tokens = static_cast<double>(rows) * 1e-6;
      const double layer = layer_seconds(model, layers, rows) / tokens;
      const double recurrence = recurrence_seconds(model, rows) / tokens;
      const double convolution = convolution_seconds(model, rows) / tokens;
      const double chunked = model.chunked_multiply_adds() / multiply_adds_per_s_ * 1e6;
      std::printf(
          "  %3lld rows: layer %8.2f, of it recurrence %6.2f (%4.1f %%), convolution %5.2f (%4.1f %%); "
          "chunked at least %5.2f\n",
          static_cast<long long>(rows), layer, recurrence, 100 * recurrence / layer, convolution,
          100 * convolution / layer, chunked);
      std::fflush(stdout);
    }
  }

 private:
  // Of a pass: with few rows as many as the model has, so that weights and states come from memory.
  static std::int32_t layers_of_a_pass(const Model& model, std::int64_t num_rows) {
    return num_rows < 16 ? model.num_layers : kSetsOfWeights;
  }

  double layer_seconds(const Model& model, Layers& layers, std::int64_t num_rows) {
    const std::int32_t num_layers = layers_of_a_pass(model, num_rows);
    StepShape shape;
    shape.num_rows = static_cast<std::int32_t>(num_rows);
    shape.num_logits_rows = 1;
    shape.max_context_len = 1;
    shape.embedding_length = static_cast<std::int32_t>(model.width);
    shape.feed_forward_length = static_cast<std::int32_t>(model.hidden);
    shape.num_heads = shape.num_kv_heads = 1;
    shape.head_dim = 64;
    shape.vocabulary_size = 64;
    shape.has_quantised_weights = true;
    shape.delta_net = model.delta_net;
    shape.state_space = model.state_space;
    if (const auto reserved = backend_.reserve_step(shape); !reserved) std::abort();
    std::vector<float> x = random_numbers(num_rows * model.width, 1.0f);
    std::vector<float> mixed(static_cast<std::size_t>(num_rows * model.columns())),
        hidden(static_cast<std::size_t>(num_rows * model.hidden));
    const std::vector<float> start = x;
    return clock_.median_seconds(options_.seconds, [&] {
      x = start;
      layers.run(num_layers, num_rows, view_of(x, num_rows), view_of(mixed, num_rows),
                 view_of(hidden, num_rows));
    }) / num_layers;
  }

  // As one layer's: S of all layers in turn, [channels] of each row.
  double recurrence_seconds(const Model& model, std::int64_t num_rows) {
    const std::int32_t num_layers = layers_of_a_pass(model, num_rows);
    const std::int64_t state_floats = model.layout().recurrent_floats, channels = model.channels();
    const std::int64_t head_floats = state_floats / model.heads();
    std::vector<float> states(static_cast<std::size_t>(state_floats * model.num_layers), 0.01f);
    std::vector<float> rows = random_numbers(num_rows * channels, 0.1f);
    const std::vector<float> gates(static_cast<std::size_t>(num_rows * model.heads()), 0.5f);
    return clock_.median_seconds(options_.seconds / 2, [&] {
      for (std::int64_t layer = 0; layer < num_layers; ++layer) {
        pool_.parallel_for_in_runs(model.heads(), [&](std::int64_t head, std::int32_t) {
          float* const state = states.data() + layer * state_floats + head * head_floats;
          run_head(model, state, head, num_rows, rows.data(), gates.data());
        });
      }
    }) / num_layers;
  }

  void run_head(const Model& model, float* state, std::int64_t head, std::int64_t num_rows, float* rows,
                const float* gates) const {
    if (model.is_delta_net()) {
      const DeltaNetShape& shape = model.delta_net;
      const std::int64_t key_at = head % shape.num_key_heads * shape.key_dim;
      kernels_.delta_rule({.state = state,
                           .key_dim = shape.key_dim,
                           .value_dim = shape.value_dim,
                           .num_rows = num_rows,
                           .queries = rows + key_at,
                           .keys = rows + shape.query_columns() + key_at,
                           .values = rows + 2 * shape.query_columns() + head * shape.value_dim,
                           .row_stride = model.channels(),
                           .decays = gates + head,
                           .betas = gates + head,
                           .gate_stride = model.heads()});
      return;
    }
    const StateSpaceShape& shape = model.state_space;
    const std::int64_t group = head / (shape.num_heads / shape.num_groups) * shape.state_size;
    kernels_.state_space({.state = state,
                          .state_size = shape.state_size,
                          .head_dim = shape.head_dim,
                          .num_rows = num_rows,
                          .inputs = rows + head * shape.head_dim,
                          .writes = rows + shape.inner_columns() + group,
                          .reads = rows + shape.inner_columns() + shape.group_columns() + group,
                          .row_stride = model.channels(),
                          .decays = gates + head,
                          .times = gates + head,
                          .time_stride = model.heads(),
                          .skip = 0.5f});
  }

  double convolution_seconds(const Model& model, std::int64_t num_rows) {
    constexpr std::int64_t kPiece = 128;
    constexpr std::int32_t kTaps = 4;
    const std::int64_t channels = model.channels() / kPiece * kPiece;
    const std::vector<float> weights = random_numbers(channels * kTaps, 0.3f);
    std::vector<float> history(static_cast<std::size_t>((kTaps - 1) * channels)),
        rows = random_numbers(num_rows * channels, 1.0f);
    std::vector<std::vector<float>> scratch(static_cast<std::size_t>(options_.threads),
                                            std::vector<float>(kPiece * kTaps));
    return clock_.median_seconds(options_.seconds / 4, [&] {
      pool_.parallel_for_in_runs(channels / kPiece, [&](std::int64_t piece, std::int32_t worker) {
        const std::int64_t first = piece * kPiece;
        kernels_.convolve({.weights = weights.data() + first * kTaps,
                           .bias = nullptr,
                           .width = kTaps,
                           .history = history.data() + first,
                           .history_stride = channels,
                           .rows = rows.data() + first,
                           .row_stride = channels,
                           .num_rows = num_rows,
                           .count = kPiece,
                           .applies_silu = true},
                          scratch[static_cast<std::size_t>(worker)].data());
      });
    });
  }

  const KernelTable& kernels_;
  ThreadPool& pool_;
  Backend& backend_;
  const Options& options_;
  const Clock clock_{options_.threads};
  double multiply_adds_per_s_ = 0;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--models") options.models = value;
    if (name == "--rows") options.rows = value;
    if (name == "--isa") options.isa = value;
    if (name == "--threads") options.threads = std::atoi(value.c_str());
    if (name == "--seconds") options.seconds = std::atof(value.c_str());
  }
  return options;
}

int run(const Options& options) {
  if (!options.isa.empty()) ::setenv("OCTAVO_CPU_ISA", options.isa.c_str(), 1);
  auto backend = create_backend(
      {.device = "cpu", .threads = options.threads, .activation = Activation::kInt16, .needs_states = true});
  auto pool = ThreadPool::create(options.threads);
  if (!backend || !pool) {
    std::fprintf(stderr, "%s\n", (backend ? pool.error() : backend.error()).message.c_str());
    return 1;
  }
  for (const InstructionSet isa : usable_instruction_sets()) {
    if (!options.isa.empty() && options.isa != instruction_set_name(isa)) continue;
    Bench bench(isa, **pool, **backend, options);
    for (const Model& model : kModels)
      if (selected(options.models, model.name)) bench.run(model);
    return 0;  // the best one
  }
  return 1;
}

}  // namespace
}  // namespace octavo::kernels::cpu

int main(int count, char** arguments) {
  return octavo::kernels::cpu::run(octavo::kernels::cpu::parse(count, arguments));
}
