#include "ui/views/memory/request_detail_view.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/memory_parts.h"
#include "ui/views/memory/requests_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kNarrowestBesides = 620;  // with less room both texts stand one below the other
constexpr float kTextHeight = 240;        // of each, at least
constexpr float kTint = 0.22f;

constexpr std::array<TokenFate, kNumTokenFates> kFates = {TokenFate::kLive,     TokenFate::kCached,
                                                          TokenFate::kCopied,   TokenFate::kRestored,
                                                          TokenFate::kComputed, TokenFate::kComputedAgain};

ImU32 fate_colour(const Theme& theme, TokenFate fate) {
  return fate == TokenFate::kComputedAgain ? theme.error
                                           : account_colour(theme, static_cast<TokenAccount>(fate));
}

const char* fate_word(TokenFate fate) {
  return fate == TokenFate::kComputedAgain ? "computed again" : account_word(static_cast<TokenAccount>(fate));
}

bool is_in_same_run(const RequestDetail& detail, std::size_t token, bool is_mine) {
  const auto begin = [&](const ShownSameRun& run) { return is_mine ? run.mine : run.theirs; };
  return std::any_of(detail.same.begin(), detail.same.end(), [&](const ShownSameRun& run) {
    return token >= begin(run) && token < begin(run) + run.length;
  });
}

std::array<std::size_t, kNumTokenFates> count_fates(const RequestDetail& detail) {
  std::array<std::size_t, kNumTokenFates> counts = {};
  for (std::size_t token = 0; token < detail.mine.ends.size(); ++token)
    ++counts[static_cast<std::size_t>(fate_of(detail, token))];
  return counts;
}

// A line break and a tab as one sees them.
std::string in_one_line(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\n') {
      shown += "↵";
    } else if (c == '\t') {
      shown += "→";
    } else {
      shown += c;
    }
  }
  return shown;
}

// The longest end of a text that fits, behind an ellipsis where something was cut.
std::string end_that_fits(const Frame& frame, const TextStyle& style, const std::string& text, float width) {
  std::string shown = text;
  for (std::size_t begin = 0; text_width(frame, style, shown) > width && begin < text.size();) {
    do ++begin;
    while (begin < text.size() && continues_utf8(text[begin]));
    shown = "…" + text.substr(begin);
  }
  return shown;
}

// The text around the first difference in one line, with the token marked.
void draw_around(const Frame& frame, const char* label, const std::string& before, const std::string& token,
                 const std::string& after, ImU32 mark, float width) {
  TextStyle quiet = tiny_text(frame), plain = mono_text(frame), marked = mono_text(frame);
  marked.colour = frame.theme.text;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = frame.px(64);
  draw_text(frame, list, {at.x, at.y + frame.px(1)}, quiet, label, left);
  const std::string shown_token = token.empty() ? std::string("end of the prompt") : in_one_line(token);
  const float room = width - left;
  const float token_width = std::min(text_width(frame, marked, shown_token), room * 0.4f);
  const std::string whole_before = in_one_line(before);
  const float most_before = std::max(0.0f, (room - token_width) * 0.5f - frame.px(10));
  const std::string shown_before = end_that_fits(frame, plain, whole_before, most_before);
  const float before_width = text_width(frame, plain, shown_before);
  float x = at.x + left;
  draw_text(frame, list, {x, at.y}, plain, shown_before);
  if (shown_before != whole_before)
    tooltip_over(frame, {x, at.y}, {x + before_width, at.y + line_pixels(frame, plain)}, whole_before);
  x += before_width + frame.px(3);
  const float height = line_pixels(frame, marked);
  list->AddRectFilled({x - frame.px(2), at.y}, {x + token_width + frame.px(2), at.y + height},
                      mix(frame.theme.panel, mark, kTint), frame.px(3));
  list->AddRect({x - frame.px(2), at.y}, {x + token_width + frame.px(2), at.y + height}, mark, frame.px(3));
  draw_text(frame, list, {x, at.y}, marked, shown_token, token_width + 1);
  x += token_width + frame.px(6);
  const float rest = at.x + width - x;
  if (rest > frame.px(24)) draw_text(frame, list, {x, at.y}, plain, in_one_line(after), rest);
  ImGui::Dummy({width, height + frame.px(4)});
}

