#include "ui/views/chat_view.h"

#include <algorithm>
#include <cmath>

#include "ui/format.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kTopMargin = 28;
constexpr float kBottomMargin = 32;
constexpr float kMessageGap = 20;
constexpr float kBubbleWidth = 600;
constexpr float kBubblePadding = 14;
constexpr float kBubbleSide = 16;
constexpr float kFooterHeight = 34;
constexpr float kEditorHeight = 150;
constexpr float kQueuedHeight = 44;
constexpr float kFollowDistance = 64;

bool is_question(const MessageState& message) { return message.role != Role::kAssistant; }

std::string figures_text(const MessageState& message) {
  const AnswerFigures& figures = message.figures;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "   ") + part; };
  if (figures.tokens_per_second) add(short_number(*figures.tokens_per_second) + " tok/s");
  if (figures.first_token_ms) add("first token " + duration_text(*figures.first_token_ms));
  if (figures.num_cached_tokens && figures.num_prompt_tokens) {
    add("reused " + with_thousands(*figures.num_cached_tokens) + " of " +
        with_thousands(*figures.num_prompt_tokens) + " prompt tokens");
  }
  if (figures.seed) add("seed " + std::to_string(*figures.seed));
  if (!figures.stop_reason.empty()) add(figures.stop_reason);
  return text;
}

constexpr std::string_view kFiguresHelp =
    "tok/s: tokens after the first, per second. First token: from sending to the first token. Reused: prompt "
    "tokens whose "
    "keys and values were already in memory. The same seed with the same settings gives the same answer.";

std::string status_text(const SessionState& session) {
  if (session.activity == Activity::kWaiting) {
    return session.num_ahead > 0 ? "Waiting, " + count_text(session.num_ahead, "request") + " ahead"
                                 : "Waiting";
  }
  return "Reading the prompt";
}

// "‹ 2 / 3 ›"; moves the cursor to the right of it.
void draw_sibling_arrows(const Frame& frame, const SessionState& session, const MessageState& message) {
  const auto show = [&](std::int32_t offset) {
    frame.actions.push(actions::ShowSibling{session.id, message.id, offset});
  };
  ButtonOptions arrow{
      .kind = ButtonKind::kPlain, .icon = Icon::kChevronLeft, .height = 26, .help = "The branch before"};
  arrow.enabled = message.sibling_index > 0;
  if (button(frame, "previous_branch", "", arrow)) show(-1);
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string count =
      std::to_string(message.sibling_index + 1) + " / " + std::to_string(message.num_siblings);
  const float width = text_width(frame, tiny_text(frame), count);
  ImGui::Dummy({width, frame.px(26)});
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(4)}, tiny_text(frame), count);
  ImGui::SameLine();
  arrow.icon = Icon::kChevronRight;
  arrow.enabled = message.sibling_index + 1 < message.num_siblings;
  arrow.help = "The next branch";
  if (button(frame, "next_branch", "", arrow)) show(+1);
  ImGui::SameLine();
}

float sibling_arrows_width(const Frame& frame, const MessageState& message) {
  if (message.num_siblings <= 1) return 0;
  const std::string count =
      std::to_string(message.sibling_index + 1) + " / " + std::to_string(message.num_siblings);
  return frame.px(26) * 2 + text_width(frame, tiny_text(frame), count);
}

void draw_empty(const Frame& frame, const UiState& state, ImVec2 low, ImVec2 extent) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle heading{.face = FontFace::kSemiBold, .em = 24, .colour = frame.theme.text};
  const std::string_view title = "What shall we talk about?";
  const std::string note = state.model.name + " answers on this machine; nothing leaves it.";
  const float middle = low.x + extent.x * 0.5f, top = low.y + extent.y * 0.40f;
  draw_text(frame, list, {std::floor(middle - text_width(frame, heading, title) * 0.5f), top}, heading,
            title);
  draw_text(frame, list,
            {std::floor(middle - text_width(frame, small_text(frame), note) * 0.5f), top + frame.px(44)},
            small_text(frame), note);
}

}  // namespace

