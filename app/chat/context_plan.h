// What the next request of a chat sends: the whole path, or the part of it that its context holds.
//
// Counting and rendering take milliseconds, of a pasted book seconds: `plan_context` belongs on a thread that
// nobody waits for. The same question gives the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/chat/chat.h"
#include "app/chat/context_window.h"
#include "engine/api/context_policy.h"
#include "engine/api/request.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

struct PathMessage {
  MessageId id;  // 0: it is not sent yet
  ChatMessage message;
  std::string summary;  // of everything up to this message
};

struct ContextQuestion {
  std::string system_prompt = {};
  std::vector<PathMessage> path = {};  // ends with the question, or with the answer that is continued
  bool continue_answer = false;
  ContextPolicy policy = ContextPolicy::kRoll;
  std::int32_t context_len = 0;
  std::int32_t max_tokens = 0;  // of the answer
  TemplateValues template_values = {};
};

// A summary that has to be written first: the answer to `prompt`.
struct WantedSummary {
  MessageId after;  // it stands for everything up to this message
  ChatPrompt prompt;
  std::int32_t max_tokens = 0;
};

struct ContextPlan {
  ChatPrompt prompt;
  std::int32_t num_tokens = 0;  // of the prompt
  MessageId begin;              // the first message that is sent; 0: all are
  std::int32_t num_left = 0;    // messages before it
  std::string refusal;          // why nothing can be sent, one sentence; empty when it can
  std::optional<WantedSummary> summary;
};

// Tokens of texts in one vocabulary, counted once each. The tokenizer must outlive it. One thread at a time.
class TokenCounts {
 public:
  explicit TokenCounts(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  const tokenizer::Tokenizer& tokenizer() const { return tokenizer_; }
  // What the message adds to a prompt. A text that is far too long for `context_len` is estimated from its
  // beginning: counting it would take seconds.
  std::int32_t of_message(const ChatMessage& message, std::int32_t context_len);
  std::int32_t of_text(std::string_view text, std::int32_t context_len);
  // What a prompt has beside its messages.
  std::int32_t of_system_prompt(const std::string& system_prompt, std::int32_t context_len,
                                const TemplateInputs& inputs);

 private:
  std::int32_t around_message(const TemplateInputs& inputs);
  std::int64_t estimate(std::string_view text) const;

  const tokenizer::Tokenizer& tokenizer_;
  std::optional<std::int32_t> around_message_;
  std::unordered_map<std::size_t, std::int32_t> counted_;  // by a hash of the text
};

// What to ask to have this message of the chat answered, or continued. Answers without a character are left
// out, and so are questions whose answer failed before its first one: what made it fail would stay for ever.
ContextQuestion context_question(const Chat& chat, MessageId last, std::int32_t context_len);

// Everything that it would send if the context were large enough.
std::vector<ChatMessage> whole_prompt(const ContextQuestion& question);

// Everything, for a model that runs elsewhere: nobody counts its tokens here, and what is too long its server
// says. num_tokens stays 0: unknown.
ContextPlan plan_without_counting(const ContextQuestion& question);

// `today`: seconds since 1970, which a template may print.
ContextPlan plan_context(const ContextQuestion& question, TokenCounts& counts, std::int64_t today);

}  // namespace octavo::app
