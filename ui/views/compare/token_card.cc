#include "ui/views/compare/token_card.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "ui/compare_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCardWidth = 300;
constexpr float kRowHeight = 26;
constexpr float kCardFixed = 156;  // of all but the alternatives

std::string place_text(const UiState& state, const ComparedColumn& column, std::size_t token) {
  const ComparisonState& comparison = state.comparison;
  if (comparison.shown_kind == ComparisonKind::kBeams && column.num_forced == 0)
    return "Beams occupy seats in memory; see the strips.";
  const auto block = block_of(column, state.model.block_size, token);
  if (!block) return "Block unknown: the answer ended before the pool was sampled.";
  const TokenSlot slot = slot_of(column, state.model.block_size, token);
  const auto position = static_cast<std::int32_t>(slot.block_index) * state.model.block_size + slot.slot;
  std::string text = "block " + with_thousands(block->value) + " · slot " + std::to_string(slot.slot);
  const ColumnBlock& shown = column.memory.blocks[slot.block_index];
  if (shown.shared) text += " · shared";
  if (shown.copied_from) text += " · copied from " + with_thousands(shown.copied_from->value);
  if (position >= column.memory.num_computed_tokens) text += " · not computed yet";
  if (!column.memory.running) text += " (while it ran)";
  return text;
}

void draw_figures(const Frame& frame, const UiState& state, const ComparedColumn& column, std::size_t index,
                  float width) {
  const ComparedToken& token = column.tokens[index];
  const std::string_view text = column.text;
  std::string title = visible_token(text.substr(token.begin, token.end - token.begin));
  if (token.begin == token.end) title = "no visible text";
  heading_line(frame, title, "token " + std::to_string(token.token_id) + (token.forced ? " · given" : ""));
  std::string figures = probability_text(static_cast<double>(token.logprob)) + " · log p " +
                        two_decimals(static_cast<double>(token.logprob));
  if (const std::int32_t rank = rank_of(token); rank > 0) {
    figures += " · rank " + std::to_string(rank);
  } else if (!token.alternatives.empty()) {
    figures += " · not in the top " + std::to_string(token.alternatives.size());
  }
  line(frame, tiny_text(frame), figures, width);
  std::string sums = "sum of log p so far " + two_decimals(static_cast<double>(token.cumulative_logprob));
  if (const auto bits = entropy_bits(token)) sums += " · entropy ≥ " + two_decimals(*bits) + " bit";
  line(frame, tiny_text(frame), sums, width);
  line(frame, tiny_text(frame), place_text(state, column, index), width);
}

void draw_alternative(const Frame& frame, const ComparedToken& token, std::size_t index, float width,
                      bool hovered) {
  const TokenAlternative& alternative = token.alternatives[index];
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.px(kRowHeight), percent = frame.px(56);
  const float full = width - percent;
  const auto probability = static_cast<float>(std::exp(static_cast<double>(alternative.logprob)));
  const bool chosen = alternative.token_id == token.token_id;
  if (hovered) list->AddRectFilled(at, {at.x + width, at.y + height}, frame.theme.raised, frame.px(6));
  list->AddRectFilled({at.x, at.y + frame.px(3)},
                      {at.x + std::max(frame.px(2), full * probability), at.y + height - frame.px(3)},
                      with_alpha(frame.theme.accent, chosen ? 0.45f : 0.22f), frame.px(4));
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  if (chosen) style.face = FontFace::kSemiBold;
  std::string text = visible_token(alternative.text);
  if (alternative.ends_text) text += " (ends)";
  draw_text(frame, list, {at.x + frame.px(8), at.y + frame.px(3)}, style, text, full - frame.px(12));
  const std::string share = probability_text(static_cast<double>(alternative.logprob));
  const TextStyle tiny = tiny_text(frame);
  draw_text(frame, list, {at.x + width - text_width(frame, tiny, share), at.y + frame.px(4)}, tiny, share);
}

void draw_fork_choice(const Frame& frame, CompareLook& look) {
  gap(frame, 6);
  line(frame, tiny_text(frame), "Fork into");
  beside(frame, 8);
  if (chip(frame, "fork_column", "a column", {.is_on = !look.forks_chat})) look.forks_chat = false;
  beside(frame, 6);
  if (chip(frame, "fork_chat", "a chat", {.is_on = look.forks_chat})) look.forks_chat = true;
}

// Below the token, or above it where the window ends before the card does.
ImVec2 card_place(const Frame& frame, const UiState& state, const CompareLook& look) {
  const ComparedColumn* const column =
      look.card ? find_column(state.comparison, look.card->column_id) : nullptr;
  const std::size_t rows = column != nullptr && look.card->token < column->tokens.size()
                               ? column->tokens[look.card->token].alternatives.size()
                               : 0;
  const float height = frame.px(kCardFixed + kRowHeight * static_cast<float>(rows)), gap = frame.px(6);
  const ImGuiViewport* const viewport = ImGui::GetMainViewport();
  const ImVec2 end{viewport->Pos.x + viewport->Size.x, viewport->Pos.y + viewport->Size.y};
  ImVec2 place{look.cursor_place.x, look.cursor_place.y + gap};
  place.x = std::max(viewport->Pos.x, std::min(place.x, end.x - frame.px(kCardWidth) - gap));
  if (place.y + height <= end.y) return place;
  const float above = look.cursor_place.y - look.cursor_line - gap - height;
  if (above >= viewport->Pos.y) return {place.x, above};
  return {place.x, std::max(viewport->Pos.y, end.y - height)};
}

}  // namespace

