#include "ui/views/memory/saturated_queue_view.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/memory_toolbar.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kRow = 62, kNarrowRow = 92, kName = 150, kFigures = 260, kNarrow = 620, kButton = 140;

struct Class {
  const char* name;
  double PaperRow::*share;
};
constexpr std::array<Class, 5> kClasses = {{{"input", &PaperRow::input},
                                            {"output", &PaperRow::output},
                                            {"reserved, not used yet", &PaperRow::reserved},
                                            {"reserved, never used", &PaperRow::internal},
                                            {"unreserved", &PaperRow::unreserved}}};

ImU32 class_colour(const Theme& theme, std::size_t index) {
  switch (index) {
    case 0: return theme.owner(0);
    case 1: return theme.accent;
    case 2: return theme.warning;
    case 3: return theme.owner(4);
    default: return theme.free;
  }
}

// In as many lines as the width asks for.
void draw_key(const Frame& frame) {
  const float end = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    const float width = frame.px(9 + 6) + text_width(frame, tiny_text(frame), kClasses[i].name);
    if (i > 0 && ImGui::GetItemRectMax().x + frame.px(16) + width <= end) beside(frame, 16);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + frame.px(5)},
                                              {at.x + frame.px(9), at.y + frame.px(14)},
                                              class_colour(frame.theme, i), frame.px(2));
    ImGui::Dummy({frame.px(9), frame.px(9)});
    beside(frame, 6);
    line(frame, tiny_text(frame), kClasses[i].name);
  }
}

// Name, bar and figures beside each other, or below each other where there is little room.
struct Layout {
  bool is_narrow = false;
  float row = 0, bar_left = 0, bar_width = 0, bar_top = 0;
  float figures_left = 0, figures_top = 0, figure_width = 0;
};

Layout layout_of(const Frame& frame, float width) {
  if (width < frame.px(kNarrow))
    return {.is_narrow = true,
            .row = frame.px(kNarrowRow),
            .bar_width = width,
            .bar_top = frame.px(26),
            .figures_top = frame.px(56),
            .figure_width = width * 0.5f};
  return {.row = frame.px(kRow),
          .bar_left = frame.px(kName),
          .bar_width = width - frame.px(kName + kFigures),
          .bar_top = frame.px(6),
          .figures_left = width - frame.px(kFigures - 18),
          .figures_top = 0,
          .figure_width = frame.px(120)};
}

void draw_heads(const Frame& frame, const Layout& layout, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const TextStyle head = tiny_text(frame);
  const float left = at.x + layout.figures_left;
  draw_text(frame, list, {left, at.y}, head, "tokens held");
  draw_text(frame, list, {left + layout.figure_width, at.y}, head, "batched requests");
  ImGui::Dummy({width, frame.px(24)});
}

void draw_bar(const Frame& frame, const PaperRow& row, ImVec2 low, ImVec2 high) {
  ImDrawList* const list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(4));
  float x = low.x;
  for (std::size_t i = 0; i < kClasses.size() && row.progress > 0; ++i) {
    const double share = std::clamp(row.*kClasses[i].share, 0.0, 100.0);
    const float end = std::min(high.x, x + (high.x - low.x) * static_cast<float>(share) / 100.0f);
    list->AddRectFilled({x, low.y}, {end, high.y}, class_colour(frame.theme, i));
    if (ImGui::IsMouseHoveringRect({x, low.y}, {end, high.y}) && ImGui::IsWindowHovered())
      tooltip_now(frame, std::string(kClasses[i].name) + ": " + fixed_text(share, 1) + " % of all slots");
    x = end;
  }
  if (row.progress <= 0 || row.progress >= 1) return;
  const float y = high.y + frame.px(4);
  list->AddRectFilled({low.x, y},
                      {low.x + (high.x - low.x) * static_cast<float>(row.progress), y + frame.px(2)},
                      frame.theme.muted);
}

