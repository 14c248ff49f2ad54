// Where the time of an answer went, in plain sentences: how long it waited, how much of its prompt was
// computed and why, how long it wrote, and how often it gave its memory to others. Any thread.
#pragma once

#include <string>

#include "app/chat/chat.h"

namespace octavo::app {

// Of an answer that has ended. Empty when nothing was measured.
std::string answer_story(const AnswerMetrics& metrics);

// "waited 2.1 s", "preempted 2 times": what a person should see without asking, because it took at least a
// fifth of the answer's time, or a second. Empty: nothing of the kind.
std::string answer_delay(const AnswerMetrics& metrics);

}  // namespace octavo::app
