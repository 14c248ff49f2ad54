// What a chat template lets a person choose about thinking. Templates do not declare it: each reads values
// that its author named, has its own idea of what they may be, and refuses others or prints them as they are.
// So it is tried: a choice is a value with which the template prints something else.
//
//   thinking           enable_thinking, thinking                      true | false
//   effort             reasoning_effort, reasoning_strength, ...      "low" | "medium" | "high" | ...
//   earlier thinking   preserve_thinking, keep_past_thinking, ...     true | false
//
// A value that prints what another prints is the same choice, and one that is refused is none. Of a template
// that takes any word as an effort, the three that are usual.
#pragma once

#include <vector>

#include "engine/api/template_values.h"
#include "engine/chat_template/chat_template.h"

namespace octavo::tokenizer {

// In the order above, at most one of each kind: where a template reads several names, they mean the same.
std::vector<TemplateSwitch> find_template_switches(const ChatTemplate& chat_template,
                                                   const ChatTemplateConstants& constants);

}  // namespace octavo::tokenizer
