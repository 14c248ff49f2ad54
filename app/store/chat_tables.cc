#include "app/store/chat_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "app/chat/sampling_json.h"
#include "app/chat/template_values_json.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "token ids lie in the file in this order");

// A damaged file may name any id; a larger gap than this is not filled up, and what follows it is left out.
constexpr std::uint64_t kLargestGap = 10'000;

std::int64_t as_integer(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
std::uint64_t as_unsigned(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }

SqlValue optional_integer(const std::optional<std::int64_t>& value) {
  if (!value) return nullptr;
  return *value;
}

std::span<const std::byte> token_bytes(const std::vector<TokenId>& token_ids) {
  return std::as_bytes(std::span(token_ids));
}

void append_token_ids(std::span<const std::byte> bytes, std::vector<TokenId>& token_ids) {
  const std::size_t count = bytes.size() / sizeof(TokenId), before = token_ids.size();
  if (count == 0) return;
  token_ids.resize(before + count);
  std::memcpy(token_ids.data() + before, bytes.data(), count * sizeof(TokenId));
}

std::string sampling_text(const SamplingParams& sampling) {
  return sampling_to_json(sampling).dump(-1, ' ', false, json::error_handler_t::replace);
}

SamplingParams sampling_of(std::string_view text) {
  const auto sampling = stored_sampling(json::parse(text, nullptr, /*allow_exceptions=*/false));
  return sampling ? *sampling : SamplingParams{};
}

TemplateValues template_values_of(std::string_view text) {
  auto values = parse_template_values(text, "template_values");
  return values ? *std::move(values) : TemplateValues{};
}

// One object of whole numbers, flags and fixed names: written by itself, because the library's own tree of
// it costs as much as all of the rest of a saved message.
class FiguresObject {
 public:
  void add(std::string_view key, std::int64_t value) { begin(key) += std::to_string(value); }
  void add(std::string_view key, bool value) { begin(key) += value ? "true" : "false"; }
  // A name of our own: nothing in it needs an escape.
  void add(std::string_view key, std::string_view name) { ((begin(key) += '"') += name) += '"'; }
  void add(std::string_view key, const std::vector<std::int64_t>& values) {
    std::string& text = begin(key);
    for (std::size_t i = 0; i < values.size(); ++i) (text += i == 0 ? '[' : ',') += std::to_string(values[i]);
    text += values.empty() ? "[]" : "]";
  }
  // Empty: nothing was added.
  std::string text() && { return text_.empty() ? std::move(text_) : std::move(text_ += '}'); }

 private:
  std::string& begin(std::string_view key) {
    return ((text_ += text_.empty() ? "{\"" : ",\"") += key) += "\":";
  }

  std::string text_;
};

void add_metrics(const AnswerMetrics& metrics, FiguresObject& object) {
  const RequestMetrics& request = metrics.request;
  object.add("num_prompt_tokens", std::int64_t{metrics.num_prompt_tokens});
  object.add("num_cached_tokens", std::int64_t{metrics.num_cached_tokens});
  object.add("queue_us", request.queue_us);
  object.add("ttft_us", request.ttft_us);
  object.add("tpot_us", request.tpot_us);
  object.add("e2e_us", request.e2e_us);
  object.add("num_preemptions", std::int64_t{request.num_preemptions});
  object.add("num_draft_tokens", std::int64_t{request.num_draft_tokens});
  object.add("num_accepted_tokens", std::int64_t{request.num_accepted_tokens});
  object.add("miss_cause", miss_cause_name(request.prefix_miss.cause));
  object.add("miss_position", std::int64_t{request.prefix_miss.position});
}

// What is known of an answer beside its text, in one column: what it cost, once it has ended, its thinking,
// and whether it was stopped for its repetitions. Empty: nothing is.
std::string figures_text(const Message& message) {
  FiguresObject object;
  if (message.metrics) add_metrics(*message.metrics, object);
  if (message.thinking.begun_by_prompt) object.add("thinking_begun_by_prompt", true);
  if (message.stopped_repeating) object.add("stopped_repeating", true);
  if (!message.thinking.durations_us.empty()) object.add("thinking_us", message.thinking.durations_us);
  return std::move(object).text();
}

template <class Integer>
Integer metric(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  const auto value = found->get<std::int64_t>();
  return value < 0 || value > std::numeric_limits<Integer>::max() ? Integer{0} : static_cast<Integer>(value);
}

// kNone for a name that is none.
MissCause miss_cause_of(std::string_view name) {
  for (const MissCause cause :
       {MissCause::kFirstUse, MissCause::kEvicted, MissCause::kOtherSalt, MissCause::kDifferingToken,
        MissCause::kNoCheckpoint, MissCause::kBehindWindow, MissCause::kNotRead}) {
    if (miss_cause_name(cause) == name) return cause;
  }
  return MissCause::kNone;
}

std::optional<AnswerMetrics> metrics_of(const json& object) {
  if (!object.is_object() || !object.contains("num_prompt_tokens")) return std::nullopt;
  AnswerMetrics metrics;
  metrics.num_prompt_tokens = metric<std::int32_t>(object, "num_prompt_tokens");
  metrics.num_cached_tokens = metric<std::int32_t>(object, "num_cached_tokens");
  metrics.request.queue_us = metric<std::int64_t>(object, "queue_us");
  metrics.request.ttft_us = metric<std::int64_t>(object, "ttft_us");
  metrics.request.tpot_us = metric<std::int64_t>(object, "tpot_us");
  metrics.request.e2e_us = metric<std::int64_t>(object, "e2e_us");
  metrics.request.num_preemptions = metric<std::int32_t>(object, "num_preemptions");
  metrics.request.num_draft_tokens = metric<std::int32_t>(object, "num_draft_tokens");
  metrics.request.num_accepted_tokens = metric<std::int32_t>(object, "num_accepted_tokens");
  if (const auto cause = object.find("miss_cause"); cause != object.end() && cause->is_string())
    metrics.request.prefix_miss.cause = miss_cause_of(cause->get<std::string>());
  metrics.request.prefix_miss.position = metric<std::int32_t>(object, "miss_position");
  return metrics;
}

AnswerThinking thinking_of(const json& object) {
  AnswerThinking thinking;
  if (!object.is_object()) return thinking;
  thinking.begun_by_prompt = object.value("thinking_begun_by_prompt", json()) == true;
  const json durations = object.value("thinking_us", json::array());
  for (const json& duration : durations) {
    if (!duration.is_number_integer() || duration < 0) return thinking;
    thinking.durations_us.push_back(duration.get<std::int64_t>());
  }
  return thinking;
}

std::optional<FinishReason> finish_reason_of(std::string_view name) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError}) {
    if (finish_reason_name(reason) == name) return reason;
  }
  return std::nullopt;
}

