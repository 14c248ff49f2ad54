#include "ui/views/memory/tour_view.h"

#include <algorithm>
#include <array>
#include <string>

#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCardPadding = 16, kHeadingHeight = 26, kLeastHeight = 118;
constexpr float kButtonsWidth = 456, kButtonRow = 38, kLeastHeading = 220;
constexpr float kFieldRow = 42, kAnswers = 264, kRun = 84, kLeastField = 190, kFieldGap = 10;

void draw_chapters(const Frame& frame, const TourState& tour) {
  const ButtonOptions choose{.height = 30, .help = "Choose a chapter"};
  const std::string place =
      tour.is_lesson ? "lesson"
                     : std::to_string(tour.chapter + 1) + " of " + std::to_string(tour.chapters.size());
  if (button(frame, "chapters", place + " · chapters", choose)) ImGui::OpenPopup("chapter_list");
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

void draw_way_on(const Frame& frame, const MemoryWorkspaceState& state) {
  const TourState& tour = state.tour;
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
  const bool has_chapter =
      !tour.is_lesson && tour.chapter + 1 < static_cast<std::int32_t>(tour.chapters.size());
  if (button(frame, "tour_next", is_last && has_chapter ? "Next chapter" : "Next",
             {.kind = ButtonKind::kPrimary,
              .width = 118,
              .height = 30,
              .enabled = !is_last || has_chapter,
              .help = "Next (Right)"}))
    frame.actions.push(actions::MoveTour{+1});
}

void draw_progress(const Frame& frame, const TourState& tour, ImVec2 low, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float share =
      tour.num_steps > 1 ? static_cast<float>(tour.step) / static_cast<float>(tour.num_steps - 1) : 0;
  const float bottom = low.y + frame.px(3);
  list->AddRectFilled(low, {low.x + width, bottom}, frame.theme.free, frame.px(2));
  list->AddRectFilled(low, {low.x + width * share, bottom}, frame.theme.accent, frame.px(2));
}

// Where fields and buttons have no room in one row, they stand below one another.
int rows_of_trial(const Frame& frame, float width) {
  if (width >= frame.px(2 * kLeastField + kAnswers + kRun + 3 * kFieldGap)) return 1;
  return width >= frame.px(kAnswers + kRun + kFieldGap) ? 3 : 4;
}

std::string trial_note(const TourState& tour) {
  return tour.problem.empty() ? "Up to 24 words in each text; new words become tokens of their own."
                              : tour.problem;
}

}  // namespace

void TourView::draw(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const TourState& tour = state.tour;
  const float room = width - 2 * frame.px(kCardPadding);
  const TextStyle style = body_text(frame), small = small_text(frame);
  const float measure = std::min(room, frame.px(900));
  // Where the heading has no room for the buttons beside it, they stand below the words.
  const bool below = room < frame.px(kButtonsWidth + kLeastHeading),
             two_rows = room < frame.px(kButtonsWidth);
  const float sentence = paragraph_height(frame, style, tour.sentence, measure);
  const float words =
      frame.px(kHeadingHeight) + sentence + paragraph_height(frame, small, tour.figures, measure);
  const float rows = below ? frame.px(two_rows ? 2 * kButtonRow : kButtonRow) : 0;
  const float trial = tour.is_trial ? trial_height(frame, tour, room) : 0;
  const float height =
      std::max(frame.px(kLeastHeight), 2 * frame.px(kCardPadding) + words + rows + trial + frame.px(14));
  begin_card(frame, "tour", {width, height}, kCardPadding);
  const float inner = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string place = "step " + std::to_string(tour.step + 1) + " of " + std::to_string(tour.num_steps);
  heading_line(frame, tour.title, place);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kHeadingHeight)});
  paragraph(frame, style, tour.sentence, measure);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kHeadingHeight) + sentence});
  paragraph(frame, small, tour.figures, measure);
  const float buttons = at.y + words + frame.px(6);
  ImGui::SetCursorScreenPos(below ? ImVec2{at.x, buttons}
                                  : ImVec2{at.x + inner - frame.px(kButtonsWidth), at.y - frame.px(4)});
  draw_chapters(frame, tour);
  if (two_rows) {
    ImGui::SetCursorScreenPos({at.x, buttons + frame.px(kButtonRow)});
  } else {
    beside(frame, 8);
  }
  draw_way_on(frame, state);
  if (tour.is_trial) {
    ImGui::SetCursorScreenPos({at.x, at.y + words + rows + frame.px(6)});
    draw_trial(frame, tour, inner);
  }
  draw_progress(frame, tour, {at.x, ImGui::GetWindowPos().y + height - frame.px(12)}, inner);
  end_card();
}

float TourView::trial_height(const Frame& frame, const TourState& tour, float width) const {
  return static_cast<float>(rows_of_trial(frame, width)) * frame.px(kFieldRow) +
         paragraph_height(frame, tiny_text(frame), trial_note(tour), width) + frame.px(6);
}

void TourView::draw_trial(const Frame& frame, const TourState& tour, float width) {
  if (!draft_) draft_ = tour.trial;
  draw_trial_fields(frame, width);
  TextStyle style = tiny_text(frame);
  if (!tour.problem.empty()) style.colour = frame.theme.error;
  paragraph(frame, style, trial_note(tour), width);
}

void TourView::draw_trial_fields(const Frame& frame, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const int rows = rows_of_trial(frame, width);
  const bool one_row = rows == 1;
  const float space = frame.px(kFieldGap), row = frame.px(kFieldRow);
  const float field = one_row ? std::floor((width - frame.px(kAnswers + kRun) - 3 * space) * 0.5f) : width;
  TourTrial& draft = *draft_;
  constexpr ImGuiInputTextFlags kEnter = ImGuiInputTextFlags_EnterReturnsTrue;
  bool runs = text_field(frame, "##trial_first", draft.prompts[0], "Type a text", field, kEnter);
  ImGui::SetCursorScreenPos(one_row ? ImVec2{at.x + field + space, at.y} : ImVec2{at.x, at.y + row});
  runs |= text_field(frame, "##trial_second", draft.prompts[1], "A second text, or none", field, kEnter);
  const float x = one_row ? at.x + 2 * (field + space) : at.x, y = one_row ? at.y : at.y + 2 * row;
  const float answers = std::min(frame.px(kAnswers), width);
  ImGui::SetCursorScreenPos({x, y});
  constexpr std::array<const char*, 3> kLabels = {"1 sample", "3 samples", "2 beams"};
  constexpr std::array<const char*, 3> kIds = {"trial_one", "trial_three", "trial_beams"};
  const auto chosen = static_cast<std::size_t>(draft.answers);
  draft.answers = static_cast<TrialAnswers>(segments(frame, "trial_answers", kLabels, kIds, chosen, answers));
  ImGui::SetCursorScreenPos(rows == 4 ? ImVec2{x, y + row} : ImVec2{x + answers + space, y + frame.px(2)});
  runs |= button(frame, "trial_run", "Run",
                 {.kind = ButtonKind::kPrimary, .width = kRun, .height = 32, .help = "Play it (Enter)"});
  if (runs) frame.actions.push(actions::PlayTrial{draft});
  ImGui::SetCursorScreenPos({at.x, at.y + static_cast<float>(rows) * row});
}

}  // namespace octavo::ui