void ChatView::draw(const Frame& frame, const UiState& state, const SessionState& session, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  draw_header(frame, state, session, extent.x);
  ImGui::SetCursorScreenPos({low.x, low.y + frame.px(size::kHeader)});
  Transcript& transcript = transcripts_[session.id.value];
  const ImVec2 body{extent.x, extent.y - frame.px(size::kHeader)};
  const float measure = std::min(frame.px(size::kMeasure), body.x - frame.px(48));
  lay_out(frame, session, transcript, measure);
  draw_transcript(frame, session, transcript, body);
  if (session.messages.empty() && session.queued.empty()) {
    draw_empty(frame, state, {low.x, low.y + frame.px(size::kHeader)}, body);
  }
}

void ChatView::draw_header(const Frame& frame, const UiState& state, const SessionState& session,
                           float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(size::kHeader);
  list->AddLineH(low.x, low.x + width, low.y + height - 1, frame.theme.line);
  TextStyle title = heading_text(frame);
  title.em = 16;
  const float room = std::min(text_width(frame, title, session.title) + 1, width * 0.38f);
  ImGui::SetCursorScreenPos(
      {low.x + frame.px(24), low.y + std::floor((height - line_pixels(frame, title)) * 0.5f)});
  line(frame, title, session.title, room);

  const float right = low.x + width - frame.px(56);
  float x = low.x + frame.px(24) + room + frame.px(14);
  const auto add_chip = [&](const char* id, const std::string& text) {
    const float chip_room = right - x - frame.px(8);
    if (chip_room < frame.px(60)) return;
    ImGui::SetCursorScreenPos({x, low.y + frame.px(16)});
    const float limit = std::min(chip_room, frame.px(240));
    if (chip(frame, id, text, limit)) frame.actions.push(actions::ShowSampling{!state.sampling_open});
    x += ImGui::GetItemRectSize().x + frame.px(8);
  };
  add_chip("chip_temperature", session.sampling.temperature == 0
                                   ? std::string("greedy")
                                   : "temperature " + short_number(session.sampling.temperature));
  add_chip("chip_top_p", "top-p " + short_number(session.sampling.top_p));
  if (!session.system_prompt.empty()) add_chip("chip_system", "system: " + session.system_prompt);

  ImGui::SetCursorScreenPos({right, low.y + frame.px(11)});
  const ButtonOptions sliders{
      .icon = Icon::kSliders, .height = 34, .help = "System prompt and sampling of this chat"};
  if (button(frame, "chat_settings", "", sliders))
    frame.actions.push(actions::ShowSampling{!state.sampling_open});
}

void ChatView::lay_out(const Frame& frame, const SessionState& session, Transcript& transcript,
                       float measure) {
  if (transcript.messages.size() > 2 * session.messages.size() + 64) transcript.messages.clear();
  const float bubble = std::min(frame.px(kBubbleWidth), measure) - 2 * frame.px(kBubbleSide);
  float y = frame.px(kTopMargin);
  for (const MessageState& message : session.messages) {
    Placed& placed = transcript.messages[message.id];
    const bool question = is_question(message);
    placed.layout.update(frame, message.text, question ? TextFormat::kPlain : TextFormat::kMarkdown,
                         question ? bubble : measure);
    placed.top = y;
    placed.height =
        placed.layout.height() + frame.px(kFooterHeight) + (question ? 2 * frame.px(kBubblePadding) : 0);
    if (!message.error.empty()) placed.height += frame.px(28);
    if (message.id == editing_message_ && session.id == editing_session_)
      placed.height = frame.px(kEditorHeight);
    y += placed.height + frame.px(kMessageGap);
  }
  transcript.height =
      y + frame.px(kQueuedHeight) * static_cast<float>(session.queued.size()) + frame.px(kBottomMargin);
}

