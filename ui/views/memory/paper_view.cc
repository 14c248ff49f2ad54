#include "ui/views/memory/paper_view.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/memory_toolbar.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kRow = 62, kName = 150, kFigures = 260;

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

void draw_row(const Frame& frame, const PaperRow& row, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, {at.x, at.y + frame.px(7)}, body_text(frame), row.name, frame.px(kName));
  const float left = at.x + frame.px(kName), right = at.x + width - frame.px(kFigures);
  const ImVec2 low{left, at.y + frame.px(6)}, high{right, at.y + frame.px(32)};
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(4));
  float x = left;
  for (std::size_t i = 0; i < kClasses.size() && row.progress > 0; ++i) {
    const double share = std::clamp(row.*kClasses[i].share, 0.0, 100.0);
    const float end = std::min(right, x + (right - left) * static_cast<float>(share) / 100.0f);
    list->AddRectFilled({x, low.y}, {end, high.y}, class_colour(frame.theme, i));
    if (ImGui::IsMouseHoveringRect({x, low.y}, {end, high.y}) && ImGui::IsWindowHovered())
      tooltip_now(frame, std::string(kClasses[i].name) + ": " + fixed_text(share, 1) + " % of all slots");
    x = end;
  }
  if (row.progress > 0 && row.progress < 1) {
    const float y = high.y + frame.px(4);
    list->AddRectFilled({left, y},
                        {left + (right - left) * static_cast<float>(row.progress), y + frame.px(2)},
                        frame.theme.muted);
  }
  const float figures = right + frame.px(18);
  TextStyle value = body_text(frame), note = tiny_text(frame);
  note.colour = frame.theme.faint;
  const bool is_known = row.progress > 0.1;
  draw_text(frame, list, {figures, at.y + frame.px(1)}, value,
            is_known ? fixed_text(row.input + row.output, 1) + " %" : "–");
  draw_text(frame, list, {figures, at.y + frame.px(23)}, note,
            "paper: " + fixed_text(row.paper_tokens_held, 1) + " %");
  draw_text(frame, list, {figures + frame.px(120), at.y + frame.px(1)}, value,
            is_known ? fixed_text(row.batched_requests, 1) : "–");
  draw_text(frame, list, {figures + frame.px(120), at.y + frame.px(23)}, note,
            "paper: " + fixed_text(row.paper_batched_requests, 1));
  ImGui::Dummy({width, frame.px(kRow)});
}

}  // namespace

void draw_paper(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent) {
  const PaperState& paper = state.paper;
  begin_card(frame, "paper", extent, 24);
  const float width = std::min(ImGui::GetContentRegionAvail().x, frame.px(1200));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  heading_line(frame, "The same requests under four memory managers");
  gap(frame, 4);
  paragraph(
      frame, small_text(frame),
      "An endless queue of ShareGPT chats, first come first served, over 983 blocks of 16 tokens: "
      "OPT-13B "
      "on one GPU of 40 GB, as in Kwon et al. 2023 (arXiv:2309.06180), figures 2 and 13. The scheduler and "
      "block manager are the real ones. No model runs, because only lengths and allocation rules matter.",
      std::min(width - frame.px(180), frame.px(820)));
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(140), at.y});
  if (paper.is_running) {
    if (button(frame, "cancel_paper", "Cancel", {.width = 140})) frame.actions.push(actions::CancelPaper{});
  } else {
    const char* word = paper.is_done ? "Run again" : "Run";
    if (button(frame, "run_paper", word, {.kind = ButtonKind::kPrimary, .width = 140}))
      frame.actions.push(actions::RunPaper{});
  }
  ImGui::SetCursorScreenPos(below);
  gap(frame, 14);
  draw_key(frame);
  gap(frame, 4);
  const ImVec2 heads = ImGui::GetCursorScreenPos();
  TextStyle head = tiny_text(frame);
  const float figures = heads.x + width - frame.px(kFigures) + frame.px(18);
  draw_text(frame, ImGui::GetWindowDrawList(), {figures, heads.y}, head, "tokens held");
  draw_text(frame, ImGui::GetWindowDrawList(), {figures + frame.px(120), heads.y}, head, "batched requests");
  ImGui::Dummy({width, frame.px(24)});
  for (const PaperRow& row : paper.rows) draw_row(frame, row, width);
  if (paper.rows.empty()) draw_hint(frame, "No results yet. Press Run to measure.");
  draw_memory_bar(frame, paper.shape, std::min(width, frame.px(820)));
  gap(frame, 12);
  TextStyle note = tiny_text(frame);
  note.colour = frame.theme.faint;
  paragraph(frame, note,
            "Tokens held: share of the pool's slots that hold keys and values of tokens, measured after each "
            "step's rows are computed. Means over 60,000 steps after 4,000 warm-up steps, from one seed. "
            "Output lengths are long-tailed, so a run of this length can still vary by a point.",
            std::min(width, frame.px(820)));
  end_card();
}

}  // namespace octavo::ui
