#include "ui/views/compare/column_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/compare/kv_strip.h"
#include "ui/views/compare/token_card.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kFollowDistance = 32;
// While an answer grows, its differences are looked for this often.
constexpr double kDifferenceSeconds = 0.3;
constexpr float kDifferenceFill = 0.16f;  // of the colour of what was inserted or removed

bool is_last_resort_colour(ColumnPhase phase) { return phase == ColumnPhase::kFailed; }

std::string phase_words(const ComparedColumn& column) {
  switch (column.phase) {
    case ColumnPhase::kWaiting: return "waiting";
    case ColumnPhase::kRunning: return "running";
    case ColumnPhase::kPreempted: return "preempted: waiting for blocks";
    default: return column.finish.empty() ? "ended" : column.finish;
  }
}

std::string figure_words(const ComparedColumn& column) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " · ") + part; };
  if (column.score) add("score " + two_decimals(*column.score));
  if (const auto mean = column.mean_logprob()) add("mean log p " + two_decimals(*mean));
  if (!column.tokens.empty()) add(count_text(static_cast<std::int64_t>(column.tokens.size()), "token"));
  add(phase_words(column));
  if (column.repeats) add(*column.repeats ? "same text as before" : "different text than before");
  return text;
}

std::string seed_words(const ComparedColumn& column) {
  std::string text = "seed " + seed_suffix(*column.seed);
  if (column.output_index > 0) text += " · " + std::to_string(column.output_index + 1);
  return text;
}

const SeatMemory* seat_of(const ComparisonState& comparison, std::size_t index) {
  for (const SeatMemory& seat : comparison.seats) {
    if (seat.seat == static_cast<std::int32_t>(index)) return &seat;
  }
  return nullptr;
}

bool is_beam(const ComparisonState& comparison, const ComparedColumn& column) {
  return comparison.shown_kind == ComparisonKind::kBeams && column.num_forced == 0;
}

}  // namespace

std::string seed_suffix(std::uint64_t seed) {
  constexpr std::size_t kDigits = 4;
  const std::string all = std::to_string(seed);
  return all.size() <= kDigits + 1 ? all : "…" + all.substr(all.size() - kDigits);
}

void ColumnView::draw(const Frame& frame, const UiState& state, const ComparedColumn& column,
                      CompareLook& look, ImVec2 extent) {
  ImGui::PushID(static_cast<int>(column.id.value));
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool selected = look.selected == column.id;
  begin_card(frame, "column", extent, 14);
  const float width = ImGui::GetContentRegionAvail().x;
  draw_head(frame, state, column, look, width);
  const ComparisonState& comparison = state.comparison;
  const SeatMemory* seat =
      is_beam(comparison, column) ? seat_of(comparison, column_index(comparison, column.id)) : nullptr;
  const ColumnMemory& memory = seat != nullptr ? seat->memory : column.memory;
  const float foot = kv_strip_height(frame, memory, width) + frame.px(8 + 8 + 30);
  const float room = ImGui::GetContentRegionAvail().y - foot;
  draw_body(frame, state, column, look, {width, std::max(room, frame.px(48))});
  draw_foot(frame, state, column, look, width);
  if (ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) && ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    look.selected = column.id;
  if (selected) {  // over the card's own border
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->PushClipRect(low, {low.x + extent.x, low.y + extent.y});
    list->AddRect(low, {low.x + extent.x, low.y + extent.y}, frame.theme.accent, frame.px(size::kRadiusCard),
                  frame.px(1.5f));
    list->PopClipRect();
  }
  end_card();
  ImGui::PopID();
}

