#include "ui/views/find_bar.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/chat_state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 400;
constexpr float kHeight = 48;

}  // namespace

void FindBar::open() {
  open_ = true;
  frames_to_focus_ = 2;
}

void FindBar::close() {
  open_ = false;
  matches_.clear();
  search_.clear();
  searched_.clear();
}

void FindBar::update(const std::vector<MessageState>& messages) {
  if (!open_) return;
  const TextMatch before = current() != nullptr ? *current() : TextMatch{};
  const bool new_query = query_ != searched_;
  matches_ = search_.find(messages, query_);
  searched_ = query_;
  if (new_query) {
    // From the end: what was said last is what is looked for most.
    current_ = matches_.empty() ? 0 : matches_.size() - 1;
    jump_ = !matches_.empty();
    return;
  }
  const auto same = std::find(matches_.begin(), matches_.end(), before);
  current_ = same != matches_.end() ? static_cast<std::size_t>(same - matches_.begin())
                                    : std::min(current_, matches_.empty() ? 0 : matches_.size() - 1);
}

void FindBar::draw(const Frame& frame, ImVec2 low, float width) {
  if (!open_) return;
  const ImVec2 extent{std::min(frame.px(kWidth), width - frame.px(16)), frame.px(kHeight)};
  ImGui::SetCursorScreenPos({std::floor(low.x + width - extent.x - frame.px(16)), low.y + frame.px(8)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, frame.px(size::kRadiusControl));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(8), frame.px(8)});
  ImGui::BeginChild(
      "find_bar", extent,
      ImGuiChildFlags_Borders | ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened,
      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  const float top = ImGui::GetCursorScreenPos().y, right = ImGui::GetWindowPos().x + extent.x - frame.px(8);
  const bool focused = frames_to_focus_ > 0;
  if (focused && --frames_to_focus_ == 0) take_keyboard("##find");
  const float field = extent.x - frame.px(16 + 3 * 32 + 108);
  const bool escape = ImGui::IsKeyPressed(ImGuiKey_Escape), back = ImGui::GetIO().KeyShift;
  const bool entered =
      ImGui::IsKeyPressed(ImGuiKey_Enter, true) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, true);
  text_field(frame, "##find", query_, "Find in this chat", field, ImGuiInputTextFlags_AutoSelectAll);
  const bool editing = ImGui::IsItemActive() || ImGui::IsItemDeactivated();
  if (editing && entered && !focused) {
    step(back ? -1 : +1);
    frames_to_focus_ = 1;
  }
  const std::string count = query_.empty() ? std::string()
                            : matches_.empty()
                                ? std::string("no results")
                                : with_thousands(static_cast<std::int64_t>(current_ + 1)) + " of " +
                                      with_thousands(static_cast<std::int64_t>(matches_.size()));
  draw_text(frame, ImGui::GetWindowDrawList(), {ImGui::GetItemRectMax().x + frame.px(10), top + frame.px(7)},
            tiny_text(frame), count, frame.px(96));
  ButtonOptions options{
      .kind = ButtonKind::kPlain, .icon = Icon::kChevronLeft, .height = 32, .enabled = !matches_.empty()};
  options.help = "Previous (Shift+Enter)";
  ImGui::SetCursorScreenPos({right - 3 * frame.px(32), top});
  if (button(frame, "find_previous", "", options)) step(-1);
  options.icon = Icon::kChevronRight;
  options.help = "Next (Enter)";
  ImGui::SetCursorScreenPos({right - 2 * frame.px(32), top});
  if (button(frame, "find_next", "", options)) step(+1);
  ImGui::SetCursorScreenPos({right - frame.px(32), top});
  const bool closed =
      button(frame, "find_close", "",
             {.kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 32, .help = "Close (Esc)"});
  if (ImGui::IsKeyPressed(ImGuiKey_F3)) step(back ? -1 : +1);
  ImGui::EndChild();
  // A menu or a question in front of it takes the key first.
  const bool covered =
      ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (closed || (escape && !covered)) close();
}

void FindBar::step(int offset) {
  if (matches_.empty()) return;
  const auto count = static_cast<int>(matches_.size());
  current_ = static_cast<std::size_t>((static_cast<int>(current_) + offset + count) % count);
  jump_ = true;
}

std::span<const TextRange> FindBar::matches_in(MessageId message_id) const {
  return open_ ? search_.matches_in(message_id) : std::span<const TextRange>();
}

const TextMatch* FindBar::current() const {
  return open_ && current_ < matches_.size() ? &matches_[current_] : nullptr;
}

const TextMatch* FindBar::take_jump() {
  const bool jump = jump_;
  jump_ = false;
  return jump ? current() : nullptr;
}

}  // namespace octavo::ui
