#include "ui/views/memory/tiny_pool_view.h"

#include <algorithm>
#include <string>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kStripButton = 28, kStripPadding = 10;
constexpr const char* kStart = "Start two chats that do not fit";
constexpr const char* kGiveBack = "Give the pool back";

std::string size_text(const TinyPoolState& pool) {
  return count_text(pool.num_blocks, "block") + " of " + count_text(pool.block_size, "token");
}

// Who has nothing to lose is not asked. The engine before goes first: its memory is there at once.
void give_back(const Frame& frame, const UiState& state) {
  if (state.picker.num_running == 0) {
    frame.actions.push(actions::GiveBackPool{actions::RunningAnswers::kStop});
  } else {
    frame.actions.push(actions::AskAboutTinyPool{TinyPoolQuestion::kGiveBack});
  }
}

std::string explanation(const TinyPoolState& pool) {
  if (pool.question == TinyPoolQuestion::kGiveBack) return "The model is loaded again with its own pool.";
  return "The model is loaded again with only " + size_text(pool) +
         ", enough for about two short chats. When chats need more, one is swapped out to the host pool and "
         "comes back when there is room.";
}

std::string running_sentence(const UiState& state) {
  const std::int32_t count = state.picker.num_running;
  return count_text(count, "answer") + " in progress " + (count == 1 ? "finishes" : "finish") +
         " in the present pool unless you stop " + (count == 1 ? "it." : "them.");
}

void answer(const Frame& frame, const TinyPoolState& pool, actions::RunningAnswers running) {
  if (pool.question == TinyPoolQuestion::kGiveBack) {
    frame.actions.push(actions::GiveBackPool{running});
  } else {
    frame.actions.push(actions::LendTinyPool{running});
  }
}

}  // namespace

void draw_tiny_pool_button(const Frame& frame, const UiState& state) {
  const bool can_lend = state.model.phase == ModelPhase::kReady && !state.model.is_remote &&
                        !state.tiny_pool.is_lent && state.memory_workspace.source == MemorySource::kLive;
  const ButtonOptions options{.width = kTinyPoolButton,
                              .height = 30,
                              .enabled = can_lend,
                              .help = state.model.is_remote     ? "The pool is on the server"
                                      : state.tiny_pool.is_lent ? "A tiny pool is lent already"
                                                                : "See chats being swapped out and back"};
  if (button(frame, "tiny_pool", "Try a tiny pool…", options))
    frame.actions.push(actions::AskAboutTinyPool{TinyPoolQuestion::kLend});
}

void draw_tiny_pool_strip(const Frame& frame, const UiState& state, float width) {
  if (!state.tiny_pool.is_lent) return;
  const ButtonOptions start{.kind = ButtonKind::kPrimary, .height = kStripButton},
      back{.height = kStripButton};
  const float buttons =
      button_width(frame, kStart, start) + frame.px(8) + button_width(frame, kGiveBack, back);
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  const std::string text = "A tiny pool is lent: " + size_text(state.tiny_pool) + ".";
  const float side = frame.px(14), dot = frame.px(16), padding = frame.px(kStripPadding);
  const float words = dot + text_width(frame, style, text) + 2 * side;
  const bool one_row = width >= words + buttons + side;
  const bool stacked = width < buttons + 2 * side;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float row = frame.px(kStripButton), height = 2 * padding + row * (one_row   ? 1.0f
                                                                          : stacked ? 3.2f
                                                                                    : 2.0f);
  const ImVec2 high{low.x + width, low.y + height};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, mix(frame.theme.panel, frame.theme.warning, 0.1f), frame.px(12));
  list->AddRect(low, high, mix(frame.theme.line, frame.theme.warning, 0.5f), frame.px(12));
  const float top = low.y + padding + (row - line_pixels(frame, style)) * 0.5f;
  list->AddCircleFilled({low.x + side + frame.px(4), low.y + padding + row * 0.5f}, frame.px(4),
                        frame.theme.warning);
  draw_text(frame, list, {low.x + side + dot, top}, style, text, width - dot - 2 * side);
  ImGui::SetCursorScreenPos(
      {one_row ? high.x - side - buttons : low.x + side, one_row ? low.y + padding : low.y + padding + row});
  if (button(frame, "start_long_chats", kStart, start)) frame.actions.push(actions::StartTwoLongChats{});
  if (stacked) {
    ImGui::SetCursorScreenPos({low.x + side, low.y + padding + row * 2.2f});
  } else {
    beside(frame, 8);
  }
  if (button(frame, "give_back_pool", kGiveBack, back)) give_back(frame, state);
  ImGui::SetCursorScreenPos({low.x, high.y});
  ImGui::Dummy({width, 0});
  gap(frame, 8);
}

void draw_tiny_pool_question(const Frame& frame, const UiState& state) {
  const TinyPoolState& pool = state.tiny_pool;
  const bool is_open = pool.question != TinyPoolQuestion::kNone;
  const bool gives_back = pool.question == TinyPoolQuestion::kGiveBack;
  const DialogOptions dialog{
      .id = "tiny_pool_question", .title = gives_back ? kGiveBack : "Try a tiny pool", .width = 520};
  if (!begin_dialog(frame, dialog, is_open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  if (is_open) paragraph(frame, small_text(frame), explanation(pool), width);
  const bool runs = state.picker.num_running > 0;
  if (runs) {
    gap(frame, 8);
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.warning}, running_sentence(state), width);
  }
  gap(frame, 16);
  const char* const text = gives_back ? kGiveBack : "Lend a tiny pool";
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  if (button(frame, "confirm_tiny_pool", text, {.kind = ButtonKind::kPrimary}))
    answer(frame, pool, runs ? actions::RunningAnswers::kFinish : actions::RunningAnswers::kStop);
  if (runs) {
    beside(frame, 8);
    if (button(frame, "stop_for_tiny_pool", "Stop answers first"))
      answer(frame, pool, actions::RunningAnswers::kStop);
  }
  if (end_dialog(frame, is_open)) frame.actions.push(actions::AskAboutTinyPool{TinyPoolQuestion::kNone});
}

}  // namespace octavo::ui
