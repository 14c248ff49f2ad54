#include "ui/views/compare/beam_tree_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "engine/base/format.h"
#include "ui/state.h"
#include "ui/views/compare/score_curves_view.h"
#include "ui/views/compare/token_card.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kRowHeight = 38;
constexpr float kBoxHeight = 28;
constexpr float kPadding = 10;
constexpr float kFigureWidth = 40;
constexpr float kLink = 30;
constexpr float kRankingWidth = 190;

TextStyle run_text(const Frame& frame, const BeamRun& run) {
  TextStyle style = small_text(frame);
  style.colour = run.state == BeamRunState::kDead    ? frame.theme.faint
                 : run.state == BeamRunState::kEnded ? frame.theme.muted
                                                     : frame.theme.text;
  return style;
}

bool is_dead(const BeamRun& run) { return run.state == BeamRunState::kDead; }

}  // namespace

void BeamTreeView::update(const Frame& frame, const BeamTree& tree) {
  const bool same = num_nodes_ == tree.nodes.size() && num_steps_ == tree.num_steps &&
                    num_final_ == tree.final.size() && scale_ == frame.theme.scale &&
                    shown_ == tree.nodes.data();
  if (same) return;
  if (tree.num_steps < num_steps_) following_ = true;
  const TextStyle style = small_text(frame);
  layout_ = lay_out_beam_tree(tree, {.least_step = frame.px(10),
                                     .run_padding = frame.px(2 * kPadding + kFigureWidth + kLink),
                                     .dead_padding = frame.px(2 * kPadding + 12),
                                     .measure = [&](std::string_view text) {
                                       return text_width(frame, style, visible_token(text));
                                     }});
  num_nodes_ = tree.nodes.size();
  num_final_ = tree.final.size();
  num_steps_ = tree.num_steps;
  scale_ = frame.theme.scale;
  shown_ = tree.nodes.data();
}

void BeamTreeView::draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const BeamTree& tree = state.comparison.beams;
  begin_card(frame, "beam_tree", extent, 14);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const std::string note = "width " + std::to_string(tree.width) + " · step " +
                           std::to_string(tree.num_steps) + " · length penalty " +
                           short_number(tree.length_penalty) +
                           (look.show_scores ? " · x: step, y: log p of the whole beam"
                                             : " · x: step, y: rank · log p of the whole beam in each box");
  heading_line(frame, look.show_scores ? "Scores" : "Beam tree", note);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(118), at.y - frame.px(2)});
  if (chip(frame, "show_tree", "tree")) look.show_scores = false;
  tooltip(frame, "Show beams as a tree (P)");
  beside(frame, 8);
  if (chip(frame, "show_scores", "scores")) look.show_scores = true;
  tooltip(frame, "Plot scores against steps (P)");
  ImGui::SetCursorScreenPos({below.x, below.y + frame.px(8)});
  const ImVec2 room{width, extent.y - frame.px(28 + 36)};
  if (tree.nodes.empty()) {
    paragraph(frame, small_text(frame), "Run a beam search to see its tree here.", width);
  } else if (look.show_scores) {
    draw_score_curves(frame, tree, room);
  } else {
    update(frame, tree);
    draw_tree(frame, tree, room);
  }
  end_card();
}

void BeamTreeView::draw_tree(const Frame& frame, const BeamTree& tree, ImVec2 extent) {
  const float end = layout_.step_left.empty() ? 0 : layout_.step_left.back();
  const float width = frame.px(24) + end + frame.px(kRankingWidth);
  const float row =
      std::max(frame.px(kRowHeight),
               std::floor((extent.y - frame.px(14)) / static_cast<float>(std::max(1, layout_.num_rows))));
  const float row_height = std::min(row, frame.px(64));
  if (following_) ImGui::SetNextWindowScroll({std::max(0.0f, width - extent.x), -1});
  ImGui::BeginChild("tree", extent, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 origin{low.x + frame.px(24), low.y};
  draw_runs(frame, tree, origin, row_height);
  draw_ranking(frame, tree, {origin.x + end + frame.px(8), origin.y}, row_height);
  ImGui::Dummy({width, row_height * static_cast<float>(layout_.num_rows)});
  const bool by_hand = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) &&
                       (ImGui::GetIO().MouseWheel != 0 || ImGui::GetIO().MouseWheelH != 0);
  if (by_hand || ImGui::GetScrollX() < ImGui::GetScrollMaxX() - frame.px(4)) following_ = false;
  if (ImGui::GetScrollX() >= ImGui::GetScrollMaxX() - frame.px(4) && !by_hand) following_ = true;
  ImGui::EndChild();
}

