#include "tests/kernels/recurrent_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {
namespace {

// Large, so that it shows where it is added, and that what it is added to has the right size.
constexpr float kEpsilon = 0.02f;

// Matrices in the file's form, and prepared; the addresses of both stay.
class PreparedMatrices {
 public:
  explicit PreparedMatrices(Backend& backend) : backend_(backend) {}
  const Matrix* add(TensorType type, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    matrices_.push_back(backend_.prepare_matrix(random_matrix(type, rows, columns, seed).source).value());
    return matrices_.back().get();
  }

 private:
  Backend& backend_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
};

// Numbers between `most` and `most` times 0.01, negative.
std::vector<float> negative_numbers(std::uint64_t seed, std::int64_t count, float most) {
  std::vector<float> numbers = noise_row(seed, 0, count);
  for (float& number : numbers) number = -most * std::pow(10.0f, number - 1.0f);
  return numbers;
}

std::vector<float> row_of(const RecurrentLayer& layer, std::uint64_t id, std::int32_t position) {
  return noise_row(1'000 + id, static_cast<std::uint64_t>(position), layer.input_width, layer.row_scale);
}

// The arrays of a batch of chunks.
struct ChunkBatch {
  explicit ChunkBatch(const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
      for (std::int32_t i = 0; i < chunk.count; ++i) positions.push_back(chunk.first + i);
      query_start.push_back(static_cast<std::int32_t>(positions.size()));
      context_lens.push_back(chunk.first + chunk.count);
      states.push_back(chunk.state);
      num_drafted.push_back(chunk.num_drafted);
    }
  }
  PagedBatch batch() const {
    PagedBatch batch;
    batch.num_tokens = static_cast<std::int32_t>(positions.size());
    batch.num_sequences = static_cast<std::int32_t>(states.size());
    batch.positions = positions;
    batch.query_start = query_start;
    batch.context_lens = context_lens;
    batch.states = states;
    batch.num_drafted = num_drafted;
    return batch;
  }
  std::vector<std::int32_t> positions, query_start = {0}, context_lens, states, num_drafted;
};

}  // namespace

RecurrentLayer delta_net_layer(const DeltaNetKind& kind) {
  const DeltaNetShape& shape = kind.shape;
  RecurrentLayer layer;
  layer.name = "delta net, " + std::to_string(shape.num_key_heads) + " heads of " +
               std::to_string(shape.key_dim) + ", " + std::to_string(shape.num_value_heads) + " of " +
               std::to_string(shape.value_dim) + ", width " + std::to_string(shape.convolution_width);
  layer.type = kind.type;
  layer.input_width = kind.width;
  layer.output_width = shape.value_columns();
  layer.recurrent_floats = shape.recurrent_floats();
  layer.convolution_floats = shape.convolution_floats();
  layer.draft_floats = shape.draft_floats();
  layer.add_to_step = [shape](StepShape& step) { step.delta_net = shape; };
  layer.prepare = [kind, shape](Backend& backend) -> PreparedLayer {
    const std::int64_t heads = shape.num_value_heads;
    struct Weights {
      explicit Weights(Backend& on) : matrices(on) {}
      PreparedMatrices matrices;
      std::vector<float> norm, convolution, time_bias, decay, output_norm;
      DeltaNetWeights view;
    };
    const auto own = std::make_shared<Weights>(backend);
    own->norm = norm_weight(10, kind.width);
    own->convolution = noise_row(11, 0, shape.channels() * shape.convolution_width);
    own->time_bias = noise_row(12, 0, heads, 2.0f);
    own->decay = negative_numbers(13, heads, 2.0f * (1.0f - kind.slowness));
    own->output_norm = norm_weight(14, shape.value_dim);
    own->view = {.norm = {.weight = own->norm, .epsilon = kEpsilon},
                 .query_key_value = own->matrices.add(kind.type, shape.channels(), kind.width, 15),
                 .gate = own->matrices.add(kind.type, shape.value_columns(), kind.width, 16),
                 .alpha = own->matrices.add(TensorType::kF32, heads, kind.width, 17),
                 .beta = own->matrices.add(kind.type, heads, kind.width, 18),
                 .convolution = own->convolution,
                 .time_bias = own->time_bias,
                 .decay = own->decay,
                 .output_norm = {.weight = own->output_norm, .epsilon = kEpsilon}};
    return {.run =
                [own, shape, &backend](const PagedBatch& batch, std::int32_t index, ConstMatrixView x,
                                       StateCache& states, MatrixView out) {
                  backend.gated_delta_net(own->view, shape, batch, index, x, states, out);
                },
            .accept =
                [own, shape, &backend](const PagedBatch& batch, std::int32_t index,
                                       std::span<const std::int32_t> num_accepted, StateCache& states) {
                  backend.accept_delta_net(own->view, shape, batch, index, num_accepted, states);
                }};
  };
  return layer;
}