// ---- writing

Result<void> write(Database& database, const changes::SaveChat& change) {
  const ChatHead& head = change.head;
  const std::string sampling = sampling_text(head.sampling);
  const std::string template_values = template_values_text(head.template_values);
  return database.run(
      "INSERT OR REPLACE INTO chats (id, title, shown_title, system_prompt, sampling, draft, folder, pinned, "
      "position, "
      "created_ms, updated_ms, trashed_ms, active_root_child, context_policy, model_path, "
      "template_values) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
      {as_integer(head.id.value), std::string_view(head.title), std::string_view(head.shown_title),
       std::string_view(head.system_prompt), std::string_view(sampling), std::string_view(head.draft),
       as_integer(head.folder.value), std::int64_t{head.pinned}, head.position, head.created_ms,
       head.updated_ms, optional_integer(head.trashed_ms), as_integer(head.active_root_child.value),
       context_policy_name(head.context_policy), std::string_view(head.model_path),
       std::string_view(template_values)});
}

Result<void> write(Database& database, const changes::SaveMessage& change) {
  const Message& message = change.message;
  const std::string figures = figures_text(message);
  const SqlValue finish_reason =
      message.finish_reason ? SqlValue(finish_reason_name(*message.finish_reason)) : SqlValue(nullptr);
  const SqlValue seed = message.seed ? SqlValue(as_integer(*message.seed)) : SqlValue(nullptr);
  const std::int64_t chat = as_integer(change.chat_id.value), id = as_integer(message.id.value);
  OCTAVO_TRY_VOID(database.run(
      "INSERT INTO messages (chat, id, parent, active_child, role, finish_reason, seed, interrupted, model, "
      "error, "
      "metrics, content, token_ids, created_ms, context_full, stop_text, edited, erased) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) "
      "ON CONFLICT (chat, id) DO UPDATE SET parent = ?3, active_child = ?4, role = ?5, finish_reason = ?6, "
      "seed = ?7, "
      "interrupted = ?8, model = ?9, error = ?10, metrics = ?11, content = ?12, token_ids = ?13, "
      "created_ms = ?14, context_full = ?15, stop_text = ?16, edited = ?17, erased = ?18",
      {chat, id, as_integer(message.parent.value), as_integer(message.active_child.value),
       role_name(message.role), finish_reason, seed, std::int64_t{message.interrupted},
       std::string_view(message.model), std::string_view(message.error),
       figures.empty() ? SqlValue(nullptr) : SqlValue(std::string_view(figures)),
       std::string_view(message.content), token_bytes(message.token_ids), message.created_ms,
       std::int64_t{message.context_full}, std::string_view(message.stop_text), std::int64_t{message.edited},
       std::int64_t{message.erased}}));
  if (message.role != Role::kAssistant) return {};  // what does not grow has no pieces
  return database.run("DELETE FROM answer_pieces WHERE chat = ?1 AND message = ?2", {chat, id});
}

