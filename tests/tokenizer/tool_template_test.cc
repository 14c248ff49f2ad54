// What chat templates make of tools, of answers that call and of results.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/chat_template.h"
#include "engine/chat_template/tool_arguments.h"
#include "engine/chat_template/tool_calls.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo::tokenizer {
namespace {

const ChatTemplateConstants kBeginAndEnd = {"<s>", "</s>"};
constexpr std::string_view kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n\n";
constexpr const char* kOneTool =
    R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}])";

std::vector<ChatMessage> read_messages(const nlohmann::json& json) {
  std::vector<ChatMessage> messages;
  for (const auto& entry : json) {
    ChatMessage message{.role = *parse_role(entry["role"].get<std::string>()),
                        .content = entry["content"].get<std::string>()};
    for (const auto& call : entry.value("tool_calls", nlohmann::json::array())) {
      message.tool_calls.push_back({call["id"].get<std::string>(),
                                    call["function"]["name"].get<std::string>(),
                                    call["function"]["arguments"].get<std::string>()});
    }
    message.tool_call_id = entry.value("tool_call_id", "");
    messages.push_back(std::move(message));
  }
  return messages;
}

TemplateInputs with_tools(std::string tools, std::int64_t now = 0) {
  TemplateInputs inputs(now);
  inputs.tools = std::move(tools);
  return inputs;
}

std::string joined(const std::vector<PromptSpan>& spans) {
  std::string text;
  for (const PromptSpan& span : spans) text += span.text;
  return text;
}

// What a template prints, or the error.
std::string printed(std::string_view source, const std::vector<ChatMessage>& messages,
                    std::string tools = "") {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error().message;
  const auto spans = parsed->render_any(messages, kBeginAndEnd, with_tools(std::move(tools)));
  return spans ? joined(*spans) : spans.error().message;
}

ChatMessage question(std::string text) { return {.role = Role::kUser, .content = std::move(text)}; }
ChatMessage answer(std::string text, std::vector<ToolCall> calls = {}) {
  return {.role = Role::kAssistant, .content = std::move(text), .tool_calls = std::move(calls)};
}
ChatMessage result(std::string id, std::string text) {
  return {.role = Role::kTool, .content = std::move(text), .tool_call_id = std::move(id)};
}

constexpr const char* kToolWithText =
    R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":)"
    R"({"k":{"type":"string","description":"d"}},"required":["k"]}}}])";

// What a template prints for an answer, as a model would have generated it.
std::string printed_answer(std::string_view source, const ChatMessage& called) {
  const std::vector<ChatMessage> asked = {question("octavo_question")};
  const std::string before = printed(source, asked, kToolWithText);
  std::string after =
      printed(source, {asked[0], called, result("octavo001", "octavo_result")}, kToolWithText);
  after.erase(std::min(after.find("octavo_result"), after.size()));
  const auto differs = std::ranges::mismatch(after, before).in1 - after.begin();
  // Two marks may begin alike.
  const std::string common = after.substr(0, static_cast<std::size_t>(differs));
  const std::size_t mark = common.find_last_of("<[>]");
  const bool is_open = mark != std::string::npos && (common[mark] == '<' || common[mark] == '[');
  return after.substr(is_open ? mark : common.size());
}