// Ours, and below or behind it the paper's.
void draw_figure(const Frame& frame, ImVec2 at, const std::string& ours, const std::string& papers,
                 const Layout& layout, const char* what) {
  ImDrawList* const list = ImGui::GetWindowDrawList();
  TextStyle value = body_text(frame), note = tiny_text(frame);
  note.colour = frame.theme.faint;
  if (!layout.is_narrow) {
    draw_text(frame, list, {at.x, at.y + frame.px(1)}, value, ours);
    return draw_text(frame, list, {at.x, at.y + frame.px(23)}, note, "paper: " + papers);
  }
  draw_text(frame, list, at, note, std::string(what) + ": " + ours + " (paper: " + papers + ")",
            layout.figure_width - frame.px(8));
}

void draw_row(const Frame& frame, const PaperRow& row, const Layout& layout, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + (layout.is_narrow ? 0 : frame.px(7))},
            body_text(frame), row.name, layout.is_narrow ? width : frame.px(kName));
  const ImVec2 low{at.x + layout.bar_left, at.y + layout.bar_top};
  draw_bar(frame, row, low, {low.x + layout.bar_width, low.y + frame.px(26)});
  const bool is_known = row.progress > 0.1;
  const ImVec2 figures{at.x + layout.figures_left, at.y + layout.figures_top};
  draw_figure(frame, figures, is_known ? fixed_text(row.input + row.output, 1) + " %" : "–",
              fixed_text(row.paper_tokens_held, 1) + " %", layout, "tokens held");
  draw_figure(frame, {figures.x + layout.figure_width, figures.y},
              is_known ? fixed_text(row.batched_requests, 1) : "–", fixed_text(row.paper_batched_requests, 1),
              layout, "batched");
  ImGui::Dummy({width, layout.row});
}

}  // namespace

void draw_saturated_queue(const Frame& frame, const MemoryWorkspaceState& state, float available) {
  const EvaluationState& evaluation = state.evaluation;
  const float width = std::min(available, frame.px(1200)), text = std::min(width, frame.px(820));
  paragraph(frame, heading_text(frame), "The same requests under four memory managers", width);
  gap(frame, 4);
  paragraph(
      frame, small_text(frame),
      "An endless queue of ShareGPT chats, first come first served, over 983 blocks of 16 tokens: "
      "OPT-13B "
      "on one GPU of 40 GB, as in Kwon et al. 2023 (arXiv:2309.06180), figures 2 and 13. The scheduler and "
      "block manager are the real ones. No model runs, because only lengths and allocation rules matter.",
      text);
  gap(frame, 10);
  if (evaluation.is_queue_running) {
    if (button(frame, "cancel_paper", "Cancel", {.width = kButton}))
      frame.actions.push(actions::CancelPaper{});
  } else {
    const char* word = evaluation.is_queue_done ? "Run again" : "Run";
    const ButtonOptions run{
        .kind = ButtonKind::kPrimary,
        .width = kButton,
        .enabled = !evaluation.is_running,
        .help = evaluation.is_running ? "An experiment is running; cancel it first, or wait" : ""};
    if (button(frame, "run_paper", word, run)) frame.actions.push(actions::RunPaper{});
  }
  gap(frame, 14);
  draw_key(frame);
  gap(frame, 4);
  const Layout layout = layout_of(frame, width);
  if (!layout.is_narrow) draw_heads(frame, layout, width);
  for (const PaperRow& row : evaluation.rows) draw_row(frame, row, layout, width);
  draw_memory_bar(frame, state.paper_shape, text);
  gap(frame, 12);
  TextStyle note = tiny_text(frame);
  note.colour = frame.theme.faint;
  paragraph(frame, note,
            "Tokens held: share of the pool's slots that hold keys and values of tokens, measured after each "
            "step's rows are computed. Means over 60,000 steps after 4,000 warm-up steps, from one seed. "
            "Output lengths are long-tailed, so a run of this length can still vary by a point.",
            text);
}

}  // namespace octavo::ui
