#include "tests/simulation/script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/base/text.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

const std::array<std::vector<std::string>, 3> kStopLists = {{
    {},
    {"abca", "b", "\u00e9", "e d", "\U0001f600", "bab"},
    {"dde", "cab"},
}};

// ---- the fields of each part, named once

template <class Visitor>
void visit_fields(scheduler::SchedulerOptions& options, Visitor visit) {
  visit("block_size", options.block_size);
  visit("num_blocks", options.num_blocks);
  visit("max_num_seqs", options.max_num_seqs);
  visit("max_num_batched_tokens", options.max_num_batched_tokens);
  visit("target_step_us", options.target_step_us);
  visit("max_model_len", options.max_model_len);
  visit("enable_prefix_caching", options.enable_prefix_caching);
  visit("prefill_first", options.prefill_first);
  visit("num_host_blocks", options.num_host_blocks);
  visit("num_states", options.num_states);
  visit("num_host_states", options.num_host_states);
  visit("window", options.window);
  visit("num_window_blocks", options.num_window_blocks);
  visit("num_host_window_blocks", options.num_host_window_blocks);
  visit("preemption_mode", options.preemption_mode);
  visit("admit_after_preemption", options.admit_after_preemption);
  visit("memory_manager", options.memory_manager);
  visit("batching_policy", options.batching_policy);
  visit("admission_reserve", options.admission_reserve);
  visit("speculative", options.speculative);
  visit("num_speculative_tokens", options.num_speculative_tokens);
}

template <class Visitor>
void visit_fields(ToyModel& model, Visitor visit) {
  visit("eos_period", model.eos_period);
  visit("invalid_logits_period", model.invalid_logits_period);
  visit("surprise_period", model.surprise_period);
}

template <class Visitor>
void visit_fields(Device& device, Visitor visit) {
  visit("runs_ahead", device.runs_ahead);
}

template <class Visitor>
void visit_fields(Clients& clients, Visitor visit) {
  visit("most_open", clients.most_open);
}

template <class Visitor>
void visit_fields(ScriptedRequest& asked, Visitor visit) {
  visit("prompt", asked.prompt);
  visit("chat", asked.chat);
  visit("continue_answer", asked.continue_answer);
  visit("max_tokens", asked.max_tokens);
  visit("min_tokens", asked.min_tokens);
  visit("n", asked.n);
  visit("greedy", asked.greedy);
  visit("seed", asked.seed);
  visit("stop_list", asked.stop_list);
  visit("stop_token", asked.stop_token);
  visit("ignore_eos", asked.ignore_eos);
  visit("structured", asked.structured);
  visit("include_stop", asked.include_stop);
  visit("prompt_logprobs", asked.prompt_logprobs);
  visit("logprobs", asked.logprobs);
  visit("salt", asked.salt);
  visit("retention", asked.retention);
  visit("beam_width", asked.beam_width);
  visit("length_penalty_tenths", asked.length_penalty_tenths);
  visit("early_stopping", asked.early_stopping);
  visit("biased", asked.biased);
  visit("background", asked.background);
  visit("progress", asked.progress);
  visit("embedding", asked.embedding);
}

// What shrinking strives for, and what a line of text leaves out.
const scheduler::SchedulerOptions kPlainOptions = {
    .block_size = 2, .num_blocks = 4, .max_num_seqs = 4, .max_num_batched_tokens = 16, .max_model_len = 32};
const ToyModel kPlainModel = {.eos_period = 1 << 20};
const Device kPlainDevice = {};
const Clients kPlainClients = {.most_open = 64};
const ScriptedRequest kPlainRequest = {.prompt = {4}, .max_tokens = 1};