RecurrentLayer state_space_layer(const StateSpaceKind& kind) {
  const StateSpaceShape& shape = kind.shape;
  RecurrentLayer layer;
  layer.name = "state space, " + std::to_string(shape.num_heads) + " heads of " +
               std::to_string(shape.head_dim) + ", " + std::to_string(shape.num_groups) + " groups of " +
               std::to_string(shape.state_size) + ", width " + std::to_string(shape.convolution_width) +
               (kind.has_bias ? ", bias" : "") + (kind.has_norm ? ", norm" : "");
  layer.type = kind.type;
  layer.input_width = kind.width;
  layer.output_width = shape.inner_columns();
  layer.recurrent_floats = shape.recurrent_floats();
  layer.convolution_floats = shape.convolution_floats();
  layer.draft_floats = shape.draft_floats();
  layer.add_to_step = [shape](StepShape& step) { step.state_space = shape; };
  layer.prepare = [kind, shape](Backend& backend) -> PreparedLayer {
    struct Weights {
      explicit Weights(Backend& on) : matrices(on) {}
      PreparedMatrices matrices;
      std::vector<float> norm, convolution, convolution_bias, time_bias, decay, skip, output_norm;
      StateSpaceWeights view;
    };
    const auto own = std::make_shared<Weights>(backend);
    own->norm = norm_weight(30, kind.width);
    own->convolution = noise_row(31, 0, shape.channels() * shape.convolution_width);
    if (kind.has_bias) own->convolution_bias = noise_row(32, 0, shape.channels());
    own->time_bias = noise_row(33, 0, shape.num_heads, 2.0f);
    own->decay = negative_numbers(34, shape.num_heads, 2.0f * (1.0f - kind.slowness));
    own->skip = noise_row(35, 0, shape.num_heads);
    if (kind.has_norm) own->output_norm = norm_weight(36, shape.inner_columns());
    own->view = {.norm = {.weight = own->norm, .epsilon = kEpsilon},
                 .input = own->matrices.add(kind.type, shape.channels(), kind.width, 37),
                 .gate = own->matrices.add(kind.type, shape.inner_columns(), kind.width, 38),
                 .time_step = own->matrices.add(kind.type, shape.num_heads, kind.width, 39),
                 .convolution = own->convolution,
                 .convolution_bias = own->convolution_bias,
                 .time_bias = own->time_bias,
                 .decay = own->decay,
                 .skip = own->skip,
                 .output_norm = {.weight = own->output_norm, .epsilon = kEpsilon}};
    return {
        .run = [own, shape, &backend](
                   const PagedBatch& batch, std::int32_t index, ConstMatrixView x, StateCache& states,
                   MatrixView out) { backend.state_space(own->view, shape, batch, index, x, states, out); },
        .accept =
            [own, shape, &backend](const PagedBatch& batch, std::int32_t index,
                                   std::span<const std::int32_t> num_accepted, StateCache& states) {
              backend.accept_state_space(own->view, shape, batch, index, num_accepted, states);
            }};
  };
  return layer;
}

