#include "ui/views/memory/block_card_view.h"

#include <algorithm>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/card_parts.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

std::string part_text(const MemoryWorkspaceState& state, const BlockCard& card) {
  const WindowCard& window = *card.window;
  switch (card.state.window) {
    case WindowPart::kUsed: {
      std::string text = "Its window part, in place " + with_thousands(card.state.window_place.value) +
                         ", is read by " + count_text(window.num_readers, "sequence");
      const std::int32_t num_passed = window.num_owners - window.num_readers;
      if (num_passed > 0) text += "; " + with_thousands(num_passed) + " left it behind";
      return text + ".";
    }
    case WindowPart::kCached:
      return "Nobody reads its window part, in place " + with_thousands(card.state.window_place.value) +
             ", now. It is " + window_keeping(card.state.window_retention) + ".";
    case WindowPart::kNone: break;
  }
  if (window.gone_us < 0) return "It has no window part yet: nothing is written into it.";
  std::string text =
      "Every window that read it has passed, and its window part went at " + time_text(state, window.gone_us);
  if (!window.gone_for.empty()) return text + ": " + window.gone_for + " needed the place.";
  return text + ": nobody could have found it again.";
}

std::string resume_text(const WindowCard& window) {
  switch (window.resume) {
    case WindowResume::kUnfindable: return {};
    case WindowResume::kYes:
      return "A prompt that begins with the same tokens goes on right behind this block: the window before "
             "its end is there.";
    case WindowResume::kMissing: break;
  }
  return "A prompt that begins with the same tokens cannot go on right behind this block: of " +
         count_text(window.num_needed, "window part") + " before its end, " +
         with_thousands(window.num_missing) + (window.num_missing == 1 ? " is" : " are") + " gone.";
}

void draw_facts(const Frame& frame, const MemoryWorkspaceState& state, const BlockCard& card, float width) {
  const TextStyle mono = mono_text(frame);
  const BlockSnapshot& block = card.state;
  const auto fact = [&](const std::string& text) { line(frame, mono, text, width); };
  fact(state_word(block.state));
  if (block.state == BlockState::kFree) {
    if (card.num_swaps > 0) fact("swapped " + std::to_string(card.num_swaps) + " times");
    return;
  }
  fact("references " + std::to_string(block.ref_count));
  fact("filled " + std::to_string(block.filled) + " of " + std::to_string(state.pool.block_size));
  if (card.first_position >= 0) {
    const std::int32_t last = card.first_position + std::max(1, block.filled) - 1;
    fact("position " + with_thousands(card.first_position) + " – " + with_thousands(last));
  }
  const auto index = index_of(card.block);
  if (index < state.blocks.size() && state.blocks[index].checkpoint >= 0)
    fact("checkpoint: state " + with_thousands(state.blocks[index].checkpoint));
  fact(block.parent >= 0 ? "parent " + std::to_string(block.parent) : std::string("no parent"));
  if (card.copied_from >= 0) fact("copied from " + std::to_string(card.copied_from));
  for (const BlockId target : card.copied_to) fact("copied to " + std::to_string(target.value));
  if (card.num_hits > 0) fact("reused " + count_text(card.num_hits, "time"));
  if (card.num_swaps > 0) fact("swapped " + count_text(card.num_swaps, "time"));
  if (card.born_us >= 0) fact("allocated at " + time_text(state, card.born_us));
  if (card.last_us >= 0)
    fact("last used " + time_text(state, card.last_us) + ", step " + with_thousands(block.last_step));
}

// What layers of each kind keep of the block, and who goes on behind it.
void draw_layers(const Frame& frame, const MemoryWorkspaceState& state, const BlockCard& card, float width) {
  if (!card.window) return;
  gap(frame, 8);
  heading_line(frame, "Kept of this block");
  const TextStyle small = small_text(frame);
  const bool has_part = card.state.window != WindowPart::kNone;
  line(frame, small, bytes_text(state.pool.bytes_per_block) + " for layers that read everything", width);
  line(frame, small,
       (has_part ? bytes_text(state.pool.bytes_per_window_block) : std::string("nothing")) +
           " for layers with a window",
       width);
  gap(frame, 4);
  const std::string words[] = {part_text(state, card), resume_text(*card.window)};
  for (const std::string& text : words) {
    if (!text.empty()) paragraph(frame, tiny_text(frame), text, width);
  }
}