void ChatView::draw_transcript(const Frame& frame, const SessionState& session, Transcript& transcript,
                               ImVec2 extent) {
  const float end = std::max(0.0f, transcript.height - extent.y);
  choose_scroll(transcript, end, extent);
  ImGui::SetNextWindowContentSize({0, transcript.height});
  ImGui::PushID(static_cast<int>(session.id.value));
  ImGui::BeginChild("transcript", extent, ImGuiChildFlags_NavFlattened);
  const float scroll = ImGui::GetScrollY();
  const ImVec2 low = ImGui::GetWindowPos();
  const float width = std::min(frame.px(size::kMeasure), extent.x - frame.px(48));
  const Column column{std::floor(low.x + (extent.x - width) * 0.5f), width};
  const float origin = low.y - scroll;
  const auto above = [&](const MessageState& message, float y) {
    const Placed& placed = transcript.messages.at(message.id);
    return placed.top + placed.height < y;
  };
  auto message = std::lower_bound(session.messages.begin(), session.messages.end(), scroll, above);
  for (; message != session.messages.end(); ++message) {
    Placed& placed = transcript.messages.at(message->id);
    if (placed.top > scroll + extent.y) break;
    ImGui::PushID(static_cast<int>(message->id));
    draw_message(frame, session, *message, placed, column, origin + placed.top);
    ImGui::PopID();
  }
  const float queue_top = transcript.height - frame.px(kBottomMargin) -
                          frame.px(kQueuedHeight) * static_cast<float>(session.queued.size());
  draw_queue(frame, session, column, origin + queue_top);
  const bool moved_down = scroll > transcript.scroll;
  if (transcript.following || moved_down) transcript.following = end - scroll < frame.px(kFollowDistance);
  transcript.scroll = scroll;
  if (!transcript.following) draw_jump_button(frame, transcript);
  ImGui::EndChild();
  ImGui::PopID();
}

// Dear ImGui scrolls by wheel, bar and focus; what is decided here is applied over that, in this frame
// already, so that growing text never shows one frame late.
void ChatView::choose_scroll(Transcript& transcript, float end, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool pointed_at = ImGui::IsMouseHoveringRect(low, {low.x + extent.x, low.y + extent.y});
  if (pointed_at && ImGui::GetIO().MouseWheel > 0 && end > 0) transcript.following = false;
  // Also while the composer has the keyboard, which keeps these keys for its few lines.
  const float page = extent.y * 0.9f;
  const float wanted = (ImGui::IsKeyChordPressed(ImGuiKey_PageUp) ? -page : 0.0f) +
                       (ImGui::IsKeyChordPressed(ImGuiKey_PageDown) ? page : 0.0f);
  if (wanted < 0 && end > 0) transcript.following = false;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_End)) transcript.following = true;
  if (transcript.following) {
    ImGui::SetNextWindowScroll({-1, end});
  } else if (wanted != 0) {
    ImGui::SetNextWindowScroll({-1, std::clamp(transcript.scroll + wanted, 0.0f, end)});
  }
}

void ChatView::draw_message(const Frame& frame, const SessionState& session, const MessageState& message,
                            Placed& placed, Column column, float top) {
  if (message.id == editing_message_ && session.id == editing_session_) {
    draw_editor(frame, session, message, column, top);
  } else if (is_question(message)) {
    draw_question(frame, session, message, placed, column, top);
  } else {
    draw_answer(frame, session, message, placed, column, top);
  }
}

void ChatView::draw_question(const Frame& frame, const SessionState& session, const MessageState& message,
                             Placed& placed, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float width = std::ceil(placed.layout.width()) + 2 * frame.px(kBubbleSide);
  const float height = placed.layout.height() + 2 * frame.px(kBubblePadding);
  const ImVec2 high{column.left + column.width, top + height};
  const ImVec2 low{high.x - width, top};
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(14));
  const float clip_top = ImGui::GetWindowPos().y, clip_bottom = clip_top + ImGui::GetWindowHeight();
  placed.layout.draw(frame, message.text, {low.x + frame.px(kBubbleSide), top + frame.px(kBubblePadding)},
                     clip_top, clip_bottom, frame.theme.text);
  draw_question_footer(frame, session, message, {high.x, high.y + frame.px(4)});
}