void ColumnView::draw_head(const Frame& frame, const UiState& state, const ComparedColumn& column,
                           CompareLook& look, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const TextStyle tiny = tiny_text(frame);
  std::string speed;
  if (column.tokens_per_second) speed = short_number(*column.tokens_per_second) + " tok/s";
  const float button_side = frame.px(26);
  const float speed_width = text_width(frame, tiny, speed);
  float room = width - button_side - frame.px(6);
  TextStyle name = heading_text(frame);
  const float name_width = std::min(text_width(frame, name, column.name), room * 0.6f);
  draw_text(frame, list, {at.x, at.y + frame.px(1)}, name, column.name, name_width + 1);
  if (column.seed) {
    const std::string seed = seed_words(column);
    ImGui::SetCursorScreenPos({at.x + name_width + frame.px(10), at.y});
    const float chip_room = room - name_width - speed_width - frame.px(22);
    if (chip_room > frame.px(48)) {
      if (chip(frame, "seed", seed, {.max_width = chip_room}))
        frame.actions.push(actions::CopyText{std::to_string(*column.seed)});
      tooltip(frame, "Seed " + std::to_string(*column.seed) +
                         "\nAll columns of a run share it; each sample has its own random stream.\nClick "
                         "to copy.");
    }
  }
  draw_text(frame, list, {at.x + room - speed_width, at.y + frame.px(3)}, tiny, speed);
  ImGui::SetCursorScreenPos({at.x + width - button_side, at.y - frame.px(2)});
  const bool single = look.layout == CompareLayout::kSingle;
  const ButtonOptions maximise{.kind = ButtonKind::kPlain,
                               .icon = single ? Icon::kClose : Icon::kMaximise,
                               .height = 26,
                               .help = single ? "Back to all columns (M)" : "Show only this column (M)"};
  if (button(frame, "maximise", "", maximise)) {
    look.selected = column.id;
    look.layout = single ? CompareLayout::kColumns : CompareLayout::kSingle;
  }
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(28)});
  paragraph(frame, tiny, figure_words(column), width);
  tooltip(frame,
          "mean log p: mean natural log-probability of these tokens under the model.\nscore: sum of "
          "log-probabilities / tokens ^ length penalty; ranks the beams.");
  if (!column.differences.empty()) {
    TextStyle style = tiny;
    style.colour = frame.theme.text;
    line(frame, style, column.differences, width);
    if (!column.system_prompt.empty()) tooltip(frame, "System prompt: " + column.system_prompt);
  }
  if (!column.error.empty()) {
    TextStyle style = tiny;
    style.colour = is_last_resort_colour(column.phase) ? frame.theme.error : frame.theme.warning;
    paragraph(frame, style, column.error, width);
  }
  (void)state;
  gap(frame, 8);
}

// ---- the text

void ColumnView::choose_scroll(const ComparedColumn& column, const CompareLook& look, float view_height) {
  const bool selected = look.selected == column.id;
  if (look.cursor_moved && selected && look.cursor) {
    const float top = text_.top_of(*look.cursor);
    const float wanted = std::clamp(scroll_, top - view_height + 2 * text_.line_height(), top);
    following_ = false;
    ImGui::SetNextWindowScroll({-1, std::clamp(wanted, 0.0f, end_)});
  } else if (look.wanted_scroll != 0 && (selected || look.scroll_locked)) {
    const float wanted = std::clamp(scroll_ + look.wanted_scroll * view_height * 0.9f, 0.0f, end_);
    following_ = false;
    ImGui::SetNextWindowScroll({-1, wanted});
  } else if (look.scroll_locked && look.scroll_leader.value != 0 && look.scroll_leader != column.id) {
    following_ = false;
    ImGui::SetNextWindowScroll({-1, std::min(look.leader_scroll, end_)});
  } else if (following_) {
    ImGui::SetNextWindowScroll({-1, end_});
  }
}

void ColumnView::follow_scroll(const Frame& frame, const ComparedColumn& column, CompareLook& look) {
  const float now = ImGui::GetScrollY();
  const bool by_hand = ImGui::IsWindowHovered() && ImGui::GetIO().MouseWheel != 0;
  if (by_hand) look.scroll_leader = column.id;
  if (look.scroll_leader == column.id) look.leader_scroll = now;
  following_ = end_ - now < frame.px(kFollowDistance) && !(by_hand && ImGui::GetIO().MouseWheel > 0);
  if (!has_ended(column.phase) && following_ && look.scroll_leader == column.id && !by_hand)
    look.scroll_leader = {};
  scroll_ = now;
}

