#include "ui/views/search_view.h"

#include <algorithm>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kHitHeight = 62;

// Where the hit stands: who said it, and on which branch.
std::string place_of(const SearchHitState& hit) {
  if (hit.message_id == MessageId{}) return "title";
  std::string place = hit.role == Role::kUser        ? "you"
                      : hit.role == Role::kAssistant ? "answer"
                                                     : "system prompt";
  if (hit.num_branches > 1) {
    place += " · branch " + std::to_string(hit.branch_index + 1) + " of " + std::to_string(hit.num_branches);
  }
  return place;
}

// The excerpt with a mark under the words that were found.
void draw_excerpt(const Frame& frame, ImVec2 low, const SearchHitState& hit, float width) {
  TextStyle style = small_text(frame);
  const ImU32 mark = mix(frame.theme.panel, frame.theme.accent, 0.28f);
  style.colour = readable(style.colour, mark);
  const std::string_view excerpt = hit.excerpt;
  const std::size_t begin = std::min(hit.match_begin, excerpt.size());
  const std::size_t end = std::clamp(hit.match_end, begin, excerpt.size());
  const float from = text_width(frame, style, excerpt.substr(0, begin));
  const float to = std::min(width, from + text_width(frame, style, excerpt.substr(begin, end - begin)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (from < width) {
    list->AddRectFilled({low.x + from, low.y + frame.px(1)},
                        {low.x + to, low.y + line_pixels(frame, style) - frame.px(1)}, mark, frame.px(3));
  }
  draw_text(frame, list, low, style, excerpt, width);
}

}  // namespace

void SearchView::draw_field(const Frame& frame, const UiState& state, float width) {
  if (appears(last_frame_)) {
    query_ = state.library.search.query;
    take_keyboard("##search");
  }
  if (text_field(frame, "##search", query_, "Search titles and messages", width)) {
    frame.actions.push(actions::SearchChats{query_});
  }
  // What is found may come after the key.
  if (ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Enter)) opens_first_ = true;
  if (ImGui::IsItemEdited()) opens_first_ = false;
  const bool left = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape);
  if (left) frame.actions.push(actions::ShowSearch{false});
  ended_ = ended_ || left;
  gap(frame, 10);
}

void SearchView::draw_hits(const Frame& frame, const UiState& state, ImVec2 extent) {
  const SearchState& search = state.library.search;
  ImGui::BeginChild("hits", extent, ImGuiChildFlags_NavFlattened);
  const float inner = ImGui::GetContentRegionAvail().x;
  TextStyle note = tiny_text(frame);
  const std::string found =
      search.running        ? "Searching…"
      : search.hits.empty() ? "No results."
                            : count_text(static_cast<std::int64_t>(search.hits.size()), "place") + " found";
  line(frame, note, found, inner);
  gap(frame, 6);
  if (opens_first_ && !search.running && search.query == query_) {
    opens_first_ = false;
    if (!search.hits.empty()) open_hit(frame, search.hits.front());
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(search.hits.size()), frame.px(kHitHeight));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      draw_hit(frame, search.hits[static_cast<std::size_t>(i)], inner);
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
}

void SearchView::draw_hit(const Frame& frame, const SearchHitState& hit, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(kHitHeight);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool chosen = ImGui::InvisibleButton("hit", {width, height}, ImGuiButtonFlags_EnableNav);
  ImGui::PopStyleVar();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered() || ImGui::IsItemFocused()) {
    list->AddRectFilled(low, {low.x + width, low.y + height - frame.px(4)}, frame.theme.raised, frame.px(10));
  }
  const float left = low.x + frame.px(10), room = width - frame.px(20);
  const TextStyle tiny = tiny_text(frame);
  const std::string place = place_of(hit);
  const float place_width = text_width(frame, tiny, place);
  draw_text(frame, list, {left, low.y + frame.px(7)}, {.em = 14, .colour = frame.theme.text}, hit.title,
            room - place_width - frame.px(10));
  draw_text(frame, list, {left + room - place_width, low.y + frame.px(9)}, tiny, place);
  draw_excerpt(frame, {left, low.y + frame.px(30)}, hit, room);
  if (chosen) open_hit(frame, hit);
}

void SearchView::open_hit(const Frame& frame, const SearchHitState& hit) {
  frame.actions.push(actions::ShowWorkspace{Workspace::kChat});
  if (hit.message_id == MessageId{}) {
    frame.actions.push(actions::SelectChat{hit.chat_id});
  } else {
    frame.actions.push(actions::ShowMessage{hit.chat_id, hit.message_id});
  }
}

}  // namespace octavo::ui