TEST(ToolTemplate, ACallThatATemplatePrintsIsReadBack) {
  const std::vector<std::pair<std::string, std::string>> kOthers = {
      {"Muse",
       "{% if tools %}{{ tools | tojson }}<atem:function_calls>{% endif %}{% for m in messages %}<|start|>{{ "
       "m.role }}<|message|>"
       "{{ m.content }}{% if m.tool_calls %}<atem:function_calls>{% for c in m.tool_calls %}<atem:invoke "
       "name=\"{{ "
       "c.function.name }}\">{% for k, v in c.function.arguments.items() %}<atem:parameter name=\"{{ k "
       "}}\">{{ v }}"
       "</atem:parameter>{% endfor %}</atem:invoke>{% endfor %}</atem:function_calls>{% endif %}<|eot|>{% "
       "endfor %}"
       "<|start|>assistant<|message|>"},
      {"DeepSeek V3.2",
       "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<｜{{ m.role }}｜>{{ m.content }}"
       "{% if m.tool_calls %}<｜DSML｜function_calls>\n{% for c in m.tool_calls %}<｜DSML｜invoke name=\"{{ "
       "c.function.name }}\">\n{% for k, v in c.function.arguments.items() %}<｜DSML｜parameter name=\"{{ k "
       "}}\" string=\"true\">"
       "{{ v }}</｜DSML｜parameter>\n{% endfor %}</｜DSML｜invoke>\n{% endfor %}</｜DSML｜function_calls>{% "
       "endif %}"
       "{% endfor %}<｜assistant｜>"},
  };
  std::vector<std::pair<std::string, std::string>> sources = kOthers;
  const nlohmann::json golden = load_golden("chat_templates.json");
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    sources.emplace_back(name, read_golden_text("templates/" + name));
  }
  const auto tools = std::make_shared<const CallableTools>(kToolWithText);
  int num_read = 0;
  for (const auto& [name, source] : sources) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_TRUE(parsed) << name;
    const std::string answered =
        printed_answer(source, answer("", {{"octavo001", "f", R"({"k": "a \"b\" </c> d"})"}}));
    ToolCallReader reader(tool_call_format(parsed->knows_tools() ? parsed->source() : std::string_view()),
                          tools);
    std::vector<ToolCallPiece> pieces = reader.add(answered);
    for (ToolCallPiece& piece : reader.end()) pieces.push_back(std::move(piece));
    std::string told;
    for (const ToolCallPiece& piece : pieces) {
      if (piece.kind == ToolCallPiece::Kind::kCallBegun) told += piece.text + " ";
      if (piece.kind == ToolCallPiece::Kind::kArguments) told += piece.text;
    }
    const nlohmann::json arguments =
        told.starts_with("f ") ? nlohmann::json::parse(told.substr(2), nullptr, false) : nlohmann::json();
    const bool is_read = arguments == nlohmann::json{{"k", "a \"b\" </c> d"}};
    // Llama's calls are whole answers, with the mark of their end behind them here.
    if (name.starts_with("llama3")) continue;
    EXPECT_TRUE(is_read) << name << ": " << answered;
    num_read += is_read ? 1 : 0;
  }
  EXPECT_GT(num_read, 15);
}

TEST(ToolTemplate, RealTemplatesPrintToolsAsJinja2Does) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  int num_compared = 0;
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    const auto parsed = ChatTemplate::parse(read_golden_text("templates/" + name));
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->knows_tools(), entry.contains("tool_texts")) << name;
    if (!entry.contains("tool_texts")) continue;
    for (std::size_t i = 0; i < entry["tool_texts"].size(); ++i) {
      const auto& chat = golden["tool_chats"][i];
      const TemplateInputs inputs =
          with_tools(chat["tools"].get<std::string>(), golden["now"].get<std::int64_t>());
      const auto spans = parsed->render(read_messages(chat["messages"]), kBeginAndEnd, inputs);
      const auto& expected = entry["tool_texts"][i];
      if (expected.is_null()) {
        EXPECT_FALSE(spans) << name << " " << i;
        continue;
      }
      ASSERT_TRUE(spans) << name << " " << i << ": " << spans.error().message;
      EXPECT_EQ(joined(*spans), expected.get<std::string>()) << name << " " << i;
      ++num_compared;
    }
  }
  EXPECT_GE(num_compared, 55);
}

// Templates that print tools, and those that are told of them; Llama's, which refuses two calls at once.
TEST(ToolTemplate, NoTemplateLosesAWordOrRefuses) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    if (name == "macros.jinja") continue;  // prints lengths of messages
    for (const char* system : {"", "771"}) {
      std::vector<ChatMessage> chat = {
          question("772"),
          answer("", {{"call_1", "f773", R"({"k774": "v775"})"}, {"call_2", "f776", "{}"}}),
          result("call_1", "777"),
          result("call_2", "778"),
          answer("779"),
          question("780")};
      if (*system != '\0') chat.insert(chat.begin(), {.role = Role::kSystem, .content = system});
      const std::string tools =
          R"([{"type": "function", "function": {"name": "f781", "description": "d782"}}])";
      const std::string text = printed(read_golden_text("templates/" + name), chat, tools);
      for (const char* word : {"772", "f773", "k774", "v775", "f776", "777", "778", "779", "780", "f781"}) {
        EXPECT_NE(text.find(word), std::string::npos) << word << " in " << name << "\n" << text;
      }
      EXPECT_NE(text.find(system), std::string::npos) << name << "\n" << text;
    }
  }
}

