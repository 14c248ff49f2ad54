#include "app/window/chat/answers.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "app/window/kept_token_ids.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostRequestsRemembered = 4'096;
// Of a mark at the end of a prompt, with line breaks behind it.
constexpr std::size_t kMostTokensOfMark = 16;
const std::vector<TokenId> kNoTokenIds;

}  // namespace

// ---- one engine after the other

void Answers::attach_engine(Engine& engine) {
  engine_ = &engine;
  request_chats_.clear();
}

void Answers::detach_engine() {
  engine_ = nullptr;
  const auto under_way = std::exchange(under_way_, {});
  const auto submissions = std::exchange(submissions_, {});
  for (const auto& [request_id, answer] : under_way) interrupt(answer.chat_id, answer.message_id);
  for (const Submission& submission : submissions) interrupt(submission.chat_id, submission.message_id);
}

void Answers::interrupt(ChatId chat_id, MessageId message_id) {
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record == nullptr) return;
  if (Message* message = record->chat.find(message_id)) {
    message->interrupted = true;
    chats_.keep_message(chat_id, *message);
  }
  record->submitting = false;
  record->answering.reset();
}

bool Answers::uses(const Engine& engine) const {
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [&](const auto& entry) { return entry.second.engine == &engine; });
}

// ---- asking

void Answers::begin(ChatId chat_id, MessageId message_id, GenerationRequest request,
                    AnswerTokenIds token_ids) {
  ChatRecord& record = *chats_.change(chat_id, Changed::kMessages);
  record.submitting = true;
  record.failed = false;
  const StoreTicket ticket = chats_.keep_now(chat_id);
  submissions_.push_back({chat_id, message_id, std::move(request), ticket, token_ids});
  submit_saved();
}

// In the order in which they were asked for. While the disk fails, which the window says, nobody waits for
// it.
bool Answers::submit_saved() {
  bool submitted = false;
  while (!submissions_.empty()) {
    if (!chats_.is_kept(submissions_.front().ticket) && state_.library.problem.empty()) break;
    Submission next = std::move(submissions_.front());
    submissions_.pop_front();
    submit(std::move(next));
    submitted = true;
  }
  return submitted;
}

void Answers::submit(Submission submission) {
  ChatRecord* record = chats_.change(submission.chat_id, Changed::kHead);
  if (record == nullptr || engine_ == nullptr) return;
  record->model_path = state_.model.path;
  forget_foreign_ids(engine_->tokenizer(), submission.request);
  const RequestId request_id = engine_->submit(std::move(submission.request));
  under_way_[request_id] = {.chat_id = submission.chat_id,
                            .message_id = submission.message_id,
                            .engine = engine_,
                            .token_ids = submission.token_ids};
  record->chat.find(submission.message_id)->stopped_repeating = false;
  request_chats_[request_id] = submission.chat_id;
  if (request_chats_.size() > kMostRequestsRemembered) request_chats_.erase(request_chats_.begin());
  note_prompt(request_id, *record, submission.message_id);
  record->submitting = false;
  record->answering = request_id;
}

// Which bytes of which message the tokens of a prompt are.
void Answers::note_prompt(RequestId request_id, const ChatRecord& record, MessageId answer) {
  std::vector<PromptMessage> path;
  const Message* message = record.chat.find(answer);
  while (message != nullptr && message->id != record.chat.context_begin) {
    message = record.chat.find(message->parent);
    if (message != nullptr) path.push_back({message->id, message->content});
  }
  std::reverse(path.begin(), path.end());
  tokens_.begin(request_id, record.id, std::move(path), answer);
}

void Answers::stop(ChatId chat_id) {
  const ChatRecord* record = chats_.find(chat_id);
  if (record == nullptr) return;
  if (record->answering) {
    const AnswerUnderWay& answer = under_way_.at(*record->answering);
    note_repeating(answer);
    answer.engine->cancel(*record->answering);
  }
  drop_submissions(chat_id);
}

