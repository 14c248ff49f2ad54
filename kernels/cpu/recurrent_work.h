// How recurrent layers are cut into work: a sequence's rows in order, heads or pieces of channels in
// parallel. One definition of the memory that they work in, for the arithmetic before loading and for the
// operations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/backend.h"

namespace octavo::kernels::cpu {

// The rows of one sequence in a step, and where its state is.
struct SequenceRows {
  std::int64_t first, count;
  std::int32_t state;
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
};
RecurrentPlan plan_recurrent_layers(const StepShape& shape);

}  // namespace octavo::kernels::cpu
