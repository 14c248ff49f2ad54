// Adjusts logits where they stand (kernels/logit_adjustment.h: bias, forbidden tokens, penalties), so that
// the kernels that draw see a row as the host's sampler sees it: a few launches for all rows of a call, which
// touch the tokens of the lists and the pieces that hold them, and nothing else.
//
// Log-probabilities are the model's own, of logits before they are adjusted: these are kept, and what was
// drawn is corrected by them.
//
// Ownership: memory for the lists of one call, from create() on. Thread: one. Errors: while creating;
// failures of a step are the stream's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/upload_ring.h"
#include "kernels/cuda/sampling/sample_kernels.h"
#include "kernels/logit_adjustment.h"

namespace octavo::kernels::cuda {

// Rows of logits that may be changed, with their summary (logits_summary.h); as SampleInput.
struct AdjustableRows {
  float* logits;
  float* log_sum_exp;
  float* piece_maxima;
  std::int64_t vocabulary;
};

// What adjust() did, until its next call.
struct AdjustedRows {
  std::span<const RowAdjustment> rows = {};  // of the host: of the rows of `input`, tokens counted from 0
  const LogitAdjustment* tokens = nullptr;   // of the device, as what follows
  const float* originals = nullptr;          // the logits of these tokens as they were
};

class LogitAdjuster {
 public:
  // For calls of so many tokens in so many rows.
  static Result<LogitAdjuster> create(std::int64_t most_tokens, std::int64_t most_rows);
  // What adjust() sends through its ring at most.
  static constexpr std::int64_t input_bytes(std::int64_t most_tokens, std::int64_t most_rows) {
    return UploadRing::padded(most_tokens * std::int64_t{sizeof(LogitAdjustment)}) +
           UploadRing::padded(most_rows * std::int64_t{sizeof(RowAdjustment)});
  }

  std::int64_t most_tokens() const { return most_tokens_; }
  std::int64_t bytes() const { return lists_.bytes() + originals_.bytes(); }

  // Changes the logits, and of the summary the maxima of their pieces; log_sum_exp stays the model's, but for
  // rows in which no token can come any more: minus infinity. A row that is not valid stays one.
  // `adjustments`: of rows first_row and following, the first of `input`. `inputs`: in the same stream.
  // REQUIRES: no more tokens and rows than create() reserved
  AdjustedRows adjust(Stream& stream, UploadRing& inputs, const AdjustableRows& input, std::int32_t first_row,
                      const LogitAdjustments& adjustments);

 private:
  LogitAdjuster() = default;

  std::int64_t most_tokens_ = 0, most_rows_ = 0;
  DeviceMemory lists_{}, originals_{};
  std::vector<RowAdjustment> rows_;  // of one call
};

// Gives tokens that were drawn from adjusted rows the log-probabilities of the rows before. The draws are
// those of `results`; DeviceDraw says where the tokens of its row are.
void correct_logprobs(Stream& stream, const SampleInput& input, const DeviceDraw* draws,
                      std::int32_t num_draws, const AdjustedRows& adjusted, DrawnToken* results);

}  // namespace octavo::kernels::cuda
