// The answers of the window: each waits until what it answers is saved, then the engine is asked, and what
// the engine reports becomes the message. An answer goes on whether its chat is shown or not.
//
// UI thread. Clock, chats, counter, token book and state must outlive the answers, an engine as long as it
// gives one of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "app/chat/repetition.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "app/window/chat/thinking_time.h"
#include "app/window/memory/token_book.h"
#include "engine/base/clock.h"
#include "engine/engine.h"

namespace octavo::app {

// Whether the ids of an answer's tokens are kept: not where the beginning of its message is text without ids,
// for ids of the rest alone would be of no use.
enum class AnswerTokenIds { kKept, kDropped };

// One answer on its way.
struct AnswerUnderWay {
  ChatId chat_id;
  MessageId message_id;
  Engine* engine = nullptr;  // that gives it
  AnswerTokenIds token_ids = AnswerTokenIds::kKept;
  bool admitted = false;
  bool swapped_out = false;  // until its next token
  std::int32_t num_prompt_tokens = 0;
  std::optional<std::int32_t> num_cached_tokens = {};  // since it was admitted first
  std::int32_t num_tokens = 0;
  std::int64_t ttft_us = 0;         // as the engine measures it, once there is a token
  std::int64_t first_token_us = 0;  // the window's clock, as the next
  std::int64_t newest_token_us = 0;
  StopReason stop_reason = {};
  std::optional<ThinkingTime> thinking = {};  // since its first token
  RepetitionDetector repetition = {};
  bool stopping = false;  // for its repetitions
};

class Answers {
 public:
  Answers(const Clock& clock, Chats& chats, ContextCounter& context, TokenBook& tokens,
          const ui::UiState& state)
      : clock_(clock), chats_(chats), context_(context), tokens_(tokens), state_(state) {}

  // Called when an answer of this chat has ended.
  void set_when_ended(std::function<void(ChatId)> when_ended) { when_ended_ = std::move(when_ended); }

  // Which engine is asked from now on. Its requests are the only ones that `chat_of` knows.
  void attach_engine(Engine& engine);
  // What is not done is interrupted, and can be continued with the next engine.
  void detach_engine();
  // nullptr when there is none.
  Engine* engine() const { return engine_; }

  // The answer is this message. The engine hears of it when the chat, as it is now, is on the disk.
  // REQUIRES: the chat has the message, and no answer under way
  void begin(ChatId chat_id, MessageId message_id, GenerationRequest request,
             AnswerTokenIds token_ids = AnswerTokenIds::kKept);
  // Asks the engine for what is saved. True when there was something.
  bool submit_saved();
  // The answer ends with what it has.
  void stop(ChatId chat_id);

  void fold(const EngineEvent& event);

  bool busy() const { return !under_way_.empty() || !submissions_.empty(); }
  std::size_t num_running() const { return under_way_.size() + submissions_.size(); }
  bool uses(const Engine& engine) const;
  // nullptr when it has ended.
  const AnswerUnderWay* find(RequestId request_id) const;
  // Requests that the engine of this one has before it.
  std::int32_t num_ahead(RequestId request_id) const;
  // Also of ended requests: late reports still find their chat.
  std::optional<ChatId> chat_of(RequestId request_id) const;

 private:
  // An answer that is asked for as soon as what it answers is saved.
  struct Submission {
    ChatId chat_id;
    MessageId message_id;
    GenerationRequest request;
    StoreTicket ticket = 0;
    AnswerTokenIds token_ids = AnswerTokenIds::kKept;
  };

  void submit(Submission submission);
  void note_prompt(RequestId request_id, const ChatRecord& record, MessageId answer);
  void drop_submissions(ChatId chat_id);
  void interrupt(ChatId chat_id, MessageId message_id);
  void redraw_waiting();
  void note_repeating(const AnswerUnderWay& answer);
  void watch_for_repeats(AnswerUnderWay& answer, RequestId request_id, std::span<const TokenId> token_ids);

  void fold_event(AnswerUnderWay& answer, const RequestAccepted& event);
  void fold_event(AnswerUnderWay&, const BeamsAdvanced&) {}  // chats ask for no beams
  void fold_event(AnswerUnderWay& answer, const RequestAdmitted& event);
  void fold_event(AnswerUnderWay& answer, const TokensGenerated& event);
  void fold_event(AnswerUnderWay& answer, const RequestPreempted& event);
  void fold_event(AnswerUnderWay&, const PromptProgress&) {}  // nor for these
  void fold_event(AnswerUnderWay&, const EmbeddingComputed&) {}
  void fold_event(AnswerUnderWay& answer, const OutputFinished& event);
  void fold_event(AnswerUnderWay& answer, const RequestFinished& event);
  void fold_event(AnswerUnderWay& answer, const RequestFailed& event);
  void end(const AnswerUnderWay& answer, RequestId request_id, const RequestMetrics& metrics,
           const std::string& error);
  void end_message(const AnswerUnderWay& answer, const RequestMetrics& metrics, const std::string& error,
                   Message& message);

  const Clock& clock_;
  Chats& chats_;
  ContextCounter& context_;
  TokenBook& tokens_;
  const ui::UiState& state_;
  std::function<void(ChatId)> when_ended_ = [](ChatId) {};
  Engine* engine_ = nullptr;
  std::map<RequestId, AnswerUnderWay> under_way_;
  std::deque<Submission> submissions_;  // oldest first
  std::map<RequestId, ChatId> request_chats_;
};

}  // namespace octavo::app