// Why it is about to be stopped, where that is the reason.
void Answers::note_repeating(const AnswerUnderWay& answer) {
  Message* message = chats_.change_message(answer.chat_id, answer.message_id);
  if (message != nullptr && answer.repetition.repeats()) message->stopped_repeating = true;
}

void Answers::watch_for_repeats(AnswerUnderWay& answer, RequestId request_id,
                                std::span<const TokenId> token_ids) {
  answer.repetition.take(token_ids);
  if (!answer.repetition.repeats() || state_.settings.on_repeats != ui::OnRepeats::kStop) return;
  if (std::exchange(answer.stopping, true)) return;
  note_repeating(answer);
  answer.engine->cancel(request_id);
}

void Answers::drop_submissions(ChatId chat_id) {
  std::erase_if(submissions_, [&](const Submission& submission) {
    if (submission.chat_id != chat_id) return false;
    ChatRecord& record = *chats_.change(chat_id, Changed::kMessages);
    if (Message* message = record.chat.find(submission.message_id)) {
      message->finish_reason = FinishReason::kAbort;
      chats_.keep_message(chat_id, *message);
    }
    record.submitting = false;
    return true;
  });
}

// ---- what the engine reports

void Answers::fold(const EngineEvent& event) {
  const auto found = under_way_.find(request_id_of(event));
  if (found == under_way_.end()) return;
  std::visit([&](const auto& e) { fold_event(found->second, e); }, event);
  redraw_waiting();
}

// Who is ahead of them may have changed.
void Answers::redraw_waiting() {
  for (const auto& [request_id, answer] : under_way_) {
    if (!answer.admitted) chats_.change(answer.chat_id, Changed::kFigures);
  }
}

void Answers::fold_event(AnswerUnderWay& answer, const RequestAccepted& event) {
  tokens_.accept(event.request_id, event.prompt_token_ids);
  answer.num_prompt_tokens = static_cast<std::int32_t>(event.prompt_token_ids.size());
  Message* message = chats_.change_message(answer.chat_id, answer.message_id);
  if (message == nullptr) return;
  message->seed = event.seed;
  if (message->content.empty()) {
    const std::span<const TokenId> ids = event.prompt_token_ids;
    const auto end = ids.last(std::min(ids.size(), kMostTokensOfMark));
    message->thinking.begun_by_prompt =
        begins_thinking(answer.engine->tokenizer().decode(end, /*skip_special=*/false));
  }
  chats_.keep_message(answer.chat_id, *message);
}

void Answers::fold_event(AnswerUnderWay& answer, const RequestAdmitted& event) {
  answer.admitted = true;
  answer.num_cached_tokens = event.num_cached_tokens;
  chats_.change_message(answer.chat_id, answer.message_id);
}

void Answers::fold_event(AnswerUnderWay& answer, const TokensGenerated& event) {
  answer.admitted = true;
  answer.swapped_out = false;
  if (!answer.num_cached_tokens) answer.num_cached_tokens = 0;
  answer.newest_token_us = clock_.now_us();
  if (answer.num_tokens == 0) {
    answer.first_token_us = answer.newest_token_us;
    answer.ttft_us = event.ttft_us;
  }
  answer.num_tokens += static_cast<std::int32_t>(event.token_ids.size());
  tokens_.generate(event.request_id, event.output_index, event.token_ids, event.text);
  Message* message = chats_.change_message(answer.chat_id, answer.message_id);
  if (message == nullptr || message->finish_reason) return;  // it was erased
  const bool keeps_ids = answer.token_ids == AnswerTokenIds::kKept;
  const std::vector<TokenId>& token_ids = keeps_ids ? event.token_ids : kNoTokenIds;
  chats_.keep_growth(answer.chat_id, *message, event.text, token_ids);
  message->content += event.text;
  message->token_ids.insert(message->token_ids.end(), token_ids.begin(), token_ids.end());
  if (!answer.thinking) answer.thinking.emplace(beginning_of(*message));
  if (answer.thinking->take(message->content, answer.newest_token_us, message->thinking))
    chats_.keep_message(answer.chat_id, *message);
  watch_for_repeats(answer, event.request_id, event.token_ids);
  context_.show(answer.chat_id, answer.num_prompt_tokens + answer.num_tokens);
}