Result<void> write(Database& database, const changes::AppendToAnswer& change) {
  return database.run(
      "INSERT OR REPLACE INTO answer_pieces (chat, message, content_begin, content, tokens_begin, token_ids) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
      {as_integer(change.chat_id.value), as_integer(change.message_id.value),
       as_integer(change.content_begin), std::string_view(change.content), as_integer(change.tokens_begin),
       token_bytes(change.token_ids)});
}

Result<void> write(Database& database, const changes::SaveChoices& change) {
  for (const auto& [parent, child] : change.choices) {
    OCTAVO_TRY_VOID(
        database.run("UPDATE messages SET active_child = ?3 WHERE chat = ?1 AND id = ?2",
                     {as_integer(change.chat_id.value), as_integer(parent.value), as_integer(child.value)}));
  }
  return {};
}

Result<void> write(Database& database, const changes::SaveSummary& change) {
  const std::int64_t chat = as_integer(change.chat_id.value), after = as_integer(change.after.value);
  if (change.content.empty())
    return database.run("DELETE FROM summaries WHERE chat = ?1 AND message = ?2", {chat, after});
  return database.run("INSERT OR REPLACE INTO summaries (chat, message, content) VALUES (?1, ?2, ?3)",
                      {chat, after, std::string_view(change.content)});
}

Result<void> write(Database& database, const changes::EraseChat& change) {
  const std::int64_t chat = as_integer(change.chat_id.value);
  OCTAVO_TRY_VOID(database.run("DELETE FROM summaries WHERE chat = ?1", {chat}));
  OCTAVO_TRY_VOID(database.run("DELETE FROM answer_pieces WHERE chat = ?1", {chat}));
  OCTAVO_TRY_VOID(database.run("DELETE FROM messages WHERE chat = ?1", {chat}));
  return database.run("DELETE FROM chats WHERE id = ?1", {chat});
}

Result<void> write(Database& database, const changes::SaveFolder& change) {
  const FolderRecord& folder = change.folder;
  return database.run("INSERT OR REPLACE INTO folders (id, name, position) VALUES (?1, ?2, ?3)",
                      {as_integer(folder.id.value), std::string_view(folder.name), folder.position});
}

