#include "ui/views/composer_view.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/attachment_chips.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMaximumWidth = 768;
constexpr float kPadding = 14;
constexpr float kBottomRow = 44;
constexpr float kBottomMargin = 22;
constexpr float kTopMargin = 6;
constexpr int kMostLines = 9;
constexpr std::size_t kMeasuredBytes = 4096;  // a longer draft has the greatest height anyway

bool can_send(const UiState& state, const ChatState& chat, const std::string& draft) {
  return state.model.phase != ModelPhase::kNone && (!is_blank(draft) || !chat.attachments.empty()) &&
         chat.context.refusal.empty();
}

// Whether what is sent now is asked later.
bool must_wait(const UiState& state, const ChatState& chat) {
  return state.model.phase == ModelPhase::kLoading || is_busy(chat);
}

// In an empty box, the longest first.
std::array<std::string, 2> invitations(const UiState& state, const ChatState& chat) {
  const std::string invitation = "Ask something.";
  if (!must_wait(state, chat)) return {invitation, invitation};
  const bool is_loading = state.model.phase == ModelPhase::kLoading;
  return {invitation + " It is sent when " + (is_loading ? "the model is loaded." : "this answer is done."),
          invitation};
}

// Why the draft cannot be sent, or how full the context is.
std::string meter_text(const UiState& state, const ChatState& chat) {
  if (state.model.phase == ModelPhase::kNone) return "A draft is kept until there is a model.";
  if (state.model.phase == ModelPhase::kLoading) return "Tokens are counted once the model is loaded.";
  if (!chat.context.refusal.empty()) return chat.context.refusal;
  if (state.model.is_remote) return "The server counts the tokens.";
  std::string text = with_thousands(chat.context.num_tokens) + " of " +
                     with_thousands(state.model.max_model_len) + " tokens · " +
                     count_text(chat.context.num_blocks, "block");
  if (chat.memory.num_shared > 0) text += " · " + with_thousands(chat.memory.num_shared) + " shared";
  if (chat.context.num_left > 0)
    text += " · " + count_text(chat.context.num_left, "earlier message") + " left out";
  return text;
}

float column_width(const Frame& frame, float width) {
  return std::min(frame.px(kMaximumWidth), width - frame.px(32));
}

}  // namespace

float ComposerView::text_height(const Frame& frame, const std::string& draft, float width) const {
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const std::size_t measured = std::min(draft.size(), kMeasuredBytes);
  const float wrapped =
      face.font->CalcTextSizeA(face.size, FLT_MAX, width, draft.data(), draft.data() + measured).y;
  const bool ends_with_break = !draft.empty() && draft.back() == '\n';
  const float lines = std::round(wrapped / face.size) + (ends_with_break ? 1.0f : 0.0f);
  return face.size * std::clamp(lines, 1.0f, static_cast<float>(kMostLines)) + 2 * frame.px(7) + 2;
}

float ComposerView::height(const Frame& frame, const ChatState& chat, float width) const {
  const auto draft = drafts_.find(chat.id.value);
  const float inner = column_width(frame, width) - 2 * frame.px(kPadding);
  return frame.px(kTopMargin + kPadding + kBottomRow + kBottomMargin) +
         attachment_chips_height(frame, chat.attachments, inner) +
         text_height(frame, draft == drafts_.end() ? chat.draft : draft->second, inner);
}