void ColumnView::draw_body(const Frame& frame, const UiState& state, const ComparedColumn& column,
                           CompareLook& look, ImVec2 extent) {
  const float bar = ImGui::GetStyle().ScrollbarSize;
  const ColumnId reference_id = look.reference;
  const ComparedColumn* reference = find_column(state.comparison, reference_id);
  const bool differences =
      look.layout == CompareLayout::kDiff && reference != nullptr && reference->id != column.id;
  text_.update(frame, column, extent.x - bar - frame.px(2));
  if (differences) {
    update_difference(*reference, column);
    difference_text_.update(frame, difference_, extent.x - bar - frame.px(2));
  }
  const bool formatted = look.formatted && !differences;
  if (formatted) update_formatted(frame, column, extent.x - bar - frame.px(2));
  const float height = formatted     ? formatted_.height()
                       : differences ? difference_text_.height()
                                     : text_.height();
  end_ = std::max(0.0f, height + frame.px(8) - extent.y);
  choose_scroll(column, look, extent.y);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("text", extent, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float from = ImGui::GetWindowPos().y - origin.y, to = from + extent.y;
  if (differences) {
    draw_difference(frame, origin, from, to);
  } else if (formatted) {
    draw_formatted(frame, column, origin, from, to);
  } else {
    draw_tokens(frame, state, column, look, origin, from, to);
    point_at(frame, state, column, look, origin);
  }
  if (column.tokens.empty() && !has_ended(column.phase)) {
    TextStyle faint = small_text(frame);
    faint.colour = frame.theme.faint;
    draw_text(frame, ImGui::GetWindowDrawList(), origin, faint, phase_words(column) + " …");
  }
  ImGui::Dummy({1, height + frame.px(8)});
  follow_scroll(frame, column, look);
  ImGui::EndChild();
}

void ColumnView::draw_tokens(const Frame& frame, const UiState& state, const ComparedColumn& column,
                             CompareLook& look, ImVec2 origin, float from, float to) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const float line = text_.line_height();
  const float above = std::floor((line - face.size) * 0.5f) - frame.px(1);
  const float under = line - frame.px(4);
  const bool stripes = look.colour == TextColour::kBlocks;
  const bool dims = look.colour != TextColour::kNone && !stripes;
  const bool has_blocks = !is_beam(state.comparison, column);
  const ImU32 owner =
      frame.theme.owner(static_cast<std::uint32_t>(column_index(state.comparison, column.id)));
  text_.for_each_piece(from, to, [&](const TokenText::Piece& piece, float y) {
    const ComparedToken& token = column.tokens[piece.token];
    const ImVec2 at{origin.x + piece.x, origin.y + y};
    const bool in_prefix = static_cast<std::int32_t>(piece.token) < column.shared_prefix;
    const TokenSlot slot = slot_of(column, state.model.block_size, piece.token);
    const bool known = has_blocks && slot.block_index < column.memory.blocks.size();
    ImU32 behind = frame.theme.panel;
    if (known) {
      const ColumnBlock& block = column.memory.blocks[slot.block_index];
      const bool lit = look.pointed_block == block.block_id;
      const float alpha = lit ? 0.45f : stripes ? (slot.block_index % 2 == 0 ? 0.28f : 0.12f) : 0.0f;
      const ImU32 colour = block.shared ? frame.theme.accent : owner;
      behind = mix(behind, colour, alpha);
      if (alpha > 0) list->AddRectFilled(at, {at.x + piece.width, at.y + line - frame.px(2)}, behind);
    }
    if (look.cursor && look.selected == column.id && *look.cursor == piece.token) {
      look.cursor_place = {at.x, at.y + line};
      look.cursor_line = line;
      list->AddRect({at.x - 1, at.y},
                    {at.x + std::max(piece.width, frame.px(6)) + 1, at.y + line - frame.px(1)},
                    frame.theme.text, frame.px(3), frame.px(1.5f));
    }
    if (piece.begin < piece.end && !piece.is_space) {
      const ImU32 wanted = dims && in_prefix ? frame.theme.faint : frame.theme.text;
      const ImU32 colour = behind == frame.theme.panel ? wanted : readable(wanted, behind);
      list->AddText(face.font, face.size, {at.x, at.y + above}, colour, column.text.data() + piece.begin,
                    column.text.data() + piece.end);
    }
    const auto level = in_prefix ? std::nullopt : surprise(token, look.colour);
    if (level && !piece.is_space) {
      const float thickness = frame.px(2) + std::round(*level * frame.px(2));
      list->AddRectFilled({at.x, at.y + under}, {at.x + piece.width, at.y + under + thickness},
                          surprise_colour(frame.theme, *level), 1.0f);
    }
    const bool parts_here = dims && static_cast<std::int32_t>(piece.token) == column.shared_prefix &&
                            column.shared_prefix > 0 &&
                            column.text.data() + piece.begin == column.text.data() + token.begin;
    if (parts_here) {
      list->AddRectFilled({at.x - frame.px(1), at.y + frame.px(2)},
                          {at.x + frame.px(1), at.y + line - frame.px(2)}, frame.theme.accent);
    }
    const bool last_forced = token.forced && static_cast<std::int32_t>(piece.token) + 1 == column.num_forced;
    if (last_forced && !piece.is_space) {
      list->AddRect({at.x - 1, at.y + frame.px(1)}, {at.x + piece.width + 1, at.y + line - frame.px(1)},
                    frame.theme.accent, frame.px(4));
    }
  });
}

