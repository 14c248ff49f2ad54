#include "app/chat/sampling_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/base/text.h"

namespace octavo::app {

using nlohmann::json;

namespace {

Error wrong(std::string_view what, const std::string& sentence, const std::string& subject) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = std::string(what) + ": " + sentence,
          .subject = subject};
}

// Typed reading of one value; a wrong type is nullopt.
std::optional<double> as_number(const json& source) {
  if (!source.is_number()) return std::nullopt;
  const double value = source.get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

template <class Integer>
std::optional<Integer> as_integer(const json& source) {
  if (source.is_number_unsigned()) {
    const std::uint64_t value = source.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) return std::nullopt;
    return static_cast<Integer>(value);
  }
  if (source.is_number_integer()) {
    const std::int64_t value = source.get<std::int64_t>();
    if (value < 0 && std::is_unsigned_v<Integer>) return std::nullopt;
    if (value < static_cast<std::int64_t>(std::numeric_limits<Integer>::min())) return std::nullopt;
    return static_cast<Integer>(value);
  }
  return std::nullopt;
}

template <class Value>
bool assign(std::optional<Value> value, Value& target) {
  if (!value.has_value()) return false;
  target = *value;
  return true;
}

bool assign_bool(const json& source, bool& target) {
  if (!source.is_boolean()) return false;
  target = source.get<bool>();
  return true;
}

// One, several or, with null, none.
bool assign_texts(const json& source, std::vector<std::string>& target) {
  std::vector<std::string> texts;
  if (source.is_string()) {
    texts.push_back(source.get<std::string>());
  } else if (source.is_array()) {
    for (const json& entry : source) {
      if (!entry.is_string()) return false;
      texts.push_back(entry.get<std::string>());
    }
  } else if (!source.is_null()) {
    return false;
  }
  target = std::move(texts);
  return true;
}

// A number of alternatives, or as a flag: true asks for one, as in vLLM.
bool assign_prompt_logprobs(const json& source, std::optional<std::int32_t>& target) {
  target.reset();
  if (source.is_null()) return true;
  if (!source.is_boolean()) return (target = as_integer<std::int32_t>(source)).has_value();
  if (source.get<bool>()) target = 1;
  return true;
}

bool assign_logit_bias(const json& source, std::map<TokenId, double>& logit_bias) {
  if (!source.is_object()) return false;
  std::map<TokenId, double> biases;
  for (const auto& [key, value] : source.items()) {
    TokenId token_id = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), token_id);
    const auto bias = as_number(value);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || !bias.has_value()) return false;
    biases[token_id] = *bias;
  }
  logit_bias = std::move(biases);
  return true;
}

// The options that say which form outputs have, of which a person gives one.
constexpr std::array kStructureOptions = {"json_object", "json_schema", "regex",
                                          "grammar",     "choice",      "structural_tag"};

bool is_structure_option(std::string_view key) {
  return std::ranges::any_of(kStructureOptions, [&](std::string_view one) { return one == key; });
}

// A schema's text keeps the order of its properties; one that is written as an object does not.
bool assign_structure(const std::string& key, const json& value, std::optional<StructuredOutput>& wanted) {
  if (value.is_null()) {
    wanted.reset();
    return true;
  }
  if (key == "json_object") {
    if (value.is_boolean() && value.get<bool>()) wanted = AnyJsonObject{};
    return value.is_boolean();
  }
  if (key == "choice") {
    ChoiceOfTexts choice;
    if (!assign_texts(value, choice.texts)) return false;
    wanted = std::move(choice);
    return true;
  }
  const bool may_be_object = key == "json_schema" || key == "structural_tag";
  if (!value.is_string() && !(may_be_object && value.is_object())) return false;
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (key == "json_schema") wanted = JsonSchema{std::move(text)};
  if (key == "regex") wanted = RegularExpression{std::move(text)};
  if (key == "grammar") wanted = GrammarText{std::move(text)};
  if (key == "structural_tag") wanted = StructuralTag{std::move(text)};
  return true;
}

void add_structure(const AnyJsonObject&, json& object) { object["json_object"] = true; }
void add_structure(const JsonSchema& wanted, json& object) { object["json_schema"] = wanted.schema; }
void add_structure(const RegularExpression& wanted, json& object) { object["regex"] = wanted.pattern; }
void add_structure(const GrammarText& wanted, json& object) { object["grammar"] = wanted.text; }
void add_structure(const ChoiceOfTexts& wanted, json& object) { object["choice"] = wanted.texts; }
void add_structure(const StructuralTag& wanted, json& object) { object["structural_tag"] = wanted.json; }

