// What a chat prompt must become, spelled out message by message: knows nothing of templates, spans and
// intakes. The form that a life's template gives a message is one special token, a letter for its role, its
// content and an end token.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

// The token ids that are computed for it; none: it is refused.
std::vector<TokenId> expected_prompt(const ScriptedRequest& asked);

// Tokens at the start that every chat with this system message begins with, before the role of what follows.
std::int32_t expected_system_tokens(const ScriptedRequest& asked);

// What it asks for, or what its kind of prompt stands for.
RetentionClass expected_retention(const ScriptedRequest& asked);

// `script`, the prompts of its chats filled in.
Script with_expected_prompts(Script script);

}  // namespace octavo::simulation
