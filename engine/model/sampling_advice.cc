#include "engine/model/sampling_advice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/ascii.h"

namespace octavo::model {
namespace {

// As its maker wrote it: 0.6, not 0.600000024.
std::optional<double> find_number(const Metadata& header, std::string_view key) {
  const auto value = header.find<float>(key);
  if (!value || !*value || !std::isfinite(**value)) return std::nullopt;
  return std::round(static_cast<double>(**value) * 1e6) / 1e6;
}

struct Published {
  std::string_view name_begins, name_contains;  // as plain_name() has them; the second may be empty
  SamplingAdvice advice;
};

// The first that fits holds. Of models that think or not, as their templates begin: thinking.
constexpr Published kPublished[] = {
    // Cards of the Qwen models. Without the presence penalty, thoughts of 3.5 and 3.6 are known to repeat.
    {"qwen3.5", "", {.temperature = 1.0, .top_p = 0.95, .top_k = 20, .min_p = 0.0, .presence_penalty = 1.5}},
    {"qwen3.6", "", {.temperature = 1.0, .top_p = 0.95, .top_k = 20, .min_p = 0.0, .presence_penalty = 1.5}},
    {"qwen3 coder next", "", {.temperature = 1.0, .top_p = 0.95, .top_k = 40}},
    {"qwen3 coder", "", {.temperature = 0.7, .top_p = 0.8, .top_k = 20, .repetition_penalty = 1.05}},
    {"qwen3", "instruct", {.temperature = 0.7, .top_p = 0.8, .top_k = 20, .min_p = 0.0}},
    {"qwen3", "", {.temperature = 0.6, .top_p = 0.95, .top_k = 20, .min_p = 0.0}},
    // The Gemma team, for 3 and 4 alike
    {"gemma 3", "", {.temperature = 1.0, .top_p = 0.95, .top_k = 64}},
    {"gemma 4", "", {.temperature = 1.0, .top_p = 0.95, .top_k = 64}},
    {"gpt oss", "", {.temperature = 1.0, .top_p = 1.0, .top_k = 0}},
    {"glm 4.7 flash", "", {.temperature = 1.0, .top_p = 0.95, .min_p = 0.01}},
    // Liquid's documentation
    {"lfm2.5", "", {.temperature = 0.1, .top_p = 0.1, .top_k = 50, .repetition_penalty = 1.05}},
    {"lfm2", "", {.temperature = 0.3, .min_p = 0.15, .repetition_penalty = 1.05}},
    {"smollm3", "", {.temperature = 0.6, .top_p = 0.95}},
};

// "Qwen/Qwen3-Coder_30B" -> "qwen3 coder 30b": files write spaces, hyphens and underscores as their
// converters do, and folders of the hub's cache have their owner's name, too.
std::string plain_name(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);  // all of it where there is none
  std::string plain = ascii_lower_case(without_blanks(name));
  std::ranges::replace_if(
      plain, [](char c) { return c == '-' || c == '_'; }, ' ');
  return plain;
}

// Of whole words: "qwen3" begins no "qwen3.5".
bool begins(std::string_view name, std::string_view words) {
  return name.starts_with(words) && (name.size() == words.size() || name[words.size()] == ' ');
}

}  // namespace

SamplingAdvice read_sampling_advice(const Metadata& header) {
  SamplingAdvice advice{.temperature = find_number(header, "general.sampling.temp"),
                        .top_p = find_number(header, "general.sampling.top_p"),
                        .min_p = find_number(header, "general.sampling.min_p"),
                        .repetition_penalty = find_number(header, "general.sampling.penalty_repeat")};
  if (const auto top_k = header.find<std::int32_t>("general.sampling.top_k"); top_k) advice.top_k = *top_k;
  return valid_part(advice);
}

SamplingAdvice valid_part(const SamplingAdvice& advice) {
  SamplingAdvice valid;
  for_each_advised([&](const char*, auto advised, auto) {
    SamplingAdvice alone;
    alone.*advised = advice.*advised;
    SamplingParams params;
    params.max_tokens = 1;
    if (validate(with_advice(params, alone), std::numeric_limits<std::int32_t>::max()).has_value())
      valid.*advised = advice.*advised;
  });
  return valid;
}

SamplingAdvice published_advice(std::string_view name) {
  const std::string plain = plain_name(name);
  for (const Published& published : kPublished) {
    if (begins(plain, published.name_begins) && plain.find(published.name_contains) != std::string::npos)
      return published.advice;
  }
  return {};
}

}  // namespace octavo::model
