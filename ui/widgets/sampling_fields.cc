#include "ui/widgets/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/format.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/slim_slider.h"

namespace octavo::ui {

struct SamplingFields::Number {
  const char* id;
  const char* label;
  std::string_view help;
  double SamplingParams::*real;
  std::int32_t SamplingParams::*count;
  float low, high, step;  // of the slider; more can be typed
  int group;
};

namespace {

constexpr float kTypedWidth = 84;
constexpr int kRandomness = 0, kRepetition = 1, kLength = 2;

using Params = SamplingParams;

std::string text_of(double value) { return short_number(value); }

// Whether the whole text is a number.
template <class Value>
std::optional<Value> parsed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, end - begin + 1);
  Value value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// What is wrong with these values, as a sentence about the field of that label; empty when nothing is.
std::string problem_of(const SamplingParams& sampling, const char* label) {
  const auto valid = validate(sampling, std::numeric_limits<std::int32_t>::max());
  if (valid) return {};
  const std::string& message = valid.error().message;
  if (valid.error().subject == "min_tokens" && sampling.min_tokens > 0)
    return "The shortest answer cannot be longer than the longest.";
  const std::size_t rule = message.find(" must be "), given = message.find(", but it is ");
  if (rule == std::string::npos || given == std::string::npos) return message + ".";
  return label + message.substr(rule, given - rule) + ".";
}

bool draw_choice(const Frame& frame, const char* id, const char* label, std::string_view help,
                 std::span<const char* const> labels, std::span<const char* const> ids, bool& value,
                 float width) {
  line(frame, small_text(frame), label);
  tooltip(frame, help);
  gap(frame, 4);
  const std::size_t now = value ? 1 : 0, chosen = segments(frame, id, labels, ids, now, width);
  gap(frame, 12);
  value = chosen == 1;
  return chosen != now;
}

bool draw_flags(const Frame& frame, SamplingParams& sampling, float width) {
  constexpr const char* kKeeps[] = {"Leave it out", "Keep it"};
  constexpr const char* kKeepIds[] = {"stop_left_out", "stop_kept"};
  constexpr const char* kEnds[] = {"End there", "Go on"};
  constexpr const char* kEndIds[] = {"eos_ends", "eos_ignored"};
  bool changed = draw_choice(frame, "include_stop", "The stop text itself",
                             "Whether the answer ends with the stop text that ended it.", kKeeps, kKeepIds,
                             sampling.include_stop_str_in_output, width);
  if (sampling.structured_output) return changed;  // its form ends an answer
  changed |= draw_choice(frame, "ignore_eos", "When the model ends its answer",
                         "Go on: the answer goes past the model's own end, to its longest length.", kEnds,
                         kEndIds, sampling.ignore_eos, width);
  return changed;
}

}  // namespace

std::string lines_of_texts(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) {
    if (!lines.empty()) lines += '\n';
    for (const char c : text) {
      if (c == '\\') lines += "\\\\";
      if (c == '\n') lines += "\\n";
      if (c == '\t') lines += "\\t";
      if (c != '\\' && c != '\n' && c != '\t') lines += c;
    }
  }
  return lines;
}

std::vector<std::string> texts_of_lines(std::string_view lines) {
  std::vector<std::string> texts;
  std::string text;
  const auto end_text = [&] {
    if (!text.empty()) texts.push_back(std::exchange(text, {}));
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char next = lines[i] == '\\' && i + 1 < lines.size() ? lines[i + 1] : '\0';
    const bool escape = next == '\\' || next == 'n' || next == 't';
    if (escape) ++i;
    if (!escape && lines[i] == '\n') {
      end_text();
    } else if (!escape) {
      text += lines[i];
    } else {
      text += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    }
  }
  end_text();
  return texts;
}

// What stands in a field follows its value, unless that is what was typed.
SamplingFields::Field& SamplingFields::field(const char* id, const std::string& now) {
  const auto [found, is_new] = fields_.try_emplace(id);
  Field& field = found->second;
  if (is_new || field.known != now) field = {.text = now, .known = now, .problem = {}};
  return field;
}

