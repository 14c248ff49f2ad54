#include "ui/views/banner_view.h"

#include <algorithm>
#include <cmath>

#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

struct Offer {
  const char* id;
  const char* text;
};

Offer offer_of(const Banner& banner) {
  switch (banner.offer) {
    case BannerOffer::kContinueOnCpu: return {"continue_on_cpu", "Continue on the CPU"};
    case BannerOffer::kShowInFolder: return {"show_in_folder", "Show in folder"};
    case BannerOffer::kNone: break;
  }
  return {"", ""};
}

void take_offer(const Frame& frame, const Banner& banner) {
  if (banner.offer == BannerOffer::kContinueOnCpu) frame.actions.push(actions::ContinueOnCpu{});
  if (banner.offer != BannerOffer::kShowInFolder) return;
  frame.actions.push(actions::ShowInFolder{banner.path});
  frame.actions.push(actions::DismissBanner{});
}

}  // namespace

float draw_banner_view(const Frame& frame, const UiState& state, float width) {
  if (!state.banner) return 0;
  const Banner& banner = *state.banner;
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const bool error = banner.kind == BannerKind::kError;
  const ImU32 colour = error ? frame.theme.error : frame.theme.accent;
  const Offer offer = offer_of(banner);
  const ButtonOptions offered{.kind = error ? ButtonKind::kPrimary : ButtonKind::kOutline, .height = 28};
  const float button_room = offer.id[0] == '\0' ? 0 : button_width(frame, offer.text, offered) + frame.px(10);
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  const float room = std::max(frame.px(120), width - frame.px(92) - button_room);
  const float text = paragraph_height(frame, style, banner.text, room);
  const float height = std::max(frame.px(44), std::ceil(text) + frame.px(20));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, mix(frame.theme.panel, colour, 0.06f));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("banner", {width, height}, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 low = ImGui::GetWindowPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddLineH(low.x, low.x + width, low.y + height - 1, mix(frame.theme.line, colour, 0.6f));
  const float text_top = low.y + std::floor((height - text) * 0.5f), buttons = low.y + frame.px(8);
  list->AddCircleFilled({low.x + frame.px(22), text_top + line_pixels(frame, style) * 0.5f}, frame.px(4),
                        colour);
  ImGui::SetCursorScreenPos({low.x + frame.px(36), text_top});
  paragraph(frame, style, banner.text, room);
  if (button_room > 0) {
    ImGui::SetCursorScreenPos({low.x + width - frame.px(46) - button_room, buttons});
    if (button(frame, offer.id, offer.text, offered)) take_offer(frame, banner);
  }
  ImGui::SetCursorScreenPos({low.x + width - frame.px(42), buttons});
  const ButtonOptions close{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Dismiss"};
  if (button(frame, "dismiss_banner", "", close)) frame.actions.push(actions::DismissBanner{});
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::SetCursorScreenPos({below.x, below.y + height});
  return height;
}

}  // namespace octavo::ui