bool ComposerView::draw(const Frame& frame, const UiState& state, const ChatState& chat, float width) {
  const auto [known, is_new] = num_returned_.try_emplace(chat.id.value, chat.num_drafts_returned);
  if (std::exchange(known->second, chat.num_drafts_returned) != chat.num_drafts_returned) {
    // A question that could not be sent came back. The field would keep its own text while it has the
    // keyboard.
    drafts_.erase(chat.id.value);
    ImGui::ClearActiveID();
    focus_ = true;
  }
  std::string& draft = drafts_.try_emplace(chat.id.value, chat.draft).first->second;
  const std::string typed = std::exchange(typed_, {});
  draft += typed;
  ImGui::PushID(static_cast<int>(chat.id.value));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float outer = column_width(frame, width), inner = outer - 2 * frame.px(kPadding);
  const float text_pixels = text_height(frame, draft, inner);
  const float chips_pixels = attachment_chips_height(frame, chat.attachments, inner);
  const ImVec2 low{std::floor(at.x + (width - outer) * 0.5f), at.y + frame.px(kTopMargin)};
  const ImVec2 high{low.x + outer, low.y + frame.px(kPadding + kBottomRow) + chips_pixels + text_pixels};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, frame.theme.panel, frame.px(16));

  ImGui::SetCursorScreenPos({low.x + frame.px(kPadding), low.y + frame.px(10)});
  draw_attachment_chips(frame, chat, inner);
  const ImVec2 text_low{low.x + frame.px(kPadding), low.y + frame.px(8) + chips_pixels};
  ImGui::SetCursorScreenPos(text_low);
  if (focus_) ImGui::SetKeyboardFocusHere();
  focus_ = false;
  // Escape stops the answer; it must not also throw away what was typed.
  const std::string before_escape = ImGui::IsKeyPressed(ImGuiKey_Escape) ? draft : std::string();
  ImGui::PushStyleColor(ImGuiCol_FrameBg, IM_COL32_BLACK_TRANS);
  ImGui::PushStyleColor(ImGuiCol_NavCursor, IM_COL32_BLACK_TRANS);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {frame.px(2), frame.px(7)});
  ImGuiInputTextFlags flags = ImGuiInputTextFlags_EnterReturnsTrue;
  if (state.settings.send_key == SendKey::kEnter) flags |= ImGuiInputTextFlags_CtrlEnterForNewLine;
  const bool entered = text_area(frame, "##draft", draft, {inner, text_pixels}, flags);
  const bool edited = ImGui::IsItemEdited() || !typed.empty(), focused = ImGui::IsItemActive();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  if (!before_escape.empty()) draft = before_escape;
  list->AddRect(low, high, focused ? mix(frame.theme.line, frame.theme.accent, 0.55f) : frame.theme.line,
                frame.px(16));
  if (draft.empty()) {
    TextStyle hint = body_text(frame);
    hint.colour = frame.theme.faint;
    draw_text(frame, list, {text_low.x + frame.px(2), text_low.y + frame.px(5)}, hint,
              first_that_fits(frame, hint, invitations(state, chat), inner - frame.px(4)));
  }
  const ImVec2 row{low.x, high.y - frame.px(kBottomRow)};
  const bool pressed = draw_bottom_row(frame, state, chat, row, outer, draft);
  const bool send = (entered || pressed) && can_send(state, chat, draft);
  const std::string sent = send ? std::exchange(draft, {}) : std::string();
  if (edited || send) frame.actions.push(actions::ChangeDraft{chat.id, draft});
  if (send) frame.actions.push(actions::SendMessage{chat.id, sent});
  if (entered || pressed) focus_ = true;
  ImGui::PopID();
  return send;
}

bool ComposerView::draw_bottom_row(const Frame& frame, const UiState& state, const ChatState& chat,
                                   ImVec2 low, float width, const std::string& draft) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool busy = is_busy(chat);
  TextStyle meter = tiny_text(frame);
  if (!chat.context.refusal.empty()) meter.colour = frame.theme.warning;
  const float text_y = low.y + frame.px(10), meter_x = low.x + frame.px(48);
  ImGui::SetCursorScreenPos({low.x + frame.px(10), low.y + frame.px(3)});
  const ButtonOptions attach{
      .kind = ButtonKind::kPlain, .icon = Icon::kPaperclip, .help = "Attach a text file (Ctrl+Shift+A)"};
  if (button(frame, "show_attach", "", attach))
    frame.actions.push(actions::AskForFile{actions::FileWish::kAttach});
  const std::string text = meter_text(state, chat);
  const float room = width - frame.px(282);
  draw_text(frame, list, {meter_x, text_y}, meter, text, room);
  const float used = std::min(text_width(frame, meter, text), room);
  if (ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect({meter_x, text_y}, {meter_x + used, text_y + frame.px(18)})) {
    tooltip_now(frame,
                !chat.context.refusal.empty()
                    ? std::string_view(chat.context.refusal)
                    : "Tokens that the model will read with the draft, and the blocks that hold them. The "
                      "oldest messages are left out once the context is full; they stay in the chat.");
  }
  const ButtonOptions send{.kind = ButtonKind::kPrimary, .enabled = can_send(state, chat, draft)};
  const std::string_view label = must_wait(state, chat) ? "Queue" : "Send";
  float x = low.x + width - frame.px(14) - button_width(frame, label, send);
  ImGui::SetCursorScreenPos({x, low.y + frame.px(3)});
  const bool pressed = button(frame, "send", label, send);
  if (busy) {
    const ButtonOptions stop{.icon = Icon::kStop, .help = "Stop this answer (Esc)"};
    x -= button_width(frame, "Stop", stop) + frame.px(8);
    ImGui::SetCursorScreenPos({x, low.y + frame.px(3)});
    if (button(frame, "stop", "Stop", stop)) frame.actions.push(actions::StopAnswer{chat.id});
  } else {
    const std::string_view hint =
        state.settings.send_key == SendKey::kEnter ? "Enter to send" : "Ctrl+Enter to send";
    x -= text_width(frame, tiny_text(frame), hint) + frame.px(12);
    draw_text(frame, list, {x, text_y}, tiny_text(frame), hint);
  }
  return pressed;
}

}  // namespace octavo::ui
