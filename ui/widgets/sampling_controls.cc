#include "ui/widgets/sampling_controls.h"

#include <charconv>
#include <cmath>

#include "engine/base/format.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/sampling_fields.h"
#include "ui/widgets/slim_slider.h"

namespace octavo::ui {
namespace {

constexpr float kSliderGap = 8;

// A label, its value at the right, and a slim slider below. The value stays what it was until the slider
// moves.
bool slider(const Frame& frame, const char* id, const char* label, std::string_view help, float& value,
            SliderRange range, const std::string& shown, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextStyle style = small_text(frame);
  line(frame, style, label);
  tooltip(frame, help);
  style.colour = frame.theme.text;
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + width - text_width(frame, style, shown), at.y}, style,
            shown);
  const bool changed = slim_slider(frame, id, value, range, width);
  gap(frame, kSliderGap);
  return changed;
}

bool real_slider(const Frame& frame, const char* id, const char* label, std::string_view help, double& value,
                 SliderRange range, const std::string& shown, float width) {
  auto narrow = static_cast<float>(value);
  if (!slider(frame, id, label, help, narrow, range, shown, width)) return false;
  // Back to what a person would have written: 0.7, not 0.699999988.
  value = std::round(static_cast<double>(narrow) * 1000.0) / 1000.0;
  return true;
}

bool count_slider(const Frame& frame, const char* id, const char* label, std::string_view help,
                  std::int32_t& value, SliderRange range, const std::string& shown, float width) {
  auto narrow = static_cast<float>(value);
  if (!slider(frame, id, label, help, narrow, range, shown, width)) return false;
  value = static_cast<std::int32_t>(std::lround(narrow));
  return true;
}

bool repetition_slider(const Frame& frame, SamplingParams& sampling, float width) {
  return real_slider(frame, "##repetition_penalty", "Repetition penalty",
                     "Makes tokens that already appeared less likely. 1 has no effect.",
                     sampling.repetition_penalty, {1, 2, 0.01f},
                     sampling.repetition_penalty == 1 ? "off" : short_number(sampling.repetition_penalty),
                     width);
}

}  // namespace

bool drawing_sliders(const Frame& frame, SamplingParams& sampling, float width) {
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
  return changed;
}

bool penalty_sliders(const Frame& frame, SamplingParams& sampling, float width) {
  bool changed = repetition_slider(frame, sampling, width);
  changed |=
      real_slider(frame, "##presence_penalty", "Presence penalty",
                  "Taken from the logit of every token that already appeared in the answer. 0 has no "
                  "effect.",
                  sampling.presence_penalty, {-2, 2, 0.05f},
                  sampling.presence_penalty == 0 ? "off" : short_number(sampling.presence_penalty), width);
  changed |=
      real_slider(frame, "##frequency_penalty", "Frequency penalty",
                  "Taken from a token's logit once for each time it appeared in the answer. 0 has no "
                  "effect.",
                  sampling.frequency_penalty, {-2, 2, 0.05f},
                  sampling.frequency_penalty == 0 ? "off" : short_number(sampling.frequency_penalty), width);
  return changed;
}

bool length_slider(const Frame& frame, SamplingParams& sampling, float width) {
  return count_slider(frame, "##max_tokens", "Maximum length", "Maximum number of tokens in an answer.",
                      sampling.max_tokens, {16, 4096, 16}, with_thousands(sampling.max_tokens) + " tokens",
                      width);
}

bool length_penalty_slider(const Frame& frame, SamplingParams& sampling, float width) {
  return real_slider(frame, "##length_penalty", "Length penalty",
                     "score = sum of log-probabilities / tokens ^ length penalty", sampling.length_penalty,
                     {0, 2, 0.05f}, short_number(sampling.length_penalty), width);
}

bool number_slider(const Frame& frame, const char* id, const char* label, std::string_view help,
                   std::int32_t& value, std::int32_t low, std::int32_t high, float width) {
  return count_slider(frame, id, label, help, value, {static_cast<float>(low), static_cast<float>(high), 1},
                      std::to_string(value), width);
}

float slider_height(const Frame& frame) {
  return line_pixels(frame, small_text(frame)) + frame.px(kSlimSliderHeight) + frame.px(kSliderGap) +
         2 * ImGui::GetStyle().ItemSpacing.y;
}

std::optional<std::uint64_t> seed_of(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool valid = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return valid ? std::optional(seed) : std::nullopt;
}

bool stop_field(const Frame& frame, std::vector<std::string>& stops, ImVec2 extent) {
  line(frame, small_text(frame), "Stop sequences");
  tooltip(frame,
          "An answer ends before any of these texts. One on each line; write \\n for a line end, \\t for a "
          "tab.");
  gap(frame, 4);
  std::string text = lines_of_texts(stops);
  if (!text_area(frame, "##stop", text, extent, 0, "None")) return false;
  stops = texts_of_lines(text);
  return true;
}

}  // namespace octavo::ui
