#include "ui/views/memory/memory_keys.h"

#include <array>

#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {
namespace {

constexpr std::array<MemoryKey, 18> kKeys = {{
    {"Space", "Pause, or follow the latest step"},
    {"Left / Right", "One engine step back or forward; in the tour, back or next"},
    {"Shift+Left / Right", "One event back or forward"},
    {"Home / End", "Go to the start or the end"},
    {"P", "Replay from the cursor"},
    {"[ / ]", "Replay slower or faster"},
    {"+ / - / 0", "Zoom the block map in or out, or fit it"},
    {"Z", "Show all blocks, or those that hold something"},
    {"Page Up / Page Down", "Zoom the timeline in or out"},
    {"C", "Next colouring of the block map"},
    {"O", "Next order of the block map"},
    {"L", "Next lanes of the timeline"},
    {"T", "Block tables or prefix tree"},
    {"E", "Events or block card"},
    {"M", "Show more or fewer figures"},
    {"R", "Start or stop recording"},
    {"1 / 2 / 3 / 4 / 5", "Pools, Requests, Explain, Paper, and Experts where the model has some"},
    {"Esc", "Close the block card, the request, the recording or the lesson"},
}};

// Taken before anything that has the keyboard's focus, as arrows and space would move or press it.
bool taken(ImGuiKeyChord chord) {
  constexpr ImGuiInputFlags kRoute =
      ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused | ImGuiInputFlags_Repeat;
  return ImGui::Shortcut(chord, kRoute);
}

void move_cursor(const Frame& frame, const MemoryWorkspaceState& state, std::int32_t offset) {
  if (state.page == MemoryPage::kTour) {
    frame.actions.push(actions::MoveTour{offset});
  } else {
    frame.actions.push(actions::StepSteps{offset});
  }
}

void close_something(const Frame& frame, const MemoryWorkspaceState& state) {
  if (state.page == MemoryPage::kRequests && state.requests.chosen != 0) {
    frame.actions.push(actions::ChooseRequest{0});
  } else if (state.card) {
    frame.actions.push(actions::ChooseBlock{-1});
  } else if (state.state_card) {
    frame.actions.push(actions::ChooseState{-1});
  } else if (state.source == MemorySource::kRecording || state.source == MemorySource::kLesson) {
    frame.actions.push(actions::CloseRecording{});
  } else if (state.page != MemoryPage::kPools) {
    frame.actions.push(actions::ShowMemoryPage{MemoryPage::kPools});
  }
}

void apply_cursor_keys(const Frame& frame, const MemoryWorkspaceState& state) {
  const MemoryCursor& cursor = state.cursor;
  if (taken(ImGuiKey_Space)) {
    if (cursor.playing || cursor.following) {
      frame.actions.push(actions::PauseMemory{});
    } else {
      frame.actions.push(actions::FollowNewest{});
    }
  }
  if (taken(ImGuiKey_LeftArrow)) move_cursor(frame, state, -1);
  if (taken(ImGuiKey_RightArrow)) move_cursor(frame, state, +1);
  if (taken(ImGuiMod_Shift | ImGuiKey_LeftArrow)) frame.actions.push(actions::StepEvents{-1});
  if (taken(ImGuiMod_Shift | ImGuiKey_RightArrow)) frame.actions.push(actions::StepEvents{+1});
  if (taken(ImGuiKey_Home)) frame.actions.push(actions::SeekMark{0});
  if (taken(ImGuiKey_End)) frame.actions.push(actions::FollowNewest{});
  if (taken(ImGuiKey_P)) frame.actions.push(actions::PlayMemory{!cursor.playing});
  if (taken(ImGuiKey_LeftBracket)) frame.actions.push(actions::ChangePlaySpeed{cursor.speed / 2});
  if (taken(ImGuiKey_RightBracket)) frame.actions.push(actions::ChangePlaySpeed{cursor.speed * 2});
}

}  // namespace

std::span<const MemoryKey> memory_keys() { return kKeys; }

MemoryKeyPress apply_memory_keys(const Frame& frame, const UiState& state) {
  const MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  const bool is_elsewhere =
      has_dialog(state) || state.palette_open || ImGui::GetIO().WantTextInput ||
      ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (is_elsewhere) return MemoryKeyPress::kNone;
  const bool has_cursor = memory_workspace.page != MemoryPage::kPaper;  // there, keys move between controls
  if (has_cursor) apply_cursor_keys(frame, memory_workspace);
  if (taken(ImGuiKey_R)) {
    if (memory_workspace.recording.is_recording) {
      frame.actions.push(actions::StopRecording{});
    } else {
      frame.actions.push(actions::StartRecording{});
    }
  }
  if (taken(ImGuiKey_1)) frame.actions.push(actions::ShowMemoryPage{MemoryPage::kPools});
  if (taken(ImGuiKey_2)) frame.actions.push(actions::ShowMemoryPage{MemoryPage::kRequests});
  if (taken(ImGuiKey_3)) frame.actions.push(actions::ShowMemoryPage{MemoryPage::kTour});
  if (taken(ImGuiKey_4)) frame.actions.push(actions::ShowMemoryPage{MemoryPage::kPaper});
  if (taken(ImGuiKey_5) && offers_experts(memory_workspace))
    frame.actions.push(actions::ShowMemoryPage{MemoryPage::kExperts});
  if (taken(ImGuiKey_Escape)) close_something(frame, memory_workspace);
  if (!has_cursor) return MemoryKeyPress::kNone;
  if (taken(ImGuiKey_Equal) || taken(ImGuiMod_Shift | ImGuiKey_Equal) || taken(ImGuiKey_KeypadAdd))
    return MemoryKeyPress::kZoomIn;
  if (taken(ImGuiKey_Minus) || taken(ImGuiKey_KeypadSubtract)) return MemoryKeyPress::kZoomOut;
  if (taken(ImGuiKey_0)) return MemoryKeyPress::kFit;
  if (taken(ImGuiKey_Z)) return MemoryKeyPress::kOccupied;
  if (taken(ImGuiKey_C)) return MemoryKeyPress::kColour;
  if (taken(ImGuiKey_O)) return MemoryKeyPress::kOrder;
  if (taken(ImGuiKey_L)) return MemoryKeyPress::kLanes;
  if (taken(ImGuiKey_T)) return MemoryKeyPress::kTables;
  if (taken(ImGuiKey_M)) return MemoryKeyPress::kMoreFigures;
  if (taken(ImGuiKey_E)) return MemoryKeyPress::kEvents;
  if (taken(ImGuiKey_PageDown)) return MemoryKeyPress::kWider;
  if (taken(ImGuiKey_PageUp)) return MemoryKeyPress::kNarrower;
  return MemoryKeyPress::kNone;
}

}  // namespace octavo::ui
