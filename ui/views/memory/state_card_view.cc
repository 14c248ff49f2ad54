#include "ui/views/memory/state_card_view.h"

#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/card_parts.h"
#include "ui/views/memory/memory_parts.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

void draw_facts(const Frame& frame, const MemoryWorkspaceState& state, const StateCard& card, float width) {
  const TextStyle mono = mono_text(frame);
  const auto fact = [&](const std::string& text) { line(frame, mono, text, width); };
  const StateSnapshot& now = card.now;
  fact(state_word(now.state));
  fact(bytes_text(card.bytes));
  if (now.state == BlockState::kFree) return;
  if (card.position >= 0) fact("knows " + count_text(card.position, "token"));
  if (now.state == BlockState::kUsed) fact(count_text(now.ref_count, "owner"));
  if (now.is_checkpoint) fact("checkpoint at token " + with_thousands(now.position));
  if (now.num_saved_tokens > 0) fact("saves " + count_text(now.num_saved_tokens, "token"));
  if (now.last_block.value >= 0) fact("behind block " + with_thousands(now.last_block.value));
  if (card.copied_from >= 0) fact("copied from state " + with_thousands(card.copied_from));
  if (card.num_resumed > 0) fact("resumed " + count_text(card.num_resumed, "time"));
  if (card.born_us >= 0) fact("written first at " + time_text(state, card.born_us));
  if (card.last_us >= 0)
    fact("last used " + time_text(state, card.last_us) + ", step " + with_thousands(now.last_step));
}

void draw_place(const Frame& frame, const StateCard& card, float width) {
  if (!card.now.is_checkpoint) return;
  gap(frame, 6);
  std::string text = std::string("It stands ") + place_word(card.now.reason);
  if (!card.keeper.empty()) text += " of “" + card.keeper + "”";
  text += ". A prompt that begins with the same tokens goes on from here";
  if (card.now.num_saved_tokens > 0)
    text += ", and saves " + count_text(card.now.num_saved_tokens, "token") + " beyond the checkpoint before";
  paragraph(frame, tiny_text(frame), text + ".", width);
}

}  // namespace

void draw_state_card(const Frame& frame, const MemoryWorkspaceState& state) {
  const StateCard& card = *state.state_card;
  if (draw_card_heading(frame, "State " + with_thousands(card.state.value), "close_state"))
    frame.actions.push(actions::ChooseState{-1});
  gap(frame, 4);
  ImGui::BeginChild("state_card_body", {0, 0}, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  draw_facts(frame, state, card, width);
  draw_place(frame, card, width);
  draw_card_owners(
      frame, "Owned by", card.owners, [](std::int32_t index) { return count_text(index, "token"); }, width);
  gap(frame, 8);
  heading_line(frame, "History of this state");
  gap(frame, 4);
  draw_card_history(frame, state, card.history, width);
  ImGui::EndChild();
}

}  // namespace octavo::ui
