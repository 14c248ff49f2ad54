#include "app/chat/chat_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "app/chat/sampling_json.h"
#include "app/chat/template_values_json.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "octavo-conversation";
constexpr int kVersion = 1;
// Enough that a thread costs nothing beside them, and few megabytes.
constexpr std::size_t kMessagesInBatch = 2'048;
constexpr std::uint64_t kLatestMs = 253'402'300'799'999;  // the end of the year 9999

double milliseconds(std::int64_t us) { return static_cast<double>(us) / 1000.0; }

json metrics_to_json(const AnswerMetrics& metrics) {
  return {{"num_prompt_tokens", metrics.num_prompt_tokens},
          {"num_cached_tokens", metrics.num_cached_tokens},
          {"queue_ms", milliseconds(metrics.request.queue_us)},
          {"ttft_ms", milliseconds(metrics.request.ttft_us)},
          {"tpot_ms", milliseconds(metrics.request.tpot_us)},
          {"e2e_ms", milliseconds(metrics.request.e2e_us)},
          {"num_preemptions", metrics.request.num_preemptions}};
}

json thinking_to_json(const AnswerThinking& thinking) {
  json durations = json::array();
  for (const std::int64_t us : thinking.durations_us) durations.push_back(milliseconds(us));
  return {{"begun_by_prompt", thinking.begun_by_prompt}, {"durations_ms", std::move(durations)}};
}

bool is_active(const Chat& chat, const Message& message, MessageId first_active) {
  const Message* above = chat.find(message.parent);
  return message.id == (above != nullptr ? above->active_child : first_active);
}

json message_to_json(const Chat& chat, const Message& message, MessageId first_active) {
  json value = {{"id", message.id.value},
                {"parent", message.parent.value},
                {"role", role_name(message.role)},
                {"content", message.content}};
  if (is_active(chat, message, first_active)) value["active"] = true;
  if (!message.token_ids.empty()) value["token_ids"] = message.token_ids;
  if (message.finish_reason) value["finish_reason"] = finish_reason_name(*message.finish_reason);
  if (message.seed) value["seed"] = *message.seed;
  if (message.metrics) value["metrics"] = metrics_to_json(*message.metrics);
  if (message.thinking != AnswerThinking{}) value["thinking"] = thinking_to_json(message.thinking);
  if (!message.error.empty()) value["error"] = message.error;
  if (!message.model.empty()) value["model"] = message.model;
  if (message.interrupted) value["interrupted"] = true;
  if (message.created_ms > 0) value["created_ms"] = message.created_ms;
  if (message.context_full) value["context_full"] = true;
  if (!message.stop_text.empty()) value["stop_text"] = message.stop_text;
  if (message.edited) value["edited"] = true;
  if (message.stopped_repeating) value["stopped_repeating"] = true;
  if (const std::string& summary = chat.summary_after(message.id); !summary.empty())
    value["summary"] = summary;
  return value;
}

// Reads one object; the first thing that is wrong is remembered, and what follows reads as defaults.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) fail("is not an object");
  }

  bool failed() const { return !problem_.empty(); }
  std::string problem() const { return where_ + " " + problem_; }
  void fail(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  std::string text(const char* key) {
    const json* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_string())
      return fail(std::string("has a ") + key + " that is not a string"), std::string();
    return value->get<std::string>();
  }

  bool flag(const char* key) {
    const json* value = member(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return fail(std::string("has a ") + key + " that is not true or false"), false;
    return value->get<bool>();
  }

  std::optional<std::uint64_t> unsigned_integer(const char* key) {
    const json* value = member(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_unsigned()) {
      fail(std::string("has a ") + key + " that is not a whole number of at least 0");
      return std::nullopt;
    }
    return value->get<std::uint64_t>();
  }

  std::int32_t count(const char* key) {
    const std::uint64_t value = unsigned_integer(key).value_or(0);
    if (value > std::numeric_limits<std::int32_t>::max())
      return fail(std::string("has a value that is too large for ") + key), 0;
    return static_cast<std::int32_t>(value);
  }

  std::int64_t time_ms(const char* key) {
    const std::uint64_t value = unsigned_integer(key).value_or(0);
    if (value > kLatestMs) return fail(std::string("has a ") + key + " that is not a time"), 0;
    return static_cast<std::int64_t>(value);
  }

  // Milliseconds as microseconds.
  std::int64_t duration_us(const char* key) {
    const json* value = member(key);
    return value == nullptr ? 0 : as_duration_us(key, *value);
  }
  std::int64_t as_duration_us(const char* key, const json& value) {
    const double ms = value.is_number() ? value.get<double>() : -1.0;
    if (!(ms >= 0.0 && ms <= 1e12)) return fail(std::string("has a ") + key + " that is not a time"), 0;
    return std::llround(ms * 1000.0);
  }

  const json* member(const char* key) const {
    if (failed()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  const json& object_;
  std::string where_;
  std::string problem_;
};

Error damaged(std::string_view name, const std::string& what) {
  return {.code = ErrorCode::kDamagedFile,
          .message = escape_for_message(name) + ": " + what + "; this is not an Octavo chat"};
}

std::optional<FinishReason> parse_finish_reason(std::string_view name) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError}) {
    if (finish_reason_name(reason) == name) return reason;
  }
  return std::nullopt;
}

