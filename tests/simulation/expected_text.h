// One list of generated tokens after a prompt: what the toy model makes of it, where it ends and what its
// text is, with the rules for ends and text spelled out in the most direct way. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "tests/simulation/script.h"
#include "tests/simulation/toy_model.h"

namespace octavo::simulation {

// A request as it stands for itself, its seed known.
struct RequestAlone {
  ScriptedRequest asked;
  std::vector<std::string> stop;  // the stop strings that it asks for
  std::uint64_t seed = 0;
  std::int32_t max_model_len = 0;

  static RequestAlone of(const ScriptedRequest& asked, std::int32_t max_model_len);
};

class ExpectedText {
 public:
  // `alone` outlives this object and its copies.
  explicit ExpectedText(const RequestAlone& alone);

  // REQUIRES: !has_ended()
  void append(TokenId token);
  // Ends it for a reason from outside.
  void end(FinishReason reason);

  const std::vector<TokenId>& token_ids() const { return token_ids_; }
  // -1 of an empty text, which is refused.
  TokenId last_token() const { return last_token_; }
  // What attention makes of prompt and tokens.
  std::uint64_t folded() const { return folded_; }
  bool has_ended() const { return has_ended_; }

  // REQUIRES: has_ended()
  std::string text() const;
  FinishReason finish_reason() const { return finish_reason_; }
  const StopReason& stop_reason() const { return stop_reason_; }

 private:
  void take(TokenId token);
  bool ends_by_token(TokenId token);
  bool ends_by_stop_string(std::size_t num_old_bytes);

  const RequestAlone* alone_;
  std::uint64_t prefix_hash_ = 0, folded_ = 0;
  TokenId last_token_ = -1;
  std::vector<TokenId> token_ids_;
  std::string bytes_;  // of the tokens, special ones left out
  std::optional<std::size_t> stop_position_;
  bool has_ended_ = false;
  FinishReason finish_reason_ = FinishReason::kLength;
  StopReason stop_reason_ = {};
};

}  // namespace octavo::simulation