void draw_key(const Frame& frame, TokenFate fate, std::size_t count, float right) {
  const std::string text = with_thousands(count) + " " + fate_word(fate);
  const TextStyle style = tiny_text(frame);
  const float width = frame.px(18) + text_width(frame, style, text);
  if (ImGui::GetCursorScreenPos().x + width > right) {
    ImGui::NewLine();
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 colour = fate_colour(frame.theme, fate);
  const ImVec2 low{at.x, at.y + frame.px(3)}, high{at.x + frame.px(12), at.y + frame.px(15)};
  if (fate >= TokenFate::kComputed)
    list->AddRectFilled(low, high, mix(frame.theme.panel, colour, kTint), frame.px(2));
  list->AddRectFilled({low.x, high.y - frame.px(2)}, high, colour);
  draw_text(frame, list, {at.x + frame.px(18), at.y}, style, text);
  ImGui::Dummy({width, frame.px(19)});
  if (fate == TokenFate::kComputedAgain) {
    tooltip(frame, "Computed though an earlier prompt has the same text: this is what the difference cost");
  } else {
    tooltip(frame, account_help(static_cast<TokenAccount>(fate)));
  }
  beside(frame, 14);
}

}  // namespace

TokenFate fate_of(const RequestDetail& detail, std::size_t token) {
  if (!detail.request.account) return TokenFate::kComputed;
  const PromptAccount& account = *detail.request.account;
  std::size_t end = 0;
  for (const TokenAccount part :
       {TokenAccount::kLive, TokenAccount::kCached, TokenAccount::kCopied, TokenAccount::kRestored}) {
    end += static_cast<std::size_t>(std::max(0, tokens_of(account, part)));
    if (token < end) return static_cast<TokenFate>(part);
  }
  const bool is_common = detail.request.nearest != 0 && detail.request.num_common > 0 &&
                         token < static_cast<std::size_t>(detail.request.num_common);
  const bool is_last = token + 1 == detail.mine.ends.size();  // it is computed in any case
  const bool is_lost = (is_common || is_in_same_run(detail, token, /*is_mine=*/true)) && !is_last;
  return is_lost ? TokenFate::kComputedAgain : TokenFate::kComputed;
}

void RequestDetailView::draw(const Frame& frame, const RequestsState& requests, ImVec2 extent) {
  begin_card(frame, "request", extent);
  const ShownRequest* row = nullptr;
  for (const ShownRequest& request : *requests.rows)
    if (request.number == requests.chosen) row = &request;
  const RequestDetail* const detail = requests.detail.get();
  if (row == nullptr && detail != nullptr) row = &detail->request;
  if (row != nullptr) draw_heading(frame, *row);
  if (detail == nullptr) {
    draw_hint(frame, requests.is_gone ? "The prompt is no longer known: it was dropped to make room, or its "
                                        "model was unloaded."
                                      : "Comparing with earlier prompts…");
    return end_card();
  }
  if (detail->serial != shown_) {
    shown_ = detail->serial;
    frames_to_scroll_ = 2;
  }
  draw_story(frame, *detail);
  draw_texts(frame, *detail);
  if (frames_to_scroll_ > 0) --frames_to_scroll_;
  end_card();
}