void read_token_ids(Reader& reader, std::vector<TokenId>& token_ids) {
  const json* value = reader.member("token_ids");
  if (value == nullptr) return;
  if (!value->is_array()) return reader.fail("has token_ids that are not a list");
  for (const json& id : *value) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::numeric_limits<TokenId>::max()) {
      return reader.fail("has a token id that is not a whole number of at least 0");
    }
    token_ids.push_back(id.get<TokenId>());
  }
}

Result<AnswerMetrics> read_metrics(const json& object, const std::string& where) {
  Reader reader(object, where + ", metrics,");
  AnswerMetrics metrics;
  metrics.num_prompt_tokens = reader.count("num_prompt_tokens");
  metrics.num_cached_tokens = reader.count("num_cached_tokens");
  metrics.request.queue_us = reader.duration_us("queue_ms");
  metrics.request.ttft_us = reader.duration_us("ttft_ms");
  metrics.request.tpot_us = reader.duration_us("tpot_ms");
  metrics.request.e2e_us = reader.duration_us("e2e_ms");
  metrics.request.num_preemptions = reader.count("num_preemptions");
  if (reader.failed()) return Error{.code = ErrorCode::kDamagedFile, .message = reader.problem()};
  return metrics;
}

Result<AnswerThinking> read_thinking(const json& object, const std::string& where) {
  Reader reader(object, where + ", thinking,");
  AnswerThinking thinking;
  thinking.begun_by_prompt = reader.flag("begun_by_prompt");
  if (const json* durations = reader.member("durations_ms")) {
    if (!durations->is_array()) reader.fail("has durations_ms that are not a list");
    for (const json& duration : *durations)
      thinking.durations_us.push_back(reader.as_duration_us("durations_ms", duration));
  }
  if (reader.failed()) return Error{.code = ErrorCode::kDamagedFile, .message = reader.problem()};
  return thinking;
}

// Appends one message. Gives an Error whose message still lacks the file's name.
Result<void> read_message(const json& object, Chat& chat, std::vector<MessageId>& active) {
  const std::uint64_t expected_id = chat.messages().size() + 1;
  const std::string where = "message " + std::to_string(expected_id);
  Reader reader(object, where);
  if (reader.unsigned_integer("id").value_or(0) != expected_id) reader.fail("has the wrong id");
  const std::uint64_t parent = reader.unsigned_integer("parent").value_or(0);
  if (parent >= expected_id) reader.fail("comes before its parent");
  const auto role = parse_role(reader.text("role"));
  if (!role) reader.fail("has an unknown role");
  Message read;
  read.parent = MessageId{parent};
  read.role = role.value_or(Role::kUser);
  read.content = sanitise_utf8(reader.text("content"));
  read_token_ids(reader, read.token_ids);
  const std::string finish_reason = reader.text("finish_reason");
  if (!finish_reason.empty()) {
    read.finish_reason = parse_finish_reason(finish_reason);
    if (!read.finish_reason) reader.fail("has an unknown finish_reason");
  }
  read.seed = reader.unsigned_integer("seed");
  read.error = sanitise_utf8(reader.text("error"));
  read.model = sanitise_utf8(reader.text("model"));
  read.interrupted = reader.flag("interrupted");
  read.created_ms = reader.time_ms("created_ms");
  read.context_full = reader.flag("context_full");
  read.stop_text = sanitise_utf8(reader.text("stop_text"));
  read.edited = reader.flag("edited");
  read.stopped_repeating = reader.flag("stopped_repeating");
  const bool is_chosen = reader.flag("active");
  std::string summary = sanitise_utf8(reader.text("summary"));
  if (const json* metrics = reader.member("metrics")) {
    OCTAVO_TRY(read.metrics, read_metrics(*metrics, where));
  }
  if (const json* thinking = reader.member("thinking")) {
    OCTAVO_TRY(read.thinking, read_thinking(*thinking, where));
  }
  if (reader.failed()) return Error{.code = ErrorCode::kDamagedFile, .message = reader.problem()};
  const MessageId id = chat.add(std::move(read));
  if (is_chosen) active.push_back(id);
  chat.set_summary(id, std::move(summary));
  return {};
}

}  // namespace

