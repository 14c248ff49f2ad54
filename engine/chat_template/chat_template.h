// Messages to prompt text, through the Jinja template that came with the model. The output remembers which
// characters came from messages, so that no user can write a special token. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/result.h"
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
  // `source` "vicuna" stands for vicuna_template().
  static Result<ChatTemplate> parse(std::string_view source);

  // Variables are those of Hugging Face: messages (role, content), bos_token, eos_token,
  // add_generation_prompt = true, tools = documents = none. `today`: seconds since 1970, UTC, for
  // strftime_now. A span that is exactly one message's content carries that message's index.
  Result<std::vector<PromptSpan>> render(std::span<const ChatMessage> messages,
                                         const ChatTemplateConstants& constants, std::int64_t today) const;

  // As `render`, for models without a system role (Gemma, the first Mistral models), whose templates refuse
  // such a message: then the system text stands in front of the first user message, with an empty line
  // between, as their makers recommend; without a user message after it, it is one itself. A template that
  // leaves system messages out without a word has its way. When that is refused, too, the error is that of
  // the messages as they are.
  Result<std::vector<PromptSpan>> render_folding_system(std::span<const ChatMessage> messages,
                                                        const ChatTemplateConstants& constants,
                                                        std::int64_t today) const;

  // Whether begin of sequence is the template's business. Vicuna's text is that of its makers, who leave it
  // to the tokenizer.
  bool writes_bos() const { return writes_bos_; }

 private:
  ChatTemplate(std::shared_ptr<const jinja::Template> parsed, bool writes_bos)
      : parsed_(std::move(parsed)), writes_bos_(writes_bos) {}

  std::shared_ptr<const jinja::Template>
      parsed_;  // shared because it is immutable and copies of a ChatTemplate are cheap then
  bool writes_bos_;
};

// For models without a template: the contents, joined by line breaks.
std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages);

// The format of Vicuna 1.1 and later (Chiang et al. 2023; FastChat's "vicuna_v1.1"), whose files carry no
// template.
std::string_view vicuna_template();

}  // namespace octavo::tokenizer
