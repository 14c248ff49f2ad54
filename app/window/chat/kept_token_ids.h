// Token ids that a chat keeps are those of the model that gave the answer. Another vocabulary has
// none of them, or means something else by them.
#pragma once

#include <string_view>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// Whether these ids are that text in this vocabulary.
bool spells(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::string_view text);

// Forgets ids that this vocabulary does not have, which an engine would refuse. Those that it has by chance
// are compared with the text when the prompt is tokenised.
void forget_foreign_ids(const tokenizer::Tokenizer& tokenizer, GenerationRequest& request);

}  // namespace octavo::app