void ChatView::draw_question_footer(const Frame& frame, const SessionState& session,
                                    const MessageState& message, ImVec2 top_right) {
  const float width = sibling_arrows_width(frame, message) + 2 * frame.px(26);
  ImGui::SetCursorScreenPos({top_right.x - width, top_right.y});
  if (message.num_siblings > 1) draw_sibling_arrows(frame, session, message);
  const ButtonOptions copy{.kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 26, .help = "Copy"};
  if (button(frame, "copy", "", copy)) frame.actions.push(actions::CopyText{message.text});
  ImGui::SameLine();
  const ButtonOptions edit{.kind = ButtonKind::kPlain,
                           .icon = Icon::kEdit,
                           .height = 26,
                           .help = "Edit: asks again in a new branch"};
  if (button(frame, "edit", "", edit)) {
    editing_message_ = message.id;
    editing_session_ = session.id;
    edit_text_ = message.text;
    focus_editor_ = true;
  }
}

void ChatView::draw_answer(const Frame& frame, const SessionState& session, const MessageState& message,
                           Placed& placed, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low{column.left, top};
  const float clip_top = ImGui::GetWindowPos().y, clip_bottom = clip_top + ImGui::GetWindowHeight();
  if (message.streaming && message.text.empty()) {
    draw_text(frame, list, low, {.colour = frame.theme.faint}, status_text(session));
  }
  const TextRange copied =
      placed.layout.draw(frame, message.text, low, clip_top, clip_bottom, frame.theme.text);
  if (copied.end > copied.begin) {
    frame.actions.push(actions::CopyText{message.text.substr(copied.begin, copied.end - copied.begin)});
  }
  if (message.streaming && !message.text.empty()) {
    const ImVec2 end = placed.layout.end_position();
    const ImVec2 caret{std::floor(low.x + end.x + frame.px(3)), std::floor(low.y + end.y + frame.px(3))};
    list->AddRectFilled(caret, {caret.x + frame.px(8), caret.y + frame.px(17)}, frame.theme.accent,
                        frame.px(1));
  }
  float y = top + placed.layout.height() + frame.px(8);
  if (!message.error.empty()) {
    const TextStyle style{.em = size::kSmall, .colour = frame.theme.error};
    draw_text(frame, list, {low.x, y}, style, message.error, column.width);
    if (ImGui::IsMouseHoveringRect({low.x, y}, {low.x + column.width, y + line_pixels(frame, style)})) {
      tooltip_now(frame, message.error);
    }
    y += frame.px(28);
  }
  draw_answer_footer(frame, session, message, {low.x, y}, column.width);
}

void ChatView::draw_answer_footer(const Frame& frame, const SessionState& session,
                                  const MessageState& message, ImVec2 top_left, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  float x = top_left.x;
  if (!message.streaming) {
    ImGui::SetCursorScreenPos({x - frame.px(6), top_left.y});
    if (message.num_siblings > 1) draw_sibling_arrows(frame, session, message);
    const ButtonOptions copy{
        .kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 26, .help = "Copy as Markdown"};
    if (button(frame, "copy", "", copy)) frame.actions.push(actions::CopyText{message.text});
    ImGui::SameLine();
    const ButtonOptions again{.kind = ButtonKind::kPlain,
                              .icon = Icon::kRegenerate,
                              .height = 26,
                              .help = "Another answer beside this one"};
    if (button(frame, "regenerate", "", again))
      frame.actions.push(actions::Regenerate{session.id, message.id});
    x = ImGui::GetItemRectMax().x + frame.px(10);
  }
  const TextStyle style = mono_text(frame);
  const std::string figures = figures_text(message);
  const float room = top_left.x + width - x;
  const float y = top_left.y + frame.px(4);
  draw_text(frame, list, {x, y}, style, figures, room);
  const float used = std::min(text_width(frame, style, figures), room);
  if (!figures.empty() && ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect({x, y}, {x + used, y + line_pixels(frame, style)})) {
    tooltip_now(frame, room < text_width(frame, style, figures) ? figures + "\n" + std::string(kFiguresHelp)
                                                                : std::string(kFiguresHelp));
  }
  if (message.streaming) {
    TextStyle faint = style;
    faint.colour = frame.theme.faint;
    draw_text(frame, list, {x + used + (used > 0 ? frame.px(20) : 0), y}, faint, "Esc stops");
  }
}

