// What one output of a request must be, from the request alone: the toy model as a pure function of a token
// prefix. Knows nothing of blocks, steps or other requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "tests/simulation/expected_text.h"
#include "tests/simulation/toy_model.h"

namespace octavo::simulation {

// Extended token by token only as far as somebody looks: most requests that are cancelled never need their
// ends.
class ExpectedOutput {
 public:
  // Both arguments outlive this object.
  ExpectedOutput(const ToyModel& model, const RequestAlone& alone, std::uint32_t output_index);

  // Draws on until there are `num_tokens` tokens, or the output has ended, or its next token cannot be drawn.
  void extend_to(std::size_t num_tokens);

  const ExpectedText& text() const { return text_; }
  const std::vector<TokenId>& token_ids() const { return text_.token_ids(); }
  const std::vector<float>& logprobs() const { return logprobs_; }
  // Of each token; empty lists where none are asked for.
  const std::vector<std::vector<TokenLogprob>>& top_logprobs() const { return top_logprobs_; }
  bool has_ended() const { return text_.has_ended(); }
  bool fails() const { return fails_; }  // the next token cannot be drawn

 private:
  const ToyModel& model_;
  const RequestAlone& alone_;
  const std::uint32_t output_index_;
  ExpectedText text_;
  std::vector<float> logprobs_;
  std::vector<std::vector<TokenLogprob>> top_logprobs_;
  bool fails_ = false;
};

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& alone);

}  // namespace octavo::simulation