TEST(ToolTemplate, TextOfToolsCallsAndResultsIsInput) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  const std::string mark = "\u0416";
  const std::vector<ChatMessage> chat = {
      question("q"), answer("", {{"abcDEF12" + mark, "f" + mark, "{\"a" + mark + "\": \"b" + mark + "\"}"}}),
      result("abcDEF12" + mark, "r" + mark), answer("a"), question("b")};
  const std::string tools =
      R"([{"type": "function", "function": {"name": "f\u0416", "description": "\u0416 d"}}])";
  int num_marks = 0;
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    const auto parsed = ChatTemplate::parse(read_golden_text("templates/" + name));
    const auto spans = parsed->render_any(chat, kBeginAndEnd, with_tools(tools));
    ASSERT_TRUE(spans) << name << ": " << spans.error().message;
    for (const PromptSpan& span : *spans) {
      const bool has_mark = span.text.find(mark) != std::string::npos;
      num_marks += has_mark ? 1 : 0;
      EXPECT_TRUE(span.is_input || !has_mark) << name << ": " << span.text;
    }
  }
  EXPECT_GT(num_marks, 80);
}

Vocabulary chatml_vocabulary(std::string_view source) {
  Vocabulary vocabulary = byte_vocabulary();
  for (const char* text : {"<|im_start|>", "<|im_end|>"}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.kinds.push_back(TokenKind::kControl);
  }
  vocabulary.chat_template = source;
  return vocabulary;
}
constexpr TokenId kImStart = 259, kImEnd = 260;

TEST(ToolTemplate, NoSpecialTokenComesOfAToolACallOrAResult) {
  const std::string bad = "<|im_end|><|im_start|><s></s>";
  const std::string tools = R"([{"type": "function", "function": {"name": "f)" + bad +
                            R"(", "description": ")" + bad + R"(", ")" + bad + R"(": [")" + bad + R"("]}}])";
  const std::vector<ChatMessage> chat = {
      question("q"), answer("", {{bad, bad, "{\"" + bad + "\": \"" + bad + "\"}"}, {bad + "2", bad, bad}}),
      result(bad, bad), result(bad + "2", bad), question("b")};
  for (const std::string& source :
       {std::string(kChatml), read_golden_text("templates/qwen2.5.jinja"),
        read_golden_text("templates/qwen3.jinja"), read_golden_text("templates/lfm2.jinja")}) {
    const auto tokenizer = Tokenizer::create(chatml_vocabulary(source));
    ASSERT_TRUE(tokenizer);
    const auto ids = (*tokenizer)->encode_chat(chat, with_tools(tools));
    ASSERT_TRUE(ids) << ids.error().message;
    const auto starts = std::ranges::count(*ids, kImStart), ends = std::ranges::count(*ids, kImEnd);
    EXPECT_EQ(starts, ends + 1);
    EXPECT_LE(starts, 7) << source;
    EXPECT_GE(starts, 5);
    EXPECT_EQ(std::ranges::count(*ids, 257), 0) << "</s>";
  }
}

constexpr const char* kHermesEnd =
    "</tools>\n\nFor each call return a JSON object with the name of the function and its arguments within "
    "<tool_call></tool_call>:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <arguments-object>}\n"
    "</tool_call>";

TEST(ToolTemplate, ATemplateWithoutToolsIsToldOfThemInTheSystemMessage) {
  const auto parsed = ChatTemplate::parse(kChatml);
  EXPECT_FALSE(parsed->knows_tools());
  const std::string line =
      R"({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}})";
  const std::string alone = printed(kChatml, {question("q")}, kOneTool);
  EXPECT_EQ(alone.find("<|im_start|>system\n# Tools\n\n"), 0u) << alone;
  EXPECT_NE(
      alone.find("<tools>\n" + line + "\n" + kHermesEnd + "<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"),
      std::string::npos)
      << alone;
  const std::string behind =
      printed(kChatml, {{.role = Role::kSystem, .content = "Be brief."}, question("q")}, kOneTool);
  EXPECT_EQ(behind.find("<|im_start|>system\nBe brief.\n\n# Tools\n\n"), 0u) << behind;
  // Gemma has no system role: in front of the first question.
  const std::string gemma = printed(read_golden_text("templates/gemma.jinja"), {question("q")}, kOneTool);
  EXPECT_EQ(gemma.find("<s><start_of_turn>user\n# Tools"), 0u) << gemma;
  EXPECT_NE(gemma.find("</tool_call>\n\nq<end_of_turn>"), std::string::npos) << gemma;
}

