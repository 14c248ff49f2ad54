#include "engine/chat_template/chat_template.h"

#include <algorithm>
#include <utility>

#include "engine/base/overloaded.h"
#include "engine/chat_template/answer_parts.h"
#include "engine/chat_template/jinja_interpreter.h"

namespace octavo::tokenizer {
namespace {

// A message as the template sees it.
struct Turn {
  Role role;
  MarkedText content;
  MarkedText thinking = {};  // of an answer, where the template wants it apart
};

void append(MarkedText& content, const MarkedText& more) {
  if (!content.empty() && !more.empty()) content.append(MarkedText("\n\n"));
  content.append(more);
}

// What an answer says, and what was thought before it. One that was stopped while it thought stays whole:
// some templates refuse an empty answer (in messages with headers, the whole is what they refuse).
Turn split(Turn answer, std::string_view text) {
  Turn turn{answer.role, {}, {}};
  for (const AnswerPart& part : answer_parts(text, /*is_final=*/true)) {
    if (part.empty()) continue;
    append(part.kind == PartKind::kThinking ? turn.thinking : turn.content,
           answer.content.slice(part.begin, part.end));
  }
  const bool says_nothing = turn.content.empty(), has_thought = !turn.thinking.empty();
  if (is_in_messages(text)) return says_nothing && !has_thought ? answer : turn;
  return says_nothing || !has_thought ? answer : turn;
}

std::vector<Turn> to_turns(const ChatTemplate& chat_template, std::span<const ChatMessage> messages) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& content = messages[i].content;
    Turn turn{messages[i].role, MarkedText::message_content(content, static_cast<std::int32_t>(i)), {}};
    const bool is_apart = turn.role == Role::kAssistant && chat_template.wants_apart(content);
    turns.push_back(is_apart ? split(std::move(turn), content) : std::move(turn));
  }
  return turns;
}

// No two turns of one role in a row, and the user's before the first answer.
std::vector<Turn> alternating(const std::vector<Turn>& turns) {
  std::vector<Turn> result;
  for (const Turn& turn : turns) {
    const bool is_unasked =
        turn.role == Role::kAssistant && (result.empty() || result.back().role == Role::kSystem);
    if (is_unasked) result.push_back({Role::kUser, {}});
    if (!result.empty() && result.back().role == turn.role) {
      append(result.back().content, turn.content);
      append(result.back().thinking, turn.thinking);
    } else {
      result.push_back(turn);
    }
  }
  return result;
}

std::vector<Turn> without_system_role(std::vector<Turn> turns) {
  for (Turn& turn : turns) {
    if (turn.role == Role::kSystem) turn.role = Role::kUser;
  }
  return turns;
}

// Text that somebody chose is input, like a message: no special token comes of it.
jinja::Value to_value(const TemplateValue& value) {
  return std::visit(Overloaded{[](bool flag) { return jinja::Value(flag); },
                               [](std::int64_t number) { return jinja::Value(number); },
                               [](const std::string& text) {
                                 return jinja::Value(MarkedText::derived(text, /*from_input=*/true));
                               }},
                    value);
}

Result<jinja::Template::Variables> make_variables(std::vector<Turn> turns,
                                                  const ChatTemplateConstants& constants,
                                                  const TemplateValues& told) {
  std::vector<jinja::Value> values;
  for (Turn& turn : turns) {
    std::vector<std::pair<jinja::Value, jinja::Value>> entries = {{"role", role_name(turn.role)},
                                                                  {"content", std::move(turn.content)}};
    if (!turn.thinking.empty()) {
      entries.emplace_back("reasoning_content", turn.thinking);
      entries.emplace_back("thinking", std::move(turn.thinking));
    }
    OCTAVO_TRY(jinja::Value value, jinja::make_dict(std::move(entries)));
    values.push_back(std::move(value));
  }
  OCTAVO_TRY(jinja::Value list, jinja::make_list(std::move(values)));
  jinja::Template::Variables variables = {{"messages", std::move(list)},
                                          {"bos_token", std::string_view(constants.bos_token)},
                                          {"eos_token", std::string_view(constants.eos_token)},
                                          {"add_generation_prompt", true},
                                          {"tools", jinja::Value()},
                                          {"documents", jinja::Value()}};
  for (const auto& [name, value] : told) variables.emplace_back(name, to_value(value));
  return variables;
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

bool has_input(std::span<const PromptSpan> spans) {
  return std::ranges::any_of(spans, &PromptSpan::is_input);
}

Result<std::vector<PromptSpan>> render_turns(const jinja::Template& parsed, std::vector<Turn> turns,
                                             std::span<const ChatMessage> messages,
                                             const ChatTemplateConstants& constants,
                                             const TemplateInputs& inputs) {
  OCTAVO_TRY(const jinja::Template::Variables variables,
             make_variables(std::move(turns), constants, inputs.values));
  OCTAVO_TRY(const MarkedText text, parsed.render(variables, inputs.today));
  return to_spans(text, messages);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  const bool is_vicuna = source == "vicuna";
  if (is_vicuna) source = vicuna_template();
  OCTAVO_TRY(jinja::Template parsed, jinja::Template::parse(source));
  return ChatTemplate(source, std::move(parsed), !is_vicuna);
}

ChatTemplate::ChatTemplate(std::string_view source, jinja::Template parsed, bool writes_bos)
    : source_(std::make_shared<const std::string>(source)),
      parsed_(std::make_shared<const jinja::Template>(std::move(parsed))),
      writes_bos_(writes_bos),
      reads_thinking_(mentions("reasoning_content") || mentions("thinking")),
      finds_thinking_(mentions("</think>") || mentions("<channel|>")) {}

bool ChatTemplate::wants_apart(std::string_view answer) const {
  return reads_thinking_ && (is_in_messages(answer) || !finds_thinking_);
}

Result<std::vector<PromptSpan>> ChatTemplate::render(std::span<const ChatMessage> messages,
                                                     const ChatTemplateConstants& constants,
                                                     const TemplateInputs& inputs) const {
  return render_turns(*parsed_, to_turns(*this, messages), messages, constants, inputs);
}

Result<std::vector<PromptSpan>> ChatTemplate::render_any(std::span<const ChatMessage> messages,
                                                         const ChatTemplateConstants& constants,
                                                         const TemplateInputs& inputs) const {
  auto as_they_are = render(messages, constants, inputs);
  const bool is_accepted = as_they_are && (has_input(*as_they_are) || messages.empty());
  // A template that ran out of its budget would do so again.
  const bool may_accept_others = as_they_are || as_they_are.error().code == ErrorCode::kInvalidArgument;
  if (is_accepted || !may_accept_others) return as_they_are;
  const std::vector<Turn> turns = to_turns(*this, messages);
  for (const auto& others : {alternating(turns), alternating(without_system_role(turns))}) {
    auto spans = render_turns(*parsed_, others, messages, constants, inputs);
    if (spans && (has_input(*spans) || !as_they_are)) return spans;
  }
  return as_they_are;
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
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{%- if message['role'] == 'assistant' -%}
{{- 'ASSISTANT: ' + message['content'] + (eos_token or '</s>') -}}
{%- else -%}
{{- 'USER: ' + message['content'] + ' ' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%})";
}

}  // namespace octavo::tokenizer
