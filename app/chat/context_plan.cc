#include "app/chat/context_plan.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Estimated in place of counted: this much of the beginning is.
constexpr std::size_t kSampleBytes = std::size_t{1} << 16;
constexpr std::int32_t kManyTokens = 1'000'000;  // no limit for a letter
constexpr std::size_t kMostCounted = 1'000'000;
// A text by itself may have fewer tokens than between its neighbours.
constexpr std::int32_t kSlack = 1;
constexpr int kMostTries = 8;

std::int64_t num_tokens(const tokenizer::Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                        const TemplateInputs& inputs) {
  const auto token_ids = tokenizer.encode_chat(messages, inputs);
  return token_ids ? static_cast<std::int64_t>(token_ids->size()) : -1;
}

// A system message with the summary of what has left behind it.
std::string with_summary(const std::string& system_prompt, const std::string& summary) {
  if (summary.empty()) return system_prompt;
  return system_prompt + (system_prompt.empty() ? "" : "\n\n") +
         "Summary of the earlier part of this chat:\n" + summary;
}

std::vector<ChatMessage> messages_from(const ContextQuestion& question, std::size_t begin,
                                       const std::string& summary) {
  std::vector<ChatMessage> messages;
  if (std::string system = with_summary(question.system_prompt, summary); !system.empty())
    messages.push_back({Role::kSystem, std::move(system)});
  for (std::size_t i = begin; i < question.path.size(); ++i) messages.push_back(question.path[i].message);
  return messages;
}

std::string instruction(std::int32_t num_tokens) {
  return "Summarise our chat so far in at most " + std::to_string(num_tokens * 3 / 5) +
         " words: what was asked and answered, and every name, figure and decision that a later question may "
         "need. Write the summary only.";
}

// The end of the text, from a word on, of about this many bytes.
std::string_view end_of(std::string_view text, std::size_t num_bytes) {
  std::size_t begin = text.size() - std::min(num_bytes, text.size());
  if (const std::size_t space = text.find_first_of(" \n", begin);
      space != std::string_view::npos && space - begin < 64)
    begin = space;
  while (begin < text.size() && continues_utf8(text[begin])) ++begin;
  return text.substr(begin);
}

class Planner {
 public:
  Planner(const ContextQuestion& question, TokenCounts& counts, std::int64_t today)
      : question_(question), counts_(counts), inputs_(today, question.template_values) {
    const std::int32_t context_len = question.context_len;
    room_.context_len = context_len;
    room_.answer = room_for_answer(question.max_tokens, context_len);
    // Where nothing ever leaves, the rest of the context is for answers that end in it.
    if (question.policy == ContextPolicy::kStop) room_.answer = std::max(1, room_.answer / 4);
    if (question.policy == ContextPolicy::kSummarise) room_.summary = std::max(16, context_len / 8);
    room_.fixed = counts.of_system_prompt(question.system_prompt, context_len, inputs_);
    for (const PathMessage& entry : question.path)
      path_.push_back({entry.message.role, counts.of_message(entry.message, context_len)});
  }

  ContextPlan plan() {
    ContextPlan plan;
    for (int tries = 0; tries < kMostTries; ++tries) {
      const ContextWindow window = context_window(path_, room_);
      plan = {};
      plan.num_tokens = window.num_tokens;
      plan.num_left = static_cast<std::int32_t>(window.begin);
      if (window.begin > 0) plan.begin = question_.path[window.begin].id;
      if (window.begin > 0 && question_.policy == ContextPolicy::kStop) return refuse_full(std::move(plan));
      if (!window.fits && !question_.continue_answer) return refuse_long(std::move(plan), window.num_tokens);
      std::string summary;
      if (window.begin > 0 && question_.policy == ContextPolicy::kSummarise) {
        plan.summary = wanted_summary(window.begin);
        summary = question_.path[window.begin - 1].summary;
      }
      plan.prompt = {messages_from(question_, window.begin, summary), question_.continue_answer,
                     question_.template_values};
      if (!window.fits) shorten_answer(plan.prompt.messages.back());
      const std::int64_t exact = exact_tokens(plan.prompt);
      if (exact < 0) return plan;  // the engine says what the template has against it
      plan.num_tokens = static_cast<std::int32_t>(exact);
      const std::int64_t too_many = exact - (room_.context_len - (room_.answer + 1) / 2);
      if (too_many <= 0) return plan;
      room_.fixed += static_cast<std::int32_t>(too_many);
    }
    return refuse_long(std::move(plan), plan.num_tokens);
  }

 private:
  std::int64_t exact_tokens(const ChatPrompt& prompt) {
    const std::span<const ChatMessage> messages = prompt.messages;
    if (!prompt.continue_answer) return num_tokens(counts_.tokenizer(), messages, inputs_);
    const std::int64_t before = num_tokens(counts_.tokenizer(), messages.first(messages.size() - 1), inputs_);
    if (before < 0) return before;
    return before + counts_.of_message(messages.back(), room_.context_len);
  }

