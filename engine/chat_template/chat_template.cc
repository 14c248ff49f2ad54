#include "engine/chat_template/chat_template.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/overloaded.h"
#include "engine/chat_template/answer_parts.h"
#include "engine/chat_template/chat_turns.h"
#include "engine/chat_template/jinja_interpreter.h"
#include "engine/chat_template/jinja_json.h"

namespace octavo::tokenizer {

// What a template does with tools.
struct ToolHabits {
  bool lists_tools = false;     // prints what `tools` holds
  bool writes_calls = false;    // prints tool_calls
  bool writes_results = false;  // prints messages of the role tool
  bool wants_text = false;      // arguments as they were written, not as an object
  bool wants_none = false;      // for the content of an answer that only calls
  bool wants_apart = false;     // calls are lost beside content
  CallMarks call_marks = {};    // where it writes no calls
};

namespace {

// What an answer says, and what was thought before it. One that was stopped while it thought stays whole:
// some templates refuse an empty answer (in messages with headers, the whole is what they refuse). One that
// thought and then called is no such answer.
Turn split(Turn answer, std::string_view text) {
  Turn turn = answer;
  turn.content = {};
  for (const AnswerPart& part : answer_parts(text, /*is_final=*/true)) {
    if (part.empty()) continue;
    append_content(part.kind == PartKind::kThinking ? turn.thinking : turn.content,
                   answer.content.slice(part.begin, part.end));
  }
  const bool says_nothing = turn.content.empty() && turn.calls.empty(), has_thought = !turn.thinking.empty();
  if (is_in_messages(text)) return says_nothing && !has_thought ? answer : turn;
  return says_nothing || !has_thought ? answer : turn;
}

// What comes from outside, numbered: messages, their calls, and then tools.
class InputNumbers {
 public:
  explicit InputNumbers(std::span<const ChatMessage> messages) : num_messages_(messages.size()) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      for (std::size_t call = 0; call < messages[i].tool_calls.size(); ++call)
        calls_.push_back(
            {PromptOrigin::Kind::kCall, static_cast<std::int32_t>(i), static_cast<std::int32_t>(call)});
    }
  }

  // Of a call, by its place among those of all messages.
  std::int32_t call(std::size_t index) const { return static_cast<std::int32_t>(num_messages_ + index); }
  std::int32_t first_tool() const { return call(calls_.size()); }

  PromptOrigin origin_of(const MarkedText::Run& run) const {
    if (!run.is_input()) return {};
    const auto input = MarkedText::input_of(run.source);
    if (!input) return {.kind = PromptOrigin::Kind::kOther};
    const auto number = static_cast<std::size_t>(*input);
    if (number < num_messages_) {
      return {.kind = PromptOrigin::Kind::kMessage,
              .index = *input,
              .offset = run.source < 0 ? -1 : static_cast<std::int32_t>(run.offset)};
    }
    if (number < num_messages_ + calls_.size()) return calls_[number - num_messages_];
    return {.kind = PromptOrigin::Kind::kTool, .index = *input - first_tool()};
  }

 private:
  std::size_t num_messages_;
  std::vector<PromptOrigin> calls_;
};

CallInTurn to_call(const ToolCall& call, std::int32_t number) {
  const auto input = [&](const std::string& text) { return MarkedText::of_input(text, number); };
  const bool is_blank = call.arguments.find_first_not_of(" \t\r\n") == std::string::npos;
  return {input(call.id), input(call.name), input(is_blank ? "{}" : call.arguments)};
}

