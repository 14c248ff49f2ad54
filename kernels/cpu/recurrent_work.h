// How recurrent layers are cut into work: a sequence's rows in order, heads or pieces of channels in
// parallel. One definition of the memory that they work in, for the arithmetic before loading and for the
// operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace octavo::kernels::cpu {

// Neighbouring rows of one sequence, and where its state is. The last of them may be a draft, which leaves
// the state as it was before them.
struct SequenceRows {
  std::int64_t first, count;
  std::int32_t state;
  std::int64_t num_drafted = 0;
  std::int64_t first_draft = 0;  // of the step's rows of drafts

  SequenceRows known() const { return {first, count - num_drafted, state}; }
  SequenceRows draft() const { return {first + count - num_drafted, num_drafted, state}; }
};

// Of a step: each sequence's rows; and as rows of drafts those that are accepted.
void list_rows(const PagedBatch& batch, std::vector<SequenceRows>& rows);
void list_accepted(const PagedBatch& batch, std::span<const std::int32_t> num_accepted,
                   std::vector<SequenceRows>& rows);

// Numbers of a layer's state that belong to one part of its work: `num_runs` of `size` floats, `stride`
// apart.
struct StatePart {
  float* numbers;
  std::int64_t num_runs, size, stride;

  std::int64_t num_floats() const { return num_runs * size; }
  // The same numbers, one run behind the other.
  StatePart copied_to(float* memory) const {
    for (std::int64_t run = 0; run < num_runs; ++run)
      std::copy_n(numbers + run * stride, size, memory + run * size);
    return {memory, num_runs, size, size};
  }
};

// Channels that are convolved together: pieces of two sizes, all of one size before the others.
struct ChannelPieces {
  std::int64_t num_first, first_size;
  std::int64_t num_second, second_size;

  struct Piece {
    std::int64_t first, count;
  };
  std::int64_t count() const { return num_first + num_second; }
  Piece at(std::int64_t index) const {
    if (index < num_first) return {index * first_size, first_size};
    return {num_first * first_size + (index - num_first) * second_size, second_size};
  }
  std::int64_t largest() const { return std::max(first_size, second_size); }
};
ChannelPieces pieces_of(const DeltaNetShape& shape);    // queries' and keys' heads, then values'
ChannelPieces pieces_of(const StateSpaceShape& shape);  // heads, then B's and C's groups
ChannelPieces pieces_of(const ShortConvolutionShape& shape);

// Of the products of one row, beside those that stand in the operation's output.
std::int64_t product_row_floats(const DeltaNetShape& shape);
std::int64_t product_row_floats(const StateSpaceShape& shape);
std::int64_t product_row_floats(const ShortConvolutionShape& shape);

// What the layers of a model's steps work in; all zero: there are none.
struct RecurrentPlan {
  std::int64_t columns = 0;             // the widest output
  std::int64_t product_row_floats = 0;  // of a row
  std::int64_t convolution_floats = 0;  // of a worker: the weights of a piece of channels
  std::int64_t part_floats = 0;         // of a worker: the largest part of a state
};
RecurrentPlan plan_recurrent_layers(const StepShape& shape);

}  // namespace octavo::kernels::cpu
