#include "ui/views/memory_view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/memory/block_card_view.h"
#include "ui/views/memory/block_tables.h"
#include "ui/views/memory/experts_view.h"
#include "ui/views/memory/health_strip.h"
#include "ui/views/memory/memory_keys.h"
#include "ui/views/memory/prefix_tree_view.h"
#include "ui/views/memory/remote_load_view.h"
#include "ui/views/memory/slot_map.h"
#include "ui/views/memory/state_card_view.h"
#include "ui/views/memory/tiny_pool_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMargin = 16, kGap = 12;
constexpr float kWideLayout = 1040, kSide = 290, kLeastPools = 300, kLeastPoolsWithStrip = 400;
constexpr float kMapShare = 0.43f, kSlotMapShare = 0.54f;  // words need more room than cells
constexpr float kLeastSlotMap = 440;
constexpr float kZoomStep = 1.3f;

}  // namespace

void MemoryView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  was_drawn_ = true;
  press_keys(frame, state);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(kMargin), frame.px(kMargin)});
  ImGui::BeginChild("memory", extent, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  const float width = ImGui::GetContentRegionAvail().x;
  bar_.draw(frame, state, width);
  gap(frame, 8);
  draw_tiny_pool_strip(frame, state, width);
  if (shows_remote_load(state)) {
    draw_remote_load(frame, state, {width, std::max(frame.px(300), ImGui::GetContentRegionAvail().y)});
  } else if (memory_workspace.page == MemoryPage::kPaper) {
    paper_.draw(frame, state, {width, std::max(frame.px(420), ImGui::GetContentRegionAvail().y)});
  } else if (memory_workspace.page == MemoryPage::kExperts) {
    draw_experts(frame, state, {width, std::max(frame.px(300), ImGui::GetContentRegionAvail().y)});
  } else if (memory_workspace.page == MemoryPage::kRequests) {
    Pointing pointing;
    requests_.draw(frame, memory_workspace, map_, pointing,
                   {width, std::max(frame.px(300), ImGui::GetContentRegionAvail().y)});
    point(frame, memory_workspace, pointing);
  } else {
    if (memory_workspace.page == MemoryPage::kTour) {
      tour_.draw(frame, memory_workspace, width);
    } else {
      shows_all_figures_ = draw_health_strip(frame, memory_workspace, width, shows_all_figures_);
      gap(frame, 8);
      draw_health_sentences(frame, memory_workspace, width);
    }
    gap(frame, 10);
    draw_pools(frame, memory_workspace, {width, ImGui::GetContentRegionAvail().y});
  }
  ImGui::EndChild();
}

void MemoryView::press_keys(const Frame& frame, const UiState& state) {
  switch (apply_memory_keys(frame, state)) {
    case MemoryKeyPress::kNone: break;
    case MemoryKeyPress::kZoomIn: map_.zoom(kZoomStep); break;
    case MemoryKeyPress::kZoomOut: map_.zoom(1 / kZoomStep); break;
    case MemoryKeyPress::kFit: map_.fit(); break;
    case MemoryKeyPress::kOccupied: map_.show_occupied(!map_.shows_occupied()); break;
    case MemoryKeyPress::kColour: map_.next_colour(state.memory_workspace); break;
    case MemoryKeyPress::kOrder: map_.next_order(); break;
    case MemoryKeyPress::kLanes: timeline_.next_lanes(); break;
    case MemoryKeyPress::kTables: shows_tree_ = !shows_tree_; break;
    case MemoryKeyPress::kMoreFigures: shows_all_figures_ = !shows_all_figures_; break;
    case MemoryKeyPress::kEvents: shows_events_ = !shows_events_; break;
    case MemoryKeyPress::kWider: timeline_.widen(2); break;
    case MemoryKeyPress::kNarrower: timeline_.widen(0.5); break;
  }
}

void MemoryView::draw_map(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent,
                          Pointing& pointing) {
  if (state.slots && state.snapshot != nullptr) {
    draw_slot_map(frame, state, extent, pointing);
  } else {
    map_.draw(frame, state, extent, pointing);
  }
}

void MemoryView::draw_pools(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent) {
  Pointing pointing;
  const float space = frame.px(kGap);
  const float timeline = std::clamp(std::floor(extent.y * 0.36f), frame.px(230), frame.px(320));
  const bool has_strip = !state.states.empty() || !state.window_parts.empty();
  const float least = frame.px(has_strip ? kLeastPoolsWithStrip : kLeastPools);
  const float height = std::max(extent.y - timeline - space, least);
  if (extent.x >= frame.px(kWideLayout)) {
    const float pool = std::floor(extent.x * (state.slots ? kSlotMapShare : kMapShare)),
                side = frame.px(kSide);
    draw_map(frame, state, {pool, height}, pointing);
    beside(frame, kGap);
    draw_tables(frame, state, {extent.x - pool - side - 2 * space, height}, pointing);
    beside(frame, kGap);
    draw_side(frame, state, {side, height}, pointing);
  } else {
    draw_map(frame, state, {extent.x, state.slots ? std::max(height, frame.px(kLeastSlotMap)) : height},
             pointing);
    gap(frame, kGap);
    const float half = std::floor((extent.x - space) * 0.5f);
    draw_tables(frame, state, {half, height}, pointing);
    beside(frame, kGap);
    draw_side(frame, state, {extent.x - half - space, height}, pointing);
  }
  gap(frame, kGap);
  timeline_.draw(frame, state, {extent.x, timeline});
  point(frame, state, pointing);
}

// Whatever is pointed at now: a state, else a block, else nothing.
void MemoryView::point(const Frame& frame, const MemoryWorkspaceState& state, const Pointing& pointing) {
  const int lit = state.hover.block ? state.hover.block->value : -1;
  const int lit_state = state.hover.state ? state.hover.state->value : -1;
  if (pointing.state >= 0) {
    if (pointing.state != lit_state) frame.actions.push(actions::HoverState{pointing.state});
  } else if (pointing.block != lit || lit_state >= 0) {
    frame.actions.push(actions::HoverBlock{pointing.block});
  }
}

void MemoryView::draw_tables(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent,
                             Pointing& pointing) {
  begin_card(frame, "tables", extent);
  constexpr std::array<const char*, 2> kLabels = {"Block tables", "Prefix tree"};
  constexpr std::array<const char*, 2> kIds = {"show_tables", "show_tree"};
  const float width = std::min(frame.px(240), ImGui::GetContentRegionAvail().x);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x, at.y - frame.px(5)});
  shows_tree_ = segments(frame, "tables_or_tree", kLabels, kIds, shows_tree_ ? 1 : 0, width) == 1;
  gap(frame, 6);
  if (shows_tree_) {
    draw_prefix_tree(frame, state, pointing);
  } else {
    draw_block_tables(frame, state, pointing);
  }
  end_card();
}

void MemoryView::draw_side(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent,
                           Pointing& pointing) {
  begin_card(frame, "events", extent);
  if (state.card && !shows_events_) {
    draw_block_card(frame, state);
  } else if (state.state_card && !shows_events_) {
    draw_state_card(frame, state);
  } else {
    heading_line(frame, "Events");
    gap(frame, 6);
    log_.draw(frame, state, pointing);
  }
  end_card();
}

}  // namespace octavo::ui