Turns to_turns(const ChatTemplate& chat_template, std::span<const ChatMessage> messages) {
  const InputNumbers numbers(messages);
  std::size_t num_calls = 0;
  Turns turns;
  std::map<std::string_view, std::string_view> names;  // of the functions, by their calls
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    Turn turn{message.role, MarkedText::message_content(message.content, static_cast<std::int32_t>(i))};
    if (turn.role == Role::kAssistant) {
      for (const ToolCall& call : message.tool_calls) {
        turn.calls.push_back(to_call(call, numbers.call(num_calls++)));
        names.insert_or_assign(call.id, call.name);
      }
    } else if (turn.role == Role::kTool && !message.tool_call_id.empty()) {
      const auto of_result = [&](std::string_view text) {
        return MarkedText::of_input(std::string(text), static_cast<std::int32_t>(i));
      };
      turn.call_id = of_result(message.tool_call_id);
      const auto name = names.find(message.tool_call_id);
      if (name != names.end()) turn.function = of_result(name->second);
    }
    const bool is_apart = turn.role == Role::kAssistant && chat_template.wants_apart(message.content);
    turns.push_back(is_apart ? split(std::move(turn), message.content) : std::move(turn));
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

using Entries = std::vector<std::pair<jinja::Value, jinja::Value>>;

// A model may have written what is no JSON; then that is what templates get. What means nothing is no
// arguments.
jinja::Outcome arguments_value(const MarkedText& arguments, const ToolHabits& habits, jinja::Budget& budget) {
  if (habits.wants_text) return jinja::Value(arguments);
  const jinja::Outcome read = jinja::read_json_of(arguments, budget);
  if (!read && read.error().code == ErrorCode::kUnsupported) return read.error();
  if (read && read->is_none()) return jinja::make_dict({});
  return read && read->is_dict() ? *read : jinja::Value(arguments);
}

jinja::Outcome calls_value(const std::vector<CallInTurn>& calls, const ToolHabits& habits,
                           jinja::Budget& budget) {
  std::vector<jinja::Value> values;
  for (const CallInTurn& call : calls) {
    OCTAVO_TRY(jinja::Value arguments, arguments_value(call.arguments, habits, budget));
    OCTAVO_TRY(jinja::Value function,
               jinja::make_dict({{"name", call.name}, {"arguments", std::move(arguments)}}));
    OCTAVO_TRY(jinja::Value value,
               jinja::make_dict({{"id", call.id}, {"type", "function"}, {"function", std::move(function)}}));
    values.push_back(std::move(value));
  }
  return jinja::make_list(std::move(values));
}

jinja::Outcome message_value(const Turn& turn, const ToolHabits& habits, jinja::Budget& budget) {
  const bool is_none = habits.wants_none && turn.content.empty() && !turn.calls.empty();
  Entries entries = {{"role", role_name(turn.role)},
                     {"content", is_none ? jinja::Value() : jinja::Value(turn.content)}};
  if (!turn.thinking.empty()) {
    entries.emplace_back("reasoning_content", turn.thinking);
    entries.emplace_back("thinking", turn.thinking);
  }
  if (!turn.calls.empty()) {
    OCTAVO_TRY(jinja::Value calls, calls_value(turn.calls, habits, budget));
    entries.emplace_back("tool_calls", std::move(calls));
  }
  if (!turn.call_id.empty()) entries.emplace_back("tool_call_id", turn.call_id);
  if (!turn.function.empty()) entries.emplace_back("name", turn.function);
  return jinja::make_dict(std::move(entries));
}

// What templates know beside the turns.
struct Told {
  const ChatTemplateConstants& constants;
  const TemplateInputs& inputs;
  const jinja::Value& tools;
};

Result<jinja::Template::Variables> make_variables(const Turns& turns, const Told& told,
                                                  const ToolHabits& habits) {
  jinja::Budget budget;
  std::vector<jinja::Value> values;
  for (const Turn& turn : turns) {
    OCTAVO_TRY(jinja::Value value, message_value(turn, habits, budget));
    values.push_back(std::move(value));
  }
  OCTAVO_TRY(jinja::Value list, jinja::make_list(std::move(values)));
  jinja::Template::Variables variables = {{"messages", std::move(list)},
                                          {"bos_token", std::string_view(told.constants.bos_token)},
                                          {"eos_token", std::string_view(told.constants.eos_token)},
                                          {"add_generation_prompt", told.inputs.add_generation_prompt},
                                          {"tools", habits.lists_tools ? told.tools : jinja::Value()},
                                          {"documents", jinja::Value()}};
  for (const auto& [name, value] : told.inputs.values) variables.emplace_back(name, to_value(value));
  return variables;
}

// The turns as a template with these habits is given them.
Result<Turns> formed(Turns turns, const jinja::Value& tools, const ToolHabits& habits) {
  jinja::Budget budget;
  if (habits.writes_calls) {
    if (habits.wants_apart) turns = with_calls_apart(turns);
  } else {
    OCTAVO_TRY(turns, with_calls_as_text(std::move(turns), habits.call_marks, budget));
  }
  if (!habits.writes_results) turns = with_results_as_text(turns);
  if (habits.lists_tools) return turns;
  return with_tools_told(std::move(turns), tools, budget);
}

bool concerns_tools(std::span<const ChatMessage> messages, const TemplateInputs& inputs) {
  return !inputs.tools.empty() || std::ranges::any_of(messages, [](const ChatMessage& message) {
    return !message.tool_calls.empty() || !message.tool_call_id.empty();
  });
}

Error tools_are_wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "tools must be a JSON list of objects, but " + what, "tools"};
}