void draw_tokens(const Frame& frame, const BlockCard& card, float width) {
  if (card.state.state == BlockState::kFree) return;
  gap(frame, 6);
  if (card.text.empty()) {
    TextStyle note = tiny_text(frame);
    note.colour = frame.theme.faint;
    paragraph(frame, note, "Text unavailable: recordings hold no tokens.", width);
    return;
  }
  std::string shown = "“" + card.text + "”";
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  const float inner = width - frame.px(20);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->ChannelsSplit(2);
  list->ChannelsSetCurrent(1);
  ImGui::SetCursorScreenPos({at.x + frame.px(10), at.y + frame.px(8)});
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  paragraph(frame, style, shown, inner);
  const float bottom = ImGui::GetCursorScreenPos().y + frame.px(8);
  list->ChannelsSetCurrent(0);
  list->AddRectFilled(at, {at.x + width, bottom}, frame.theme.raised, frame.px(8));
  list->ChannelsMerge();
  ImGui::SetCursorScreenPos({at.x, bottom});
  ImGui::Dummy({1, 1});
}

// When the id was in use, in whose colour, over the history that is kept.
void draw_strip(const Frame& frame, const MemoryWorkspaceState& state, const BlockCard& card, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.px(9);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, frame.theme.free, frame.px(2));
  const std::int64_t begin = state.timeline->origin_us;
  const auto span = static_cast<double>(std::max<std::int64_t>(1, state.timeline->newest_us - begin));
  const auto x_of = [&](std::int64_t time_us) {
    return at.x +
           width * static_cast<float>(std::clamp(static_cast<double>(time_us - begin) / span, 0.0, 1.0));
  };
  for (std::size_t i = 0; i < card.history.size(); ++i) {
    const BlockHistoryLine& event = card.history[i];
    const std::int64_t until =
        i + 1 < card.history.size() ? card.history[i + 1].time_us : state.cursor.time_us;
    ImU32 colour = 0;
    if (event.kind == BlockEventKind::kEvict || event.kind == BlockEventKind::kFree) continue;
    if (event.kind == BlockEventKind::kUnref && event.aux == 0) {
      colour = frame.theme.cached;
    } else {
      const auto name = state.timeline->names.find(event.sequence);
      colour = name == state.timeline->names.end() ? frame.theme.muted
                                                   : frame.theme.owner(name->second.colour_index);
    }
    list->AddRectFilled({x_of(event.time_us), at.y},
                        {std::max(x_of(until), x_of(event.time_us) + 1), at.y + height}, colour);
  }
  ImGui::Dummy({width, height});
}

void draw_history(const Frame& frame, const MemoryWorkspaceState& state, const BlockCard& card, float width) {
  gap(frame, 8);
  heading_line(frame, "History of this block");
  gap(frame, 4);
  draw_strip(frame, state, card, width);
  gap(frame, 4);
  draw_card_history(frame, state, card.history, width);
}

}  // namespace

void draw_block_card(const Frame& frame, const MemoryWorkspaceState& state) {
  const BlockCard& card = *state.card;
  if (draw_card_heading(frame, "Block " + with_thousands(card.block.value), "close_block"))
    frame.actions.push(actions::ChooseBlock{-1});
  gap(frame, 4);
  ImGui::BeginChild("card_body", {0, 0}, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  draw_facts(frame, state, card, width);
  draw_layers(frame, state, card, width);
  draw_tokens(frame, card, width);
  if (!card.why.empty()) {
    gap(frame, 6);
    paragraph(frame, tiny_text(frame), "Why it is here: " + card.why + ".", width);
  }
  draw_card_owners(
      frame, "Used by", card.owners, [](std::int32_t index) { return "logical " + std::to_string(index); },
      width);
  draw_history(frame, state, card, width);
  ImGui::EndChild();
}

}  // namespace octavo::ui
