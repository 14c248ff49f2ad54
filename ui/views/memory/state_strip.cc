#include "ui/views/memory/state_strip.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kPitch = 26, kLeastPitch = 11, kWithLetter = 18, kHeading = 30, kLegend = 24, kMostRows = 4;
constexpr float kSpaceShare = 0.12f;  // of a cell's pitch
constexpr float kBetweenPools = 5;

// What a cell says of its checkpoint.
const char* letter_of(CheckpointReason reason) {
  switch (reason) {
    case CheckpointReason::kSystemPrompt: return "S";
    case CheckpointReason::kNextTurn: return "T";
    case CheckpointReason::kEnd: return "E";
    case CheckpointReason::kLong: return "L";
  }
  return "";
}

std::string owners_text(const MemoryWorkspaceState& state, const std::vector<std::uint16_t>& owners) {
  std::string text;
  for (const std::uint16_t owner : owners) {
    if (owner < state.sequences.size()) text += "\n" + state.sequences[owner].label;
  }
  return text;
}

CellLook look_of_state(const Frame& frame, const MemoryWorkspaceState& state, std::size_t index) {
  const ShownState& shown = state.states[index];
  switch (state.snapshot->states[index].state) {
    case BlockState::kFree: return {frame.theme.free};
    case BlockState::kCached:
      return {shown.has_colour ? mix(frame.theme.cached, frame.theme.owner(shown.colour_index), 0.3f)
                               : frame.theme.cached};
    case BlockState::kUsed: break;
  }
  return {frame.theme.owner(shown.colour_index), 1.0f, shown.owners.size() > 1};
}

void draw_letter(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, const CellLook& look,
                 const char* letter) {
  TextStyle style = tiny_text(frame);
  style.em = 11;
  style.colour = readable(frame.theme.on_accent, look.colour);
  const float width = text_width(frame, style, letter);
  const ImVec2 at{(low.x + high.x - width) * 0.5f, (low.y + high.y - line_pixels(frame, style)) * 0.5f};
  if (look.hatched)  // it stands on a plain ground
    list->AddRectFilled({at.x - frame.px(2), low.y + 1}, {at.x + width + frame.px(2), high.y - 1},
                        look.colour, frame.px(2));
  draw_text(frame, list, at, style, letter);
}

void draw_state_cell(const Frame& frame, const MemoryWorkspaceState& state, std::size_t index, ImVec2 low,
                     ImVec2 high) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const CellLook look = look_of_state(frame, state, index);
  draw_cell(frame.theme, list, low, high, look);
  const StateSnapshot& now = state.snapshot->states[index];
  if (!now.is_checkpoint) return;
  draw_checkpoint_flag(frame, list, low, high, look.colour);
  if (high.x - low.x >= frame.px(kWithLetter - 4))
    draw_letter(frame, list, low, high, look, letter_of(now.reason));
}

void draw_host_cell(const Frame& frame, const MemoryWorkspaceState& state, std::size_t index, ImVec2 low,
                    ImVec2 high) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto& owners = state.host_states[index].owners;
  if (owners.empty()) {
    list->AddRect(low, high, frame.theme.free, frame.px(2));
    return;
  }
  const ImU32 colour = owners.front() < state.sequences.size()
                           ? frame.theme.owner(state.sequences[owners.front()].colour_index)
                           : frame.theme.owner(4);
  list->AddRectFilled(low, high, with_alpha(colour, 0.16f), frame.px(2));
  list->AddRect(low, high, colour, frame.px(2));
}

std::string host_summary(const MemoryWorkspaceState& state, int index) {
  const auto& owners = state.host_states[static_cast<std::size_t>(index)].owners;
  return "State " + with_thousands(index) + " of the host pool\n" +
         (owners.empty() ? "free" : "swapped out" + owners_text(state, owners));
}