// None where nothing may be called.
jinja::Outcome read_tools(const std::string& text, std::int32_t first_input) {
  if (text.empty()) return jinja::Value();
  jinja::Budget budget;
  jinja::Outcome tools = jinja::read_json_list_of_inputs(text, first_input, budget);
  if (!tools && tools.error().code == ErrorCode::kUnsupported)
    return Error{ErrorCode::kUnsupported, "tools: they are too long; give fewer", "tools"};
  if (!tools) return tools_are_wrong(tools.error().message);
  if (!tools->is_list()) return tools_are_wrong("they are of another kind");
  for (std::size_t i = 0; i < tools->items().size(); ++i) {
    if (!tools->items()[i].is_dict()) return tools_are_wrong("entry " + std::to_string(i) + " is none");
  }
  return tools->items().empty() ? jinja::Value() : tools;
}

bool is_whole_message(const MarkedText::Run& run, std::size_t length, std::span<const ChatMessage> messages) {
  return run.source >= 0 && run.offset == 0 &&
         length == messages[static_cast<std::size_t>(run.source)].content.size();
}

std::vector<PromptSpan> to_spans(const MarkedText& text, std::span<const ChatMessage> messages) {
  const InputNumbers numbers(messages);
  std::vector<PromptSpan> spans;
  std::size_t begin = 0;
  for (const MarkedText::Run& run : text.runs()) {
    PromptSpan span{text.text().substr(begin, run.end - begin), run.is_input()};
    if (is_whole_message(run, run.end - begin, messages)) span.message_index = run.source;
    span.origin = numbers.origin_of(run);
    spans.push_back(std::move(span));
    begin = run.end;
  }
  return spans;
}

bool has_input(std::span<const PromptSpan> spans) {
  return std::ranges::any_of(spans, &PromptSpan::is_input);
}

Result<std::vector<PromptSpan>> render_turns(const jinja::Template& parsed, const Turns& turns,
                                             std::span<const ChatMessage> messages, const Told& told,
                                             const ToolHabits& habits) {
  OCTAVO_TRY(const jinja::Template::Variables variables, make_variables(turns, told, habits));
  OCTAVO_TRY(const MarkedText text, parsed.render(variables, told.inputs.today));
  return to_spans(text, messages);
}

// As a chat without calls is given.
constexpr ToolHabits kNoHabits = {.lists_tools = true, .writes_calls = true, .writes_results = true};

// Asks a template what it does with tools.
class ToolTrial {
 public:
  explicit ToolTrial(const jinja::Template& parsed) : parsed_(parsed) {}