RecurrentLayer short_convolution_layer(const ShortConvolutionKind& kind) {
  const ShortConvolutionShape& shape = kind.shape;
  RecurrentLayer layer;
  layer.name = "short convolution, " + std::to_string(shape.num_channels) + " channels, width " +
               std::to_string(shape.convolution_width);
  layer.type = kind.type;
  layer.input_width = kind.width;
  layer.output_width = shape.num_channels;
  layer.convolution_floats = shape.convolution_floats();
  layer.draft_floats = shape.draft_floats();
  layer.add_to_step = [shape](StepShape& step) { step.short_convolution = shape; };
  layer.prepare = [kind, shape](Backend& backend) -> PreparedLayer {
    struct Weights {
      explicit Weights(Backend& on) : matrices(on) {}
      PreparedMatrices matrices;
      std::vector<float> norm, convolution;
      ShortConvolutionWeights view;
    };
    const auto own = std::make_shared<Weights>(backend);
    own->norm = norm_weight(40, kind.width);
    own->convolution = noise_row(41, 0, shape.num_channels * std::int64_t{shape.convolution_width});
    own->view = {.norm = {.weight = own->norm, .epsilon = kEpsilon},
                 .input = own->matrices.add(kind.type, shape.num_channels, kind.width, 42),
                 .input_gate = own->matrices.add(kind.type, shape.num_channels, kind.width, 43),
                 .output_gate = own->matrices.add(kind.type, shape.num_channels, kind.width, 44),
                 .convolution = own->convolution};
    return {.run =
                [own, shape, &backend](const PagedBatch& batch, std::int32_t index, ConstMatrixView x,
                                       StateCache& states, MatrixView out) {
                  backend.short_convolution(own->view, shape, batch, index, x, states, out);
                },
            .accept =
                [own, shape, &backend](const PagedBatch& batch, std::int32_t index,
                                       std::span<const std::int32_t> num_accepted, StateCache& states) {
                  backend.accept_short_convolution(own->view, shape, batch, index, num_accepted, states);
                }};
  };
  return layer;
}

std::vector<RecurrentLayer> small_layers() {
  constexpr auto kTiled = KeyHeadOrder::kTiled, kGrouped = KeyHeadOrder::kGrouped;
  std::vector<RecurrentLayer> layers;
  for (const DeltaNetShape& shape :
       {DeltaNetShape{2, 4, 16, 24, 4, kTiled}, DeltaNetShape{2, 6, 16, 24, 4, kGrouped},
        DeltaNetShape{1, 1, 5, 7, 1, kTiled}, DeltaNetShape{3, 3, 19, 100, 2, kGrouped},
        DeltaNetShape{1, 3, 32, 16, 6, kTiled}})
    layers.push_back(delta_net_layer({.shape = shape, .width = 50}));
  for (const StateSpaceShape& shape : {StateSpaceShape{4, 24, 2, 16, 4}, StateSpaceShape{1, 7, 1, 5, 1},
                                       StateSpaceShape{6, 100, 3, 19, 2}, StateSpaceShape{3, 16, 1, 32, 6}}) {
    const bool is_even = shape.num_heads % 2 == 0;
    layers.push_back(state_space_layer({.shape = shape, .width = 50, .has_bias = is_even}));
    layers.push_back(
        state_space_layer({.shape = shape, .width = 50, .has_bias = !is_even, .has_norm = false}));
  }
  for (const ShortConvolutionShape& shape :
       {ShortConvolutionShape{50, 3}, ShortConvolutionShape{300, 4}, ShortConvolutionShape{7, 2}})
    layers.push_back(short_convolution_layer({.shape = shape, .width = 50}));
  return layers;
}

std::vector<RecurrentLayer> usual_layers(TensorType type) {
  return {delta_net_layer({.shape = {2, 4, 128, 128, 4, KeyHeadOrder::kTiled}, .type = type}),
          state_space_layer({.shape = {4, 64, 2, 128, 4}, .type = type}),
          short_convolution_layer({.shape = {256, 3}, .type = type})};
}