TEST(ToolTemplate, WithoutToolsOfItsOwnCallsAndResultsAreText) {
  EXPECT_EQ(printed(kChatml,
                    {question("q"),
                     answer("I look.", {{"1", "f", R"({"a":1})"}, {"2", "g\"", ""}, {"3", "h", "no JSON"}}),
                     result("1", "one"), result("2", "two"), question("so?")}),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nI look.\n<tool_call>\n"
            "{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>\n<tool_call>\n"
            "{\"name\": \"g\\\"\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
            "{\"name\": \"h\", \"arguments\": \"no JSON\"}\n</tool_call><|im_end|>\n"
            "<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
            "<|im_end|>\n<|im_start|>user\nso?<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ToolTemplate, ATemplateThatPrintsToolsAndNoCallsGetsThoseAsText) {
  const std::string text =
      printed(read_golden_text("templates/lfm2.jinja"),
              {question("q"), answer("", {{"1", "f", R"({"a": 1, "b": "x'\"", "c": [true, null, "y"]})"}}),
               result("1", "one")},
              kOneTool);
  EXPECT_NE(text.find("Tools: [{\"type\": \"function\""), std::string::npos) << text;
  EXPECT_EQ(text.find("# Tools"), std::string::npos) << text;
  EXPECT_NE(
      text.find("assistant\n<|tool_call_start|>[f(a=1, b=\"x'\\\"\", c=[True, None, 'y'])]<|tool_call_end|>"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("<|tool_response_start|>one<|tool_response_end|>"), std::string::npos) << text;
}

TEST(ToolTemplate, CallsAsTextHaveTheMarksThatTheTemplateNames) {
  const auto printed_by = [](const std::string& named) {
    return printed("{{ tools }}{% for m in messages %}[{{ m.content }}]{% endfor %}{# " + named + " #}",
                   {question("q"), answer("", {{"1", "f", "{}"}, {"2", "g", "{\"a\":1}"}})});
  };
  const std::string first = "{\"name\": \"f\", \"arguments\": {}}",
                    second = "{\"name\": \"g\", \"arguments\": {\"a\":1}}";
  EXPECT_EQ(printed_by(""),
            "None[q][<tool_call>\n" + first + "\n</tool_call>\n<tool_call>\n" + second + "\n</tool_call>]");
  EXPECT_EQ(printed_by("<|tool_call|>"), "None[q][<|tool_call|>[" + first + ", " + second + "]]");
  EXPECT_EQ(printed_by("<|tool_list_start|>"), "None[q][<|tool_call_start|>[f(), g(a=1)]<|tool_call_end|>]");
  EXPECT_EQ(printed_by("[TOOL_CALLS]"), "None[q][[TOOL_CALLS][" + first + ", " + second + "]]");
}

std::string calling(const std::string& printed_call) {
  return "{{ tools }}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}" + printed_call +
         "{% endfor %}{% else %}[{{ m.content }}]{% endif %}{% endfor %}";
}

TEST(ToolTemplate, ArgumentsAreAnObjectOrTextAsTheTemplateWants) {
  const std::vector<ChatMessage> chat = {question("q"), answer("", {{"1", "f", R"({"a":"b"})"}}),
                                         result("1", "r")};
  const auto printed_by = [&](const std::string& printed_call) {
    return printed(calling(printed_call), chat);
  };
  EXPECT_EQ(printed_by("{{ c.function.arguments|tojson }}"), "None[q]{\"a\": \"b\"}[r]");
  EXPECT_EQ(printed_by("{% for k, v in c.function.arguments|items %}{{ k }}={{ v }}{% endfor %}"),
            "None[q]a=b[r]");
  EXPECT_EQ(printed_by("{{ '>' + c.function.arguments }}"), "None[q]>{\"a\":\"b\"}[r]") << "fails on objects";
  EXPECT_EQ(printed_by("{{ c.function.arguments }}"), "None[q]{\"a\":\"b\"}[r]") << "Python's repr otherwise";
  EXPECT_EQ(printed_by("{% if c.function.arguments is string %}{{ c.function.arguments }}{% endif %}"),
            "None[q]{\"a\":\"b\"}[r]");
}

TEST(ToolTemplate, AnAnswerThatOnlyCallsHasNoContentWhereCallsArePrintedOnlySo) {
  // As DeepSeek's: calls where the content is none, and text that is concatenated.
  const std::string source =
      "{{ tools }}{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
      "<{{ c.function.name + ' ' + c.function.arguments }}>{% endfor %}{% else %}[{{ m.content }}]{% endif %}"
      "{% endfor %}";
  EXPECT_EQ(printed(source, {question("q"), answer("", {{"1", "f", "{\"a\":1}"}}), result("1", "r")}),
            "None[q]<f {\"a\":1}>[r]");
  EXPECT_EQ(printed(source, {question("q"), answer("I look.", {{"1", "f", "{\"a\":1}"}}), result("1", "r")}),
            "None[q][I look.]<f {\"a\":1}>[r]")
      << "and what it says stands in front";
}

TEST(ToolTemplate, ArgumentsThatAreNoJsonAreGivenAsTheyAre) {
  const std::string source = calling("{{ c.function.arguments|tojson }}");
  const auto with = [&](const char* arguments) {
    return printed(source, {question("q"), answer("", {{"1", "f", arguments}})});
  };
  EXPECT_EQ(with("{\"a\":"), "None[q]\"{\\\"a\\\":\"");
  EXPECT_EQ(with(""), "None[q]{}");
  EXPECT_EQ(with(" null "), "None[q]{}");
  EXPECT_EQ(with("[1]"), "None[q]\"[1]\"");
}

TEST(ToolTemplate, ResultsKnowTheNameOfTheFunctionThatWasCalled) {
  const std::string source =
      "{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
      "{{ c.function.arguments|tojson }}{% endfor %}<{{ m.tool_call_id }}:{{ m.name }}:{{ m.content }}>"
      "{% endfor %}";
  EXPECT_EQ(printed(source, {question("q"), answer("", {{"1", "f", "{}"}, {"2", "g", "{}"}}),
                             result("2", "two"), result("1", "one"), result("3", "none")}),
            "None<::q>f{}g{}<::><2:g:two><1:f:one><3::none>");
}

TEST(ToolTemplate, MistralGetsNamesOfCallsThatItAccepts) {
  const std::string source = read_golden_text("templates/mistral-nemo.jinja");
  const std::vector<ChatMessage> chat = {question("q"), answer("", {{"call_0123456789", "f", "{}"}}),
                                         result("call_0123456789", "r")};
  const std::string text = printed(source, chat, kOneTool);
  const std::size_t id = text.find("\"id\": \"") + 7;
  ASSERT_NE(text.find("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \""), std::string::npos)
      << text;
  const std::string name = text.substr(id, 9);
  EXPECT_EQ(text[id + 9], '"');
  EXPECT_NE(text.find("\"call_id\": \"" + name + "\"}"), std::string::npos) << text;
  std::vector<ChatMessage> longer = chat;
  longer.push_back(answer("done"));
  longer.push_back(question("and?"));
  EXPECT_NE(printed(source, longer, kOneTool).find(name), std::string::npos) << "it stays the same";
  EXPECT_NE(printed(source, {question("q"), answer("", {{"abcDEF123", "f", "{}"}})}).find("abcDEF123"),
            std::string::npos)
      << "one that it accepts is kept";
}

TEST(ToolTemplate, CallsAtOnceAreMadeOneByOneForATemplateThatWantsThat) {
  const std::string text = printed(read_golden_text("templates/llama3.2.jinja"),
                                   {question("q"), answer("", {{"1", "f", R"({"a": 1})"}, {"2", "g", "{}"}}),
                                    result("1", "one"), result("2", "two")},
                                   kOneTool);
  const std::size_t first = text.find("{\"name\": \"f\", \"parameters\": {\"a\": 1}}"),
                    one = text.find("\"one\""), second = text.find("{\"name\": \"g\""),
                    two = text.find("\"two\"");
  EXPECT_TRUE(first < one && one < second && second < two && two != std::string::npos) << text;
}

TEST(ToolTemplate, ThoughtsBeforeACallAreGivenApart) {
  const std::string source =
      "{{ tools }}{% for m in messages %}[{{ m.reasoning_content }}|{{ m.content }}]"
      "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}"
      "{% endfor %}";
  EXPECT_EQ(
      printed(source, {question("q"), answer("<think>\nhm\n</think>", {{"1", "f", "{}"}}), result("1", "r")}),
      "None[|q][hm|]f{}[|r]");
}

TEST(ToolTemplate, ToolsThatAreNoListOfObjectsAreRefusedByName) {
  for (const std::string& source : {std::string(kChatml), read_golden_text("templates/qwen3.jinja")}) {
    const auto parsed = ChatTemplate::parse(source);
    for (const char* tools :
         {"{}", "[1]", "[{]", "[{}] x", "[{\"a\": \"\\ud800\"}]", "nonsense", " ", "\xff"}) {
      for (const bool is_any : {false, true}) {
        const std::vector<ChatMessage> chat = {question("q")};
        const auto spans = is_any ? parsed->render_any(chat, kBeginAndEnd, with_tools(tools))
                                  : parsed->render(chat, kBeginAndEnd, with_tools(tools));
        ASSERT_FALSE(spans) << tools;
        EXPECT_EQ(spans.error().code, ErrorCode::kInvalidArgument);
        EXPECT_EQ(spans.error().subject, "tools");
        EXPECT_EQ(spans.error().message.find("tools must be a JSON list of objects, but "), 0u)
            << spans.error().message;
      }
    }
    EXPECT_EQ(printed(source, {question("q")}, "[]"), printed(source, {question("q")}))
        << "an empty list is none";
  }
}

TEST(ToolTemplate, AHostileTemplateEndsWithinItsBudgetWhateverItIsGiven) {
  const std::string source =
      "{{ tools }}{% for i in range(90000) %}{% for j in range(90000) %}{{ messages|tojson }}{% endfor %}{% "
      "endfor %}";
  const auto parsed = ChatTemplate::parse(source);
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->knows_tools());
  EXPECT_FALSE(parsed->render_any(std::vector{question("q")}, kBeginAndEnd, with_tools(kOneTool)));
}

// The ids are those of the answer's content and its calls together.
TEST(ToolTemplate, TheIdsOfAnAnswerThatCalledStandForNothing) {
  const auto tokenizer = Tokenizer::create(chatml_vocabulary(kChatml));
  ASSERT_TRUE(tokenizer);
  const auto encode = [&](std::vector<TokenId> ids, std::vector<ToolCall> calls) {
    ChatMessage said = answer("ab", std::move(calls));
    said.token_ids = std::move(ids);
    const std::vector<ChatMessage> chat = {question("q"), said, question("r")};
    return *(*tokenizer)->encode_chat(chat, with_tools(""));
  };
  const std::vector<TokenId> plain = encode({}, {}), calls = encode({}, {{"1", "f", "{}"}});
  EXPECT_EQ(encode({'a', 'b'}, {}), plain);
  EXPECT_EQ(encode({'a', 'b'}, {{"1", "f", "{}"}}), calls);
  EXPECT_NE(plain, calls);
}

TEST(ToolTemplate, WithoutATemplateToolsAreRefused) {
  const auto tokenizer = Tokenizer::create(chatml_vocabulary(""));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->chat_template_source(), "");
  EXPECT_FALSE((*tokenizer)->knows_tools());
  const std::vector<ChatMessage> plain = {question("q")}, called = {answer("", {{"1", "f", "{}"}})};
  EXPECT_TRUE((*tokenizer)->encode_chat(plain, with_tools("")));
  for (const auto& refused : {(*tokenizer)->encode_chat(plain, with_tools(kOneTool)),
                              (*tokenizer)->encode_chat(called, with_tools(""))}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(refused.error().subject, "tools");
  }
}

TEST(ToolTemplate, TheTokenizerSaysWhatItsTemplateIs) {
  const std::string qwen = read_golden_text("templates/qwen3.jinja");
  const auto knows = Tokenizer::create(chatml_vocabulary(qwen)),
             told = Tokenizer::create(chatml_vocabulary(kChatml));
  EXPECT_EQ((*knows)->chat_template_source(), qwen);
  EXPECT_TRUE((*knows)->knows_tools());
  EXPECT_EQ((*told)->chat_template_source(), kChatml);
  EXPECT_FALSE((*told)->knows_tools());
  const auto broken = Tokenizer::create(chatml_vocabulary("{% if %}"));
  EXPECT_EQ((*broken)->chat_template_source(), "");
}

}  // namespace
}  // namespace octavo::tokenizer
