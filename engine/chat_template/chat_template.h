// Messages to prompt text, through the Jinja template that came with the model. The output remembers which
// characters came from messages, so that no user can write a special token. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/template_values.h"
#include "engine/base/result.h"
#include "engine/chat_template/jinja_budget.h"
#include "engine/chat_template/prompt_span.h"

namespace octavo::tokenizer {

namespace jinja {
class Template;
}

// What templates know beside the messages; empty: the model has none.
struct ChatTemplateConstants {
  std::string bos_token, eos_token;
};

class ChatTemplate {
 public:
  // More than this no template prints.
  static constexpr std::size_t kMaxTextBytes = jinja::Budget::kMaxTextBytes;

  // `source` "vicuna" stands for vicuna_template().
  static Result<ChatTemplate> parse(std::string_view source);

  // Variables are those of Hugging Face: messages (role, content), bos_token, eos_token,
  // add_generation_prompt = true, tools = documents = none, and those of `inputs`. A template that reads what
  // an answer thought apart from what it says is given both (reasoning_content, thinking), unless it looks
  // for the marks itself: gpt-oss refuses an answer with its channels in it. A span that is exactly one
  // message's content carries that message's index.
  Result<std::vector<PromptSpan>> render(std::span<const ChatMessage> messages,
                                         const ChatTemplateConstants& constants,
                                         const TemplateInputs& inputs) const;

  // As `render`, for whatever a chat may hold: a template that refuses the messages is asked again with the
  // same words in an order that it may accept. First adjacent messages of one role become one, with an empty
  // line between (an answer that was stopped before its first token leaves two questions), and a chat that an
  // answer begins gets an empty question before it. Then system text becomes the user's, too, and so stands
  // in front of the first question: for models without a system role (Gemma, the first Mistral models), as
  // their makers recommend. A text without a word of the messages counts as a refusal, as some templates
  // print for a system message alone; one that leaves out some of them has its way. When everything is
  // refused, the answer is that to the messages as they are.
  Result<std::vector<PromptSpan>> render_any(std::span<const ChatMessage> messages,
                                             const ChatTemplateConstants& constants,
                                             const TemplateInputs& inputs) const;

  // Whether this word stands in it anywhere.
  bool mentions(std::string_view word) const { return source_->find(word) != std::string::npos; }

  // Whether what this answer thought is given apart from what it says: see render().
  bool wants_apart(std::string_view answer) const;

  // Whether begin of sequence is the template's business. Vicuna's text is that of its makers, who leave it
  // to the tokenizer.
  bool writes_bos() const { return writes_bos_; }

 private:
  ChatTemplate(std::string_view source, jinja::Template parsed, bool writes_bos);

  // Shared because they are immutable and copies of a ChatTemplate are cheap then.
  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const jinja::Template> parsed_;
  bool writes_bos_;
  bool reads_thinking_;  // apart from the content
  bool finds_thinking_;  // in the content
};

// For models without a template: the contents, joined by line breaks.
std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages);

// The format of Vicuna 1.1 and later (Chiang et al. 2023; FastChat's "vicuna_v1.1"), whose files carry no
// template.
std::string_view vicuna_template();

}  // namespace octavo::tokenizer
