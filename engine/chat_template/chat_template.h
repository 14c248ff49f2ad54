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
struct ToolHabits;  // chat_template.cc

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

  // Variables are those of Hugging Face: messages (role, content), bos_token, eos_token, tools, documents =
  // none, and those of `inputs`, add_generation_prompt too. A template that reads what an answer thought
  // apart from what it says is given both (reasoning_content, thinking), unless it looks for the marks
  // itself: gpt-oss refuses an answer with its channels in it. A span that is exactly one message's content
  // carries that message's index.
  //
  // Tools: `tools` is the list of inputs.tools, none where that is empty; anything else than a JSON list of
  // objects is an error about "tools". An answer with calls has tool_calls (id, type, function: name,
  // arguments), a result has tool_call_id and, where an earlier answer made that call, name. What a template
  // does with them is tried once, with words that stand nowhere else: it is given the arguments as an object
  // or, where it prints only text, as they were written; an answer that only calls has the content "" or,
  // where calls are printed only so, none; what stands beside calls is given in front of them where they
  // would be lost. A template that does not print the tools is told of them in the form of with_tools_told()
  // (chat_turns.h), and then calls and results have that form, too; one that prints the tools and no calls or
  // no results gets those as text, calls in the marks of its makers where it names them. All that comes from
  // tools and calls is input.
  Result<std::vector<PromptSpan>> render(std::span<const ChatMessage> messages,
                                         const ChatTemplateConstants& constants,
                                         const TemplateInputs& inputs) const;

  // As `render`, for whatever a chat may hold: a template that refuses the messages is asked again with the
  // same words in an order that it may accept. First adjacent messages of one role become one, with an empty
  // line between (an answer that was stopped before its first token leaves two questions), and a chat that an
  // answer begins gets an empty question before it. Then system text becomes the user's, too, and so stands
  // in front of the first question: for models without a system role (Gemma, the first Mistral models), as
  // their makers recommend. Where there are calls, their names become short ones first, then each is made in
  // an answer of its own, then calls and results are text, and at last the tools too. A text without a word
  // of the messages counts as a refusal, as some templates print for a system message alone; one that leaves
  // out some of them has its way. When everything is refused, the answer is that to the messages as they are.
  Result<std::vector<PromptSpan>> render_any(std::span<const ChatMessage> messages,
                                             const ChatTemplateConstants& constants,
                                             const TemplateInputs& inputs) const;

  // Whether this word stands in it anywhere.
  bool mentions(std::string_view word) const { return source_->find(word) != std::string::npos; }

  // Whether it prints the tools that it is given. Else they are told in a form of ours, and answers are asked
  // to call in it: <tool_call>{"name": ..., "arguments": ...}</tool_call>.
  bool knows_tools() const;

  // The Jinja source, as it was given.
  std::string_view source() const { return *source_; }

  // Whether what this answer thought is given apart from what it says: see render().
  bool wants_apart(std::string_view answer) const;

  // Whether begin of sequence is the template's business. Vicuna's text is that of its makers, who leave it
  // to the tokenizer.
  bool writes_bos() const { return writes_bos_; }

 private:
  struct LazyToolHabits;

  const ToolHabits& tool_habits() const;  // found at the first call

  ChatTemplate(std::string_view source, jinja::Template parsed, bool writes_bos);

  // Shared because they are immutable and copies of a ChatTemplate are cheap then.
  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const jinja::Template> parsed_;
  bool writes_bos_;
  bool reads_thinking_;  // apart from the content
  bool finds_thinking_;  // in the content
  std::shared_ptr<LazyToolHabits> tool_habits_;
};

// For models without a template: the contents, joined by line breaks.
std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages);

// The format of Vicuna 1.1 and later (Chiang et al. 2023; FastChat's "vicuna_v1.1"), whose files carry no
// template.
std::string_view vicuna_template();

}  // namespace octavo::tokenizer
