#include "ui/views/memory/event_log.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/event_lines.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kStoryHeight = 38;

constexpr std::array<const char*, 9> kWords = {"in short",       "all kinds", "allocated, freed",
                                               "reused, shared", "copied",    "swapped",
                                               "evicted",        "states",    "windows"};

std::uint64_t chat_of(const MemoryWorkspaceState& state, std::uint64_t sequence) {
  const auto found = state.timeline->names.find(sequence);
  return found == state.timeline->names.end() ? 0 : found->second.chat_id.value;
}

std::string chat_word(const MemoryWorkspaceState& state, std::uint64_t chat) {
  if (chat == 0) return "all chats";
  for (const auto& [sequence, name] : state.timeline->names) {
    if (name.chat_id.value == chat) return name.label;
  }
  return "one chat";
}

// The chat after `chat` among those that were seen; 0 after the last.
std::uint64_t next_chat(const MemoryWorkspaceState& state, std::uint64_t chat) {
  std::uint64_t next = 0;
  for (const auto& [sequence, name] : state.timeline->names) {
    const std::uint64_t id = name.chat_id.value;
    if (id > chat && (next == 0 || id < next)) next = id;
  }
  return next;
}

}  // namespace

void EventLog::draw(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing) {
  draw_filters(frame, state);
  gap(frame, 4);
  if (only_block_ && !state.card) only_block_ = false;
  update(state);
  ImGui::BeginChild("event_list", {0, 0}, ImGuiChildFlags_NavFlattened);
  if (kinds_ == Kinds::kTold && !only_block_) {
    draw_stories(frame, state);
    ImGui::EndChild();
    return;
  }
  if (shown_.empty()) {
    draw_hint(frame, state.timeline->log.empty() ? "No events yet." : "No events match. Try another filter.");
  }
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(shown_.size()), frame.px(21));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::uint32_t index = shown_[static_cast<std::size_t>(i)];
      draw_line(frame, state, state.timeline->log[index], pointing);
    }
  }
  if (at_end) ImGui::SetScrollHereY(1.0f);
  ImGui::EndChild();
}

void EventLog::draw_filters(const Frame& frame, const MemoryWorkspaceState& state) {
  const auto is_offered = [&](Kinds kinds) {
    return (kinds != Kinds::kStates || state.pool.num_states > 0) &&
           (kinds != Kinds::kWindows || state.pool.num_window_blocks > 0);
  };
  const auto next = [](Kinds kinds) {
    return static_cast<Kinds>((static_cast<std::size_t>(kinds) + 1) % kWords.size());
  };
  if (chip(frame, "kinds", kWords[static_cast<std::size_t>(kinds_)])) kinds_ = next(kinds_);
  while (!is_offered(kinds_)) kinds_ = next(kinds_);
  tooltip(frame, "Filter by kind");
  beside(frame, 6);
  if (chip(frame, "chats", chat_word(state, chat_), {.max_width = frame.px(96)}))
    chat_ = next_chat(state, chat_);
  tooltip(frame, "Filter by chat");
  if (!state.card) return;
  beside(frame, 6);
  const std::string block = only_block_ ? "block " + std::to_string(state.card->block.value) : "all blocks";
  if (chip(frame, "block_filter", block)) only_block_ = !only_block_;
  tooltip(frame, "Only events of the selected block");
}

void EventLog::draw_stories(const Frame& frame, const MemoryWorkspaceState& state) {
  const auto& stories = state.timeline->stories;
  told_.clear();
  for (std::size_t i = 0; i < stories.size(); ++i) {
    const bool has_happened = stories[i].mark < state.cursor.mark;
    if (has_happened && (chat_ == 0 || chat_of(state, stories[i].sequence) == chat_))
      told_.push_back(static_cast<std::uint32_t>(i));
  }
  if (told_.empty())
    draw_hint(frame, stories.empty() ? "No events yet." : "No events match. Try another filter.");
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(told_.size()), frame.px(kStoryHeight));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_story(frame, state, stories[told_[static_cast<std::size_t>(i)]]);
  }
  if (at_end) ImGui::SetScrollHereY(1.0f);
}

// Who and when, and below it what.
void EventLog::draw_story(const Frame& frame, const MemoryWorkspaceState& state, const Story& story) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = frame.px(kStoryHeight);
  ImGui::PushID(static_cast<int>(story.mark));
  const bool was_pressed = ImGui::InvisibleButton("story", {width, height});
  ImGui::PopID();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (ImGui::IsItemHovered())
    list->AddRectFilled(at, {at.x + width, at.y + height - frame.px(2)}, frame.theme.raised, frame.px(4));
  TextStyle name = tiny_text(frame), what = tiny_text(frame);
  name.colour = event_colour(frame.theme, kind_of(story.kind));
  const std::string time = time_text(state, story.time_us);
  const float time_width = text_width(frame, what, time);
  draw_text(frame, list, at, name, sequence_name(*state.timeline, story.sequence),
            std::max(1.0f, width - time_width - frame.px(8)));
  draw_text(frame, list, {at.x + width - time_width, at.y}, what, time);
  const std::string text = story_text(story, *state.timeline);
  draw_text(frame, list, {at.x, at.y + frame.px(17)}, what, text, width);
  tooltip(frame, "Step " + with_thousands(story.step) + ": " +
                     sequence_name(*state.timeline, story.sequence) + " " + text +
                     "\nClick to show the pools right after it");
  if (was_pressed) frame.actions.push(actions::SeekMark{story.last_mark + 1});
}

