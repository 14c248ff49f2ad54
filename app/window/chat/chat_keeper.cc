#include "app/window/chat/chat_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace octavo::app {
namespace {

// Messages of one chat that are pushed at once, and changes that may wait for the disk before the next such
// part: two parts, so that one is written while the other is made.
constexpr std::size_t kPart = 65'536;
constexpr StoreTicket kMostWaiting = 2 * kPart;

bool same_sampling(const SamplingParams& a, const SamplingParams& b) {
  return a.temperature == b.temperature && a.top_p == b.top_p && a.top_k == b.top_k && a.min_p == b.min_p &&
         a.presence_penalty == b.presence_penalty && a.frequency_penalty == b.frequency_penalty &&
         a.repetition_penalty == b.repetition_penalty && a.seed == b.seed && a.max_tokens == b.max_tokens &&
         a.min_tokens == b.min_tokens && a.stop == b.stop && a.ignore_eos == b.ignore_eos &&
         a.include_stop_str_in_output == b.include_stop_str_in_output && a.bad_words == b.bad_words &&
         a.structured_output == b.structured_output;
}

bool same_head(const ChatHead& a, const ChatHead& b) {
  return a.title == b.title && a.shown_title == b.shown_title && a.system_prompt == b.system_prompt &&
         a.draft == b.draft && a.folder == b.folder && a.pinned == b.pinned && a.position == b.position &&
         a.trashed_ms == b.trashed_ms && a.context_policy == b.context_policy &&
         a.template_values == b.template_values && a.active_root_child == b.active_root_child &&
         a.model_path == b.model_path && same_sampling(a.sampling, b.sampling);
}

bool worth_a_row(const ChatHead& head, const Chat& chat, const KeptChat& kept) {
  return !chat.messages().empty() || !head.title.empty() || head.system_prompt != kept.first_system_prompt ||
         !head.draft.empty() || head.pinned || head.folder.value != 0;
}

std::optional<std::int64_t> newest_message_ms(const Chat& chat) {
  std::int64_t newest = 0;
  for (const Message& message : chat.messages()) newest = std::max(newest, message.created_ms);
  return newest > 0 ? std::optional(newest) : std::nullopt;
}

}  // namespace

StoreTicket ChatKeeper::keep(const Chat& chat, const ChatHead& now, KeptChat& kept, Urgency urgency) {
  if (store_ == nullptr) return 0;
  if (!kept.stored && !worth_a_row(now, chat, kept)) return newest_;
  if (kept.in_parts && urgency == Urgency::kSoon && !has_room()) return newest_;
  kept.head.id = now.id;
  const bool grew = kept.loaded && keep_messages(chat, kept, urgency);
  if (kept.loaded) keep_summaries(chat, kept);
  keep_head(chat, now, kept, grew || urgency == Urgency::kNow, urgency);  // carries all before it
  return newest_;
}

bool ChatKeeper::has_room() const { return newest_ <= kMostWaiting || saved(newest_ - kMostWaiting); }

// Whether the chat has grown since it was last kept: the next part of what it was then is not growth.
bool ChatKeeper::keep_messages(const Chat& chat, KeptChat& kept, Urgency urgency) {
  const std::vector<Message>& messages = chat.messages();
  changes::SaveChoices changed{.chat_id = kept.head.id, .choices = {}};
  for (std::size_t i = 0; i < kept.choices.size() && i < messages.size(); ++i) {
    if (messages[i].active_child == kept.choices[i]) continue;
    kept.choices[i] = messages[i].active_child;
    changed.choices.emplace_back(messages[i].id, messages[i].active_child);
  }
  const std::size_t begin = kept.choices.size(), left = messages.size() - begin;
  const std::size_t count = urgency == Urgency::kNow ? left : has_room() ? std::min(left, kPart) : 0;
  const bool was_in_parts = std::exchange(kept.in_parts, count < left);
  for (std::size_t i = begin; i < begin + count; ++i) {
    kept.choices.push_back(messages[i].active_child);
    const bool is_awaited = kept.in_parts && i + 1 == begin + count;  // by the next part
    push(changes::SaveMessage{kept.head.id, messages[i]}, is_awaited ? Urgency::kNow : Urgency::kSoon);
  }
  if (!changed.choices.empty()) push(std::move(changed));
  return left > 0 && !was_in_parts;
}

void ChatKeeper::keep_summaries(const Chat& chat, KeptChat& kept) {
  if (chat.summaries() == kept.summaries) return;
  for (const auto& [after, content] : kept.summaries) {
    if (!chat.summaries().contains(after)) push(changes::SaveSummary{kept.head.id, after, {}});
  }
  for (const auto& [after, content] : chat.summaries()) {
    const auto known = kept.summaries.find(after);
    if (known == kept.summaries.end() || known->second != content)
      push(changes::SaveSummary{kept.head.id, after, content});
  }
  kept.summaries = chat.summaries();
}

bool ChatKeeper::keep_head(const Chat& chat, ChatHead now, KeptChat& kept, bool changed, Urgency urgency) {
  if (kept.stored && !changed && same_head(now, kept.head)) return false;
  // A chat that comes from elsewhere is as old as its file says, or as its messages.
  if (!kept.stored)
    now.updated_ms =
        chat.updated_ms > 0 ? chat.updated_ms : newest_message_ms(chat).value_or(unix_time_ms_());
  if (kept.stored && changed) now.updated_ms = unix_time_ms_();
  kept.head = std::move(now);
  kept.stored = true;
  push(changes::SaveChat{kept.head}, urgency);
  return true;
}

void ChatKeeper::keep_message(const KeptChat& kept, const Message& message) {
  if (kept.stored && message.id.value <= kept.choices.size())
    push(changes::SaveMessage{kept.head.id, message});
}

void ChatKeeper::keep_growth(const KeptChat& kept, const Message& message, std::string_view text,
                             const std::vector<TokenId>& token_ids) {
  if (!kept.stored || message.id.value > kept.choices.size()) return;
  push(changes::AppendToAnswer{.chat_id = kept.head.id,
                               .message_id = message.id,
                               .content_begin = message.content.size(),
                               .content = std::string(text),
                               .tokens_begin = message.token_ids.size(),
                               .token_ids = token_ids});
}

void ChatKeeper::erase(const KeptChat& kept) {
  if (kept.stored) push(changes::EraseChat{kept.head.id});
}

void ChatKeeper::push(StoreChange change, Urgency urgency) {
  if (store_ != nullptr) newest_ = store_->push(std::move(change), urgency);
}

void ChatKeeper::forget(KeptChat& kept) {
  if (!kept.loaded) return;
  kept.choices.clear();
  kept.in_parts = false;
  kept.summaries.clear();
  kept.stored = false;
}

void ChatKeeper::learn(const Chat& chat, KeptChat& kept) {
  kept.choices.clear();
  for (const Message& message : chat.messages()) kept.choices.push_back(message.active_child);
  kept.summaries = chat.summaries();
  kept.stored = true;
  kept.loaded = true;
  kept.loading = false;
}

}  // namespace octavo::app