std::string chat_to_json(const Chat& chat) {
  const std::vector<Message>& messages = chat.messages();
  if (std::any_of(messages.begin(), messages.end(), [](const Message& message) { return message.erased; }))
    return chat_to_json(without_erased(chat));
  json head = {{"format", kFormat},
               {"version", kVersion},
               {"title", chat.title},
               {"system_prompt", chat.system_prompt},
               {"context_policy", context_policy_name(chat.context_policy)},
               {"sampling", sampling_to_json(chat.sampling)}};
  if (!chat.template_values.empty()) head["template_values"] = template_values_to_json(chat.template_values);
  if (chat.created_ms > 0) head["created_ms"] = chat.created_ms;
  if (chat.updated_ms > 0) head["updated_ms"] = chat.updated_ms;
  if (chat.context_begin != kRootMessage) head["context_begin"] = chat.context_begin.value;
  std::string text = head.dump(1, ' ', false, json::error_handler_t::replace);
  text.erase(text.rfind('\n'));  // the end of the object
  text += ",\n \"messages\": [";
  const MessageId first_active = chat.active_first();
  for (const Message& message : messages) {
    text += message.id.value == 1 ? "\n  " : ",\n  ";
    text += message_to_json(chat, message, first_active).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return text + "\n ]\n}";
}

Result<Chat> chat_from_json(std::string_view text, std::string_view name) {
  ChatFromJson reading;
  const json rest = parse_in_parts(text, [&](const JsonPath& path, json& object) {
    const bool taken = ChatFromJson::is_message(path, 0);
    if (taken) reading.add_message(std::move(object));
    return taken;
  });
  if (rest.is_discarded()) return damaged(name, "it is not JSON");
  return std::move(reading).finish(rest, name);
}

bool ChatFromJson::is_message(const JsonPath& path, std::size_t begin) {
  return path.size() == begin + 2 && path[begin] == "messages" && !path[begin + 1];
}

ChatFromJson::ChatFromJson() = default;
ChatFromJson::~ChatFromJson() = default;

void ChatFromJson::add_message(json message) {
  batch_.push_back(std::move(message));
  if (batch_.size() < kMessagesInBatch) return;
  if (reading_.valid()) reading_.get();
  reading_ = std::async(std::launch::async, [this, batch = std::exchange(batch_, {})] { read(batch); });
}

void ChatFromJson::read(const std::vector<json>& batch) {
  for (const json& message : batch) {
    if (!problem_.empty()) return;
    const auto read = read_message(message, chat_, active_);
    if (!read) problem_ = read.error().message;
  }
}

Result<Chat> ChatFromJson::finish(const json& rest, std::string_view name) && {
  if (reading_.valid()) reading_.get();
  read(batch_);
  Reader reader(rest, "it");
  if (reader.text("format") != kFormat) reader.fail("does not say \"format\": \"octavo-conversation\"");
  if (reader.unsigned_integer("version").value_or(0) != kVersion) reader.fail("has a version other than 1");
  chat_.title = sanitise_utf8(reader.text("title"));
  chat_.system_prompt = sanitise_utf8(reader.text("system_prompt"));
  const std::string policy = reader.text("context_policy");
  const auto known_policy = policy.empty() ? ContextPolicy::kRoll : parse_context_policy(policy);
  if (!known_policy) reader.fail("has an unknown context_policy");
  chat_.context_policy = known_policy.value_or(ContextPolicy::kRoll);
  chat_.created_ms = reader.time_ms("created_ms");
  chat_.updated_ms = reader.time_ms("updated_ms");
  const json* messages = reader.member("messages");
  if (messages == nullptr || !messages->is_array()) reader.fail("has no list of messages");
  if (reader.failed()) return damaged(name, reader.problem());
  if (!messages->empty()) return damaged(name, "it has a message that is not an object");
  if (const json* sampling = reader.member("sampling")) {
    auto read = stored_sampling(*sampling);
    if (!read) return damaged(name, read.error().message);
    chat_.sampling = *std::move(read);
  } else {
    chat_.has_sampling = false;
  }
  if (const json* values = reader.member("template_values")) {
    auto read = template_values_from_json(*values, "its template_values");
    if (!read) return damaged(name, read.error().message);
    chat_.template_values = *std::move(read);
  }
  if (!problem_.empty()) return damaged(name, problem_);
  if (!chat_.messages().empty()) chat_.activate(chat_.messages().back().id);
  for (const MessageId id : active_) chat_.choose_child(id);
  return std::move(chat_);
}

}  // namespace octavo::app