void ChatView::draw_editor(const Frame& frame, const SessionState& session, const MessageState& message,
                           Column column, float top) {
  const float width = std::min(frame.px(kBubbleWidth), column.width);
  const float left = column.left + column.width - width;
  ImGui::SetCursorScreenPos({left, top});
  if (focus_editor_) ImGui::SetKeyboardFocusHere();
  focus_editor_ = false;
  const bool cancel_key = ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool entered =
      text_area(frame, "##edit_text", edit_text_, {width, frame.px(kEditorHeight - 46)},
                ImGuiInputTextFlags_CtrlEnterForNewLine | ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SetCursorScreenPos({left + width - frame.px(160), top + frame.px(kEditorHeight - 38)});
  const bool cancelled = button(frame, "cancel_edit", "Cancel", {.width = 76}) || cancel_key;
  beside(frame, 8);
  const bool has_text = edit_text_.find_first_not_of(" \t\r\n") != std::string::npos;
  const bool sent =
      button(frame, "send_edit", "Send", {.kind = ButtonKind::kPrimary, .width = 76, .enabled = has_text}) ||
      entered;
  if (sent && has_text) {
    frame.actions.push(actions::EditMessage{session.id, message.id, edit_text_});
    follow_end(session.id);
  }
  if (cancelled || (sent && has_text)) editing_message_ = 0;
}

void ChatView::draw_queue(const Frame& frame, const SessionState& session, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < session.queued.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const float width = std::min(frame.px(kBubbleWidth), column.width);
    const ImVec2 low{column.left + column.width - width,
                     top + frame.px(kQueuedHeight) * static_cast<float>(i)};
    const ImVec2 high{low.x + width, low.y + frame.px(kQueuedHeight - 8)};
    list->AddRect(low, high, frame.theme.line, frame.px(12));
    draw_text(frame, list, {low.x + frame.px(14), low.y + frame.px(9)}, tiny_text(frame), "queued");
    draw_text(frame, list, {low.x + frame.px(70), low.y + frame.px(8)}, small_text(frame), session.queued[i],
              width - frame.px(112));
    ImGui::SetCursorScreenPos({high.x - frame.px(34), low.y + frame.px(5)});
    const ButtonOptions remove{
        .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Do not send"};
    if (button(frame, "remove_queued", "", remove)) frame.actions.push(actions::RemoveQueued{session.id, i});
    ImGui::PopID();
  }
}

void ChatView::draw_jump_button(const Frame& frame, Transcript& transcript) {
  const ImVec2 low = ImGui::GetWindowPos();
  const ImVec2 extent = ImGui::GetWindowSize();
  const float side = frame.px(36);
  const ImVec2 at{std::floor(low.x + (extent.x - side) * 0.5f), low.y + extent.y - side - frame.px(12)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + side, at.y + side}, frame.theme.panel, frame.px(size::kRadiusControl));
  ImGui::SetCursorScreenPos(at);
  const ButtonOptions jump{.icon = Icon::kArrowDown, .height = 36, .help = "To the end"};
  if (button(frame, "jump_to_end", "", jump)) transcript.following = true;
}

}  // namespace octavo::ui
