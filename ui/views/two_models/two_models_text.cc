#include "ui/views/two_models/two_models_text.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/two_models_actions.h"
#include "ui/views/compare/token_card.h"
#include "ui/views/compare/token_colours.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCardWidth = 460, kRowHeight = 26;

const TwoModelsToken* figures_of(const TwoModelsResult& result, std::size_t token) {
  const bool is_scored = token >= result.first_scored && token - result.first_scored < result.figures.size();
  return is_scored ? &result.figures[token - result.first_scored] : nullptr;
}

std::string probability_words(double logprob) {
  const double probability = std::exp(logprob);
  return probability > 0.0 && probability < 1e-4 ? "below 0.01 %" : fixed_text(100.0 * probability, 2) + " %";
}

// True when pressed: an alternative with its probability as a bar behind it.
bool alternative_row(const Frame& frame, const TokenAlternative& alternative, bool is_text, bool enabled,
                     float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.px(kRowHeight);
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::InvisibleButton("alternative", {width, height}, ImGuiButtonFlags_EnableNav);
  const bool is_lit = enabled && (ImGui::IsItemHovered() || ImGui::IsItemFocused());
  ImGui::EndDisabled();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (is_lit) list->AddRectFilled(at, {at.x + width, at.y + height}, frame.theme.raised, frame.px(6));
  const TextStyle tiny = tiny_text(frame);
  const std::string share = probability_words(static_cast<double>(alternative.logprob));
  const float share_width = text_width(frame, tiny, share), full = width - share_width - frame.px(8);
  const auto probability = static_cast<float>(std::exp(static_cast<double>(alternative.logprob)));
  list->AddRectFilled({at.x, at.y + frame.px(3)},
                      {at.x + std::max(frame.px(2), full * probability), at.y + height - frame.px(3)},
                      with_alpha(frame.theme.accent, is_text ? 0.45f : 0.22f), frame.px(4));
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  if (is_text) style.face = FontFace::kSemiBold;
  draw_text(frame, list, {at.x + frame.px(6), at.y + frame.px(3)}, style, visible_token(alternative.text),
            full - frame.px(10));
  draw_text(frame, list, {at.x + width - share_width, at.y + frame.px(4)}, tiny, share);
  return pressed;
}

}  // namespace