bool EventLog::passes(const MemoryWorkspaceState& state, const LogLine& line) const {
  if (line.mark >= state.cursor.mark) return false;  // has not happened at the cursor
  if (chat_ != 0 && chat_of(state, line.sequence) != chat_) return false;
  if (only_block_ && state.card) {
    const auto& history = state.card->history;
    const bool names_it = std::any_of(history.begin(), history.end(), [&](const BlockHistoryLine& event) {
      return event.mark >= line.mark && event.mark <= line.last_mark && event.kind == line.kind &&
             event.sequence == line.sequence;
    });
    if (!names_it) return false;
  }
  switch (kinds_) {
    case Kinds::kTold:
    case Kinds::kAll: return true;
    case Kinds::kTaken: return line.kind == BlockEventKind::kAlloc || line.kind == BlockEventKind::kFree;
    case Kinds::kShared:
      return line.kind == BlockEventKind::kHit || line.kind == BlockEventKind::kShare ||
             line.kind == BlockEventKind::kFork || line.kind == BlockEventKind::kPrune;
    case Kinds::kCopied:
      return line.kind == BlockEventKind::kCopyOnWrite || line.kind == BlockEventKind::kCopyPartial;
    case Kinds::kSwapped:
      return line.kind == BlockEventKind::kSwapOut || line.kind == BlockEventKind::kSwapIn ||
             line.kind == BlockEventKind::kPreempt || line.kind == BlockEventKind::kResume ||
             line.kind == BlockEventKind::kSwapDrop;
    case Kinds::kEvicted: return line.kind == BlockEventKind::kEvict;
    case Kinds::kStates: return is_of_states(line.kind);
    case Kinds::kWindows: return is_of_windows(line.kind);
  }
  return true;
}

void EventLog::update(const MemoryWorkspaceState& state) {
  const int key =
      static_cast<int>(kinds_) * 2 + (only_block_ ? 1 : 0) + static_cast<int>(chat_ % 100'000) * 16;
  if (version_ == state.version && key_ == key) return;
  version_ = state.version;
  key_ = key;
  shown_.clear();
  for (std::size_t i = 0; i < state.timeline->log.size(); ++i) {
    if (passes(state, state.timeline->log[i])) shown_.push_back(static_cast<std::uint32_t>(i));
  }
}

void EventLog::draw_line(const Frame& frame, const MemoryWorkspaceState& state, const LogLine& log_line,
                         Pointing& pointing) {
  const std::string text = event_text(log_line, *state.timeline);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(static_cast<int>(log_line.mark));
  const bool was_pressed = ImGui::InvisibleButton("line", {width, frame.px(21)});
  ImGui::PopID();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool is_state = is_of_states(log_line.kind);
  const bool is_lit_line = log_line.first_block >= 0 && (is_state ? is_state_lit(state, log_line.first_block)
                                                                  : is_lit(state, log_line.first_block));
  if (ImGui::IsItemHovered() || is_lit_line) {
    list->AddRectFilled(at, {at.x + width, at.y + frame.px(20)}, frame.theme.raised, frame.px(4));
    if (ImGui::IsItemHovered()) (is_state ? pointing.state : pointing.block) = log_line.first_block;
  }
  TextStyle mono = mono_text(frame);
  mono.em = 12;
  float x = at.x;
  const auto put = [&](const std::string& text, ImU32 colour) {
    mono.colour = colour;
    draw_text(frame, list, {x, at.y}, mono, text, std::max(1.0f, at.x + width - x));
    x += text_width(frame, mono, text);
  };
  put(time_text(state, log_line.time_us) + " ", frame.theme.faint);
  put(std::string(event_word(log_line.kind)) + " ", event_colour(frame.theme, log_line.kind));
  put(text, frame.theme.muted);
  tooltip(frame, "Step " + with_thousands(log_line.step) + ", " + std::string(event_word(log_line.kind)) +
                     " " + text + "\nClick to show the pools right after it");
  if (!was_pressed) return;
  frame.actions.push(actions::SeekMark{log_line.last_mark + 1});
  if (log_line.first_block < 0) return;
  if (is_state) {
    frame.actions.push(actions::ChooseState{log_line.first_block});
  } else {
    frame.actions.push(actions::ChooseBlock{log_line.first_block});
  }
}

}  // namespace octavo::ui