std::string probability_text(double logprob) {
  const double probability = std::exp(logprob);
  return probability > 0 && probability < 0.0005 ? "< 0.1 %" : percent_text(probability);
}

std::string visible_token(std::string_view text, std::size_t max_bytes) {
  std::string result;
  for (std::size_t at = 0; at < text.size() && result.size() < max_bytes;) {
    const CodePoint point = decode_utf8(text, at);
    if (point.value == '\n') {
      result += "\\n";
    } else if (point.value == '\t') {
      result += "\\t";
    } else if (point.value == ' ' && (at == 0 || at + 1 == text.size())) {
      result += "·";
    } else {
      result += text.substr(at, point.length);
    }
    at += point.length;
  }
  return strip_terminal_controls(result);
}

TokenSlot slot_of(const ComparedColumn& column, std::int32_t block_size, std::size_t token) {
  const std::size_t position = static_cast<std::size_t>(column.num_prompt_tokens) + token;
  const auto slots = static_cast<std::size_t>(std::max(1, block_size));
  return {position / slots, static_cast<std::int32_t>(position % slots)};
}

std::optional<BlockId> block_of(const ComparedColumn& column, std::int32_t block_size, std::size_t token) {
  const TokenSlot slot = slot_of(column, block_size, token);
  if (slot.block_index >= column.memory.blocks.size()) return std::nullopt;
  return column.memory.blocks[slot.block_index].block_id;
}

void draw_token_hint(const Frame& frame, const UiState& state, const ComparedColumn& column,
                     std::size_t token) {
  ImGui::SetNextWindowSize({frame.px(kCardWidth), 0});
  if (begin_hint(frame, 14, 12)) {
    const float width = ImGui::GetContentRegionAvail().x;
    draw_figures(frame, state, column, token, width);
    const ComparedToken& shown = column.tokens[token];
    if (!shown.alternatives.empty()) gap(frame, 6);
    for (std::size_t i = 0; i < shown.alternatives.size(); ++i) {
      draw_alternative(frame, shown, i, width, /*hovered=*/false);
      ImGui::Dummy({width, frame.px(kRowHeight)});
    }
    TextStyle faint = tiny_text(frame);
    faint.colour = frame.theme.faint;
    if (!shown.alternatives.empty()) line(frame, faint, "Click to fork with another token", width);
    end_hint();
  }
}

void draw_token_card(const Frame& frame, const UiState& state, CompareLook& look) {
  if (look.open_card) ImGui::OpenPopup("token_card");
  look.open_card = false;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(14), frame.px(12)});
  ImGui::SetNextWindowPos(card_place(frame, state, look), ImGuiCond_Always);
  ImGui::SetNextWindowSize({frame.px(kCardWidth), 0});
  const bool open = ImGui::BeginPopup("token_card");
  ImGui::PopStyleVar();
  if (!open) return look.card.reset();
  const ComparedColumn* column = look.card ? find_column(state.comparison, look.card->column_id) : nullptr;
  if (column == nullptr || look.card->token >= column->tokens.size()) {
    ImGui::CloseCurrentPopup();
    return ImGui::EndPopup();
  }
  const float width = ImGui::GetContentRegionAvail().x;
  const ComparedToken& token = column->tokens[look.card->token];
  draw_figures(frame, state, *column, look.card->token, width);
  gap(frame, 8);
  const bool room = look.forks_chat || state.comparison.columns.size() < kMostColumns;
  for (std::size_t i = 0; i < token.alternatives.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool able = room && !token.alternatives[i].ends_text;
    ImGui::BeginDisabled(!able);
    const bool pressed =
        ImGui::InvisibleButton("alternative", {width, frame.px(kRowHeight)}, ImGuiButtonFlags_EnableNav);
    if (i == 0) ImGui::SetItemDefaultFocus();
    const bool hovered = ImGui::IsItemHovered() || ImGui::IsItemFocused();
    ImGui::EndDisabled();
    const ImVec2 below = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos(at);
    draw_alternative(frame, token, i, width, hovered && able);
    ImGui::SetCursorScreenPos(below);
    if (pressed) {
      if (look.forks_chat) {
        frame.actions.push(actions::ForkChatAtToken{column->id, look.card->token, i});
      } else {
        frame.actions.push(actions::ForkAtToken{column->id, look.card->token, i});
      }
      ImGui::CloseCurrentPopup();
    }
    ImGui::PopID();
  }
  TextStyle faint = tiny_text(frame);
  faint.colour = frame.theme.faint;
  const char* note = token.alternatives.empty() ? "Alternatives appear when the beam search has finished."
                     : look.forks_chat          ? "Choose a token: a new chat goes on from there."
                     : room                     ? "Choose a token to fork here in a new column."
                                                : "No space for another column. Run again to free some.";
  line(frame, faint, note, width);
  if (!token.alternatives.empty()) draw_fork_choice(frame, look);
  ImGui::EndPopup();
}

}  // namespace octavo::ui
