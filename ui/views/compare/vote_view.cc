#include "ui/views/compare/vote_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kGap = 12;
constexpr float kNarrowest = 240;
constexpr float kFoot = 52;
constexpr float kPromptHeight = 92;
constexpr float kResultRow = 26;
constexpr float kNameWidth = 110, kFigureWidth = 70, kIntervalWidth = 230;
constexpr float kNarrowName = 84, kNarrowFigure = 50;  // where there is no room for what differs
constexpr float kLeastDifference = 120;

// Settings, what differs, wins, ties, losses, share; a column without a width is left out.
std::array<float, 6> result_widths(const Frame& frame, float inner) {
  const float difference = inner - frame.px(kNameWidth + 3 * kFigureWidth + kIntervalWidth);
  if (difference >= frame.px(kLeastDifference)) {
    const float figure = frame.px(kFigureWidth);
    return {frame.px(kNameWidth), difference, figure, figure, figure, frame.px(kIntervalWidth)};
  }
  const float name = frame.px(kNarrowName), figure = frame.px(kNarrowFigure);
  return {name, 0, figure, figure, figure, inner - name - 3 * figure};
}

void cast(const Frame& frame, std::optional<std::size_t> place) {
  frame.actions.push(actions::CastVote{place});
}

void apply_keys(const Frame& frame, const VoteState& vote) {
  if (ImGui::GetIO().WantTextInput || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId)) return;
  for (std::size_t place = 0; place < vote.ballot.answers.size() && place < 9; ++place) {
    if (ImGui::IsKeyPressed(static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(place)), false))
      return cast(frame, place);
  }
  if (ImGui::IsKeyPressed(ImGuiKey_0, false)) return cast(frame, std::nullopt);
  if (ImGui::IsKeyPressed(ImGuiKey_Backspace, false)) frame.actions.push(actions::UndoVote{});
}

}  // namespace

void VoteView::draw_answer(const Frame& frame, const VoteState& vote, std::size_t place, ImVec2 extent) {
  ImGui::PushID(static_cast<int>(place));
  begin_card(frame, "answer", extent, 14);
  const float width = ImGui::GetContentRegionAvail().x;
  const std::string number = std::to_string(place + 1);
  line(frame, heading_text(frame), "Answer " + number);
  gap(frame, 8);
  // The ballot's number makes each text begin at its top.
  const std::string id = "text_" + std::to_string(vote.index);
  ImGui::BeginChild(id.c_str(), {width, extent.y - frame.px(28 + 30 + 8 + 40)}, ImGuiChildFlags_NavFlattened);
  MessageLayout& layout = answers_[place];
  const std::string& text = vote.ballot.answers[place];
  layout.update(frame, text, TextFormat::kMarkdown, width - ImGui::GetStyle().ScrollbarSize - frame.px(2));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float top = ImGui::GetWindowPos().y;
  const auto copied = layout.draw(frame, text, at, top, top + ImGui::GetWindowSize().y, frame.theme.text);
  if (copied) frame.actions.push(actions::CopyText{*copied});
  ImGui::Dummy({1, layout.height()});
  ImGui::EndChild();
  gap(frame, 8);
  const std::string help = "Key " + number;
  if (button(frame, "best", "This is best", {.kind = ButtonKind::kPrimary, .help = help})) cast(frame, place);
  end_card();
  ImGui::PopID();
}