void BeamTreeView::draw_runs(const Frame& frame, const BeamTree& tree, ImVec2 origin,
                             float row_height) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto box = [&](const BeamRun& run, ImVec2& low, ImVec2& high) {
    const auto first = static_cast<std::size_t>(run.first_step),
               last = static_cast<std::size_t>(run.last_step);
    const float gap = is_dead(run) ? frame.px(6) : frame.px(kLink);
    const float top =
        origin.y + static_cast<float>(run.row) * row_height + (row_height - frame.px(kBoxHeight)) * 0.5f;
    low = {origin.x + layout_.step_left[first], std::floor(top)};
    high = {std::max(low.x + frame.px(24), origin.x + layout_.step_left[last + 1] - gap),
            low.y + frame.px(kBoxHeight)};
  };
  const float clip_left = ImGui::GetWindowPos().x, clip_right = clip_left + ImGui::GetWindowSize().x;
  for (const bool dead : {true, false}) {  // what lives is drawn over what died
    for (const BeamRun& run : layout_.runs) {
      if (is_dead(run) != dead) continue;
      ImVec2 low, high;
      box(run, low, high);
      ImVec2 from{origin.x - frame.px(12), low.y + frame.px(kBoxHeight) * 0.5f};
      if (run.parent >= 0) {
        ImVec2 parent_low, parent_high;
        box(layout_.runs[static_cast<std::size_t>(run.parent)], parent_low, parent_high);
        from = {parent_high.x, (parent_low.y + parent_high.y) * 0.5f};
      }
      if (from.x > clip_right || high.x < clip_left) continue;
      const ImVec2 to{low.x, (low.y + high.y) * 0.5f};
      const ImU32 colour = dead ? frame.theme.line : with_alpha(frame.theme.accent, 0.75f);
      const float bend = std::max(frame.px(8), (to.x - from.x) * 0.5f);
      list->AddBezierCubic(from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, colour,
                           dead ? frame.px(1) : frame.px(2));
      draw_run(frame, tree, run, low, high);
    }
  }
}

void BeamTreeView::draw_run(const Frame& frame, const BeamTree& tree, const BeamRun& run, ImVec2 low,
                            ImVec2 high) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool dead = is_dead(run);
  const BeamTreeNode& last = tree.nodes[static_cast<std::size_t>(run.last_node)];
  const float rounding = frame.px(7);
  if (!dead) list->AddRectFilled(low, high, frame.theme.raised, rounding);
  const bool frontier = run.state == BeamRunState::kLive && last.step + 1 == tree.num_steps;
  const ImU32 border = frontier                            ? frame.theme.accent
                       : run.state == BeamRunState::kEnded ? frame.theme.warning
                                                           : frame.theme.line;
  list->AddRect(low, high, dead ? with_alpha(border, 0.6f) : border, rounding, frame.px(frontier ? 1.5f : 1));
  const TextStyle style = run_text(frame, run);
  const float top = low.y + frame.px(4);
  const bool has_figure = !dead;
  const std::string figure = two_decimals(last.cumulative_logprob);
  const TextStyle tiny = tiny_text(frame);
  const float figure_width = has_figure ? text_width(frame, tiny, figure) + frame.px(8) : 0;
  const std::string_view run_words = run.text;
  const std::size_t first_word = std::min(run_words.find_first_not_of(' '), run_words.size());
  std::string text = visible_token(run_words.substr(first_word), /*max_bytes=*/600);
  if (text.empty()) text = last.rank < 0 ? "end" : "…";
  draw_text(frame, list, {low.x + frame.px(kPadding), top}, style, text,
            std::max(1.0f, high.x - low.x - frame.px(kPadding + 6) - figure_width));
  if (has_figure) draw_text(frame, list, {high.x - figure_width, top + frame.px(1)}, tiny, figure);
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(low, high)) return;
  const char* fate = run.state == BeamRunState::kDead     ? "pruned here: better continuations replaced it"
                     : run.state == BeamRunState::kEnded  ? "finished here as a hypothesis"
                     : run.state == BeamRunState::kAnswer ? "part of an answer"
                                                          : "still running";
  tooltip_now(frame, run.text + "\nsteps " + std::to_string(run.first_step + 1) + " to " +
                         std::to_string(run.last_step + 1) + " · " + fate + "\nlog p " + figure +
                         " · after length penalty " + two_decimals(length_penalised(tree, run.last_node)));
}

// Beside the frontier: the final ranking, or the beams of the newest step.
void BeamTreeView::draw_ranking(const Frame& frame, const BeamTree& tree, ImVec2 origin,
                                float row_height) const {
  const bool over = !tree.final.empty();
  const std::vector<std::int32_t>& leaves = over ? tree.final : tree.live;
  std::vector<bool> labelled(static_cast<std::size_t>(layout_.num_rows), false);
  for (std::size_t rank = 0; rank < leaves.size(); ++rank) {
    const auto run = std::find_if(layout_.runs.begin(), layout_.runs.end(),
                                  [&](const BeamRun& each) { return each.last_node == leaves[rank]; });
    if (run == layout_.runs.end()) continue;
    std::string text = std::to_string(rank + 1) + " · " + two_decimals(length_penalised(tree, leaves[rank]));
    if (rank == 0) text += over ? " after penalty" : " so far";
    // Answers may end early, one after the other in the same row: each below the other.
    auto row = static_cast<std::size_t>(run->row);
    while (row < labelled.size() && labelled[row]) ++row;
    if (row >= labelled.size()) continue;
    labelled[row] = true;
    const float top = origin.y + static_cast<float>(row) * row_height + (row_height - frame.px(18)) * 0.5f;
    draw_text(frame, ImGui::GetWindowDrawList(), {origin.x, std::floor(top)}, tiny_text(frame), text);
  }
}

}  // namespace octavo::ui