void RequestDetailView::draw_heading(const Frame& frame, const ShownRequest& request) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const ButtonOptions close{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Close (Esc)"};
  const float room = width - frame.px(36);
  std::string note = request.route + " · " + request.arrived;
  if (request.num_prompt >= 0) note += " · " + count_text(request.num_prompt, "prompt token");
  if (request.num_generated > 0) note += " · " + with_thousands(request.num_generated) + " generated";
  const TextStyle heading = heading_text(frame), tiny = tiny_text(frame);
  const std::string title = "Request " + std::to_string(request.number) + " · " + request.client;
  const float title_width = std::min(text_width(frame, heading, title), room * 0.65f);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, at, heading, title, title_width + 1);
  const float note_room = room - title_width - frame.px(12);
  if (note_room > frame.px(40))
    draw_text(frame, list, {at.x + title_width + frame.px(12), at.y + frame.px(3)}, tiny, note, note_room);
  ImGui::SetCursorScreenPos({at.x + width - frame.px(30), at.y - frame.px(4)});
  if (button(frame, "close_request", "", close)) frame.actions.push(actions::ChooseRequest{0});
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(28)});
  ImGui::Dummy({width, 1});
}

void RequestDetailView::draw_story(const Frame& frame, const RequestDetail& detail) {
  const ShownRequest& request = detail.request;
  const float width = ImGui::GetContentRegionAvail().x, right = ImGui::GetCursorScreenPos().x + width;
  TextStyle strong = body_text(frame);
  strong.em = size::kSmall + 1;
  if (!request.error.empty()) {
    TextStyle error = strong;
    error.colour = readable(frame.theme.error, frame.theme.panel);
    paragraph(frame, error, request.error, width);
  } else if (request.sentence.empty()) {
    paragraph(frame, strong, "What became of the prompt is known when the answer has ended.", width);
  } else {
    std::string sentence = request.sentence;
    if (request.lost_tokens > 0) {
      sentence += " " + count_text(request.lost_tokens, "token") +
                  (request.lost_tokens == 1 ? " was" : " were") + " computed again";
      sentence +=
          request.lost_seconds ? ", which took " + duration_text(*request.lost_seconds * 1000) + "." : ".";
    }
    paragraph(frame, strong, sentence, width);
    gap(frame, 4);
    TextStyle advice = strong;
    advice.colour = readable(frame.theme.accent, frame.theme.panel);
    paragraph(frame, advice, request.advice, width);
  }
  for (const std::string& note : request.notes)
    paragraph(frame, tiny_text(frame), "Changed on the way: " + note, width);
  gap(frame, 8);
  if (request.account) {
    const auto counts = count_fates(detail);
    ImGui::BeginGroup();
    for (const TokenFate fate : kFates)
      if (counts[static_cast<std::size_t>(fate)] > 0)
        draw_key(frame, fate, counts[static_cast<std::size_t>(fate)], right);
    ImGui::NewLine();
    ImGui::EndGroup();
  }
  if (request.nearest == 0) return;
  draw_around(frame, "here", detail.mine_before, detail.mine_token, detail.mine_after, frame.theme.error,
              width);
  draw_around(frame, "earlier", detail.theirs_before, detail.theirs_token, detail.theirs_after,
              frame.theme.warning, width);
  gap(frame, 4);
}

void RequestDetailView::draw_texts(const Frame& frame, const RequestDetail& detail) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (detail.theirs.ends.empty())
    return draw_side(frame, detail, true, {room.x, std::max(room.y, frame.px(kTextHeight))});
  const float space = frame.px(12);
  if (room.x >= frame.px(kNarrowestBesides)) {
    const ImVec2 half{std::floor((room.x - space) * 0.5f), std::max(room.y, frame.px(kTextHeight))};
    draw_side(frame, detail, true, half);
    beside(frame, 12);
    draw_side(frame, detail, false, half);
  } else {
    draw_side(frame, detail, true, {room.x, frame.px(kTextHeight)});
    gap(frame, 10);
    draw_side(frame, detail, false, {room.x, frame.px(kTextHeight)});
  }
}

