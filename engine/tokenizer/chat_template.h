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
#include "engine/tokenizer/tokenizer.h"

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

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const jinja::Template>
      parsed_;  // shared because it is immutable and copies of a ChatTemplate are cheap then
};

// For models without a template: the contents, joined by line breaks.
std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages);

// The format of Vicuna 1.1 and later (Chiang et al. 2023; FastChat's "vicuna_v1.1"), whose files carry no
// template.
std::string_view vicuna_template();

}  // namespace octavo::tokenizer
