// How added tokens are found in a text where that is not exactly as they are written: those that take the
// white space beside them, and those that are no part of a word. Immutable; any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

class AddedTokenRules {
 public:
  explicit AddedTokenRules(std::span<const AddedTokenRule> rules);

  // Drops from `found`, ascending in `text`, what stands within a word and must not, and widens the others as
  // far as their neighbours.
  void apply(std::string_view text, std::vector<SettledTokens>& found) const;

  bool is_in_normalized_text(TokenId id) const;

 private:
  const AddedTokenRule* find(TokenId id) const;

  std::vector<AddedTokenRule> rules_;  // by id
};

}  // namespace octavo::tokenizer