void ColumnView::point_at(const Frame& frame, const UiState& state, const ComparedColumn& column,
                          CompareLook& look, ImVec2 origin) {
  if (!ImGui::IsWindowHovered() || look.card) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const auto token = text_.token_at({mouse.x - origin.x, mouse.y - origin.y});
  if (!token) return;
  if (!is_beam(state.comparison, column)) {
    if (const auto block = block_of(column, state.model.block_size, *token)) look.next_pointed_block = *block;
  }
  draw_token_hint(frame, state, column, *token);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    look.selected = column.id;
    look.cursor = *token;
    look.card = TokenPlace{column.id, *token};
    look.open_card = true;
    look.cursor_line = text_.line_height();
    look.cursor_place = {mouse.x, origin.y + text_.top_of(*token) + look.cursor_line};
  }
}

// ---- as Markdown

void ColumnView::update_formatted(const Frame& frame, const ComparedColumn& column, float width) {
  if (formatted_rewritten_ != column.rewritten) formatted_.clear();
  formatted_rewritten_ = column.rewritten;
  formatted_.update(frame, column.text, TextFormat::kMarkdown, width);
}

void ColumnView::draw_formatted(const Frame& frame, const ComparedColumn& column, ImVec2 origin, float from,
                                float to) const {
  const auto copied =
      formatted_.draw(frame, column.text, origin, origin.y + from, origin.y + to, frame.theme.text);
  if (copied) frame.actions.push(actions::CopyText{*copied});
}

// ---- differences

void ColumnView::update_difference(const ComparedColumn& reference, const ComparedColumn& column) {
  const bool same = compared_with_ == reference.id && compared_bytes_ == column.text.size() &&
                    reference_bytes_ == reference.text.size() && difference_.id == column.id;
  const bool growing = !has_ended(reference.phase) || !has_ended(column.phase);
  const double now = ImGui::GetTime();
  if (same || (growing && compared_with_ == reference.id && now - compared_at_ < kDifferenceSeconds)) return;
  compared_at_ = now;
  compared_with_ = reference.id;
  compared_bytes_ = column.text.size();
  reference_bytes_ = reference.text.size();
  words_ = diff_words(reference.text, column.text);
  difference_.id = column.id;
  ++difference_.rewritten;
  difference_.text.clear();
  difference_.tokens.clear();
  for (const DiffSegment& segment : words_.segments) {
    const std::string& from = segment.kind == DiffKind::kRemoved ? reference.text : column.text;
    ComparedToken token;
    token.begin = static_cast<std::uint32_t>(difference_.text.size());
    difference_.text.append(from, segment.begin, segment.end - segment.begin);
    token.end = static_cast<std::uint32_t>(difference_.text.size());
    difference_.tokens.push_back(std::move(token));
  }
}