  // An answer that fills the context with its question alone goes on from its end: half of what the question
  // leaves is for that, and half for what comes.
  void shorten_answer(ChatMessage& answer) {
    std::int32_t others = room_.fixed;
    for (std::size_t i = path_.size() - 1; i-- > 0;) {
      others += path_[i].num_tokens;
      if (path_[i].role == Role::kUser) break;
    }
    shorten(answer, std::max(1, (room_.context_len - others) / 2));
  }

  // To its end, of at most so many tokens.
  void shorten(ChatMessage& message, std::int32_t most) {
    for (std::int32_t count = counts_.of_message(message, room_.context_len);
         count > most && !message.content.empty(); count = counts_.of_message(message, room_.context_len)) {
      message.token_ids.clear();
      const double share = static_cast<double>(most) / count;
      const auto num_bytes = static_cast<std::size_t>(share * static_cast<double>(message.content.size()));
      message.content = std::string(end_of(message.content, num_bytes));
    }
  }

  std::optional<WantedSummary> wanted_summary(std::size_t begin) {
    const PathMessage& last = question_.path[begin - 1];
    if (!last.summary.empty()) return std::nullopt;
    std::size_t first = begin - 1;
    while (first > 0 && question_.path[first - 1].summary.empty()) --first;
    ContextQuestion asked;
    asked.system_prompt =
        with_summary(question_.system_prompt, first > 0 ? question_.path[first - 1].summary : std::string());
    asked.path.assign(question_.path.begin() + static_cast<std::ptrdiff_t>(first),
                      question_.path.begin() + static_cast<std::ptrdiff_t>(begin));
    asked.path.push_back({{}, {Role::kUser, instruction(room_.summary)}, {}});
    asked.context_len = question_.context_len;
    asked.max_tokens = room_.summary;
    asked.template_values = question_.template_values;
    ContextPlan plan = Planner(asked, counts_, inputs_.today).plan();
    const auto has_only_instruction = [&] {
      return static_cast<std::size_t>(plan.num_left) + 1 == asked.path.size();
    };
    if (plan.refusal.empty() && has_only_instruction()) {
      shorten_newest_turn(asked);
      plan = Planner(asked, counts_, inputs_.today).plan();
    }
    if (!plan.refusal.empty() || has_only_instruction()) return std::nullopt;
    return WantedSummary{last.id, std::move(plan.prompt), room_.summary};
  }

  // A turn that is too long to be read for its summary is summarised from the ends of its texts.
  void shorten_newest_turn(ContextQuestion& asked) {
    const std::size_t end = asked.path.size() - 1;  // the instruction
    std::size_t begin = end - 1;
    while (begin > 0 && asked.path[begin].message.role != Role::kUser) --begin;
    asked.path.erase(asked.path.begin(), asked.path.begin() + static_cast<std::ptrdiff_t>(begin));
    const auto num_messages = static_cast<std::int32_t>(asked.path.size() - 1);
    const std::int32_t others = counts_.of_system_prompt(asked.system_prompt, room_.context_len, inputs_) +
                                counts_.of_message(asked.path.back().message, room_.context_len);
    const std::int32_t room = room_.context_len - others - room_.summary;
    for (std::int32_t i = 0; i < num_messages; ++i)
      shorten(asked.path[static_cast<std::size_t>(i)].message, std::max(1, room / num_messages));
  }

  ContextPlan refuse_full(ContextPlan plan) const {
    plan.refusal =
        "The context of " + with_thousands(room_.context_len) +
        " tokens is full, and this chat stops there; let its oldest messages leave (policy roll or "
        "summarise), or begin a new chat.";
    return plan;
  }

  ContextPlan refuse_long(ContextPlan plan, std::int32_t num_tokens) {
    const std::int32_t most = room_.most_prompt_tokens();
    if (room_.fixed + 2 * kSlack >= most) {
      plan.refusal = "Shorten the system prompt by about " + with_thousands(room_.fixed - most / 2) +
                     " tokens: it has about " + with_thousands(room_.fixed) + ", and the context " +
                     with_thousands(room_.context_len) + ".";
      return plan;
    }
    const ChatMessage& message = question_.path.back().message;
    const std::int64_t tokens = std::max(1, counts_.of_text(message.content, room_.context_len));
    const std::int64_t too_many = std::max(1, num_tokens - most);
    const std::int64_t bytes = too_many * static_cast<std::int64_t>(message.content.size()) / tokens + 1;
    plan.refusal = "Cut about " + with_thousands(too_many) + " tokens (" + with_thousands(bytes) +
                   " characters): this message has about " + with_thousands(tokens) +
                   " tokens, and at most " + with_thousands(tokens - too_many) + " fit into the context.";
    return plan;
  }

  const ContextQuestion& question_;
  TokenCounts& counts_;
  const TemplateInputs inputs_;
  ContextRoom room_;
  std::vector<ContextMessage> path_;
};

}  // namespace

