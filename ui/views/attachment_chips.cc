#include "ui/views/attachment_chips.h"

#include <imgui.h>

#include <algorithm>
#include <vector>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "ui/chat_state.h"
#include "ui/desktop_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kHeight = 30, kBetween = 6, kPadding = 10, kIconRoom = 20, kCloseRoom = 28;
constexpr float kWidest = 300;
constexpr std::size_t kMostRows = 3;

// " · 1.2 KiB · 340 tokens"
std::string figures_text(const AttachmentState& attachment) {
  std::string text = " · " + bytes_text(attachment.num_bytes);
  if (attachment.num_tokens) text += " · " + count_text(*attachment.num_tokens, "token");
  return text;
}

struct Placed {
  ImVec2 at;  // from the first chip
  float width = 0;
};

// As many as there is room for; what is left over is told as a number.
std::vector<Placed> place(const Frame& frame, std::span<const AttachmentState> attachments, float width) {
  std::vector<Placed> placed;
  float x = 0;
  std::size_t row = 0;
  const float step = frame.px(kHeight + kBetween);
  for (const AttachmentState& attachment : attachments) {
    const float wanted = text_width(frame, tiny_text(frame), attachment_text(attachment)) +
                         frame.px(kPadding + kIconRoom + kCloseRoom);
    const float chip = std::min({wanted, frame.px(kWidest), width});
    if (x > 0 && x + chip > width) {
      x = 0;
      if (++row == kMostRows) break;
    }
    placed.push_back({{x, static_cast<float>(row) * step}, chip});
    x += chip + frame.px(kBetween);
  }
  return placed;
}

void draw_chip(const Frame& frame, const ChatState& chat, const AttachmentState& attachment, ImVec2 low,
               float width) {
  ImGui::PushID(static_cast<int>(attachment.id));
  const ImVec2 high{low.x + width, low.y + frame.px(kHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(size::kRadiusControl));
  const float middle = (low.y + high.y) * 0.5f;
  draw_icon(list, Icon::kPaperclip, {low.x + frame.px(kPadding + 5), middle}, frame.px(13),
            frame.theme.muted);
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.text;
  const float x = low.x + frame.px(kPadding + kIconRoom), y = middle - line_pixels(frame, style) * 0.5f;
  const float room = width - frame.px(kPadding + kIconRoom + kCloseRoom);
  // A long name is cut; how large the file is stays.
  const std::string figures = figures_text(attachment);
  const float figures_pixels = text_width(frame, style, figures);
  const std::string name =
      elide(frame, style, strip_terminal_controls(attachment.name), std::max(0.0f, room - figures_pixels));
  draw_text(frame, list, {x, y}, style, name);
  draw_text(frame, list, {x + text_width(frame, style, name), y}, style, figures, room);
  const bool hovered = ImGui::IsMouseHoveringRect(low, {high.x - frame.px(kCloseRoom), high.y});
  if (hovered && ImGui::IsWindowHovered()) tooltip_now(frame, attachment_text(attachment));
  ImGui::SetCursorScreenPos({high.x - frame.px(kCloseRoom - 1), low.y + frame.px(2)});
  const ButtonOptions remove{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Remove this file"};
  if (button(frame, "remove_attachment", "", remove))
    frame.actions.push(actions::RemoveAttachment{chat.id, attachment.id});
  ImGui::PopID();
}

}  // namespace

std::string attachment_text(const AttachmentState& attachment) {
  return strip_terminal_controls(attachment.name) + figures_text(attachment);
}

float attachment_chips_height(const Frame& frame, std::span<const AttachmentState> attachments, float width) {
  const std::vector<Placed> placed = place(frame, attachments, width);
  if (placed.empty()) return 0;
  const float more = placed.size() < attachments.size() ? frame.px(20) : 0;
  return placed.back().at.y + frame.px(kHeight + kBetween) + more;
}

void draw_attachment_chips(const Frame& frame, const ChatState& chat, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const std::vector<Placed> placed = place(frame, chat.attachments, width);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    draw_chip(frame, chat, chat.attachments[i], {low.x + placed[i].at.x, low.y + placed[i].at.y},
              placed[i].width);
  }
  if (placed.size() == chat.attachments.size()) return;
  const auto left_over = static_cast<std::int64_t>(chat.attachments.size() - placed.size());
  draw_text(frame, ImGui::GetWindowDrawList(),
            {low.x + frame.px(2), low.y + placed.back().at.y + frame.px(kHeight + 2)}, tiny_text(frame),
            "and " + count_text(left_over, "other file"));
}

}  // namespace octavo::ui