void TwoModelsText::draw(const Frame& frame, const TwoModelsResult& result, TwoModelsColour colour,
                         ImVec2 extent) {
  begin_card(frame, "compared_text", extent, 16);
  const ImVec2 inner = ImGui::GetContentRegionAvail();
  text_.update(frame, result.text, inner.x - ImGui::GetStyle().ScrollbarSize - frame.px(2));
  const float end = std::max(0.0f, text_.height() + frame.px(8) - inner.y);
  if (wanted_ && *wanted_ < result.text.tokens.size())
    ImGui::SetNextWindowScroll({-1, std::clamp(text_.top_of(*wanted_) - inner.y * 0.4f, 0.0f, end)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("words", inner, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float from = ImGui::GetWindowPos().y - origin.y;
  if (wanted_ && *wanted_ < result.text.tokens.size()) {
    card_ = wanted_;
    open_card_ = true;
  }
  wanted_.reset();
  draw_words(frame, result, colour, origin, from, from + inner.y);
  point_at(result, origin);
  ImGui::Dummy({1, text_.height() + frame.px(8)});
  ImGui::EndChild();
  end_card();
  draw_card(frame, result);
}

void TwoModelsText::draw_words(const Frame& frame, const TwoModelsResult& result, TwoModelsColour colour,
                               ImVec2 origin, float from, float to) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const float line = text_.line_height();
  const float above = std::floor((line - face.size) * 0.5f) - frame.px(1);
  text_.for_each_piece(from, to, [&](const TokenText::Piece& piece, float y) {
    const ImVec2 at{origin.x + piece.x, origin.y + y};
    if (card_ == piece.token) {
      card_place_ = {at.x, at.y + line};
      list->AddRect({at.x - 1, at.y},
                    {at.x + std::max(piece.width, frame.px(6)) + 1, at.y + line - frame.px(1)},
                    frame.theme.text, frame.px(3), frame.px(1.5f));
    }
    const TwoModelsToken* figures = figures_of(result, piece.token);
    if (piece.begin < piece.end && !piece.is_space) {
      list->AddText(face.font, face.size, {at.x, at.y + above},
                    figures != nullptr ? frame.theme.text : frame.theme.muted,
                    result.text.text.data() + piece.begin, result.text.text.data() + piece.end);
    }
    const auto level = figures != nullptr ? departure(*figures, colour) : std::nullopt;
    if (!level || piece.is_space) return;
    const float top = at.y + line - frame.px(4), thickness = frame.px(2) + std::round(*level * frame.px(2));
    list->AddRectFilled({at.x, top}, {at.x + piece.width, top + thickness},
                        surprise_colour(frame.theme, *level), 1.0f);
  });
}

void TwoModelsText::point_at(const TwoModelsResult& result, ImVec2 origin) {
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const auto token = text_.token_at({mouse.x - origin.x, mouse.y - origin.y});
  if (!token || figures_of(result, *token) == nullptr) return;
  card_ = token;
  card_place_ = {mouse.x, origin.y + text_.top_of(*token) + text_.line_height()};
  open_card_ = true;
}

void TwoModelsText::draw_card(const Frame& frame, const TwoModelsResult& result) {
  if (open_card_) ImGui::OpenPopup("two_models_card");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(14), frame.px(12)});
  if (open_card_) ImGui::SetNextWindowPos({card_place_.x, card_place_.y + frame.px(6)}, ImGuiCond_Always);
  ImGui::SetNextWindowSize({frame.px(kCardWidth), 0});
  open_card_ = false;
  const bool is_open = ImGui::BeginPopup("two_models_card");
  ImGui::PopStyleVar();
  if (!is_open) return;
  const TwoModelsToken* figures = card_ ? figures_of(result, *card_) : nullptr;
  if (figures == nullptr) {
    ImGui::CloseCurrentPopup();
    return ImGui::EndPopup();
  }
  const ComparedToken& token = result.text.tokens[*card_];
  const std::string words =
      visible_token(std::string_view(result.text.text).substr(token.begin, token.end - token.begin));
  const float width = ImGui::GetContentRegionAvail().x, half = std::floor((width - frame.px(16)) * 0.5f);
  heading_line(frame, words.empty() ? "(no text)" : words, "token " + with_thousands(*card_));
  line(frame, small_text(frame), "KL divergence " + fixed_text(figures->kl_divergence, 4) + " nats", width);
  gap(frame, 8);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool can_fork = *card_ >= result.fork_begin;
  float bottom = low.y;
  for (int side = 0; side < 2; ++side) {
    const TokenView& view = side == 0 ? figures->a : figures->b;
    const float left = low.x + (side == 0 ? 0.0f : half + frame.px(16));
    float y = low.y;
    const auto put = [&](const TextStyle& style, std::string_view text) {
      draw_text(frame, ImGui::GetWindowDrawList(), {left, y}, style, text, half);
      y += line_pixels(frame, style);
    };
    put(small_text(frame), side == 0 ? "A: " + result.a : "B: " + result.b);
    put(tiny_text(frame), probability_words(view.logprob) + ", rank " + with_thousands(view.rank));
    ImGui::PushID(side);
    for (std::size_t i = 0; i < view.best.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      ImGui::SetCursorScreenPos({left, y});
      const bool able = can_fork && !view.best[i].ends_text;
      if (alternative_row(frame, view.best[i], view.best[i].token_id == token.token_id, able, half)) {
        frame.actions.push(actions::ForkText{*card_, view.best[i].text});
        ImGui::CloseCurrentPopup();
      }
      y += frame.px(kRowHeight);
      ImGui::PopID();
    }
    ImGui::PopID();
    bottom = std::max(bottom, y);
  }
  ImGui::SetCursorScreenPos({low.x, bottom + frame.px(6)});
  line(frame, tiny_text(frame),
       can_fork ? "Click a token to go on with it in a new chat." : "Chats can go on from the answer only.",
       width);
  ImGui::EndPopup();
}

}  // namespace octavo::ui
