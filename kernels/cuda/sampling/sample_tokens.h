// Draws tokens from rows of logits where they stand (token_draw.h says what is drawn): a few launches for up
// to kDrawsTogether draws, whatever they ask for, and nothing comes back but ids and log-probabilities.
//
//   greedy                  one launch, which reads the pieces' maxima and one piece
//   temperature             the floor, the sums of all pieces, the draw
//   top_k, min_p, top_p     beside these the bins and the cut: sample_kernels.h
//
// Numbers. Weights have the bits of the host's exponential; what is kept is decided by sums of integers; the
// last sums are doubles in an order that the vocabulary alone decides. So a draw gives the same token
// whatever is drawn beside it.
//
// Speed (estimates: RESOURCES.md). With top_k or min_p only pieces are read that can hold something; top_p
// alone and temperature alone weigh the whole vocabulary, in double. A row whose logits lie within a
// thousandth of their range, so that all are in one bin, is searched by one block: right, and slow.
//
// Ownership: memory for kDrawsTogether draws, from reserve() on. Thread: one. Errors: while reserving;
// failures of a step are the stream's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/upload_ring.h"
#include "kernels/cuda/sampling/adjust_logits.h"
#include "kernels/cuda/sampling/sample_kernels.h"

namespace octavo::kernels::cuda {

// A draw worked out, from row `row` of the logits that stand.
DeviceDraw device_draw(const TokenDraw& draw, std::int32_t row, std::int64_t vocabulary);

// Of the best token of each row from first_row on, in order: then the draws need no list on the device.
bool are_best_of_rows(std::span<const TokenDraw> draws, std::int32_t first_row);

// What draws ask for: what none asks for is not started.
struct DrawKinds {
  bool best = true, random = false, cut = false;

  static DrawKinds of(std::span<const DeviceDraw> draws);
};

class TokenSampler {
 public:
  static constexpr std::int32_t kDrawsTogether = 64;
  // What draw() sends through its ring at most.
  static constexpr std::int64_t kInputBytes = kDrawsTogether * static_cast<std::int64_t>(sizeof(DeviceDraw));

  static Result<TokenSampler> create(Stream& stream, std::int64_t vocabulary_size);
  std::int64_t bytes() const { return states_.bytes() + bins_.bytes() + piece_sums_.bytes(); }

  // Starts the draws; row `first_row` is the first of `input`. `results` [draws.size()] in device memory.
  // `inputs`: in the same stream. `adjusted`: what was done to rows of `input` before.
  // REQUIRES: input.vocabulary <= vocabulary_size
  void draw(Stream& stream, UploadRing& inputs, const SampleInput& input, std::int32_t first_row,
            std::span<const TokenDraw> draws, DrawnToken* results, const AdjustedRows& adjusted = {});
  // The same of draws that are on the device already, from rows as they are; null: the best of each row.
  void draw_listed(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                   const DrawKinds& kinds, DrawnToken* results);

 private:
  TokenSampler() = default;

  DeviceMemory states_{}, bins_{}, piece_sums_{};  // of kDrawsTogether draws
  std::vector<DeviceDraw> draws_;                  // of one round
};

}  // namespace octavo::kernels::cuda