std::string heading_note(const Frame& frame, const MemoryWorkspaceState& state, float room) {
  const KvFigures& figures = state.snapshot->figures;
  const std::string used =
      with_thousands(figures.used_states) + " of " + with_thousands(state.pool.num_states) + " in use";
  const std::string kept = " · " + count_text(figures.checkpoints, "checkpoint");
  const std::string each = " · " + bytes_text(state.pool.bytes_per_state) + " each";
  const std::string host =
      state.host_states.empty()
          ? ""
          : " · below: " + with_thousands(std::ssize(state.host_states)) + " in host memory";
  const std::string notes[] = {used + kept + each + host, used + kept + each, used + kept, used};
  return std::string(first_that_fits(frame, small_text(frame), notes, room));
}

// Of both pools, each from the beginning of a row.
float rows_with(const MemoryWorkspaceState& state, float pitch, float width) {
  const float columns = std::max(1.0f, std::floor(width / pitch));
  return std::ceil(static_cast<float>(state.states.size()) / columns) +
         std::ceil(static_cast<float>(state.host_states.size()) / columns);
}

// As large as all cells fit into a few rows; the least scrolls.
float pitch_of(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  float pitch = frame.px(kPitch);
  while (pitch > frame.px(kLeastPitch) && rows_with(state, pitch, width) > kMostRows) pitch -= 1;
  return pitch;
}

// Within the child that scrolls, if it must.
float cells_height(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const float pitch = pitch_of(frame, state, width);
  return std::min(kMostRows, rows_with(state, pitch, width)) * (pitch + 1) +
         (state.host_states.empty() ? 0 : frame.px(kBetweenPools));
}

void draw_state_legend(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = at.x + width;
  draw_strip_key(frame, {frame.theme.owner(0)}, "running", right);
  draw_strip_key(frame, {frame.theme.owner(0), 1.0f, true}, "shared", right);
  draw_strip_key(frame, {frame.theme.cached}, "checkpoint", right);
  draw_strip_key(frame, {frame.theme.free}, "free", right);
  const bool has_swapped = state.snapshot->figures.host_used_states > 0;
  if (has_swapped) draw_strip_key(frame, {with_alpha(frame.theme.owner(0), 0.3f)}, "swapped out", right);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, frame.px(kLegend - 4)});
  tooltip(frame,
          "Letters tell where a checkpoint stands:\nS behind the system prompt\nT where the next turn parts\n"
          "E where a sequence ended\nL on the way through a long text");
}

// The cells of the pool, and below them those of the host's.
void draw_cells(const Frame& frame, const MemoryWorkspaceState& state, float width, Pointing& pointing) {
  const auto num_states = static_cast<int>(state.states.size());
  const auto num_host = static_cast<int>(state.host_states.size());
  const float pitch = std::min(pitch_of(frame, state, width), width);
  const CellGrid grid = make_cell_grid(ImGui::GetCursorScreenPos(), width, pitch,
                                       std::max(1.0f, std::round(pitch * kSpaceShare)));
  CellGrid host_grid = grid;
  host_grid.origin.y += grid.height(num_states) + frame.px(kBetweenPools);
  for (int i = 0; i < num_states; ++i)
    draw_state_cell(frame, state, static_cast<std::size_t>(i), grid.low(i), grid.high(i));
  for (int i = 0; i < num_host; ++i)
    draw_host_cell(frame, state, static_cast<std::size_t>(i), host_grid.low(i), host_grid.high(i));
  const float bottom = num_host > 0 ? host_grid.origin.y + host_grid.height(num_host)
                                    : grid.origin.y + grid.height(num_states);
  const bool was_clicked = ImGui::InvisibleButton("state_cells", {width, bottom - grid.origin.y});
  ImDrawList* list = ImGui::GetWindowDrawList();
  // A ring lies around its cell, and that of the first ones beyond the child.
  const float beyond = frame.px(3);
  const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const auto ring = [&](BlockId id) {
    if (id.value < 0 || id.value >= num_states) return;
    list->PushClipRect({low.x - beyond, low.y - beyond}, {low.x + size.x + beyond, low.y + size.y + beyond});
    draw_cell_ring(frame.theme, list, grid.low(id.value), grid.high(id.value));
    list->PopClipRect();
  };
  if (state.state_card) ring(state.state_card->state);
  for (const BlockId lit : state.hover.states) ring(lit);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  if (const int host = host_grid.at(mouse, num_host); host >= 0)
    return tooltip_now(frame, host_summary(state, host));
  const int pointed = grid.at(mouse, num_states);
  if (pointed < 0) return;
  ring(BlockId{pointed});
  pointing.state = pointed;
  tooltip_now(frame, state_summary(state, pointed));
  if (was_clicked) frame.actions.push(actions::ChooseState{pointed});
}

}  // namespace