Result<void> write(Database& database, const changes::EraseFolder& change) {
  const std::int64_t folder = as_integer(change.folder_id.value);
  OCTAVO_TRY_VOID(database.run("UPDATE chats SET folder = 0 WHERE folder = ?1", {folder}));
  return database.run("DELETE FROM folders WHERE id = ?1", {folder});
}

Result<void> write(Database& database, const changes::SavePreset& change) {
  const PresetRecord& preset = change.preset;
  const std::string sampling = sampling_text(preset.sampling);
  const std::string values = template_values_text(preset.template_values);
  return database.run(
      "INSERT OR REPLACE INTO presets (id, name, system_prompt, sampling, template_values) "
      "VALUES (?1, ?2, ?3, ?4, ?5)",
      {as_integer(preset.id.value), std::string_view(preset.name), std::string_view(preset.system_prompt),
       std::string_view(sampling), std::string_view(values)});
}

Result<void> write(Database& database, const changes::ErasePreset& change) {
  return database.run("DELETE FROM presets WHERE id = ?1", {as_integer(change.preset_id.value)});
}

// ---- reading

// Runs `take` for every row.
template <class Take>
Result<void> each_row(Database& database, std::string_view sql, std::initializer_list<SqlValue> values,
                      const Take& take) {
  OCTAVO_TRY(Rows rows, database.query(sql, values));
  while (true) {
    OCTAVO_TRY(const bool more, rows.next());
    if (!more) return {};
    take(rows);
  }
}

constexpr std::string_view kSelectHead =
    "SELECT id, title, shown_title, system_prompt, sampling, draft, folder, pinned, position, created_ms, "
    "updated_ms, "
    "trashed_ms, active_root_child, context_policy, model_path, template_values FROM chats ORDER BY position "
    "DESC, id DESC";
constexpr std::string_view kSelectOneHead =
    "SELECT id, title, shown_title, system_prompt, sampling, draft, folder, pinned, position, created_ms, "
    "updated_ms, "
    "trashed_ms, active_root_child, context_policy, model_path, template_values FROM chats WHERE id = ?1";

ChatHead head_of(const Rows& row) {
  ChatHead head;
  head.id = ChatId{as_unsigned(row.integer(0))};
  head.title = sanitise_utf8(row.text(1));
  head.shown_title = sanitise_utf8(row.text(2));
  head.system_prompt = sanitise_utf8(row.text(3));
  head.sampling = sampling_of(row.text(4));
  head.draft = sanitise_utf8(row.text(5));
  head.folder = FolderId{as_unsigned(row.integer(6))};
  head.pinned = row.integer(7) != 0;
  head.position = row.integer(8);
  head.created_ms = row.integer(9);
  head.updated_ms = row.integer(10);
  if (!row.is_null(11)) head.trashed_ms = row.integer(11);
  head.active_root_child = MessageId{as_unsigned(row.integer(12))};
  head.context_policy = parse_context_policy(row.text(13)).value_or(ContextPolicy::kRoll);
  head.model_path = sanitise_utf8(row.text(14));
  head.template_values = template_values_of(row.text(15));
  return head;
}

Message message_of(const Rows& row) {
  Message message;
  message.id = MessageId{as_unsigned(row.integer(0))};
  message.parent = MessageId{as_unsigned(row.integer(1))};
  message.active_child = MessageId{as_unsigned(row.integer(2))};
  message.role = parse_role(row.text(3)).value_or(Role::kUser);
  if (!row.is_null(4)) message.finish_reason = finish_reason_of(row.text(4));
  if (!row.is_null(5)) message.seed = as_unsigned(row.integer(5));
  message.interrupted = row.integer(6) != 0;
  message.model = sanitise_utf8(row.text(7));
  message.error = sanitise_utf8(row.text(8));
  if (!row.is_null(9)) {
    const json measured = json::parse(row.text(9), nullptr, /*allow_exceptions=*/false);
    message.metrics = metrics_of(measured);
    message.thinking = thinking_of(measured);
    message.stopped_repeating = measured.is_object() && measured.value("stopped_repeating", json()) == true;
  }
  message.content = sanitise_utf8(row.text(10));
  append_token_ids(row.bytes(11), message.token_ids);
  message.created_ms = std::max<std::int64_t>(0, row.integer(12));
  message.context_full = row.integer(13) != 0;
  message.stop_text = sanitise_utf8(row.text(14));
  message.edited = row.integer(15) != 0;
  message.erased = row.integer(16) != 0;
  return message;
}