  ToolHabits find() const {
    ToolHabits habits;
    habits.lists_tools = prints({question()}, kName) || prints({system(), question()}, kName);
    if (!habits.lists_tools) return habits;
    for (const auto& [wants_text, wants_none] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      ToolHabits tried = kNoHabits;
      tried.wants_text = wants_text;
      tried.wants_none = wants_none;
      const std::string printed = print({question(), call(""), result()}, tried);
      if (!shows_call(printed)) continue;
      tried.writes_results = printed.find(kResult) != std::string::npos;
      tried.wants_apart = !shows_call(print({question(), call("words"), result()}, tried)) &&
                          shows_call(print(with_calls_apart({question(), call("words"), result()}), tried));
      return tried;
    }
    habits.writes_results =
        prints({question(), {.role = Role::kAssistant, .content = "words"}, result()}, kResult);
    return habits;
  }

 private:
  static constexpr std::string_view kName = "octavo_name", kKey = "octavo_key", kValue = "octavo_value",
                                    kResult = "octavo_result", kId = "octavo123";

  static Turn question() { return {.role = Role::kUser, .content = "question"}; }
  static Turn system() { return {.role = Role::kSystem, .content = "instruction"}; }
  static Turn call(const char* content) {
    return {.role = Role::kAssistant,
            .content = content,
            .calls = {{kId, kName, std::string_view(R"({"octavo_key": "octavo_value"})")}}};
  }
  static Turn result() {
    return {.role = Role::kTool, .content = kResult, .call_id = kId, .function = kName};
  }

  // An object that was printed as Python prints it is none that the model has seen.
  static bool shows_call(std::string_view printed) {
    const std::size_t key = printed.find(kKey);
    return key != std::string_view::npos && printed.find(kValue, key) != std::string_view::npos &&
           printed.find("{'octavo_key'") == std::string_view::npos;
  }

  bool prints(const Turns& turns, std::string_view word) const {
    return print(turns, kNoHabits).find(word) != std::string::npos;
  }

  // Nothing where the template refuses.
  std::string print(const Turns& turns, const ToolHabits& habits) const {
    static const std::string kTools =
        R"([{"type": "function", "function": {"name": "octavo_name", "description": "words", "parameters": )"
        R"({"type": "object", "properties": {"topic": {"type": "string", "description": "words"}}, )"
        R"("required": ["topic"]}}}])";
    static const ChatTemplateConstants kConstants;
    static const TemplateInputs kInputs;
    const jinja::Outcome tools = read_tools(kTools, 0);
    const auto spans = render_turns(parsed_, turns, {}, {kConstants, kInputs, tools.value()}, habits);
    std::string text;
    if (!spans) return text;
    for (const PromptSpan& span : *spans) text += span.text;
    return text;
  }

  const jinja::Template& parsed_;
};

// Granite's, LFM2's and Mistral's templates tell of calls and leave it to the client to write them so.
struct NamedMarks {
  std::string_view name;
  CallMarks marks;
};
constexpr CallMarks kLfm2Marks = {"<|tool_call_start|>[", ", ", "]<|tool_call_end|>", /*as_python=*/true};
constexpr NamedMarks kNamedMarks[] = {
    {"<|tool_call|>", {"<|tool_call|>[", ", ", "]"}},  {"<|tool_list_start|>", kLfm2Marks},
    {"<|tool_response_start|>", kLfm2Marks},           {"[TOOL_CALLS]", {"[TOOL_CALLS][", ", ", "]"}},
    {"[TOOL_RESULTS]", {"[TOOL_CALLS] [", ", ", "]"}},  // names the other marks alone
};

// Another way to say the same to a template that refused it.
struct Wording {
  Turns turns;
  ToolHabits habits;
};

std::vector<Wording> other_wordings(const Turns& turns, const ToolHabits& habits) {
  const Turns short_ids = with_short_call_ids(turns);
  ToolHabits as_text = habits;
  as_text.writes_calls = as_text.writes_results = false;
  return {{turns, habits},
          {short_ids, habits},
          {with_single_calls(short_ids), habits},
          {turns, as_text},
          {turns, ToolHabits{}}};
}

}  // namespace