struct NamedKind {
  OperationKind kind;
  std::string_view name;
};
constexpr NamedKind kKinds[] = {{OperationKind::kSubmit, "submit"},
                                {OperationKind::kCancel, "cancel"},
                                {OperationKind::kCancelOutput, "cancel_output"},
                                {OperationKind::kCancelSwapped, "cancel_swapped"},
                                {OperationKind::kResetPrefixCache, "reset_prefix_cache"},
                                {OperationKind::kReleasePins, "release_pins"},
                                {OperationKind::kFailSwap, "fail_swap"},
                                {OperationKind::kFailStep, "fail_step"},
                                {OperationKind::kLoseDevice, "lose_device"},
                                {OperationKind::kReaderSleeps, "reader_sleeps"},
                                {OperationKind::kIntakeSleeps, "intake_sleeps"}};

bool names_request(OperationKind kind) {
  return kind == OperationKind::kSubmit || kind == OperationKind::kCancel ||
         kind == OperationKind::kCancelOutput;
}
bool has_amount(OperationKind kind) {
  return kind == OperationKind::kCancelOutput || kind == OperationKind::kFailStep ||
         kind == OperationKind::kFailSwap || kind == OperationKind::kReaderSleeps ||
         kind == OperationKind::kIntakeSleeps;
}

// ---- values as text

// The names of an enumeration's values, in order.
std::span<const std::string_view> names(PreemptionPolicy) {
  static constexpr std::string_view kNames[] = {"auto", "swap", "recompute", "cost"};
  return kNames;
}
std::span<const std::string_view> names(AdmissionAfterPreemption) {
  static constexpr std::string_view kNames[] = {"resumed", "completed"};
  return kNames;
}
std::span<const std::string_view> names(AdmissionReserve) {
  static constexpr std::string_view kNames[] = {"look_ahead", "block_per_sequence", "one_percent"};
  return kNames;
}
std::span<const std::string_view> names(MemoryManager) {
  static constexpr std::string_view kNames[] = {"paged", "orca_max", "orca_pow2", "orca_oracle"};
  return kNames;
}
std::span<const std::string_view> names(BatchingPolicy) {
  static constexpr std::string_view kNames[] = {"iteration", "static", "one_at_a_time"};
  return kNames;
}
std::span<const std::string_view> names(Speculation) {
  static constexpr std::string_view kNames[] = {"off", "ngram", "mtp"};
  return kNames;
}
std::span<const std::string_view> names(RetentionClass) {
  static constexpr std::string_view kNames[] = {"scratch", "chat", "system_prompt", "pinned"};
  return kNames;
}

template <class Value>
concept Enumeration = std::is_enum_v<Value>;

std::string print(std::int32_t value) { return std::to_string(value); }
std::string print(bool value) { return value ? "1" : "0"; }
std::string print(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "none";
}
std::string print(const std::vector<TokenId>& tokens) {
  std::string letters;
  for (const TokenId token : tokens) letters += static_cast<char>('A' + token);
  return letters;
}

constexpr std::string_view kMessageLetters = "suaex";  // of ScriptedMessage::Kind

std::string print(const std::vector<ScriptedMessage>& chat) {
  std::string letters;
  for (const ScriptedMessage& message : chat)
    letters += kMessageLetters[static_cast<std::size_t>(message.kind)] + print(message.tokens);
  return letters;
}

template <Enumeration Value>
std::string print(Value value) {
  return std::string(names(value)[static_cast<std::size_t>(value)]);
}
std::string print(const std::optional<RetentionClass>& value) { return value ? print(*value) : "none"; }

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool parse(std::string_view text, std::int32_t& value) { return parse_number(text, value); }
bool parse(std::string_view text, bool& value) {
  value = text == "1";
  return text == "0" || text == "1";
}
template <Enumeration Value>
bool parse(std::string_view text, Value& value) {
  const auto all = names(value);
  const auto found = std::ranges::find(all, text);
  value = static_cast<Value>(found - all.begin());
  return found != all.end();
}
bool parse(std::string_view text, std::optional<std::uint64_t>& value) {
  value.reset();
  return text == "none" || parse_number(text, value.emplace());
}
bool parse(std::string_view text, std::optional<RetentionClass>& value) {
  value.reset();
  return text == "none" || parse(text, value.emplace());
}
bool parse(std::string_view text, std::vector<TokenId>& tokens) {
  tokens.clear();
  for (const char letter : text) tokens.push_back(letter - 'A');
  return std::ranges::all_of(tokens, [](TokenId token) { return token >= 0 && token < 26; });
}
bool parse(std::string_view text, std::vector<ScriptedMessage>& chat) {
  chat.clear();
  while (!text.empty()) {
    const std::size_t kind = kMessageLetters.find(text.front());
    if (kind == kMessageLetters.npos) return false;
    text.remove_prefix(1);
    const std::string_view tokens = text.substr(0, text.find_first_of(kMessageLetters));
    chat.push_back({.kind = static_cast<ScriptedMessage::Kind>(kind), .tokens = {}});
    if (!parse(tokens, chat.back().tokens)) return false;
    text.remove_prefix(tokens.size());
  }
  return true;
}

