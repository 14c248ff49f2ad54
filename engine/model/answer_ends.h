// Which tokens end an answer where a model's files do not say so, or say it wrongly. By the texts of tokens:
// whatever kind of file they come from.
#pragma once

#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

// Many files name only one end: a Phi-3 file that of a text, and its turns end otherwise.
void add_ends_of_turns(tokenizer::Vocabulary& vocabulary);

// Answers in messages with headers (gpt-oss, Muse): the marks between are text, and further tokens end it
// all.
void settle_messages(tokenizer::Vocabulary& vocabulary);

// gemma4: an answer ends with its turn, or where the answer of a tool would stand, and the marks of its
// thinking are part of its text (answer_parts.h), whatever files call them.
void settle_turns(tokenizer::Vocabulary& vocabulary);

}  // namespace octavo::model