// nullopt: there is no such option; false: the value has the wrong type.
std::optional<bool> assign_option(const std::string& key, const json& value, SamplingParams& sampling) {
  if (key == "n") return assign(as_integer<std::int32_t>(value), sampling.n);
  if (key == "temperature") return assign(as_number(value), sampling.temperature);
  if (key == "top_p") return assign(as_number(value), sampling.top_p);
  if (key == "top_k") return assign(as_integer<std::int32_t>(value), sampling.top_k);
  if (key == "min_p") return assign(as_number(value), sampling.min_p);
  if (key == "presence_penalty") return assign(as_number(value), sampling.presence_penalty);
  if (key == "frequency_penalty") return assign(as_number(value), sampling.frequency_penalty);
  if (key == "repetition_penalty") return assign(as_number(value), sampling.repetition_penalty);
  if (key == "max_tokens") return assign(as_integer<std::int32_t>(value), sampling.max_tokens);
  if (key == "min_tokens") return assign(as_integer<std::int32_t>(value), sampling.min_tokens);
  if (key == "logprobs") return assign(as_integer<std::int32_t>(value), sampling.logprobs);
  if (key == "length_penalty") return assign(as_number(value), sampling.length_penalty);
  if (key == "ignore_eos") return assign_bool(value, sampling.ignore_eos);
  if (key == "include_stop_str_in_output") return assign_bool(value, sampling.include_stop_str_in_output);
  if (key == "prompt_logprobs") return assign_prompt_logprobs(value, sampling.prompt_logprobs);
  if (key == "logprob_token_ids") return read_token_ids(value, sampling.logprob_token_ids);
  if (key == "allowed_token_ids") {
    if (value.is_null()) return sampling.allowed_token_ids.reset(), true;
    return read_token_ids(value, sampling.allowed_token_ids.emplace());
  }
  if (key == "bad_words") return assign_texts(value, sampling.bad_words);
  if (is_structure_option(key)) return assign_structure(key, value, sampling.structured_output);
  if (key == "early_stopping") return assign_bool(value, sampling.early_stopping);
  if (key == "stop") return assign_texts(value, sampling.stop);
  if (key == "stop_token_ids") return read_token_ids(value, sampling.stop_token_ids);
  if (key == "logit_bias") return assign_logit_bias(value, sampling.logit_bias);
  if (key == "seed") {
    if (value.is_null()) return sampling.seed.reset(), true;
    return (sampling.seed = as_integer<std::uint64_t>(value)).has_value();
  }
  if (key == "best_of") {
    if (value.is_null()) return sampling.best_of.reset(), true;
    return (sampling.best_of = as_integer<std::int32_t>(value)).has_value();
  }
  if (key == "beam_width") {
    if (value.is_null()) return sampling.beam_width.reset(), true;
    return (sampling.beam_width = as_integer<std::int32_t>(value)).has_value();
  }
  return std::nullopt;
}

}  // namespace

bool read_token_ids(const json& source, std::vector<TokenId>& token_ids) {
  if (!source.is_array()) return false;
  std::vector<TokenId> ids;
  for (const json& entry : source) {
    const auto id = as_integer<TokenId>(entry);
    if (!id.has_value()) return false;
    ids.push_back(*id);
  }
  token_ids = std::move(ids);
  return true;
}

json sampling_to_json(const SamplingParams& params) {
  json object = {{"temperature", params.temperature},
                 {"top_p", params.top_p},
                 {"top_k", params.top_k},
                 {"min_p", params.min_p},
                 {"presence_penalty", params.presence_penalty},
                 {"frequency_penalty", params.frequency_penalty},
                 {"repetition_penalty", params.repetition_penalty},
                 {"max_tokens", params.max_tokens},
                 {"min_tokens", params.min_tokens},
                 {"ignore_eos", params.ignore_eos},
                 {"stop", params.stop}};
  if (params.seed) object["seed"] = *params.seed;
  if (params.include_stop_str_in_output) object["include_stop_str_in_output"] = true;
  if (!params.bad_words.empty()) object["bad_words"] = params.bad_words;
  if (params.structured_output)
    std::visit([&](const auto& wanted) { add_structure(wanted, object); }, *params.structured_output);
  return object;
}

Result<SamplingParams> sampling_from_json(const json& object, SamplingParams defaults, UnknownOptions unknown,
                                          std::string_view what) {
  if (!object.is_object())
    return wrong(what, "\"sampling\" must be an object of option names and values", "sampling");
  for (const auto& [key, value] : object.items()) {
    if (unknown == UnknownOptions::kIgnore && value.is_null()) continue;
    const std::optional<bool> assigned = assign_option(key, value, defaults);
    if (!assigned && unknown == UnknownOptions::kRefuse)
      return wrong(what, "unknown sampling option '" + escape_for_message(key) + "'", key);
    if (assigned && !*assigned) {
      const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
      return wrong(what, "the sampling option '" + key + "' cannot be " + escape_for_message(text, 60), key);
    }
  }
  return defaults;
}

Result<SamplingParams> stored_sampling(const json& object) {
  json kept = object;
  if (object.is_object()) {
    const json known = sampling_to_json({.seed = 0});
    kept = json::object();
    for (const auto& [key, value] : object.items()) {
      if (known.contains(key) || is_structure_option(key)) kept[key] = value;
    }
  }
  OCTAVO_TRY(SamplingParams params, sampling_from_json(kept, {}, UnknownOptions::kIgnore, "sampling"));
  OCTAVO_TRY_VOID(validate(params, std::numeric_limits<std::int32_t>::max()));
  return params;
}

}  // namespace octavo::app