// Adds the pieces to the messages that they continue. A piece that does not begin where the text ends follows
// one that was lost, and is lost too.
Result<void> read_pieces(Database& database, std::int64_t chat, std::map<MessageId, Message>& messages) {
  return each_row(
      database,
      "SELECT message, content_begin, content, tokens_begin, token_ids FROM answer_pieces WHERE chat = ?1 "
      "ORDER BY message, tokens_begin, content_begin",
      {chat}, [&](const Rows& row) {
        const auto found = messages.find(MessageId{as_unsigned(row.integer(0))});
        if (found == messages.end()) return;
        Message& message = found->second;
        if (as_unsigned(row.integer(1)) == message.content.size())
          message.content += sanitise_utf8(row.text(2));
        if (as_unsigned(row.integer(3)) == message.token_ids.size())
          append_token_ids(row.bytes(4), message.token_ids);
      });
}

Message lost_message(const Chat& chat) {
  Message message;
  message.parent = MessageId{chat.messages().size()};
  const Message* above = chat.find(message.parent);
  message.role = above != nullptr && above->role == Role::kUser ? Role::kAssistant : Role::kUser;
  message.finish_reason = FinishReason::kError;
  message.error = "this message could not be recovered from the damaged file";
  return message;
}

void add(Chat& chat, Message&& message) {
  // Parents stand before their children, and go after them; another order is damage.
  const bool is_lost =
      message.erased ? message.parent.value > chat.messages().size() : chat.find(message.parent) == nullptr;
  if (is_lost) message.parent = kRootMessage;
  const bool is_open = message.role == Role::kAssistant && !message.finish_reason && !message.erased;
  if (is_open) message.interrupted = true;
  chat.add(std::move(message));
}

// The child that each message had chosen, where it is one of its children.
void choose(Chat& chat, MessageId parent, MessageId child) {
  const Message* message = chat.find(child);
  if (message != nullptr && message->parent == parent) chat.choose_child(child);
}

void build_tree(std::map<MessageId, Message>& messages, Chat& chat) {
  std::vector<std::pair<MessageId, MessageId>> choices;
  for (auto& [id, message] : messages) {
    if (id == kRootMessage || id.value > chat.messages().size() + kLargestGap) continue;
    while (chat.messages().size() + 1 < id.value) add(chat, lost_message(chat));
    choices.emplace_back(id, message.active_child);
    add(chat, std::move(message));
  }
  const auto newest = std::find_if(chat.messages().rbegin(), chat.messages().rend(),
                                   [](const Message& message) { return !message.erased; });
  if (newest != chat.messages().rend()) chat.activate(newest->id);
  for (const auto& [id, child] : choices) choose(chat, id, child);
}

Result<std::uint64_t> last_id(Database& database, std::string_view table) {
  OCTAVO_TRY(const auto last, database.integer("SELECT seq FROM sqlite_sequence WHERE name = ?1", {table}));
  return as_unsigned(std::max<std::int64_t>(0, last.value_or(0)));
}

}  // namespace

Result<void> write_change(Database& database, const StoreChange& change) {
  return std::visit([&](const auto& c) { return write(database, c); }, change);
}

