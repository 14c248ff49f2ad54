#include "ui/widgets/sampling_controls.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/format.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

struct Range {
  float low, high, step;
};

float rounded(float value, float step) { return std::round(value / step) * step; }

// A label, its value at the right, and a slim slider below. The value stays what it was until the slider
// moves.
bool slider(const Frame& frame, const char* id, const char* label, std::string_view help, float& value,
            Range range, const std::string& shown, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextStyle style = small_text(frame);
  line(frame, style, label);
  tooltip(frame, help);
  style.colour = frame.theme.text;
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + width - text_width(frame, style, shown), at.y}, style,
            shown);
  const ImVec2 bar = ImGui::GetCursorScreenPos();
  const float middle = bar.y + frame.px(9);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float fraction = std::clamp((value - range.low) / (range.high - range.low), 0.0f, 1.0f);
  const float knob = bar.x + frame.px(7) + (width - frame.px(14)) * fraction;
  list->AddRectFilled({bar.x, middle - frame.px(2)}, {bar.x + width, middle + frame.px(2)}, frame.theme.free,
                      frame.px(2));
  list->AddRectFilled({bar.x, middle - frame.px(2)}, {knob, middle + frame.px(2)}, frame.theme.accent,
                      frame.px(2));
  const Face face = frame.face(FontFace::kRegular, 8);
  ImGui::PushFont(face.font, face.size);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, std::floor((frame.px(18) - face.size) * 0.5f)});
  for (const ImGuiCol colour : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive,
                                ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive}) {
    ImGui::PushStyleColor(colour, IM_COL32_BLACK_TRANS);
  }
  ImGui::SetNextItemWidth(width);
  float moved = value;
  const bool changed =
      ImGui::SliderFloat(id, &moved, range.low, range.high, "", ImGuiSliderFlags_NoRoundToFormat);
  const bool active = ImGui::IsItemActive() || ImGui::IsItemHovered();
  ImGui::PopStyleColor(5);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  list->AddCircleFilled({knob, middle}, frame.px(active ? 8 : 7), frame.theme.panel);
  list->AddCircleFilled({knob, middle}, frame.px(active ? 7 : 6), frame.theme.accent);
  gap(frame, 8);
  if (changed) value = rounded(moved, range.step);
  return changed;
}

bool real_slider(const Frame& frame, const char* id, const char* label, std::string_view help, double& value,
                 Range range, const std::string& shown, float width) {
  auto narrow = static_cast<float>(value);
  if (!slider(frame, id, label, help, narrow, range, shown, width)) return false;
  // Back to what a person would have written: 0.7, not 0.699999988.
  value = std::round(static_cast<double>(narrow) * 1000.0) / 1000.0;
  return true;
}

bool count_slider(const Frame& frame, const char* id, const char* label, std::string_view help,
                  std::int32_t& value, Range range, const std::string& shown, float width) {
  auto narrow = static_cast<float>(value);
  if (!slider(frame, id, label, help, narrow, range, shown, width)) return false;
  value = static_cast<std::int32_t>(std::lround(narrow));
  return true;
}

}  // namespace

bool sampling_sliders(const Frame& frame, SamplingParams& sampling, float width) {
  bool changed = false;
  changed |= real_slider(frame, "##temperature", "Temperature",
                         "How random the choice of each token is. 0 always picks the likeliest.",
                         sampling.temperature, {0, 2, 0.05f},
                         sampling.temperature == 0 ? "0, greedy" : short_number(sampling.temperature), width);
  changed |= real_slider(
      frame, "##top_p", "Top-p",
      "Samples from the likeliest tokens whose probabilities add up to this. 1 keeps all tokens.",
      sampling.top_p, {0.05f, 1, 0.01f}, sampling.top_p >= 1 ? "off" : short_number(sampling.top_p), width);
  changed |= count_slider(
      frame, "##top_k", "Top-k", "Samples from this many of the likeliest tokens. 0 keeps all tokens.",
      sampling.top_k, {0, 200, 1}, sampling.top_k <= 0 ? "off" : std::to_string(sampling.top_k), width);
  changed |= real_slider(
      frame, "##min_p", "Min-p",
      "Ignores tokens less likely than this fraction of the likeliest one. 0 keeps all tokens.",
      sampling.min_p, {0, 0.5f, 0.01f}, sampling.min_p <= 0 ? "off" : short_number(sampling.min_p), width);
  changed |= real_slider(frame, "##repetition_penalty", "Repetition penalty",
                         "Makes tokens that already appeared less likely. 1 has no effect.",
                         sampling.repetition_penalty, {1, 2, 0.01f},
                         sampling.repetition_penalty == 1 ? "off" : short_number(sampling.repetition_penalty),
                         width);
  changed |= count_slider(frame, "##max_tokens", "Maximum length", "Maximum number of tokens in an answer.",
                          sampling.max_tokens, {16, 4096, 16},
                          with_thousands(sampling.max_tokens) + " tokens", width);
  return changed;
}

bool seed_field(const Frame& frame, SamplingParams& sampling, std::string& text, float width) {
  line(frame, small_text(frame), "Seed");
  tooltip(frame, "The same seed and settings give the same answer. Leave empty for a new seed each time.");
  gap(frame, 4);
  if (!text_field(frame, "##seed", text, "random", width, ImGuiInputTextFlags_CharsDecimal)) return false;
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool valid = error == std::errc() && end == text.data() + text.size() && !text.empty();
  sampling.seed = valid ? std::optional(seed) : std::nullopt;
  return true;
}

}  // namespace octavo::ui
