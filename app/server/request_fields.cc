#include "app/server/request_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "app/chat/template_values_json.h"
#include "engine/api/option_error.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kLongestShownValue = 60;
constexpr std::size_t kMaxSaltBytes = 256;

std::optional<std::int64_t> whole_number_of(const Json& value) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63, the first double that is too large
  if (value.is_number_unsigned()) {
    const std::uint64_t number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= -kBeyond && number < kBeyond) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// "a whole number from 0 to 20"
template <class Number>
std::string range_rule(std::string rule, Number least, Number most, bool has_least, bool has_most) {
  const auto text = [](Number bound) { return option_number_text(static_cast<double>(bound)); };
  if (has_least && has_most) return rule + " from " + text(least) + " to " + text(most);
  if (has_least) return rule + " of at least " + text(least);
  if (has_most) return rule + " of at most " + text(most);
  return rule;
}

bool is_empty_value(const Json& value) {
  return (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

bool is_text_value(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

bool is_harmless(const Json& value, Harmless harmless) {
  switch (harmless) {
    case Harmless::kNothing: return false;
    case Harmless::kEmpty: return is_empty_value(value);
    case Harmless::kFalse: return value.is_boolean() && !value.get<bool>();
    case Harmless::kTrue: return value.is_boolean() && value.get<bool>();
    case Harmless::kZero: return value.is_number() && value.get<double>() <= 0.0;
    case Harmless::kOne: return value.is_number() && value.get<double>() == 1.0;
    case Harmless::kTextFormat:
      return value.is_object() && value.contains("type") && is_text_value(value["type"], "text");
    case Harmless::kTextModality:
      return value.is_array() && value.size() == 1 && is_text_value(value.front(), "text");
    case Harmless::kAutoOrNone: return is_text_value(value, "auto") || is_text_value(value, "none");
  }
  return false;
}

constexpr std::array kCommonlyUnsupported = {
    UnsupportedField{"logits_processors", Harmless::kEmpty},
    UnsupportedField{"vllm_xargs", Harmless::kEmpty},
    UnsupportedField{"prompt_embeds", Harmless::kEmpty},
    UnsupportedField{"truncate_prompt_tokens", Harmless::kNothing, "send a prompt that fits"},
    UnsupportedField{"repeat_penalty", Harmless::kOne, "its name here is repetition_penalty"},
    UnsupportedField{"typical_p", Harmless::kOne},
    UnsupportedField{"tfs_z", Harmless::kOne},
    UnsupportedField{"top_a", Harmless::kZero},
    UnsupportedField{"top_n_sigma", Harmless::kZero},
    UnsupportedField{"mirostat", Harmless::kZero},
    UnsupportedField{"mirostat_mode", Harmless::kZero},
    UnsupportedField{"dry_multiplier", Harmless::kZero},
    UnsupportedField{"xtc_probability", Harmless::kZero},
    UnsupportedField{"dynatemp_range", Harmless::kZero},
};

// Any 64 bits; -1 is none, as in vLLM and llama.cpp.
std::optional<std::uint64_t> read_seed(FieldReader& fields) {
  const Json* const value = fields.find("seed");
  if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
  const auto seed = fields.integer("seed");
  if (!seed || *seed == -1) return std::nullopt;
  return static_cast<std::uint64_t>(*seed);
}

std::map<TokenId, double> read_logit_bias(FieldReader& fields, std::int32_t vocabulary_size) {
  const Json* const object = fields.object("logit_bias");
  if (object == nullptr) return {};
  if (object->size() > kMaxListed) {
    fields.fail(option_out_of_range(fields.path_of("logit_bias"),
                                    "at most " + std::to_string(kMaxListed) + " token ids",
                                    std::to_string(object->size())));
    return {};
  }
  std::map<TokenId, double> biases;
  for (const auto& [key, value] : object->items()) {
    TokenId id = -1;
    const char* const end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, id);
    const bool is_id = parsed.ec == std::errc() && parsed.ptr == end && id >= 0 && id < vocabulary_size;
    if (!is_id || !value.is_number()) {
      const std::string shown =
          is_id ? value_for_message(value) + " for " + key : "'" + escape_for_message(key, 60) + "'";
      fields.fail(option_out_of_range(fields.path_of("logit_bias"),
                                      "an object with a number for each of the model's token ids, 0 to " +
                                          std::to_string(vocabulary_size - 1),
                                      shown));
      return {};
    }
    biases[id] = value.get<double>();
  }
  return biases;
}

// Beams are as many as best_of, or n; the best n of them are the answer.
void read_choices(FieldReader& fields, SamplingFields& read) {
  SamplingParams& sampling = read.sampling;
  read.num_choices = fields.small_integer("n", 1, kMaxChoices).value_or(1);
  const auto best_of = fields.small_integer("best_of", read.num_choices, kMaxChoices);
  if (fields.flag("use_beam_search").value_or(false)) {
    sampling.beam_width = best_of.value_or(read.num_choices);
    return;
  }
  sampling.n = read.num_choices;
  if (best_of && *best_of > sampling.n) sampling.best_of = best_of;
}

template <class Value>
void assign_read(std::optional<Value> value, Value& target) {
  if (value) target = *std::move(value);
}

const TemplateSwitch* find_switch(const ServedModel& model, SwitchKind kind) {
  const auto& switches = model.description.model.template_switches;
  const auto found = std::ranges::find(switches, kind, &TemplateSwitch::kind);
  return found == switches.end() ? nullptr : &*found;
}

bool is_among(const std::string& effort, const std::vector<TemplateValue>& choices) {
  return std::ranges::find(choices, TemplateValue(effort)) != choices.end();
}

// Clients name efforts that few templates know ("xhigh", "minimal"): the nearest one that this template has,
// the lower of two. nullopt for other words.
std::optional<std::string> nearest_effort(const std::string& effort,
                                          const std::vector<TemplateValue>& choices) {
  static constexpr std::array<std::string_view, 7> kAscending = {"none", "minimal", "low", "medium",
                                                                 "high", "xhigh",   "max"};
  if (is_among(effort, choices)) return effort;
  const auto wanted = std::ranges::find(kAscending, std::string_view(effort)) - kAscending.begin();
  if (wanted == std::ssize(kAscending)) return std::nullopt;
  std::optional<std::string> nearest;
  std::ptrdiff_t least = std::ssize(kAscending);
  for (std::ptrdiff_t i = 0; i < std::ssize(kAscending); ++i) {
    const std::string name(kAscending[static_cast<std::size_t>(i)]);
    const std::ptrdiff_t distance = std::abs(i - wanted);
    if (distance >= least || !is_among(name, choices)) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace

std::string value_for_message(const Json& value) {
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_object()) return value.empty() ? "an empty object" : "an object";
  if (value.is_string())
    return '"' + escape_for_message(value.get_ref<const std::string&>(), kLongestShownValue) + '"';
  return dump(value);
}

std::optional<TokenId> token_id_of(const Json& value, std::int32_t vocabulary_size) {
  const auto number = whole_number_of(value);
  if (!number || *number < 0 || *number >= vocabulary_size) return std::nullopt;
  return static_cast<TokenId>(*number);
}

std::optional<std::vector<TokenId>> token_ids_of(const Json& list, std::int32_t vocabulary_size) {
  if (!list.is_array()) return std::nullopt;
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const Json& entry : list) {
    const auto id = token_id_of(entry, vocabulary_size);
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

FieldReader::FieldReader(const Json& object, std::string path)
    : object_(object.is_object() ? &object : nullptr), path_(std::move(path)) {
  if (object_ != nullptr) return;
  Error error =
      option_out_of_range(path_.empty() ? "the body" : path_, "an object", value_for_message(object));
  error.subject = path_;
  fail(std::move(error));
}

const Json* FieldReader::find(std::string_view name) {
  if (std::ranges::find(read_, name) == read_.end()) read_.push_back(name);
  if (object_ == nullptr) return nullptr;
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> FieldReader::flag(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, "true or false");
  return std::nullopt;
}

std::optional<std::string> FieldReader::text(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  refuse(name, "a text");
  return std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t least,
                                                 std::int64_t most) {
  using Limits = std::numeric_limits<std::int64_t>;
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number_of(*value);
  if (number && *number >= least && *number <= most) return number;
  refuse(name, range_rule("a whole number", least, most, least != Limits::min(), most != Limits::max()));
  return std::nullopt;
}

std::optional<std::int32_t> FieldReader::small_integer(std::string_view name, std::int32_t least,
                                                       std::int32_t most) {
  const auto number = integer(name, least, most);
  return number ? std::optional(static_cast<std::int32_t>(*number)) : std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view name, double least, double most) {
  using Limits = std::numeric_limits<double>;
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : Limits::quiet_NaN();
  if (number >= least && number <= most) return number;
  refuse(name, range_rule("a number", least, most, least != Limits::lowest(), most != Limits::max()));
  return std::nullopt;
}

std::optional<std::vector<std::string>> FieldReader::texts(std::string_view name, std::size_t most) {
  const Json* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::vector{value->get<std::string>()};
  const bool is_list = value->is_array() && std::ranges::all_of(*value, &Json::is_string);
  const std::string rule = "a text or a list of at most " + std::to_string(most) + " texts";
  if (!is_list) {
    refuse(name, rule);
    return std::nullopt;
  }
  if (value->size() > most) {
    fail(option_out_of_range(path_of(name), rule, "a list of " + std::to_string(value->size())));
    return std::nullopt;
  }
  return value->get<std::vector<std::string>>();
}

std::optional<std::vector<TokenId>> FieldReader::token_ids(std::string_view name,
                                                           std::int32_t vocabulary_size, std::size_t most) {
  const Json* const value = list(name, 0, most);
  if (value == nullptr) return std::nullopt;
  auto ids = token_ids_of(*value, vocabulary_size);
  if (!ids) {
    fail(option_out_of_range(path_of(name),
                             "a list of the model's token ids, 0 to " + std::to_string(vocabulary_size - 1),
                             "a list of something else"));
  }
  return ids;
}

const Json* FieldReader::object(std::string_view name) {
  const Json* const value = find(name);
  if (value == nullptr || value->is_object()) return value;
  refuse(name, "an object");
  return nullptr;
}

const Json* FieldReader::list(std::string_view name, std::size_t least, std::size_t most) {
  constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
  const Json* const value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_array() && value->size() >= least && value->size() <= most) return value;
  std::string rule = "a list";
  if (least > 0) rule += " with at least " + std::to_string(least);
  if (most != kUnbounded)
    rule += std::string(least > 0 ? " and" : " with") + " at most " + std::to_string(most);
  if (least > 0 || most != kUnbounded) rule += " entries";
  const bool is_long = value->is_array() && !value->empty();
  fail(option_out_of_range(
      path_of(name), rule,
      is_long ? "a list of " + std::to_string(value->size()) : value_for_message(*value)));
  return nullptr;
}

void FieldReader::refuse(std::string_view name, std::string_view rule) {
  const Json* const value = find(name);
  fail(option_out_of_range(path_of(name), rule, value == nullptr ? "absent" : value_for_message(*value)));
}

void FieldReader::refuse_absent(std::string_view name) {
  const std::string path = path_of(name);
  fail({ErrorCode::kInvalidArgument, path + " is missing", path});
}

void FieldReader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void FieldReader::adopt(const FieldReader& inner) {
  if (inner.error_) fail(*inner.error_);
}

std::string FieldReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

Result<void> FieldReader::check() const {
  if (error_) return *error_;
  return {};
}

std::vector<std::string> FieldReader::unread() const {
  std::vector<std::string> names;
  if (object_ == nullptr) return names;
  for (const auto& [name, value] : object_->items()) {
    if (!value.is_null() && std::ranges::find(read_, name) == read_.end()) names.push_back(name);
  }
  return names;
}

void refuse_unsupported(FieldReader& fields, std::span<const UnsupportedField> unsupported) {
  for (const UnsupportedField& field : unsupported) {
    const Json* const value = fields.find(field.name);
    if (value == nullptr || is_harmless(*value, field.harmless)) continue;
    const std::string path = fields.path_of(field.name);
    std::string sentence =
        path + " cannot be " + value_for_message(*value) + ": this server does not support it";
    if (!field.instead.empty()) sentence += "; " + std::string(field.instead);
    fields.fail({.code = ErrorCode::kUnsupported, .message = std::move(sentence), .subject = path});
  }
}

std::span<const UnsupportedField> commonly_unsupported() { return kCommonlyUnsupported; }

void read_model(FieldReader& fields, const ServedModel& model) {
  const auto name = fields.text("model");
  if (!name || std::ranges::find(model.names, *name) != model.names.end()) return;
  fields.fail({.code = ErrorCode::kNotFound,
               .message = "there is no model '" + escape_for_message(*name) + "' here; use '" +
                          escape_for_message(model.name()) + "', or leave model out",
               .subject = "model"});
}

SamplingParams read_plain_sampling(FieldReader& fields, const ServedModel& model) {
  const std::int32_t vocabulary_size = model.description.model.vocabulary_size;
  SamplingParams sampling = with_advice({}, model.description.model.sampling_advice);
  assign_read(fields.number("temperature"), sampling.temperature);
  assign_read(fields.number("top_p"), sampling.top_p);
  assign_read(fields.small_integer("top_k"), sampling.top_k);
  assign_read(fields.number("min_p"), sampling.min_p);
  assign_read(fields.number("presence_penalty"), sampling.presence_penalty);
  assign_read(fields.number("frequency_penalty"), sampling.frequency_penalty);
  assign_read(fields.number("repetition_penalty"), sampling.repetition_penalty);
  assign_read(fields.small_integer("min_tokens"), sampling.min_tokens);
  assign_read(fields.texts("stop", kMaxStopTexts), sampling.stop);
  assign_read(fields.token_ids("stop_token_ids", vocabulary_size, kMaxListed), sampling.stop_token_ids);
  assign_read(fields.flag("include_stop_str_in_output"), sampling.include_stop_str_in_output);
  assign_read(fields.flag("ignore_eos"), sampling.ignore_eos);
  assign_read(fields.flag("skip_special_tokens"), sampling.skip_special_tokens);
  assign_read(fields.texts("bad_words", kMaxListed), sampling.bad_words);
  sampling.allowed_token_ids = fields.token_ids("allowed_token_ids", vocabulary_size);
  sampling.logit_bias = read_logit_bias(fields, vocabulary_size);
  sampling.seed = read_seed(fields);
  return sampling;
}

SamplingFields read_sampling(FieldReader& fields, const ServedModel& model) {
  SamplingFields read{.sampling = read_plain_sampling(fields, model)};
  read_choices(fields, read);
  assign_read(fields.number("length_penalty"), read.sampling.length_penalty);
  assign_read(fields.flag("early_stopping"), read.sampling.early_stopping);
  return read;
}

Result<void> check_sampling(const SamplingParams& sampling, const ServedModel& model) {
  return validate(sampling, model.description.model.vocabulary_size);
}

std::int32_t tokens_to_context_end(const ServedModel& model) {
  return std::max(1, model.description.max_model_len);
}

StreamFields read_stream(FieldReader& fields) {
  StreamFields read;
  assign_read(fields.flag("stream"), read.stream);
  read.return_progress = read.stream && fields.flag("return_progress").value_or(false);
  const Json* const options = fields.object("stream_options");
  if (options == nullptr) return read;
  FieldReader inner(*options, fields.path_of("stream_options"));
  assign_read(inner.flag("include_usage"), read.include_usage);
  assign_read(inner.flag("continuous_usage_stats"), read.continuous_usage_stats);
  fields.adopt(inner);
  return read;
}

TemplateValues read_template_values(FieldReader& fields, const ServedModel& model) {
  TemplateValues values;
  if (const Json* const given = fields.find("chat_template_kwargs")) {
    auto read = template_values_from_json(nlohmann::json(*given), fields.path_of("chat_template_kwargs"));
    if (read) {
      values = *std::move(read);
    } else {
      fields.fail(read.error());
    }
  }
  if (const auto effort = fields.text("reasoning_effort"))
    choose_effort(fields, "reasoning_effort", *effort, model, values);
  return values;
}

void choose_effort(FieldReader& fields, std::string_view name, const std::string& effort,
                   const ServedModel& model, TemplateValues& values) {
  const TemplateSwitch* const efforts = find_switch(model, SwitchKind::kEffort);
  const bool may_not_think = find_switch(model, SwitchKind::kThinking) != nullptr;
  if (efforts == nullptr || (effort == "none" && may_not_think && !is_among(effort, efforts->choices)))
    return choose_thinking(effort != "none", model, values);
  if (const std::optional<std::string> nearest = nearest_effort(effort, efforts->choices)) {
    values.try_emplace(efforts->name, *nearest);
    return;
  }
  std::string rule;
  for (const TemplateValue& choice : efforts->choices) {
    if (const auto* const text = std::get_if<std::string>(&choice))
      rule += (rule.empty() ? "" : " or ") + ("\"" + escape_for_message(*text) + "\"");
  }
  fields.fail(option_out_of_range(fields.path_of(name), rule + " for this model",
                                  '"' + escape_for_message(effort, kLongestShownValue) + '"'));
}

void choose_thinking(bool thinks, const ServedModel& model, TemplateValues& values) {
  const TemplateSwitch* const thinking = find_switch(model, SwitchKind::kThinking);
  if (thinking == nullptr) return;
  if (std::ranges::find(thinking->choices, TemplateValue(thinks)) == thinking->choices.end()) return;
  values.try_emplace(thinking->name, thinks);
}

RequestPriority read_priority(FieldReader& fields, RequestPriority usual) {
  return fields.integer("priority", 0).value_or(0) > 0 ? RequestPriority::kBackground : usual;
}

std::string read_cache_salt(FieldReader& fields) {
  std::string salt = fields.text("cache_salt").value_or(std::string());
  if (salt.size() > kMaxSaltBytes) {
    fields.fail(option_out_of_range(fields.path_of("cache_salt"),
                                    "a text of at most " + std::to_string(kMaxSaltBytes) + " bytes",
                                    std::to_string(salt.size()) + " bytes long"));
  }
  return salt;
}

}  // namespace octavo::app
