#include "engine/tokenizer/split_pattern.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/split_scanners.h"

namespace octavo::tokenizer {
namespace {

struct NamedRule {
  std::string_view name;
  SplitRule rule;
};

// Names that llama.cpp's converter writes, and what llama.cpp takes them for.
constexpr NamedRule kNamedRules[] = {
    {"", {SplitPattern::kGpt2, false}},
    {"default", {SplitPattern::kGpt2, false}},
    {"gpt-2", {SplitPattern::kGpt2, false}},
    {"gpt2", {SplitPattern::kGpt2, false}},
    {"phi-2", {SplitPattern::kGpt2, false}},
    {"mpt", {SplitPattern::kGpt2, false}},
    {"olmo", {SplitPattern::kGpt2, false}},
    {"exaone4", {SplitPattern::kGpt2, false}},
    {"smollm", {SplitPattern::kSmolLm, false}},
    {"starcoder", {SplitPattern::kSmolLm, false}},
    {"refact", {SplitPattern::kSmolLm, false}},
    {"command-r", {SplitPattern::kSmolLm, false}},
    {"codeshell", {SplitPattern::kSmolLm, false}},
    {"exaone", {SplitPattern::kSmolLm, false}},
    {"minerva-7b", {SplitPattern::kSmolLm, false}},
    {"llama-bpe", {SplitPattern::kLlama3, true}},
    {"llama3", {SplitPattern::kLlama3, true}},
    {"llama-v3", {SplitPattern::kLlama3, true}},
    {"falcon3", {SplitPattern::kLlama3, true}},
    {"falcon-h1", {SplitPattern::kLlama3, true}},
    {"lfm2", {SplitPattern::kLlama3, true}},
    {"pixtral", {SplitPattern::kLlama3, true}},
    {"glm4", {SplitPattern::kLlama3, true}},
    {"chatglm-bpe", {SplitPattern::kLlama3, false}},
    {"dbrx", {SplitPattern::kLlama3, false}},
    {"smaug-bpe", {SplitPattern::kLlama3, false}},
    {"qwen2", {SplitPattern::kQwen2, false}},
    {"deepseek-r1-qwen", {SplitPattern::kQwen2, false}},
    {"stablelm2", {SplitPattern::kQwen2, false}},
    {"megrez", {SplitPattern::kQwen2, false}},
    {"hunyuan", {SplitPattern::kQwen2, false}},
    {"qwen35", {SplitPattern::kQwen35, false}},
    {"gpt-4o", {SplitPattern::kGpt4o, false}},
    {"llama4", {SplitPattern::kGpt4o, false}},
    {"tekken", {SplitPattern::kTekken, true}},
    {"deepseek-llm", {SplitPattern::kDeepSeekLlm, false}},
    {"deepseek-coder", {SplitPattern::kDeepSeekCoder, false}},
    {"deepseek-v3", {SplitPattern::kDeepSeek3, false}},
    {"hunyuan-dense", {SplitPattern::kDeepSeek3, false}},
    {"falcon", {SplitPattern::kFalcon, false}},
};

// A pattern that finds a piece everywhere.
template <auto kLength>
std::optional<Match> find_at_start(std::string_view text) {
  return Match{0, kLength(text)};
}

template <int kMostDigits>
std::size_t llama3_like(std::string_view text) {
  return llama3_length(text, kMostDigits);
}

template <std::size_t kMostDigits>
std::optional<Match> find_numbers_of(std::string_view text) {
  return find_numbers(text, kMostDigits);
}

constexpr FindMatch kGpt2Stages[] = {find_at_start<gpt2_length>};
constexpr FindMatch kSmolLmStages[] = {find_numbers_of<1>, find_at_start<gpt2_length>};
constexpr FindMatch kLlama3Stages[] = {find_at_start<llama3_like<3>>};
constexpr FindMatch kQwen2Stages[] = {find_at_start<llama3_like<1>>};
constexpr FindMatch kQwen35Stages[] = {find_at_start<qwen35_length>};
constexpr FindMatch kGpt4oStages[] = {find_at_start<gpt4o_length>};
constexpr FindMatch kTekkenStages[] = {find_at_start<tekken_length>};
constexpr FindMatch kDeepSeekLlmStages[] = {find_line_break,          find_cased_letters,
                                            find_deepseek_symbols,    find_trailing_spaces,
                                            find_deepseek_ideographs, find_numbers_of<1>};
constexpr FindMatch kDeepSeekCoderStages[] = {find_line_break, find_letters, find_punctuation,
                                              find_deepseek_ideographs, find_numbers_of<1>};
constexpr FindMatch kDeepSeek3Stages[] = {find_numbers_of<3>, find_ideographs_and_kana, find_deepseek3};
constexpr FindMatch kFalconStages[] = {find_falcon_punctuation, find_at_start<gpt2_length>,
                                       find_three_digits};

struct KnownPattern {
  std::string_view expression;
  FindMatch find;
};

// As published files write them: by what Llama 3, Qwen, GPT-4o, Mistral and DeepSeek cut.
constexpr KnownPattern kKnownPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     find_at_start<gpt2_length>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_at_start<llama3_like<3>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_at_start<llama3_like<1>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_at_start<qwen35_length>},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_at_start<gpt4o_length>},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_at_start<tekken_length>},
    {R"(\p{N}{1,3})", find_numbers_of<3>},
    {R"(\p{N})", find_numbers_of<1>},
    {R"([0-9][0-9][0-9])", find_three_digits},
    {R"([\r\n])", find_line_break},
    {"[\r\n]", find_line_break},
    {R"(\s?\p{L}+)", find_letters},
    {R"(\s?\p{P}+)", find_punctuation},
    {R"(\s+$)", find_spaces_before_line_end},
    {"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", find_deepseek_ideographs},
    {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", find_ideographs_and_kana},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find_deepseek3},
};