using Field = std::pair<std::string_view, std::string>;

template <class Part>
std::vector<Field> fields_of(Part part) {
  std::vector<Field> fields;
  visit_fields(part,
               [&](std::string_view name, const auto& value) { fields.emplace_back(name, print(value)); });
  return fields;
}

template <class Part>
std::string print_all(const Part& part) {
  std::string text;
  for (const auto& [name, value] : fields_of(part)) text += " " + std::string(name) + "=" + value;
  return text;
}

std::string print_request(const ScriptedRequest& asked) {
  std::string text;
  const std::vector<Field> fields = fields_of(asked), plain = fields_of(ScriptedRequest{});
  for (std::size_t index = 0; index < fields.size(); ++index) {
    const auto& [name, value] = fields[index];
    if (value != plain[index].second) text += " " + std::string(name) + "=" + value;
  }
  return text;
}

std::string print_operation(const Operation& operation) {
  std::string text = "at " + std::to_string(operation.at) + " ";
  text += std::ranges::find(kKinds, operation.kind, &NamedKind::kind)->name;
  if (names_request(operation.kind)) text += " " + std::to_string(operation.request);
  if (has_amount(operation.kind)) text += " " + std::to_string(operation.amount);
  if (operation.kind == OperationKind::kSubmit) text += print_request(operation.asked);
  return text;
}

// ---- text as values

Error unreadable(std::string_view line) {
  return Error{ErrorCode::kInvalidArgument, "script: cannot read '" + escape_for_message(line) +
                                                "': the form is in tests/simulation/script.h"};
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <class Part>
bool parse_fields(std::string_view line, Part& part) {
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return false;
    bool is_read = false;
    visit_fields(part, [&](std::string_view name, auto& value) {
      if (name == word.substr(0, equals)) is_read = parse(word.substr(equals + 1), value);
    });
    if (!is_read) return false;
  }
  return true;
}

bool parse_operation(std::string_view line, Operation& operation) {
  if (!parse(take_word(line), operation.at)) return false;
  const std::string_view kind_name = take_word(line);
  const auto* named = std::ranges::find(kKinds, kind_name, &NamedKind::name);
  if (named == std::end(kKinds)) return false;
  operation.kind = named->kind;
  if (names_request(operation.kind) && !parse_number(take_word(line), operation.request)) return false;
  if (has_amount(operation.kind) && !parse(take_word(line), operation.amount)) return false;
  return parse_fields(line, operation.asked);
}

bool parse_line(std::string_view line, Script& script) {
  const std::string_view what = take_word(line);
  if (what.empty() || what.front() == '#') return true;
  if (what == "options") return parse_fields(line, script.options);
  if (what == "model") return parse_fields(line, script.model);
  if (what == "device") return parse_fields(line, script.device);
  if (what == "clients") return parse_fields(line, script.clients);
  return what == "at" && parse_operation(line, script.operations.emplace_back());
}

bool is_in_order(const Script& script) {
  std::uint64_t last_submitted = 0;
  std::int32_t last_at = 0;
  for (const Operation& operation : script.operations) {
    if (operation.at < last_at) return false;
    last_at = operation.at;
    if (operation.kind != OperationKind::kSubmit) continue;
    if (operation.request <= last_submitted) return false;
    last_submitted = operation.request;
  }
  return true;
}

// ---- simpler scripts

