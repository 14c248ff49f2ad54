#include "ui/views/memory/prefix_tree_view.h"

#include <algorithm>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kIndent = 16, kRow = 44, kMostCells = 24, kCell = 7;

std::string facts_of(const MemoryWorkspaceState& state, const PrefixRun& run) {
  std::string text = count_text(static_cast<std::int64_t>(run.blocks.size()), "block");
  if (run.num_references > 0) {
    text += " · " + count_text(run.num_references, "reference");
  } else if (run.eviction_place >= 0) {
    text += run.eviction_place == 0 ? " · evicted first"
                                    : " · evicted after " + with_thousands(run.eviction_place);
  }
  if (run.num_hits > 0) text += " · found " + count_text(run.num_hits, "time");
  if (run.last_us > 0) text += " · used " + time_text(state, run.last_us);
  if (run.retention != RetentionClass::kScratch)
    text += " · " + std::string(retention_class_name(run.retention));
  return text;
}

// The text, or the ids where nobody knows the text.
std::string title_of(const PrefixRun& run) {
  if (!run.text.empty()) {
    std::string text = run.text;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  const std::string first = std::to_string(run.blocks.front().value);
  return run.blocks.size() == 1 ? "block " + first
                                : "blocks " + first + " … " + std::to_string(run.blocks.back().value);
}

bool holds(const PrefixRun& run, int block) {
  return std::find(run.blocks.begin(), run.blocks.end(), BlockId{block}) != run.blocks.end();
}

void draw_run(const Frame& frame, const MemoryWorkspaceState& state, const PrefixRun& run,
              Pointing& pointing) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float indent = frame.px(kIndent) * static_cast<float>(std::min(run.depth, 12));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 high{low.x + width, low.y + frame.px(kRow - 4)};
  const bool is_pressed = ImGui::InvisibleButton("run", {width, frame.px(kRow)});
  bool is_lit_run = ImGui::IsItemHovered() || (state.card && holds(run, state.card->block.value));
  for (const BlockId block : state.hover.blocks) is_lit_run |= holds(run, block.value);
  if (is_lit_run) list->AddRectFilled({low.x, low.y - 2}, high, frame.theme.raised, frame.px(6));
  if (ImGui::IsItemHovered()) {
    pointing.block = run.blocks.front().value;
    tooltip_now(frame, (run.text.empty() ? std::string() : "“" + run.text + "”\n") + facts_of(state, run));
  }
  if (is_pressed) frame.actions.push(actions::ChooseBlock{run.blocks.front().value});
  if (run.depth > 0) {
    const float x = low.x + indent - frame.px(9), y = low.y + frame.px(9);
    list->AddLineV(x, low.y - frame.px(6), y, frame.theme.line);
    list->AddLineH(x, x + frame.px(6), y, frame.theme.line);
  }
  // The cells end where the title begins: as many as the run has, up to a number that leaves room for it.
  float x = low.x + indent;
  const auto shown = std::min(run.blocks.size(), static_cast<std::size_t>(kMostCells * 0.5f));
  for (std::size_t i = 0; i < shown; ++i) {
    const CellLook look =
        look_of(frame, state, static_cast<std::size_t>(run.blocks[i].value), BlockColour::kOwner);
    const ImVec2 from{x, low.y + frame.px(4)};
    list->AddRectFilled(from, {x + frame.px(kCell - 2), low.y + frame.px(15)}, look.colour, frame.px(1));
    x += frame.px(kCell);
  }
  x += frame.px(6);
  TextStyle title = small_text(frame);
  title.colour = run.num_references > 0 ? frame.theme.text : frame.theme.muted;
  draw_text(frame, list, {x, low.y}, title, title_of(run),
            std::max(frame.px(20), low.x + width - x - frame.px(4)));
  TextStyle note = tiny_text(frame);
  note.colour = frame.theme.faint;
  draw_text(frame, list, {low.x + indent, low.y + frame.px(20)}, note, facts_of(state, run),
            std::max(frame.px(20), width - indent));
}

}  // namespace

void draw_prefix_tree(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing) {
  if (state.tree.empty()) {
    draw_hint(frame, "The prefix cache is empty. Full blocks appear here once they can be reused.");
    return;
  }
  ImGui::BeginChild("tree_rows", {0, 0}, ImGuiChildFlags_NavFlattened);
  gap(frame, 4);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.tree.size()), frame.px(kRow));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      draw_run(frame, state, state.tree[static_cast<std::size_t>(i)], pointing);
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
