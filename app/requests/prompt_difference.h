// Two prompts compared token by token: where they part, what stands there, what of the rest is the same
// again, and what kind of text it is that differs.
//
// Pure; any thread. Token ids may be any number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// A prompt, and what was generated behind it: that can be found again as well as the prompt itself.
struct PromptWithAnswer {
  std::span<const TokenId> prompt;
  std::span<const TokenId> answer = {};

  std::size_t size() const { return prompt.size() + answer.size(); }
  // REQUIRES: index < size()
  TokenId operator[](std::size_t index) const {
    return index < prompt.size() ? prompt[index] : answer[index - prompt.size()];
  }
};

std::size_t common_prefix_len(std::span<const TokenId> mine, const PromptWithAnswer& theirs);

struct EarlierPrompt {
  PromptWithAnswer tokens;
  bool is_of_same_client = false;
};
struct NearestPrompt {
  std::size_t index = 0;  // in what was searched
  std::size_t num_common = 0;
};
// The earlier prompt with the longest common prefix; of equal ones those of the same client, then the newest.
// nullopt: none has even the first token in common.
//   earlier  oldest first
std::optional<NearestPrompt> nearest_prompt(std::span<const TokenId> mine,
                                            std::span<const EarlierPrompt> earlier);

// Text as people read it, always valid UTF-8: control tokens by their names, control characters but line
// breaks and tabs as \xNN, and so the bytes of a character of which a piece has only a part. A piece is empty
// where there is no token.
struct TextAround {
  std::string before, token, after;
};
inline constexpr std::size_t kNumTokensAround = 12;  // on each side
TextAround text_around(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens,
                       std::size_t position);

// All of the tokens, as text_around() shows them. A character of which tokens have only parts belongs to the
// last of these.
struct TokenisedText {
  std::string text;                 // valid UTF-8
  std::vector<std::uint32_t> ends;  // of each token, bytes of the text
};
TokenisedText tokenised_text(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens);

// A stretch of tokens that stands in both.
struct SameRun {
  std::size_t mine = 0, theirs = 0;  // where it begins
  std::size_t length = 0;
  friend bool operator==(const SameRun&, const SameRun&) = default;
};
inline constexpr std::size_t kLeastSameRun = 16;  // tokens; shorter ones are alike by chance too often
// What of `mine` from `begin` on stands in `theirs` from `begin` on as well, at whatever place: ascending in
// `mine`, none overlapping there. Of several places in `theirs` the next one behind the run before counts.
std::vector<SameRun> same_runs(std::span<const TokenId> mine, const PromptWithAnswer& theirs,
                               std::size_t begin);
// Whether some of them changed places.
bool is_reordered(std::span<const SameRun> runs);

// What the text at the first difference looks like, on both sides. A guess, for advice.
enum class ChangeKind {
  kText,
  kTime,      // a date or a time
  kChecksum,  // letters and digits without a word in them
  kNumber,
};
// REQUIRES: mine.before equals theirs.before
ChangeKind change_kind(const TextAround& mine, const TextAround& theirs);

}  // namespace octavo::app