constexpr std::size_t kWaysPerField = 3;

// Towards `plain`: all of the way, half of it, one step. True if anything changed.
bool simplify(std::int32_t& value, std::int32_t plain, std::size_t how) {
  const std::int32_t distance = plain - value;
  const std::int32_t one = distance > 0 ? 1 : -1;
  const std::int32_t step = how == 0 ? distance : how == 1 ? distance / 2 : one;
  value += distance == 0 ? 0 : step;
  return distance != 0 && step != 0;
}

template <class Value>
bool simplify(Value& value, const Value& plain, std::size_t how) {
  if (how != 0 || value == plain) return false;
  value = plain;
  return true;
}

// The first half of it, all but the last token, the same token again and again.
bool simplify(std::vector<TokenId>& tokens, const std::vector<TokenId>& plain, std::size_t how) {
  const std::vector<TokenId> before = tokens;
  if (how == 0) tokens.resize((tokens.size() + 1) / 2);
  if (how == 1 && tokens.size() > 1) tokens.pop_back();
  if (how == 2) std::ranges::fill(tokens, plain.front());
  return tokens != before;
}

// Without the last turn, without the first message, half of what each says.
bool simplify(std::vector<ScriptedMessage>& chat, const std::vector<ScriptedMessage>&, std::size_t how) {
  const std::vector<ScriptedMessage> before = chat;
  if (how == 0 && chat.size() > 2) chat.resize(chat.size() - 2);
  if (how == 1 && chat.size() > 1) chat.erase(chat.begin());
  if (how == 2) {
    for (ScriptedMessage& message : chat) message.tokens.resize((message.tokens.size() + 1) / 2);
  }
  return chat != before;
}

// Counts the fields of a script in a fixed order, and simplifies the one whose turn it is.
class Simplifier {
 public:
  explicit Simplifier(std::size_t way) : field_(way / kWaysPerField), how_(way % kWaysPerField) {}

  bool apply(Script& script) {
    apply(script.options, kPlainOptions);
    apply(script.model, kPlainModel);
    apply(script.device, kPlainDevice);
    apply(script.clients, kPlainClients);
    for (Operation& operation : script.operations) {
      apply(operation.at, 0);
      apply(operation.amount, 0);
      if (operation.kind == OperationKind::kSubmit) apply(operation.asked, kPlainRequest);
    }
    return changed_;
  }

  std::size_t num_fields() const { return num_fields_; }

 private:
  void apply(std::int32_t& value, std::int32_t plain) {
    if (num_fields_++ == field_) changed_ = simplify(value, plain, how_);
  }

  template <class Part>
  void apply(Part& part, Part plain) {
    std::vector<Field> unused;
    const std::size_t first = num_fields_;
    visit_fields(part, [&](std::string_view, auto& value) {
      if (num_fields_++ == field_) changed_ = simplify_like(value, plain, field_ - first);
    });
  }

  // The field of `plain` with the same place as `value`.
  template <class Value, class Part>
  bool simplify_like(Value& value, Part& plain, std::size_t place) {
    bool changed = false;
    visit_fields(plain, [&](std::string_view, auto& plain_value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(plain_value)>, Value>) {
        if (place == 0) changed = simplify(value, plain_value, how_);
      }
      --place;
    });
    return changed;
  }

  const std::size_t field_, how_;
  std::size_t num_fields_ = 0;
  bool changed_ = false;
};

// ---- requests

ChatMessage to_message(const ScriptedMessage& message) {
  using Kind = ScriptedMessage::Kind;
  ChatMessage made{.content = content_of(message)};
  if (message.kind == Kind::kSystem) made.role = Role::kSystem;
  if (message.kind == Kind::kUser || message.kind == Kind::kSystem) return made;
  made.role = Role::kAssistant;
  if (message.kind != Kind::kEditedAnswer) made.token_ids = message.tokens;
  if (message.kind == Kind::kStaleAnswer) made.token_ids.push_back(ToyTokenizer::kNumSpecial);
  return made;
}