void Answers::fold_event(AnswerUnderWay& answer, const RequestPreempted& event) {
  answer.admitted = false;
  answer.swapped_out = event.num_tokens_dropped == 0;
}

void Answers::fold_event(AnswerUnderWay& answer, const OutputFinished& event) {
  answer.stop_reason = event.stop_reason;
  if (Message* message = chats_.change_message(answer.chat_id, answer.message_id))
    message->finish_reason = event.finish_reason;
}

void Answers::fold_event(AnswerUnderWay& answer, const RequestFinished& event) {
  end(answer, event.request_id, event.metrics, {});
}

void Answers::fold_event(AnswerUnderWay& answer, const RequestFailed& event) {
  end(answer, event.request_id, event.metrics, sanitise_utf8(event.error.message));
}

void Answers::end(const AnswerUnderWay& ending, RequestId request_id, const RequestMetrics& metrics,
                  const std::string& error) {
  const AnswerUnderWay answer = ending;
  under_way_.erase(request_id);
  ChatRecord* record = chats_.change(answer.chat_id, Changed::kFigures);
  if (record == nullptr) return;
  // It may have been erased meanwhile.
  if (Message* message = chats_.change_message(answer.chat_id, answer.message_id))
    end_message(answer, metrics, error, *message);
  const bool current = record->answering == request_id;
  if (current) {
    record->answering.reset();
    record->failed = !error.empty();
  }
  context_.count(answer.chat_id);
  if (current) when_ended_(answer.chat_id);
}

void Answers::end_message(const AnswerUnderWay& answer, const RequestMetrics& metrics,
                          const std::string& error, Message& message) {
  if (!error.empty()) message.finish_reason = FinishReason::kError;
  if (!message.finish_reason) message.finish_reason = FinishReason::kAbort;
  message.error = error;
  if (message.finish_reason != FinishReason::kAbort) message.stopped_repeating = false;
  message.metrics = AnswerMetrics{answer.num_prompt_tokens, answer.num_cached_tokens.value_or(0), metrics};
  if (answer.num_prompt_tokens == 0) {  // a remote engine tells at the end, if at all
    const PromptAccount& prompt = metrics.prompt;
    message.metrics->num_prompt_tokens = prompt.num_computed + prompt.num_hit_cached;
    message.metrics->num_cached_tokens = prompt.num_hit_cached;
  }
  message.context_full =
      message.finish_reason == FinishReason::kLength && answer.num_prompt_tokens > 0 &&
      answer.num_prompt_tokens + answer.num_tokens >= answer.engine->description().max_model_len;
  const auto* const stop_text = std::get_if<std::string>(&answer.stop_reason);
  message.stop_text = stop_text != nullptr ? *stop_text : std::string();
  keep_ids_of_text(answer.engine->tokenizer(), answer.stop_reason, message);
  chats_.keep_message(answer.chat_id, message);
}

// ---- looking

const AnswerUnderWay* Answers::find(RequestId request_id) const {
  const auto found = under_way_.find(request_id);
  return found == under_way_.end() ? nullptr : &found->second;
}

std::int32_t Answers::num_ahead(RequestId request_id) const {
  const auto found = under_way_.find(request_id);
  if (found == under_way_.end()) return 0;
  return static_cast<std::int32_t>(std::count_if(under_way_.begin(), found, [&](const auto& entry) {
    return !entry.second.admitted && entry.second.engine == found->second.engine;
  }));
}

std::optional<ChatId> Answers::chat_of(RequestId request_id) const {
  const auto found = request_chats_.find(request_id);
  if (found == request_chats_.end()) return std::nullopt;
  return found->second;
}

}  // namespace octavo::app
