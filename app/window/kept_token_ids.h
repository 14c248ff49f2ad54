// Token ids that a chat keeps are those of the model that gave the answer. Another vocabulary has
// none of them, or means something else by them.
#pragma once

#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// Whether these ids are that text in this vocabulary.
bool spells(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::string_view text);

// Leaves an ended answer the ids of exactly its text, so that the next turn can use them again: without the
// token that ended it, and none at all where a stop string cut the text inside a token.
void keep_ids_of_text(const tokenizer::Tokenizer& tokenizer, const StopReason& stop_reason, Message& message);

// Forgets ids that this vocabulary does not have, which an engine would refuse. Those that it has by chance
// are compared with the text when the prompt is tokenised.
void forget_foreign_ids(const tokenizer::Tokenizer& tokenizer, GenerationRequest& request);

}  // namespace octavo::app