RunningLayer::RunningLayer(const RecurrentLayer& layer, std::unique_ptr<Backend> backend,
                           std::int32_t num_states)
    : layer_(layer),
      backend_(std::move(backend)),
      prepared_(layer_.prepare(*backend_)),
      states_(backend_->allocate_state_cache(layer_.layout(), num_states).value()) {
  std::fill_n(state_floats(*backend_, *states_),
              num_states * layer_.layout().state_bytes() / static_cast<std::int64_t>(sizeof(float)),
              std::numeric_limits<float>::quiet_NaN());
}

void RunningLayer::copy(std::int32_t source, std::int32_t target) {
  const BlockCopy copies[] = {{source, target}};
  backend_->copy_states(*states_, copies);
}

std::vector<float> RunningLayer::step(const std::vector<Chunk>& chunks) {
  const ChunkBatch arrays(chunks);
  std::vector<float> rows;
  for (const Chunk& chunk : chunks) {
    for (std::int32_t i = 0; i < chunk.count; ++i) {
      std::vector<float> row = row_of(layer_, chunk.id, chunk.first + i);
      if (chunk.id == spoilt_.id && chunk.first + i == spoilt_.position) row[1] = spoilt_.value;
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  std::vector<float> out(arrays.positions.size() * static_cast<std::size_t>(layer_.output_width),
                         std::numeric_limits<float>::quiet_NaN());
  const PagedBatch batch = arrays.batch();
  backend_->begin_step(batch, {});
  prepared_.run(batch, RecurrentLayer::kRunLayer, view(std::as_const(rows), layer_.input_width), *states_,
                view(out, layer_.output_width));
  return out;
}

void RunningLayer::accept(const std::vector<Chunk>& chunks, const std::vector<std::int32_t>& num_accepted) {
  const ChunkBatch arrays(chunks);
  prepared_.accept(arrays.batch(), RecurrentLayer::kRunLayer, num_accepted, *states_);
}

std::vector<float> RunningLayer::run(std::uint64_t id, const std::vector<std::int32_t>& chunk_sizes) {
  clear({0});
  std::vector<float> all;
  std::int32_t first = 0;
  for (const std::int32_t size : chunk_sizes) {
    const std::vector<float> rows = step({{id, first, size, 0}});
    all.insert(all.end(), rows.begin(), rows.end());
    first += size;
  }
  return all;
}

std::vector<float> RunningLayer::numbers(std::int64_t first, std::int64_t count) {
  const float* const start = state_floats(*backend_, *states_) + first;
  return {start, start + count};
}

std::vector<float> RunningLayer::state(std::int32_t index) {
  const StateLayout& layout = states_->layout();
  return numbers(layout.layer_offset(index, 0), layout.num_layers * layout.layer_floats());
}

std::vector<float> RunningLayer::recurrent(std::int32_t index) {
  const StateLayout& layout = states_->layout();
  return numbers(layout.layer_offset(index, RecurrentLayer::kRunLayer), layout.recurrent_floats);
}

std::vector<float> RunningLayer::convolution(std::int32_t index) {
  const StateLayout& layout = states_->layout();
  return numbers(layout.layer_offset(index, RecurrentLayer::kRunLayer) + layout.convolution_offset(),
                 layout.convolution_floats);
}

float* state_floats(Backend& backend, StateCache& states) {
  if (backend.name() == "reference") {
    return reinterpret_cast<float*>(static_cast<reference::ReferenceStateCache&>(states).data());
  }
  return reinterpret_cast<float*>(static_cast<cpu::CpuStateCache&>(states).data());
}

float* state_floats(Backend& backend, HostStateCache& states) {
  if (backend.name() == "reference") {
    return reinterpret_cast<float*>(static_cast<reference::ReferenceHostStateCache&>(states).data());
  }
  return reinterpret_cast<float*>(static_cast<cpu::CpuHostStateCache&>(states).data());
}

}  // namespace octavo::kernels::testing