// Copies share it: most chats have no tools, and then nothing is tried.
struct ChatTemplate::LazyToolHabits {
  std::once_flag is_found;
  ToolHabits habits;
};

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
      finds_thinking_(mentions("</think>") || mentions("<channel|>")),
      tool_habits_(std::make_shared<LazyToolHabits>()) {}

const ToolHabits& ChatTemplate::tool_habits() const {
  std::call_once(tool_habits_->is_found, [this] {
    ToolHabits& habits = tool_habits_->habits;
    if (mentions("tools")) habits = ToolTrial(*parsed_).find();
    if (!habits.lists_tools) return;
    const auto named = std::ranges::find_if(kNamedMarks, [this](const auto& m) { return mentions(m.name); });
    if (named != std::end(kNamedMarks)) habits.call_marks = named->marks;
  });
  return tool_habits_->habits;
}

bool ChatTemplate::knows_tools() const { return tool_habits().lists_tools; }

bool ChatTemplate::wants_apart(std::string_view answer) const {
  return reads_thinking_ && (is_in_messages(answer) || !finds_thinking_);
}

Result<std::vector<PromptSpan>> ChatTemplate::render(std::span<const ChatMessage> messages,
                                                     const ChatTemplateConstants& constants,
                                                     const TemplateInputs& inputs) const {
  const Turns turns = to_turns(*this, messages);
  if (!concerns_tools(messages, inputs)) {
    return render_turns(*parsed_, turns, messages, {constants, inputs, {}}, kNoHabits);
  }
  OCTAVO_TRY(const jinja::Value tools, read_tools(inputs.tools, InputNumbers(messages).first_tool()));
  OCTAVO_TRY(const Turns told, formed(turns, tools, tool_habits()));
  return render_turns(*parsed_, told, messages, {constants, inputs, tools}, tool_habits());
}

Result<std::vector<PromptSpan>> ChatTemplate::render_any(std::span<const ChatMessage> messages,
                                                         const ChatTemplateConstants& constants,
                                                         const TemplateInputs& inputs) const {
  OCTAVO_TRY(const jinja::Value tools, read_tools(inputs.tools, InputNumbers(messages).first_tool()));
  auto as_they_are = render(messages, constants, inputs);
  const bool is_accepted = as_they_are && (has_input(*as_they_are) || messages.empty());
  // A template that ran out of its budget would do so again.
  const bool may_accept_others = as_they_are || as_they_are.error().code == ErrorCode::kInvalidArgument;
  if (is_accepted || !may_accept_others) return as_they_are;
  const Turns turns = to_turns(*this, messages);
  const bool has_tools = concerns_tools(messages, inputs);
  const std::vector<Wording> wordings =
      has_tools ? other_wordings(turns, tool_habits()) : std::vector<Wording>{{turns, kNoHabits}};
  for (std::size_t i = 0; i < wordings.size(); ++i) {
    const auto& [said, habits] = wordings[i];
    OCTAVO_TRY(const Turns told, formed(said, tools, habits));
    std::vector<Turns> orders = {alternating(told), alternating(without_system_role(told))};
    if (i > 0) orders.insert(orders.begin(), told);  // the first was refused above
    for (const Turns& order : orders) {
      auto spans = render_turns(*parsed_, order, messages, {constants, inputs, tools}, habits);
      if (spans && (has_input(*spans) || !as_they_are)) return spans;
    }
  }
  return as_they_are;
}

std::vector<PromptSpan> plain_completion(std::span<const ChatMessage> messages) {
  std::vector<PromptSpan> spans;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0) spans.push_back({"\n"});
    const auto index = static_cast<std::int32_t>(i);
    if (!messages[i].content.empty()) {
      spans.push_back({messages[i].content,
                       true,
                       index,
                       {.kind = PromptOrigin::Kind::kMessage, .index = index, .offset = 0}});
    }
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