std::span<const FindMatch> stages_of(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2: return kGpt2Stages;
    case SplitPattern::kSmolLm: return kSmolLmStages;
    case SplitPattern::kLlama3: return kLlama3Stages;
    case SplitPattern::kQwen2: return kQwen2Stages;
    case SplitPattern::kQwen35: return kQwen35Stages;
    case SplitPattern::kGpt4o: return kGpt4oStages;
    case SplitPattern::kTekken: return kTekkenStages;
    case SplitPattern::kDeepSeekLlm: return kDeepSeekLlmStages;
    case SplitPattern::kDeepSeekCoder: return kDeepSeekCoderStages;
    case SplitPattern::kDeepSeek3: return kDeepSeek3Stages;
    case SplitPattern::kFalcon: return kFalconStages;
  }
  return {};
}

std::string known_names() {
  std::string names;
  for (const NamedRule& known : kNamedRules) {
    if (known.name.empty()) continue;
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

std::string_view take(std::string_view& text, std::size_t length) {
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

}  // namespace

FindMatch find_known_pattern(std::string_view expression) {
  const auto* const known = std::ranges::find(kKnownPatterns, expression, &KnownPattern::expression);
  return known == std::end(kKnownPatterns) ? nullptr : known->find;
}

Result<SplitRule> find_split_rule(std::string_view name) {
  for (const NamedRule& known : kNamedRules) {
    if (known.name == name) return known.rule;
  }
  return Error{ErrorCode::kUnsupported,
               "tokenizer.ggml.pre is \"" + escape_for_message(name) + "\"; known split patterns are " +
                   known_names() + ": choose a model with one of these",
               "tokenizer.ggml.pre"};
}

PieceCutter::PieceCutter(SplitPattern pattern, std::string_view text)
    : pattern_(pattern), num_stages_(stages_of(pattern).size()) {
  stages_[0].rest = text;
}

std::string_view PieceCutter::next_of(std::size_t stage) {
  Stage& here = stages_[stage];
  if (here.match_length > 0) return take(here.rest, std::exchange(here.match_length, 0));
  if (here.rest.empty() && stage > 0) here.rest = next_of(stage - 1);
  if (here.rest.empty()) return {};
  const std::optional<Match> match = stages_of(pattern_)[stage](here.rest);
  if (!match) return take(here.rest, here.rest.size());
  if (match->begin == 0) return take(here.rest, match->end);
  here.match_length = match->end - match->begin;
  return take(here.rest, match->begin);
}

}  // namespace octavo::tokenizer
