#include "ui/views/compare/divergence_view.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "engine/base/hash.h"
#include "ui/state.h"
#include "ui/views/compare/token_card.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr std::size_t kMostUntaken = 2;
constexpr float kBoxHeight = 48;
constexpr float kRowHeight = 58;
constexpr float kLink = 34;
constexpr float kNarrowest = 176, kWidest = 300;
constexpr float kPadding = 10;

std::uint64_t signature(const ComparisonState& comparison) {
  std::uint64_t hash = comparison.columns.size();
  for (const ComparedColumn& column : comparison.columns) {
    hash = hash_combine(hash, column.id.value);
    hash = hash_combine(hash, column.rewritten);
    hash = hash_combine(hash, column.tokens.size());
  }
  return hash;
}

bool is_taken(const DivergenceRun& run) { return !run.columns.empty(); }

// "tokens 3 to 9"
std::string token_words(const DivergenceRun& run) {
  if (run.end == run.first) return "no tokens";
  if (run.end == run.first + 1) return "token " + with_thousands(run.first + 1);
  return "tokens " + with_thousands(run.first + 1) + " to " + with_thousands(run.end);
}

std::string figure_words(const ComparisonState& comparison, const DivergenceTree& tree,
                         const DivergenceRun& run) {
  if (!is_taken(run)) return "not taken · " + probability_text(run.logprob);
  std::string text = std::to_string(run.columns.size()) + " of " + std::to_string(tree.num_columns) + " · " +
                     token_words(run);
  if (run.token_id >= 0) text += " · " + probability_text(run.logprob);
  const auto num_over = std::count_if(run.columns.begin(), run.columns.end(), [&](std::size_t index) {
    const ComparedColumn& column = comparison.columns[index];
    return column.tokens.size() == run.end && has_ended(column.phase);
  });
  if (num_over > 0 && run.columns.size() > 1) text += " · " + std::to_string(num_over) + " end";
  return text;
}

std::string hint_words(const ComparisonState& comparison, const DivergenceRun& run) {
  if (!is_taken(run))
    return "No answer took this. Click to see all alternatives, and to fork there.\nProbability before "
           "temperature and filters.";
  std::string names;
  for (const std::size_t index : run.columns)
    names += (names.empty() ? "" : ", ") + comparison.columns[index].name;
  if (run.token_id < 0) return names + "\nThey part at the first token.";
  return names + "\n" + token_words(run) +
         "\nProbability of the first of them, before temperature and filters. Click to fork there.";
}

}  // namespace

void DivergenceView::update(const ComparisonState& comparison) {
  const std::uint64_t now = signature(comparison);
  if (now == shown_) return;
  shown_ = now;
  tree_ = divergence_tree(comparison.columns, kMostUntaken);
  layout_ = lay_out_divergence(tree_);
}

void DivergenceView::draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  update(state.comparison);
  begin_card(frame, "divergence", extent, 14);
  heading_line(frame, "Where the answers part",
               "answers that share a run · probability of its first token · click to fork there");
  gap(frame, 10);
  const ImVec2 room{ImGui::GetContentRegionAvail().x, extent.y - frame.px(28 + 40)};
  const auto depths = static_cast<float>(std::max(1, layout_.num_depths));
  // As many as there is room for, each of them whole; the others are scrolled to.
  const float link = frame.px(kLink);
  const float num_whole =
      std::clamp(std::floor((room.x + link) / (frame.px(kNarrowest) + link)), 1.0f, depths);
  const float share = std::floor((room.x + link) / num_whole) - link;
  box_width_ = num_whole < depths ? share : std::min(share, frame.px(kWidest));
  ImGui::BeginChild("parts", room, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  draw_links(frame, origin);
  for (std::size_t i = 0; i < tree_.runs.size(); ++i) draw_run(frame, state.comparison, look, i, origin);
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({depths * (box_width_ + frame.px(kLink)) - frame.px(kLink),
                frame.px(kRowHeight) * static_cast<float>(layout_.num_rows)});
  ImGui::EndChild();
  end_card();
}

ImVec2 DivergenceView::place(const Frame& frame, std::size_t index, ImVec2 origin) const {
  const DivergencePlace& place = layout_.places[index];
  return {origin.x + static_cast<float>(place.depth) * (box_width_ + frame.px(kLink)),
          std::floor(origin.y + place.row * frame.px(kRowHeight))};
}

void DivergenceView::draw_links(const Frame& frame, ImVec2 origin) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < tree_.runs.size(); ++i) {
    const DivergenceRun& run = tree_.runs[i];
    if (run.parent < 0) continue;
    const ImVec2 parent = place(frame, static_cast<std::size_t>(run.parent), origin);
    const ImVec2 low = place(frame, i, origin);
    const ImVec2 from{parent.x + box_width_, parent.y + frame.px(kBoxHeight) * 0.5f};
    const ImVec2 to{low.x, low.y + frame.px(kBoxHeight) * 0.5f};
    const float bend = (to.x - from.x) * 0.5f;
    // As thick as many answers went there.
    const float share = static_cast<float>(run.columns.size()) / static_cast<float>(tree_.num_columns);
    const ImU32 colour = is_taken(run) ? with_alpha(frame.theme.accent, 0.75f) : frame.theme.line;
    list->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, colour,
                         is_taken(run) ? frame.px(1.5f + 3 * share) : frame.px(1));
  }
}

void DivergenceView::draw_run(const Frame& frame, const ComparisonState& comparison, CompareLook& look,
                              std::size_t index, ImVec2 origin) const {
  const DivergenceRun& run = tree_.runs[index];
  const ImVec2 low = place(frame, index, origin);
  const ImVec2 high{low.x + box_width_, low.y + frame.px(kBoxHeight)};
  ImGui::SetCursorScreenPos(low);
  const std::string id = "run_" + std::to_string(index);
  const bool can_open = run.token_id >= 0;
  ImGui::BeginDisabled(!can_open);
  const bool pressed =
      ImGui::InvisibleButton(id.c_str(), {high.x - low.x, high.y - low.y}, ImGuiButtonFlags_EnableNav);
  ImGui::EndDisabled();
  const bool hovered = can_open && (ImGui::IsItemHovered() || ImGui::IsItemFocused());
  tooltip(frame, hint_words(comparison, run));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool taken = is_taken(run);
  const ImU32 fill = hovered ? mix(frame.theme.raised, frame.theme.text, 0.05f) : frame.theme.raised;
  if (taken || hovered) list->AddRectFilled(low, high, fill, frame.px(8));
  list->AddRect(low, high, hovered ? frame.theme.accent : frame.theme.line, frame.px(8));
  const float room = box_width_ - frame.px(2 * kPadding);
  TextStyle words = small_text(frame), figures = tiny_text(frame);
  words.colour = readable(taken ? frame.theme.text : frame.theme.muted, fill);
  figures.colour = readable(frame.theme.muted, fill);
  std::string text = visible_token(run.text, /*max_bytes=*/200);
  if (run.token_id < 0) text = "The prompt";
  draw_text(frame, list, {low.x + frame.px(kPadding), low.y + frame.px(5)}, words, text, room);
  draw_text(frame, list, {low.x + frame.px(kPadding), low.y + frame.px(25)}, figures,
            figure_words(comparison, tree_, run), room);
  if (!pressed) return;
  look.selected = comparison.columns[run.column].id;
  look.cursor = run.first;
  look.card = TokenPlace{look.selected, run.first};
  look.open_card = true;
  look.cursor_place = {low.x, high.y};
  look.cursor_line = high.y - low.y;
}

}  // namespace octavo::ui
