#include "engine/chat_template/chat_template.h"

#include <utility>

#include "engine/chat_template/jinja_interpreter.h"

namespace octavo::tokenizer {
namespace {

// A message as the template sees it.
struct Turn {
  Role role;
  MarkedText content;
};

std::vector<Turn> to_turns(std::span<const ChatMessage> messages) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    turns.push_back(
        {messages[i].role, MarkedText::message_content(messages[i].content, static_cast<std::int32_t>(i))});
  }
  return turns;
}

// REQUIRES: the first turn is the system's
std::vector<Turn> fold_system(std::vector<Turn> turns) {
  Turn& system = turns.front();
  system.role = Role::kUser;
  if (turns.size() == 1 || turns[1].role != Role::kUser) return turns;
  if (!system.content.empty()) system.content.append(MarkedText("\n\n"));
  system.content.append(turns[1].content);
  turns.erase(turns.begin() + 1);
  return turns;
}

Result<jinja::Template::Variables> make_variables(std::vector<Turn> turns,
                                                  const ChatTemplateConstants& constants) {
  std::vector<jinja::Value> values;
  for (Turn& turn : turns) {
    OCTAVO_TRY(jinja::Value value,
               jinja::make_dict({{"role", role_name(turn.role)}, {"content", std::move(turn.content)}}));
    values.push_back(std::move(value));
  }
  OCTAVO_TRY(jinja::Value list, jinja::make_list(std::move(values)));
  return jinja::Template::Variables{{"messages", std::move(list)},
                                    {"bos_token", std::string_view(constants.bos_token)},
                                    {"eos_token", std::string_view(constants.eos_token)},
                                    {"add_generation_prompt", true},
                                    {"tools", jinja::Value()},
                                    {"documents", jinja::Value()}};
}

bool is_whole_message(const MarkedText::Run& run, std::size_t length, std::span<const ChatMessage> messages) {
  return run.source >= 0 && run.offset == 0 &&
         length == messages[static_cast<std::size_t>(run.source)].content.size();
}

std::vector<PromptSpan> to_spans(const MarkedText& text, std::span<const ChatMessage> messages) {
  std::vector<PromptSpan> spans;
  std::size_t begin = 0;
  for (const MarkedText::Run& run : text.runs()) {
    PromptSpan span{text.text().substr(begin, run.end - begin), run.is_input()};
    if (is_whole_message(run, run.end - begin, messages)) span.message_index = run.source;
    spans.push_back(std::move(span));
    begin = run.end;
  }
  return spans;
}

Result<std::vector<PromptSpan>> render_turns(const jinja::Template& parsed, std::vector<Turn> turns,
                                             std::span<const ChatMessage> messages,
                                             const ChatTemplateConstants& constants, std::int64_t today) {
  OCTAVO_TRY(const jinja::Template::Variables variables, make_variables(std::move(turns), constants));
  OCTAVO_TRY(const MarkedText text, parsed.render(variables, today));
  return to_spans(text, messages);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  const bool is_vicuna = source == "vicuna";
  OCTAVO_TRY(jinja::Template parsed, jinja::Template::parse(is_vicuna ? vicuna_template() : source));
  return ChatTemplate(std::make_shared<const jinja::Template>(std::move(parsed)), !is_vicuna);
}

Result<std::vector<PromptSpan>> ChatTemplate::render(std::span<const ChatMessage> messages,
                                                     const ChatTemplateConstants& constants,
                                                     std::int64_t today) const {
  return render_turns(*parsed_, to_turns(messages), messages, constants, today);
}

Result<std::vector<PromptSpan>> ChatTemplate::render_folding_system(std::span<const ChatMessage> messages,
                                                                    const ChatTemplateConstants& constants,
                                                                    std::int64_t today) const {
  auto spans = render(messages, constants, today);
  // A template that ran out of its budget would do so again.
  const bool may_fold = !spans && spans.error().code == ErrorCode::kInvalidArgument && !messages.empty() &&
                        messages.front().role == Role::kSystem;
  if (!may_fold) return spans;
  auto folded = render_turns(*parsed_, fold_system(to_turns(messages)), messages, constants, today);
  return folded ? std::move(folded) : std::move(spans);
}

std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages) {
  std::vector<PromptSpan> spans;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0) spans.push_back({"\n"});
    if (!messages[i].content.empty())
      spans.push_back({messages[i].content, true, static_cast<std::int32_t>(i)});
  }
  return spans;
}

std::string_view vicuna_template() {
  return R"({%- if messages and messages[0]['role'] == 'system' -%}
{{- messages[0]['content'] + ' ' -}}
{%- set conversation = messages[1:] -%}
{%- else -%}
{{- "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user's questions. " -}}
{%- set conversation = messages -%}
{%- endif -%}
{%- for message in conversation -%}
{%- if message['role'] == 'assistant' -%}
{{- 'ASSISTANT: ' + message['content'] + (eos_token or '</s>') -}}
{%- else -%}
{{- 'USER: ' + message['content'] + ' ' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%})";
}

}  // namespace octavo::tokenizer