std::int32_t TokenCounts::of_text(std::string_view text, std::int32_t context_len) {
  const std::size_t key = std::hash<std::string_view>()(text);
  if (const auto known = counted_.find(key); known != counted_.end()) return known->second;
  const tokenizer::EncodeLimits limits{.max_tokens = static_cast<std::size_t>(std::max(1, context_len))};
  const auto token_ids = tokenizer_.encode(text, /*parse_special=*/false, /*add_bos=*/false, limits);
  std::int64_t count = 0;
  if (token_ids) {
    count = static_cast<std::int64_t>(token_ids->size());
  } else if (token_ids.error().code == ErrorCode::kTooLong) {
    count = std::max(estimate(text), std::int64_t{context_len} + 1);
  }
  if (counted_.size() >= kMostCounted) counted_.clear();
  return counted_[key] = static_cast<std::int32_t>(std::min<std::int64_t>(count, 1'000'000'000));
}

// As if all of it were like its beginning.
std::int64_t TokenCounts::estimate(std::string_view text) const {
  std::string_view sample = text.substr(0, kSampleBytes);
  while (sample.size() < text.size() && !sample.empty() && continues_utf8(text[sample.size()]))
    sample.remove_suffix(1);
  const auto token_ids = tokenizer_.encode(sample, /*parse_special=*/false, /*add_bos=*/false);
  if (!token_ids || sample.empty()) return 0;
  return static_cast<std::int64_t>(static_cast<double>(token_ids->size()) * static_cast<double>(text.size()) /
                                   static_cast<double>(sample.size()));
}

// Half of what a question and an answer add beside their texts.
std::int32_t TokenCounts::around_message(const TemplateInputs& inputs) {
  if (around_message_) return *around_message_;
  const std::vector<ChatMessage> messages = {{Role::kUser, "x"}, {Role::kAssistant, "x"}, {Role::kUser, "x"}};
  const std::int64_t one = num_tokens(tokenizer_, std::span(messages).first(1), inputs);
  const std::int64_t three = num_tokens(tokenizer_, messages, inputs);
  const std::int64_t both = one < 0 || three < one ? 16 : three - one - 2 * of_text("x", kManyTokens);
  around_message_ = static_cast<std::int32_t>(std::max<std::int64_t>(0, (both + 1) / 2)) + kSlack;
  return *around_message_;
}

std::int32_t TokenCounts::of_message(const ChatMessage& message, std::int32_t context_len) {
  // What a template prints beside the messages is no part of one.
  return of_text(message.content, context_len) + around_message({});
}

std::int32_t TokenCounts::of_system_prompt(const std::string& system_prompt, std::int32_t context_len,
                                           const TemplateInputs& inputs) {
  const std::int32_t alone = system_prompt.empty() ? 0 : of_text(system_prompt, context_len);
  if (alone > context_len) return alone;
  std::vector<ChatMessage> messages;
  if (!system_prompt.empty()) messages.push_back({Role::kSystem, system_prompt});
  messages.push_back({Role::kUser, "x"});
  const std::int64_t count = num_tokens(tokenizer_, messages, inputs);
  if (count < 0) return alone + around_message(inputs);
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(0, count - of_text("x", kManyTokens) - around_message(inputs) + kSlack));
}

ContextQuestion context_question(const Chat& chat, MessageId last, std::int32_t context_len) {
  ContextQuestion question{.system_prompt = chat.system_prompt,
                           .policy = chat.context_policy,
                           .context_len = context_len,
                           .max_tokens = chat.sampling.max_tokens,
                           .template_values = chat.template_values};
  const Message* failed = nullptr;  // an answer, until its question is passed
  for (const Message* message = chat.find(last); message != nullptr; message = chat.find(message->parent)) {
    if (message->role == Role::kAssistant && message->content.empty()) {
      failed = message->finish_reason == FinishReason::kError ? message : nullptr;
      continue;
    }
    const bool of_failed = failed != nullptr && failed->parent == message->id && failed->id != last;
    failed = nullptr;
    if (of_failed && message->role == Role::kUser) continue;
    question.path.push_back({message->id,
                             {message->role, message->content, message->token_ids},
                             chat.summary_after(message->id)});
  }
  std::reverse(question.path.begin(), question.path.end());
  return question;
}

std::vector<ChatMessage> whole_prompt(const ContextQuestion& question) {
  return messages_from(question, 0, {});
}

ContextPlan plan_without_counting(const ContextQuestion& question) {
  ContextPlan plan;
  plan.prompt.messages = whole_prompt(question);
  plan.prompt.continue_answer = question.continue_answer;
  plan.prompt.template_values = question.template_values;
  return plan;
}

ContextPlan plan_context(const ContextQuestion& question, TokenCounts& counts, std::int64_t today) {
  return Planner(question, counts, today).plan();
}

}  // namespace octavo::app