void VoteView::draw(const Frame& frame, const VoteState& vote, ImVec2 extent) {
  if (laid_out_ != vote.index || laid_out_prompt_ != vote.ballot.prompt) {
    answers_.clear();
    answers_.resize(vote.ballot.answers.size());
    laid_out_ = vote.index;
    laid_out_prompt_ = vote.ballot.prompt;
  }
  const ImVec2 low = ImGui::GetCursorScreenPos();
  begin_card(frame, "ballot", {extent.x, frame.px(kPromptHeight)}, 14);
  heading_line(frame, "Blind vote",
               with_thousands(vote.index + 1) + " of " + with_thousands(vote.count) +
                   " · which answer is best? The order is drawn anew for each prompt.");
  gap(frame, 8);
  line(frame, body_text(frame), vote.ballot.prompt, extent.x - frame.px(28));
  end_card();
  const float top = low.y + frame.px(kPromptHeight + kGap);
  const float height = low.y + extent.y - frame.px(kFoot) - top;
  const std::size_t count = vote.ballot.answers.size();
  // As many as there is room for, each of them whole; the others are scrolled to.
  const float space = frame.px(kGap), all = static_cast<float>(count);
  const float num_whole =
      std::clamp(std::floor((extent.x + space) / (frame.px(kNarrowest) + space)), 1.0f, all);
  const float width = std::floor((extent.x + space) / num_whole - space);
  ImGui::SetCursorScreenPos({low.x, top});
  ImGui::BeginChild("answers", {extent.x, height}, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_HorizontalScrollbar);
  const bool scrolls = num_whole < all;
  const float room = height - (scrolls ? ImGui::GetStyle().ScrollbarSize + frame.px(2) : 0);
  for (std::size_t place = 0; place < count; ++place) {
    if (place > 0) beside(frame, kGap);
    draw_answer(frame, vote, place, {width, room});
  }
  ImGui::EndChild();
  ImGui::SetCursorScreenPos({low.x, low.y + extent.y - frame.px(kFoot - 14)});
  if (button(frame, "tie", "Tie", {.help = "No answer is better than the others (0)"}))
    cast(frame, std::nullopt);
  beside(frame, 8);
  if (button(frame, "undo_vote", "Undo", {.enabled = vote.index > 0, .help = "Vote again (Backspace)"}))
    frame.actions.push(actions::UndoVote{});
  beside(frame, 8);
  if (button(frame, "end_vote", "End vote", {.help = "Count the votes so far, and show which settings won"}))
    frame.actions.push(actions::EndVote{});
  apply_keys(frame, vote);
}

float vote_result_height(const Frame& frame, const BatchState& batch) {
  const std::size_t rows = batch.result ? batch.result->scores.size() + 1 : 0;
  return frame.px(2 * 14 + 34 + kResultRow * static_cast<float>(rows));
}

void draw_vote_result(const Frame& frame, const BatchState& batch, float width) {
  const VoteResult& result = *batch.result;
  begin_card(frame, "vote_result", {width, vote_result_height(frame, batch)}, 14);
  std::string note =
      count_text(result.ballots.size(), "vote") + " · orders of seed " + std::to_string(result.seed);
  if (result.num_left_out > 0) note += " · " + count_text(result.num_left_out, "prompt") + " left out";
  heading_line(frame, "Result of the blind vote", note);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float inner = ImGui::GetContentRegionAvail().x;
  const std::array<float, 6> widths = result_widths(frame, inner);
  const auto row = [&](std::size_t index, const TextStyle& style, const std::array<std::string, 6>& cells) {
    const float y = at.y + frame.px(8 + kResultRow * static_cast<float>(index));
    float x = at.x;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] <= 0) continue;
      draw_text(frame, list, {x, y}, style, cells[i], widths[i] - frame.px(8));
      x += widths[i];
    }
  };
  row(0, tiny_text(frame),
      {"Settings", "What differs", "Wins", "Ties", "Losses", "Share of wins, 95 % (Wilson score)"});
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  for (std::size_t i = 0; i < result.scores.size(); ++i) {
    const VoteScore& score = result.scores[i];
    row(i + 1, style,
        {settings_name(i), batch.differences[i], std::to_string(score.num_wins),
         std::to_string(score.num_ties), std::to_string(score.num_losses),
         percent_text(score.share) + " (" + percent_text(score.low) + " to " + percent_text(score.high) +
             ")"});
    const float y = at.y + frame.px(8 + kResultRow * static_cast<float>(i + 1));
    if (const std::string& prompt = batch.settings[i].system_prompt; !prompt.empty())
      tooltip_over(frame, {at.x, y}, {at.x + widths[0] + widths[1], y + frame.px(kResultRow)},
                   "System prompt: " + prompt);
  }
  end_card();
}

}  // namespace octavo::ui