Result<StoreContents> read_contents(Database& database) {
  StoreContents contents;
  OCTAVO_TRY_VOID(each_row(database, kSelectHead, {}, [&](const Rows& row) {
    if (row.integer(0) > 0) contents.chats.push_back(head_of(row));
  }));
  OCTAVO_TRY_VOID(each_row(
      database, "SELECT id, name, position FROM folders ORDER BY position, id", {}, [&](const Rows& row) {
        contents.folders.push_back(
            {FolderId{as_unsigned(row.integer(0))}, sanitise_utf8(row.text(1)), row.integer(2)});
      }));
  OCTAVO_TRY_VOID(
      each_row(database, "SELECT id, name, system_prompt, sampling, template_values FROM presets ORDER BY id",
               {}, [&](const Rows& row) {
                 contents.presets.push_back({PresetId{as_unsigned(row.integer(0))},
                                             sanitise_utf8(row.text(1)), sanitise_utf8(row.text(2)),
                                             sampling_of(row.text(3)), template_values_of(row.text(4))});
               }));
  OCTAVO_TRY(contents.last_chat.value, last_id(database, "chats"));
  OCTAVO_TRY(contents.last_folder.value, last_id(database, "folders"));
  OCTAVO_TRY(contents.last_preset.value, last_id(database, "presets"));
  return contents;
}

Result<Chat> read_tree(Database& database, ChatId chat_id) {
  const std::int64_t chat = as_integer(chat_id.value);
  std::map<MessageId, Message> messages;
  OCTAVO_TRY_VOID(
      each_row(database, "SELECT id, parent, active_child, erased FROM messages WHERE chat = ?1 ORDER BY id",
               {chat}, [&](const Rows& row) {
                 Message message;
                 message.id = MessageId{as_unsigned(row.integer(0))};
                 message.parent = MessageId{as_unsigned(row.integer(1))};
                 message.active_child = MessageId{as_unsigned(row.integer(2))};
                 message.erased = row.integer(3) != 0;
                 messages.emplace_hint(messages.end(), message.id, std::move(message));
               }));
  Chat tree;
  build_tree(messages, tree);
  OCTAVO_TRY(const auto first, database.integer("SELECT active_root_child FROM chats WHERE id = ?1", {chat}));
  choose(tree, kRootMessage, MessageId{as_unsigned(first.value_or(0))});
  return tree;
}

Result<Chat> read_chat(Database& database, ChatId chat_id) {
  const std::int64_t number = as_integer(chat_id.value);
  std::optional<ChatHead> head;
  OCTAVO_TRY_VOID(
      each_row(database, kSelectOneHead, {number}, [&](const Rows& row) { head = head_of(row); }));
  if (!head) return Error{.code = ErrorCode::kNotFound, .message = "there is no such chat"};
  Chat chat;
  chat.title = std::move(head->title);
  chat.system_prompt = std::move(head->system_prompt);
  chat.sampling = std::move(head->sampling);
  chat.context_policy = head->context_policy;
  chat.template_values = std::move(head->template_values);
  std::map<MessageId, Message> messages;
  OCTAVO_TRY_VOID(each_row(
      database,
      "SELECT id, parent, active_child, role, finish_reason, seed, interrupted, model, error, "
      "metrics, content, token_ids, created_ms, context_full, stop_text, edited, erased FROM messages "
      "WHERE chat = ?1 ORDER BY id",
      {number}, [&](const Rows& row) {
        Message message = message_of(row);
        messages.emplace_hint(messages.end(), message.id, std::move(message));
      }));
  OCTAVO_TRY_VOID(read_pieces(database, number, messages));
  build_tree(messages, chat);
  choose(chat, kRootMessage, head->active_root_child);
  OCTAVO_TRY_VOID(each_row(database, "SELECT message, content FROM summaries WHERE chat = ?1", {number},
                           [&](const Rows& row) {
                             const MessageId after{as_unsigned(row.integer(0))};
                             if (chat.find(after) != nullptr)
                               chat.set_summary(after, sanitise_utf8(row.text(1)));
                           }));
  return chat;
}

}  // namespace octavo::app
