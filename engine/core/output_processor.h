// Turns the drawn tokens of one output into text, and finds where the output ends. A value type, one for each
// output of a request; engine thread.
//
// Which end wins when one token brings several: a stop string, then end of sequence, then a stop token, then
// length. The text of a stop token is none of the output's, so no stop string ends in it, unless
// include_stop_str_in_output.
//
// Invariant: the pieces of text given out, concatenated, are the decoding of all tokens so far (the
// end-of-sequence token and the stop token left out, and control tokens with skip_special_tokens) up to what
// is held back. Held back are the bytes of an unfinished character and any text that may yet become a stop
// string; when the output ends, they are given out, or cut away with the stop string, which itself is given
// out with include_stop_str_in_output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

struct OutputEnd {
  FinishReason finish_reason = FinishReason::kStop;
  StopReason stop_reason = {};
};

class OutputProcessor {
 public:
  // Both arguments outlive the processor, and the sampling parameters are valid. `token_limit` is the most
  // tokens this output may have: max_tokens, or what the model's length leaves beside the prompt, whichever
  // is less.
  OutputProcessor(const tokenizer::Tokenizer& tokenizer, const SamplingParams& sampling,
                  std::int32_t token_limit);

  struct Step {
    std::string text;              // became certain with this token; whole characters
    std::optional<OutputEnd> end;  // set when this token ended the output
  };

  // REQUIRES: !ended()
  Step append(TokenId token);

  // Ends the output from outside (a cancel, a full pool) and gives out what was held back.
  // REQUIRES: !ended()
  std::string end_now();

  bool ended() const { return ended_; }
  std::int32_t num_tokens() const { return num_tokens_; }

 private:
  struct StopMatch {
    std::size_t position = 0;  // in held_text_
    const std::string* stop = nullptr;
  };

  std::optional<OutputEnd> end_by_token(TokenId token) const;
  std::optional<StopMatch> find_stop(std::size_t num_old_bytes) const;
  std::size_t num_bytes_to_hold() const;
  std::string release(std::size_t num_bytes);

  const tokenizer::Tokenizer* tokenizer_;
  const SamplingParams* sampling_;
  std::int32_t token_limit_;
  std::int32_t num_tokens_ = 0;
  bool ended_ = false;
  tokenizer::Detokenizer detokenizer_;
  std::string held_text_;  // between steps: the longest end of the text that begins a stop string
};

}  // namespace octavo
