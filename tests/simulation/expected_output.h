// What a request must give, from the request alone: the toy model as a pure function of a token prefix, and the
// rules for ends and text spelled out in the most direct way. Knows nothing of blocks, steps or other requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "tests/simulation/script.h"
#include "tests/simulation/toy_model.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {

// A request as it stands for itself, its seed known.
struct RequestAlone {
  ScriptedRequest asked;
  std::vector<std::string> stop;  // the stop strings that it asks for
  std::uint64_t seed = 0;
  std::int32_t max_model_len = 0;
};

// One output, extended token by token only as far as somebody looks: most requests that are cancelled never need
// their ends.
class ExpectedOutput {
 public:
  // Both arguments outlive this object.
  ExpectedOutput(const ToyModel& model, const RequestAlone& alone, std::uint32_t output_index);

  // Draws on until there are `num_tokens` tokens, or the output has ended, or its next token cannot be drawn.
  void extend_to(std::size_t num_tokens);

  const std::vector<TokenId>& token_ids() const { return token_ids_; }
  const std::vector<float>& logprobs() const { return logprobs_; }
  bool has_ended() const { return has_ended_; }
  bool fails() const { return fails_; }  // the next token cannot be drawn

  // REQUIRES: has_ended()
  std::string text() const;
  FinishReason finish_reason() const { return finish_reason_; }
  const StopReason& stop_reason() const { return stop_reason_; }

 private:
  void extend();
  void take(TokenId token);
  bool ends_by_token(TokenId token);
  bool ends_by_stop_string(std::size_t num_old_bytes);

  const ToyModel& model_;
  const RequestAlone& alone_;
  const std::uint32_t output_index_;
  std::uint64_t prefix_hash_ = 0, folded_ = 0;
  std::vector<TokenId> token_ids_;
  std::vector<float> logprobs_;
  std::string bytes_;  // of the tokens, special ones left out
  std::optional<std::size_t> stop_position_;
  bool has_ended_ = false, fails_ = false;
  FinishReason finish_reason_ = FinishReason::kLength;
  StopReason stop_reason_ = {};
};

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& alone);

}  // namespace octavo::simulation
