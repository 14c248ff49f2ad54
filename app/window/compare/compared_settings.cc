#include "app/window/compare/compared_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <variant>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::int32_t kMostTokensAtFirst = 256;
// Of a system prompt, in a column's head.
constexpr std::size_t kMostPromptBytes = 48;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string stop_words(const std::vector<std::string>& stops) {
  if (stops.empty()) return "none";
  std::string text;
  for (const std::string& stop : stops) text += (text.empty() ? "“" : ", “") + escape_for_message(stop) + "”";
  return text;
}

// Its beginning, on one line.
std::string prompt_words(const std::string& prompt) {
  if (prompt.empty()) return "none";
  std::string line = prompt;
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (line.size() <= kMostPromptBytes) return "“" + line + "”";
  std::size_t end = kMostPromptBytes;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) --end;
  return "“" + line.substr(0, end) + "…”";
}

// What the template is told by any of them, by name.
std::set<std::string> told_names(const std::vector<ui::ComparedSettings>& all) {
  std::set<std::string> names;
  for (const ui::ComparedSettings& one : all) {
    for (const auto& [name, value] : one.template_values) names.insert(name);
  }
  return names;
}

std::optional<TemplateValue> told(const ui::ComparedSettings& settings, const std::string& name) {
  const auto value = settings.template_values.find(name);
  return value != settings.template_values.end() ? std::optional(value->second) : std::nullopt;
}

// "enable_thinking" is told as "enable thinking".
std::string told_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string value_words(const std::optional<TemplateValue>& value) {
  if (!value) return "as usual";
  if (const auto* const flag = std::get_if<bool>(&*value)) return *flag ? "on" : "off";
  if (const auto* const text = std::get_if<std::string>(&*value)) return *text;
  return std::to_string(std::get<std::int64_t>(*value));
}

}  // namespace

std::string settings_differences(const ui::ComparedSettings& settings,
                                 const std::vector<ui::ComparedSettings>& all) {
  std::string text;
  const auto add_if_different = [&](const char* name, const auto& get, const std::string& value) {
    const bool differs = std::any_of(all.begin(), all.end(), [&](const ui::ComparedSettings& other) {
      return get(other) != get(settings);
    });
    if (differs) text += (text.empty() ? "" : " · ") + std::string(name) + " " + value;
  };
  const auto add = [&](const char* name, auto member, const std::string& value) {
    add_if_different(
        name, [member](const ui::ComparedSettings& one) { return one.sampling.*member; }, value);
  };
  const SamplingParams& params = settings.sampling;
  add("temperature", &SamplingParams::temperature, number(params.temperature));
  add("top-p", &SamplingParams::top_p, number(params.top_p));
  add("top-k", &SamplingParams::top_k, params.top_k <= 0 ? "off" : std::to_string(params.top_k));
  add("min-p", &SamplingParams::min_p, number(params.min_p));
  add("repetition", &SamplingParams::repetition_penalty, number(params.repetition_penalty));
  add("presence", &SamplingParams::presence_penalty, number(params.presence_penalty));
  add("frequency", &SamplingParams::frequency_penalty, number(params.frequency_penalty));
  add("length", &SamplingParams::max_tokens, std::to_string(params.max_tokens));
  add("at least", &SamplingParams::min_tokens, std::to_string(params.min_tokens));
  add("stop", &SamplingParams::stop, stop_words(params.stop));
  add("form", &SamplingParams::structured_output,
      params.structured_output ? std::string(structured_output_name(*params.structured_output)) : "free");
  add_if_different(
      "system prompt", [](const ui::ComparedSettings& one) { return one.system_prompt; },
      prompt_words(settings.system_prompt));
  for (const std::string& name : told_names(all)) {
    add_if_different(
        told_words(name).c_str(), [&](const ui::ComparedSettings& one) { return told(one, name); },
        value_words(told(settings, name)));
  }
  return text;
}

std::string system_prompt_of(const std::vector<ChatMessage>& messages) {
  const bool has_one = !messages.empty() && messages.front().role == Role::kSystem;
  return has_one ? messages.front().content : std::string();
}

bool sends_alike(const ContextQuestion& question, const ui::ComparedSettings& settings) {
  return question.system_prompt == settings.system_prompt &&
         question.template_values == settings.template_values;
}

void send_as(ContextQuestion& question, const ui::ComparedSettings& settings) {
  question.system_prompt = settings.system_prompt;
  question.template_values = settings.template_values;
}

SamplingParams sampling_to_compare(const SamplingParams& sampling) {
  SamplingParams result = sampling;
  result.max_tokens = std::min(result.max_tokens, kMostTokensAtFirst);
  result.min_tokens = std::min(result.min_tokens, result.max_tokens);
  return result;
}

std::vector<ui::ComparedSettings> two_settings(const ui::ComparedSettings& first) {
  std::vector<ui::ComparedSettings> settings(2, first);
  for (ui::ComparedSettings& each : settings) each.sampling.seed.reset();
  settings[1].sampling.temperature = first.sampling.temperature > 0 ? 0 : 1;
  return settings;
}

}  // namespace octavo::app