std::string state_summary(const MemoryWorkspaceState& state, int state_slot) {
  const auto index = static_cast<std::size_t>(state_slot);
  const ShownState& shown = state.states[index];
  const StateSnapshot& now = state.snapshot->states[index];
  std::string text = "State " + with_thousands(state_slot);
  if (now.state == BlockState::kFree) return text + "\nfree";
  if (shown.position >= 0) text += "\nknows " + count_text(shown.position, "token");
  if (now.is_checkpoint) {
    text += "\ncheckpoint at token " + with_thousands(now.position) + ", " + place_word(now.reason);
    if (!shown.keeper.empty()) text += "\nof " + shown.keeper;
  }
  if (shown.owners.size() > 1) text += "\nshared by " + with_thousands(std::ssize(shown.owners));
  return text + owners_text(state, shown.owners);
}

float state_strip_height(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  if (state.states.empty()) return 0;
  return frame.px(kHeading + kLegend) + cells_height(frame, state, width);
}

void draw_state_strip(const Frame& frame, const MemoryWorkspaceState& state, float width,
                      Pointing& pointing) {
  if (state.states.empty()) return;
  const float height = state_strip_height(frame, state, width);
  const float title = text_width(frame, heading_text(frame), "Recurrent states") + frame.px(12);
  heading_line(frame, "Recurrent states", heading_note(frame, state, std::max(1.0f, width - title)));
  gap(frame, 4);
  ImGui::BeginChild("states", {width, height - frame.px(kHeading + kLegend)}, ImGuiChildFlags_NavFlattened);
  draw_cells(frame, state, ImGui::GetContentRegionAvail().x, pointing);
  ImGui::EndChild();
  draw_state_legend(frame, state, width);
}

void draw_checkpoint_flag(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, ImU32 ground) {
  const float side = std::max(frame.px(3), std::floor((high.y - low.y) * 0.32f));
  const ImU32 colour = readable(frame.theme.text, ground);
  list->AddTriangleFilled({high.x - side, high.y}, high, {high.x, high.y - side}, colour);
}

void draw_state_mark(const Frame& frame, const MemoryWorkspaceState& state, const TableLine& line,
                     ImVec2 centre, Pointing& pointing) {
  if (line.state_slot < 0 || line.is_heading) return;
  const float radius = frame.px(4.5f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 colour = frame.theme.owner(line.colour_index);
  const ImVec2 low{centre.x - radius - 1, centre.y - radius - 1},
      high{centre.x + radius + 1, centre.y + radius + 1};
  const bool is_pointed = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(low, high);
  if (line.state == SequenceState::kSwapped) {
    list->AddCircle(centre, radius, colour);
    if (is_pointed) tooltip_now(frame, host_summary(state, line.state_slot));
    return;
  }
  if (static_cast<std::size_t>(line.state_slot) >= state.states.size()) return;
  list->AddCircleFilled(centre, radius, colour);
  const bool is_chosen = state.state_card && state.state_card->state.value == line.state_slot;
  if (is_pointed) {
    pointing.state = line.state_slot;
    tooltip_now(frame, state_summary(state, line.state_slot));
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
      frame.actions.push(actions::ChooseState{line.state_slot});
  }
  if (is_pointed || is_chosen || is_state_lit(state, line.state_slot))
    list->AddCircle(centre, radius + frame.px(2), frame.theme.text, 0, frame.px(1.5f));
}

}  // namespace octavo::ui