void SamplingFields::draw_problem(const Frame& frame, const Field& field, float width) const {
  if (field.problem.empty()) return;
  gap(frame, 2);
  paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, field.problem, width);
}

bool SamplingFields::draw_number(const Frame& frame, const Number& number, SamplingParams& sampling,
                                 float width) {
  const auto value_text = [&](const SamplingParams& params) {
    return number.real != nullptr ? text_of(params.*number.real) : std::to_string(params.*number.count);
  };
  Field& field = this->field(number.id, value_text(sampling));
  SamplingParams candidate = sampling;
  const auto take = [&](double value) {
    if (number.real != nullptr)
      candidate.*number.real = std::round(value * 1000.0) / 1000.0;  // 0.7, not 0.699999988
    else
      candidate.*number.count = static_cast<std::int32_t>(std::lround(value));
  };
  ImGui::PushID(number.id);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float typed_width = frame.px(kTypedWidth);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(6)});
  line(frame, small_text(frame), number.label, width - typed_width - frame.px(8));
  tooltip(frame, number.help);
  ImGui::SetCursorScreenPos({at.x + width - typed_width, at.y});
  bool tried = false;
  if (text_field(frame, "##typed", field.text, {}, typed_width)) {
    const auto real = parsed<double>(field.text);
    const auto count = parsed<std::int32_t>(field.text);
    tried = number.real != nullptr ? real.has_value() : count.has_value();
    if (tried) take(number.real != nullptr ? *real : *count);
    if (!tried)
      field.problem = std::string(number.label) +
                      (number.real != nullptr ? " must be a number." : " must be a whole number.");
  }
  ImGui::SetCursorScreenPos({at.x, ImGui::GetItemRectMax().y + frame.px(4)});
  auto narrow = static_cast<float>(number.real != nullptr ? sampling.*number.real
                                                          : static_cast<double>(sampling.*number.count));
  if (slim_slider(frame, number.id, narrow, {number.low, number.high, number.step}, width)) {
    take(static_cast<double>(narrow));
    field.text = value_text(candidate);
    tried = true;
  }
  ImGui::PopID();
  bool changed = false;
  if (tried) field.problem = problem_of(candidate, number.label);
  if (tried && field.problem.empty()) {
    sampling = candidate;
    field.known = value_text(sampling);
    changed = true;
  }
  draw_problem(frame, field, width);
  gap(frame, 8);
  return changed;
}

bool SamplingFields::draw_numbers(const Frame& frame, SamplingParams& sampling, float width, int group) {
  static constexpr Number kNumbers[] = {
      {"##temperature", "Temperature",
       "How random the choice of each token is. 0 always picks the likeliest.", &Params::temperature, nullptr,
       0, 2, 0.05f, kRandomness},
      {"##top_p", "Top-p",
       "Samples from the likeliest tokens whose probabilities add up to this. 1 keeps all tokens.",
       &Params::top_p, nullptr, 0.05f, 1, 0.01f, kRandomness},
      {"##top_k", "Top-k", "Samples from this many of the likeliest tokens. 0 keeps all tokens.", nullptr,
       &Params::top_k, 0, 200, 1, kRandomness},
      {"##min_p", "Min-p",
       "Ignores tokens less likely than this fraction of the likeliest one. 0 keeps all tokens.",
       &Params::min_p, nullptr, 0, 0.5f, 0.01f, kRandomness},
      {"##repetition_penalty", "Repetition penalty",
       "Makes tokens that already appeared, in the prompt too, less likely by this factor. 1 has no effect.",
       &Params::repetition_penalty, nullptr, 1, 2, 0.01f, kRepetition},
      {"##presence_penalty", "Presence penalty",
       "Taken once from every token that the answer already has. Above 0 leads to new words, below 0 to "
       "known "
       "ones. 0 has no effect.",
       &Params::presence_penalty, nullptr, -2, 2, 0.05f, kRepetition},
      {"##frequency_penalty", "Frequency penalty",
       "Taken from a token for every time that the answer already has it. 0 has no effect.",
       &Params::frequency_penalty, nullptr, -2, 2, 0.05f, kRepetition},
      {"##max_tokens", "Longest answer", "Maximum number of tokens in an answer.", nullptr,
       &Params::max_tokens, 16, 4096, 16, kLength},
      {"##min_tokens", "Shortest answer",
       "The model cannot end its answer before this many tokens. 0 has no effect.", nullptr,
       &Params::min_tokens, 0, 1024, 16, kLength},
  };
  bool changed = false;
  for (const Number& number : kNumbers) {
    if (number.group == group) changed |= draw_number(frame, number, sampling, width);
  }
  return changed;
}