void RequestDetailView::draw_side(const Frame& frame, const RequestDetail& detail, bool is_mine,
                                  ImVec2 extent) {
  const ShownTokens& tokens = is_mine ? detail.mine : detail.theirs;
  TokenText& text = is_mine ? mine_ : theirs_;
  const std::size_t first = static_cast<std::size_t>(std::max<std::int64_t>(0, detail.request.num_common));
  ImGui::BeginGroup();
  std::string title = is_mine ? "This prompt" : "Earlier prompt · " + detail.nearest_name;
  title += " · " + count_text(tokens.num_prompt, "token");
  if (tokens.ends.size() > tokens.num_prompt)
    title += " and " + with_thousands(tokens.ends.size() - tokens.num_prompt) + " of its answer";
  line(frame, tiny_text(frame), title, extent.x);
  gap(frame, 4);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.background);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(12), frame.px(8)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, frame.px(size::kRadiusControl));
  const float height = std::max(frame.px(60), extent.y - line_pixels(frame, tiny_text(frame)) - frame.px(6));
  ImGui::BeginChild(is_mine ? "mine" : "theirs", {extent.x, height},
                    ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  text.update(frame, detail.serial, tokens.text, tokens.ends, std::max(1.0f, width));
  const bool has_difference = detail.request.nearest != 0 && first < tokens.ends.size();
  if (frames_to_scroll_ > 0 && has_difference)
    ImGui::SetScrollY(std::max(0.0f, text.top_of(first) - height * 0.35f));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const float from = ImGui::GetScrollY() - text.line_height(), to = ImGui::GetScrollY() + height;
  const float above = (text.line_height() - face.size) * 0.5f;
  ImVec2 mark_low{}, mark_high{};
  text.for_each_piece(from, to, [&](const TokenText::Piece& piece, float y) {
    const ImVec2 low{at.x + piece.x, at.y + y};
    const ImVec2 high{low.x + std::max(piece.width, frame.px(3)), low.y + text.line_height() - frame.px(2)};
    const std::size_t token = piece.token;
    ImU32 colour = 0;
    bool is_filled = false;
    if (is_mine) {
      const TokenFate fate = fate_of(detail, token);
      colour = fate_colour(frame.theme, fate);
      is_filled = fate >= TokenFate::kComputed;
    } else if (token >= first && !is_in_same_run(detail, token, false)) {
      colour = frame.theme.warning;
      is_filled = true;
    } else if (token >= first) {
      colour = frame.theme.error;
    }
    if (is_filled) list->AddRectFilled(low, high, mix(frame.theme.background, colour, kTint));
    if (colour != 0) list->AddRectFilled({low.x, high.y - frame.px(2)}, high, colour);
    if (has_difference && token == first) {
      // A token of several pieces, such as a blank and a word, is one where they stand on one line.
      const bool goes_on = mark_high.y > 0 && mark_low.y == low.y;
      mark_low = goes_on ? mark_low : low;
      mark_high = high;
    }
    if (piece.begin == piece.end || piece.is_space) return;
    list->AddText(face.font, face.size, {low.x, low.y + above}, frame.theme.text,
                  tokens.text.data() + piece.begin, tokens.text.data() + piece.end);
  });
  if (mark_high.x > mark_low.x)
    list->AddRect({mark_low.x - 1, mark_low.y - 1}, {mark_high.x + 1, mark_high.y + 1},
                  is_mine ? frame.theme.error : frame.theme.warning, frame.px(3), frame.px(2));
  ImGui::Dummy({width, text.height()});
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const auto token = text.token_at({mouse.x - at.x, mouse.y - at.y});
    if (token) {
      std::string help = "Token " + with_thousands(*token);
      if (is_mine && detail.request.account) help += std::string(" · ") + fate_word(fate_of(detail, *token));
      if (has_difference && *token == first) help += "\nThe first that differs";
      tooltip_now(frame, help);
    }
  }
  ImGui::EndChild();
  ImGui::EndGroup();
}

}  // namespace octavo::ui