// What came is underlined, what went is struck through: told apart without colour, too.
void ColumnView::draw_difference(const Frame& frame, ImVec2 origin, float from, float to) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const float line = difference_text_.line_height();
  const float above = std::floor((line - face.size) * 0.5f) - frame.px(1);
  const ImU32 removed =
      readable(frame.theme.faint, mix(frame.theme.panel, frame.theme.error, kDifferenceFill));
  difference_text_.for_each_piece(from, to, [&](const TokenText::Piece& piece, float y) {
    if (piece.token >= words_.segments.size() || piece.begin == piece.end) return;
    const DiffKind kind = words_.segments[piece.token].kind;
    const ImVec2 at{origin.x + piece.x, origin.y + y};
    const ImU32 mark = kind == DiffKind::kInserted ? frame.theme.accent : frame.theme.error;
    if (kind != DiffKind::kEqual) {
      list->AddRectFilled({at.x, at.y + frame.px(1)}, {at.x + piece.width, at.y + line - frame.px(2)},
                          with_alpha(mark, kDifferenceFill));
    }
    if (!piece.is_space) {
      const ImU32 colour = kind == DiffKind::kEqual     ? frame.theme.muted
                           : kind == DiffKind::kRemoved ? removed
                                                        : frame.theme.text;
      list->AddText(face.font, face.size, {at.x, at.y + above}, colour, difference_.text.data() + piece.begin,
                    difference_.text.data() + piece.end);
    }
    if (kind == DiffKind::kInserted) {
      list->AddRectFilled({at.x, at.y + line - frame.px(4)}, {at.x + piece.width, at.y + line - frame.px(2)},
                          mark);
    } else if (kind == DiffKind::kRemoved) {
      const float middle = std::floor(at.y + line * 0.5f);
      list->AddRectFilled({at.x, middle}, {at.x + piece.width, middle + frame.px(1)}, mark);
    }
  });
}

// ---- foot

void ColumnView::draw_foot(const Frame& frame, const UiState& state, const ComparedColumn& column,
                           CompareLook& look, float width) {
  const ComparisonState& comparison = state.comparison;
  const std::size_t index = column_index(comparison, column.id);
  const ImU32 owner = frame.theme.owner(static_cast<std::uint32_t>(index));
  gap(frame, 8);
  if (is_beam(comparison, column)) {
    const SeatMemory* seat = seat_of(comparison, index);
    const std::string prefix = "seat " + std::to_string(index + 1) + ": ";
    draw_kv_strip(frame, state.model, seat != nullptr ? seat->memory : ColumnMemory{}, owner, prefix.c_str(),
                  width, look);
    tooltip(frame, "Block tables belong to seats; beams change seats when their ranks change.");
  } else {
    draw_kv_strip(frame, state.model, column.memory, owner, "", width, look);
  }
  gap(frame, 8);
  const bool ended = has_ended(column.phase) && !column.text.empty();
  if (look.layout == CompareLayout::kDiff) {
    const bool is_reference = look.reference == column.id;
    std::string words = is_reference ? "reference"
                                     : "+" + with_thousands(words_.num_inserted) + " −" +
                                           with_thousands(words_.num_removed) + " words";
    if (!is_reference) {
      if (button(frame, "reference", "Set as reference", {.height = 28})) look.reference = column.id;
      beside(frame, 8);
    }
    gap(frame, 0);
    beside(frame, 0);
    line(frame, tiny_text(frame), words, width - frame.px(is_reference ? 0 : 140));
    return;
  }
  if (comparison.running && !has_ended(column.phase) && !is_beam(comparison, column)) {
    const ButtonOptions stop{.icon = Icon::kStop, .height = 28, .help = "Stop this answer only (X)"};
    if (button(frame, "stop_column", "Stop", stop)) frame.actions.push(actions::StopColumn{column.id});
  } else {
    const ButtonOptions keep{
        .height = 28, .enabled = ended, .help = "Continue the chat with this answer (K)"};
    if (button(frame, "keep", "Keep this", keep)) frame.actions.push(actions::KeepColumn{column.id});
  }
  beside(frame, 6);
  if (button(frame, "diff", "Diff", {.height = 28, .help = "Show differences from this answer (D)"})) {
    look.reference = column.id;
    look.layout = CompareLayout::kDiff;
  }
  beside(frame, 6);
  const ButtonOptions chat{
      .height = 28, .enabled = ended, .help = "Start a new chat with this question and answer (N)"};
  if (width > frame.px(250) && button(frame, "new_chat", "New chat", chat))
    frame.actions.push(actions::ContinueColumn{column.id});
}

}  // namespace octavo::ui
