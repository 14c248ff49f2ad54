// Layers with a state on made-up weights, each as one thing that any backend can be given, and steps of them:
// what a token's row is depends on its sequence and position only, so that the same sequence can be cut into
// other chunks, or put beside others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {

// A layer's operations with its weights in a backend's memory.
struct PreparedLayer {
  std::function<void(const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, StateCache& states,
                     MatrixView out)>
      run;
  std::function<void(const PagedBatch& batch, std::int32_t layer, std::span<const std::int32_t> num_accepted,
                     StateCache& states)>
      accept;
};

struct RecurrentLayer {
  std::string name;
  TensorType type = TensorType::kF32;  // of its large matrices
  std::int64_t input_width = 0, output_width = 0;
  std::int64_t recurrent_floats = 0, convolution_floats = 0, draft_floats = 0;
  float row_scale = 1.0f;                                  // of the rows that it is given
  std::function<void(StepShape&)> add_to_step;             // what a model with such layers says of its steps
  std::function<PreparedLayer(Backend& backend)> prepare;  // the backend must live longer

  StateLayout layout() const {
    return {kNumLayers, recurrent_floats, convolution_floats, draft_floats, kNumDraftRows};
  }
  static constexpr std::int32_t kNumLayers = 3, kRunLayer = 1, kNumDraftRows = 12;
};

struct DeltaNetKind {
  DeltaNetShape shape;
  TensorType type = TensorType::kF32;
  std::int64_t width = 256;
  float slowness = 0.0f;  // 1: nothing is ever forgotten
};
RecurrentLayer delta_net_layer(const DeltaNetKind& kind);

struct StateSpaceKind {
  StateSpaceShape shape;
  TensorType type = TensorType::kF32;
  std::int64_t width = 256;
  bool has_bias = true, has_norm = true;
  float slowness = 0.0f;  // as of DeltaNetKind
};
RecurrentLayer state_space_layer(const StateSpaceKind& kind);

struct ShortConvolutionKind {
  ShortConvolutionShape shape;
  TensorType type = TensorType::kF32;
  std::int64_t width = 256;
};
RecurrentLayer short_convolution_layer(const ShortConvolutionKind& kind);

// Small ones of odd sizes, of every recurrent operation.
std::vector<RecurrentLayer> small_layers();
// As they are in models.
std::vector<RecurrentLayer> usual_layers(TensorType type);

// Tokens first .. first + count - 1 of sequence `id`, whose state is number `state`; the last are a draft.
struct Chunk {
  std::uint64_t id;
  std::int32_t first, count, state;
  std::int32_t num_drafted = 0;
};

// A layer on a backend, with states that are NaN until they are cleared.
class RunningLayer {
 public:
  RunningLayer(const RecurrentLayer& layer, std::unique_ptr<Backend> backend, std::int32_t num_states);

  void clear(std::vector<std::int32_t> states) { backend_->clear_states(*states_, states); }
  void copy(std::int32_t source, std::int32_t target);
  // The rows of the chunks, one behind the other.
  std::vector<float> step(const std::vector<Chunk>& chunks);
  // So many rows of the draft of each of the last step's chunks.
  void accept(const std::vector<Chunk>& chunks, const std::vector<std::int32_t>& num_accepted);
  // Sequence `id` from its start on a cleared state 0, in chunks of these sizes.
  std::vector<float> run(std::uint64_t id, const std::vector<std::int32_t>& chunk_sizes);

  // A number in the rows of a token, from now on.
  void spoil(std::uint64_t id, std::int32_t position, float value) { spoilt_ = {id, position, value}; }

  Backend& backend() { return *backend_; }
  StateCache& states() { return *states_; }
  // All numbers of a state, and those of the layer that runs.
  std::vector<float> state(std::int32_t index);
  std::vector<float> recurrent(std::int32_t index);
  std::vector<float> convolution(std::int32_t index);

 private:
  struct Spoilt {
    std::uint64_t id = 0;
    std::int32_t position = -1;
    float value = 0.0f;
  };

  std::vector<float> numbers(std::int64_t first, std::int64_t count);

  const RecurrentLayer layer_;
  const std::unique_ptr<Backend> backend_;
  const PreparedLayer prepared_;
  const std::unique_ptr<StateCache> states_;
  Spoilt spoilt_;
};

float* state_floats(Backend& backend, StateCache& states);
float* state_floats(Backend& backend, HostStateCache& states);

}  // namespace octavo::kernels::testing
