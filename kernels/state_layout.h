// Where the recurrent layers of a model keep what they know of everything before: one state for each
// sequence, of a size that does not grow with its tokens. A state belongs to exactly one position: it can
// neither be cut nor be shortened.
//
//   pool [num_states] [num_layers] { recurrent floats | convolution floats }
//
// A state holds all recurrent layers in one piece, so that a copy or a swap moves one range of bytes. What
// the numbers of a layer are is said where the layer is computed (kernels/backend.h); all are f32, whatever
// the KV type, and a state of zeros is that before the first token.
//
// Where sequences guess ahead, there is room behind the states for what the rows of one step's drafts bring
// to them, until it is known which of these count:
//
//   drafts [num_layers] [num_draft_rows] { draft floats }
#pragma once

#include <cstdint>

namespace octavo::kernels {

struct StateLayout {
  static constexpr std::int64_t kAlignment = 16;  // floats: a layer begins on a cache line

  std::int32_t num_layers = 0;          // recurrent ones; 0: the model has none, and no states
  std::int64_t recurrent_floats = 0;    // of a layer
  std::int64_t convolution_floats = 0;  // of a layer: the newest inputs of its convolution
  std::int64_t draft_floats = 0;        // of a layer: what a row of a draft brings to a state
  std::int32_t num_draft_rows = 0;      // of a step, at most; 0: nobody guesses

  constexpr bool empty() const { return num_layers == 0; }
  // Offsets and sizes in floats.
  constexpr std::int64_t convolution_offset() const { return rounded(recurrent_floats); }
  constexpr std::int64_t layer_floats() const { return convolution_offset() + rounded(convolution_floats); }
  constexpr std::int64_t layer_offset(std::int64_t state, std::int32_t layer) const {
    return (state * num_layers + layer) * layer_floats();
  }
  constexpr std::int64_t state_bytes() const {
    return num_layers * layer_floats() * static_cast<std::int64_t>(sizeof(float));
  }
  constexpr std::int64_t draft_stride() const { return rounded(draft_floats); }
  // Of a layer's first draft, behind so many states.
  constexpr std::int64_t draft_offset(std::int64_t num_states, std::int32_t layer) const {
    return layer_offset(num_states, 0) + std::int64_t{layer} * num_draft_rows * draft_stride();
  }
  constexpr std::int64_t draft_bytes() const {
    return std::int64_t{num_layers} * num_draft_rows * draft_stride() *
           static_cast<std::int64_t>(sizeof(float));
  }
  friend bool operator==(const StateLayout&, const StateLayout&) = default;

 private:
  static constexpr std::int64_t rounded(std::int64_t floats) {
    return (floats + kAlignment - 1) / kAlignment * kAlignment;
  }
};

}  // namespace octavo::kernels
