#include "ui/views/memory/health_strip.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/sparkline.h"

namespace octavo::ui {
namespace {

constexpr double kSpanSeconds = 60;
constexpr float kGap = 12, kLeastWidth = 164, kHeight = 92, kCurve = 62, kMore = 48;
constexpr float kSentenceRow = 20, kUsualSentence = 720;
constexpr std::uint32_t kAccent = 100, kMuted = 101;

ImU32 colour_of(const Theme& theme, std::uint32_t colour) {
  if (colour == kAccent) return theme.accent;
  return colour == kMuted ? theme.muted : theme.owner(colour);
}

void draw_figure(const Frame& frame, const HealthFigure& figure, ImVec2 extent) {
  begin_card(frame, figure.id, extent, 0);
  const ImVec2 low = ImGui::GetWindowPos();
  const float side = frame.px(14), inner = extent.x - 2 * side;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle value{
      .face = FontFace::kSemiBold, .em = 22, .colour = frame.theme.text, .line_height = 1.3f};
  TextStyle label = tiny_text(frame), note = tiny_text(frame);
  note.colour = frame.theme.faint;
  draw_text(frame, list, {low.x + side, low.y + frame.px(10)}, value, figure.value, inner);
  draw_text(frame, list, {low.x + side, low.y + frame.px(43)}, label, figure.label, inner);
  draw_text(frame, list, {low.x + side, low.y + frame.px(61)}, note, figure.note, inner);
  const float curve = frame.px(kCurve);
  const bool has_room = extent.x > text_width(frame, value, figure.value) + 3 * side + curve;
  if (has_room && !figure.samples.empty()) {
    std::vector<Sample> samples;
    for (const FigureSample& sample : figure.samples) samples.push_back({sample.time_s, sample.value});
    draw_sparkline(frame, list, {low.x + extent.x - side - curve, low.y + frame.px(15)},
                   {low.x + extent.x - side, low.y + frame.px(39)}, samples, samples.back().time_s,
                   kSpanSeconds, figure.least_range, colour_of(frame.theme, figure.colour));
  }
  const bool is_cut = text_width(frame, note, figure.note) > inner;
  if (ImGui::IsWindowHovered())
    tooltip_now(frame, (is_cut ? figure.note + "\n" : std::string()) + figure.definition);
  end_card();
}

void draw_more(const Frame& frame, const std::string& word, ImVec2 low) {
  const bool is_pointed = ImGui::IsItemHovered();
  const ImVec2 high{low.x + frame.px(kMore), low.y + frame.px(kHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 fill = is_pointed ? frame.theme.raised : frame.theme.panel;
  list->AddRectFilled(low, high, fill, frame.px(12));
  list->AddRect(low, high, frame.theme.line, frame.px(12));
  TextStyle style = tiny_text(frame);
  style.colour = readable(frame.theme.muted, fill);
  draw_text(frame, list,
            {(low.x + high.x - text_width(frame, style, word)) * 0.5f,
             (low.y + high.y - line_pixels(frame, style)) * 0.5f},
            style, word);
}

// A press goes to the moment that it tells of.
void draw_sentence(const Frame& frame, const HealthSentence& sentence, ImVec2 low, float width,
                   float height) {
  TextStyle style = small_text(frame);
  const ImU32 dot = sentence.is_alarm ? frame.theme.owner(4) : frame.theme.faint;
  ImGui::GetWindowDrawList()->AddCircleFilled({low.x + frame.px(4), low.y + frame.px(10)}, frame.px(3.5f),
                                              dot);
  const ImVec2 text{low.x + frame.px(13), low.y};
  ImGui::SetCursorScreenPos(text);
  if (ImGui::InvisibleButton("sentence", {width + 1, height}))
    frame.actions.push(actions::SeekMark{sentence.mark});
  if (ImGui::IsItemHovered()) style.colour = frame.theme.text;
  tooltip(frame, "Show the pools at that moment");
  ImGui::SetCursorScreenPos(text);
  paragraph(frame, style, sentence.text, width + 1);
}

}  // namespace

bool draw_health_strip(const Frame& frame, const MemoryWorkspaceState& state, float width, bool all) {
  const float space = frame.px(kGap);
  const auto count = static_cast<int>(state.health.size());
  const auto num_in = [&](float room) {
    return static_cast<int>((room + space) / (frame.px(kLeastWidth) + space));
  };
  const bool has_more = num_in(width) < count;
  const float button_width = has_more ? frame.px(kMore) + space : 0;
  const int fit = num_in(width - button_width);
  int columns = std::clamp(fit, 1, std::max(1, count));
  if (all && count > columns)
    columns = (count + (count + columns - 1) / columns - 1) / ((count + columns - 1) / columns);
  const int shown = all ? count : std::min(count, columns);
  const float each = std::floor((width - button_width + space) / static_cast<float>(columns) - space);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  for (int i = 0; i < shown; ++i) {
    if (i % columns != 0) {
      beside(frame, kGap);
    } else if (i > 0) {
      gap(frame, kGap);
    }
    draw_figure(frame, state.health[static_cast<std::size_t>(i)], {each, frame.px(kHeight)});
  }
  if (!has_more) return all;
  const ImVec2 end = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(kMore), at.y});
  const bool was_pressed = ImGui::InvisibleButton("more_figures", {frame.px(kMore), frame.px(kHeight)});
  draw_more(frame, all ? "fewer" : "+" + std::to_string(count - shown),
            {at.x + width - frame.px(kMore), at.y});
  tooltip(frame, all ? "Show fewer figures (M)" : "Show all figures (M)");
  ImGui::SetCursorScreenPos(end);
  ImGui::Dummy({0, 0});
  return was_pressed ? !all : all;
}

// As many rows as the longest usual sentence takes, whatever is told now: what stands below does not move.
void draw_health_sentences(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float dot = frame.px(13), row = frame.px(kSentenceRow);
  const TextStyle style = small_text(frame);
  const auto usual_rows = std::ceil(frame.px(kUsualSentence) / std::max(width - dot, frame.px(80)));
  float rows = std::max(1.0f, usual_rows), x = 0, y = 0;
  for (std::size_t i = 0; i < state.sentences.size(); ++i) {
    const HealthSentence& sentence = state.sentences[i];
    const float length = text_width(frame, style, sentence.text);
    if (x > 0 && x + dot + length > width) {
      x = 0;
      y += row;
    }
    const float room = width - dot;
    const float needed = paragraph_height(frame, style, sentence.text, room);
    const bool is_whole = y + needed <= rows * row + 1;
    if (!is_whole && i > 0) break;  // it is in the log
    if (!is_whole) rows = std::ceil(needed / row);
    ImGui::PushID(static_cast<int>(i));
    draw_sentence(frame, sentence, {at.x + frame.px(2) + x, at.y + y}, std::min(length, room), needed);
    ImGui::PopID();
    if (needed > row + 1) break;
    x += dot + length + frame.px(22);
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, rows * row});
}

}  // namespace octavo::ui
