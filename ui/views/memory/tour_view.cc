#include "ui/views/memory/tour_view.h"

#include <algorithm>
#include <string>

#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCardPadding = 16, kHeadingHeight = 26;
constexpr float kButtonsWidth = 456, kButtonRow = 38, kLeastHeading = 220;

void draw_chapters(const Frame& frame, const TourState& tour) {
  const ButtonOptions choose{.height = 30, .help = "Choose a chapter"};
  const std::string text =
      std::to_string(tour.chapter + 1) + " of " + std::to_string(tour.chapters.size()) + " · chapters";
  if (button(frame, "chapters", text, choose)) ImGui::OpenPopup("chapter_list");
  const ImVec2 below{ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + frame.px(4)};
  ImGui::SetNextWindowPos(below, ImGuiCond_Appearing);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(10), frame.px(10)});
  if (ImGui::BeginPopup("chapter_list")) {
    for (std::size_t i = 0; i < tour.chapters.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      const std::string label = std::to_string(i + 1) + "  " + tour.chapters[i];
      if (button(frame, "chapter", label,
                 {.kind = ButtonKind::kPlain, .width = 260, .height = 30, .align_left = true})) {
        frame.actions.push(actions::ShowChapter{static_cast<std::int32_t>(i)});
        ImGui::CloseCurrentPopup();
      }
      ImGui::PopID();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void draw_tour(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const TourState& tour = state.tour;
  const float room = width - 2 * frame.px(kCardPadding);
  const TextStyle style = body_text(frame);
  const float measure = std::min(room - frame.px(20), frame.px(900));
  // Where the heading has no room for the buttons beside it, they stand below the words.
  const bool below = room < frame.px(kButtonsWidth + kLeastHeading),
             two_rows = room < frame.px(kButtonsWidth);
  const float words = frame.px(kHeadingHeight) + paragraph_height(frame, style, tour.sentence, measure);
  const float rows = below ? frame.px(two_rows ? 2 * kButtonRow : kButtonRow) : 0;
  const float height =
      std::max(frame.px(kTourHeight), 2 * frame.px(kCardPadding) + words + rows + frame.px(20));
  begin_card(frame, "tour", {width, height}, kCardPadding);
  const float inner = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string place = "step " + std::to_string(tour.step + 1) + " of " + std::to_string(tour.num_steps);
  heading_line(frame, tour.title, place);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kHeadingHeight)});
  paragraph(frame, style, tour.sentence, measure);
  const float buttons = at.y + words + frame.px(6);
  ImGui::SetCursorScreenPos(below ? ImVec2{at.x, buttons}
                                  : ImVec2{at.x + inner - frame.px(kButtonsWidth), at.y - frame.px(4)});
  draw_chapters(frame, tour);
  if (two_rows) {
    ImGui::SetCursorScreenPos({at.x, buttons + frame.px(kButtonRow)});
  } else {
    beside(frame, 8);
  }
  if (button(frame, "tour_back", "Back",
             {.width = 72, .height = 30, .enabled = tour.step > 0, .help = "Back (Left)"}))
    frame.actions.push(actions::MoveTour{-1});
  beside(frame, 8);
  const bool is_playing = state.cursor.playing;
  if (button(frame, "tour_play", is_playing ? "Stop" : "Play",
             {.width = 72, .height = 30, .help = "Play (P)"}))
    frame.actions.push(actions::PlayMemory{!is_playing});
  beside(frame, 8);
  const bool is_last = tour.step + 1 >= tour.num_steps;
  const char* next =
      is_last && tour.chapter + 1 < static_cast<std::int32_t>(tour.chapters.size()) ? "Next chapter" : "Next";
  if (button(frame, "tour_next", next,
             {.kind = ButtonKind::kPrimary, .width = 118, .height = 30, .help = "Next (Right)"}))
    frame.actions.push(actions::MoveTour{+1});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float y = ImGui::GetWindowPos().y + height - frame.px(12);
  const float share =
      tour.num_steps > 1 ? static_cast<float>(tour.step) / static_cast<float>(tour.num_steps - 1) : 0;
  list->AddRectFilled({at.x, y}, {at.x + inner, y + frame.px(3)}, frame.theme.free, frame.px(2));
  list->AddRectFilled({at.x, y}, {at.x + inner * share, y + frame.px(3)}, frame.theme.accent, frame.px(2));
  end_card();
}

}  // namespace octavo::ui