bool SamplingFields::draw_texts(const Frame& frame, const char* id, const char* label, std::string_view help,
                                std::string_view hint, std::vector<std::string> SamplingParams::*member,
                                SamplingParams& sampling, float width) {
  Field& field = this->field(id, lines_of_texts(sampling.*member));
  line(frame, small_text(frame), label);
  tooltip(frame, help);
  gap(frame, 4);
  const Face face = frame.face(FontFace::kRegular, size::kText);
  bool changed = false;
  if (text_area(frame, id, field.text, {width, face.size * 2 + frame.px(18)}, 0, hint)) {
    SamplingParams candidate = sampling;
    candidate.*member = texts_of_lines(field.text);
    field.problem = problem_of(candidate, label);
    if (field.problem.empty()) {
      sampling = candidate;
      field.known = lines_of_texts(sampling.*member);
      changed = true;
    }
  }
  draw_problem(frame, field, width);
  gap(frame, 12);
  return changed;
}

bool SamplingFields::draw_seed(const Frame& frame, SamplingParams& sampling, float width) {
  Field& field = this->field("##seed", sampling.seed ? std::to_string(*sampling.seed) : std::string());
  line(frame, small_text(frame), "Seed");
  tooltip(frame, "The same seed and settings give the same answer. Leave empty for a new seed each time.");
  gap(frame, 4);
  bool changed = false;
  if (text_field(frame, "##seed", field.text, "random", width)) {
    const auto seed = parsed<std::uint64_t>(field.text);
    const bool blank = is_blank(field.text);
    field.problem = seed || blank ? "" : "Seed must be a whole number of at least 0, or empty.";
    changed = field.problem.empty();
    if (changed) sampling.seed = seed;
    if (changed) field.known = seed ? std::to_string(*seed) : std::string();
  }
  draw_problem(frame, field, width);
  gap(frame, 12);
  return changed;
}

bool SamplingFields::draw(const Frame& frame, SamplingParams& sampling, float width) {
  bool changed = draw_numbers(frame, sampling, width, kRandomness);
  changed |= draw_seed(frame, sampling, width);
  heading_line(frame, "Repetition");
  gap(frame, 6);
  changed |= draw_numbers(frame, sampling, width, kRepetition);
  heading_line(frame, "Length and end");
  gap(frame, 6);
  changed |= draw_numbers(frame, sampling, width, kLength);
  changed |=
      draw_texts(frame, "##stop", "Stop texts",
                 "The answer ends where one of these texts would come. One on each line; \\n stands for "
                 "a line break.",
                 "one on each line", &SamplingParams::stop, sampling, width);
  changed |= draw_texts(frame, "##bad_words", "Words that are not written",
                        "The model cannot write these texts as they stand here. One on each line.",
                        "one on each line", &SamplingParams::bad_words, sampling, width);
  changed |= draw_flags(frame, sampling, width);
  heading_line(frame, "Form of answers");
  gap(frame, 6);
  changed |= form_.draw(frame, sampling, width);
  return changed;
}

}  // namespace octavo::ui