ChatPrompt to_chat(const ScriptedRequest& asked) {
  ChatPrompt prompt{.messages = {}, .continue_answer = asked.continue_answer};
  std::ranges::transform(asked.chat, std::back_inserter(prompt.messages), to_message);
  return prompt;
}

}  // namespace

std::string content_of(const ScriptedMessage& message) {
  using Kind = ScriptedMessage::Kind;
  const bool is_asked = message.kind == Kind::kSystem || message.kind == Kind::kUser;
  std::vector<TokenId> tokens = message.tokens;
  std::erase_if(tokens, [](TokenId token) { return token >= ToyTokenizer::kVocabularySize; });
  return ToyTokenizer().decode(tokens, /*skip_special=*/!is_asked);
}

bool has_both_lines(const Script& script) {
  bool has[2] = {};
  for (const Operation& operation : script.operations) {
    if (operation.kind == OperationKind::kSubmit) has[operation.asked.background ? 1 : 0] = true;
  }
  return has[0] && has[1];
}

GenerationRequest to_request(const ScriptedRequest& asked) {
  GenerationRequest request;
  if (asked.chat.empty()) {
    request.prompt = TokenPrompt{asked.prompt};
  } else {
    request.prompt = to_chat(asked);
  }
  request.cache_salt = asked.salt == 0 ? "" : "salt " + std::to_string(asked.salt);
  SamplingParams& sampling = request.sampling;
  sampling.n = asked.n;
  sampling.temperature = asked.greedy ? 0.0 : 1.0;
  sampling.seed = asked.seed;
  sampling.max_tokens = asked.max_tokens;
  sampling.min_tokens = asked.min_tokens;
  sampling.stop = kStopLists[static_cast<std::size_t>(asked.stop_list) % kStopLists.size()];
  if (asked.stop_token >= 0) sampling.stop_token_ids = {asked.stop_token};
  sampling.include_stop_str_in_output = asked.include_stop;
  sampling.ignore_eos = asked.ignore_eos;
  if (asked.structured) sampling.structured_output = GrammarText{"toy"};
  if (asked.prompt_logprobs) sampling.prompt_logprobs = 0;
  sampling.logprobs = asked.logprobs;
  request.retention = asked.retention;
  if (asked.background) request.priority = RequestPriority::kBackground;
  request.reports_prompt_progress = asked.progress;
  if (asked.is_embedding())
    request.embedding = {.pooling = asked.embedding == 1 ? Pooling::kLast : Pooling::kMean};
  if (!asked.is_beam_search()) return request;
  sampling.beam_width = asked.beam_width;
  sampling.length_penalty = asked.length_penalty_tenths / 10.0;
  sampling.early_stopping = asked.early_stopping;
  if (asked.biased) sampling.logit_bias = {{kBiasedToken, kBias}};
  return request;
}

std::string to_text(const Script& script) {
  std::string text = "options" + print_all(script.options) + "\n";
  text += "model" + print_all(script.model) + "\n";
  text += "device" + print_all(script.device) + "\n";
  text += "clients" + print_all(script.clients) + "\n";
  for (const Operation& operation : script.operations) text += print_operation(operation) + "\n";
  return text;
}

Result<Script> parse_script(std::string_view text) {
  Script script;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!parse_line(line, script)) return unreadable(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  if (!is_in_order(script)) {
    return Error{ErrorCode::kInvalidArgument, "script: steps and submitted requests must ascend"};
  }
  return script;
}

std::size_t num_simplifications(const Script& script) {
  Simplifier counter(~std::size_t{0});
  Script copy = script;
  counter.apply(copy);
  return counter.num_fields() * kWaysPerField;
}

std::optional<Script> simplified(const Script& script, std::size_t way) {
  Script simpler = script;
  if (!Simplifier(way).apply(simpler)) return std::nullopt;
  std::ranges::stable_sort(simpler.operations, {}, &Operation::at);
  const bool can_run = simpler.options.window == 0 || most_running_sequences(simpler.options) > 0;
  if (!is_in_order(simpler) || !can_run) return std::nullopt;
  return simpler;
}

}  // namespace octavo::simulation
