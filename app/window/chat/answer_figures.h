// What is known of an answer, as the message shows it: live while it streams, and final afterwards.
#pragma once

#include "app/chat/chat.h"
#include "app/window/chat/answers.h"
#include "ui/state.h"

namespace octavo::app {

// Of an answer that has ended, or of one under way as its message alone tells.
ui::AnswerFigures figures_of(const Message& message);

// What is known by now of an answer under way, over `figures`.
void add_live_figures(const AnswerUnderWay& answer, ui::AnswerFigures& figures);

}  // namespace octavo::app
