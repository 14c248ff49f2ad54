// The form that clients ask for, as what the engine is asked; and calls that are forced, from the client's
// tools to what the reader of calls finds in a text that the grammar allows.

#include "app/server/structured_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "app/server/answer_calls.h"
#include "app/server/chat_completions.h"
#include "app/server/completions.h"
#include "app/server/forced_calls.h"
#include "app/server/messages.h"
#include "app/server/responses.h"
#include "engine/chat_template/answer_parts.h"
#include "engine/chat_template/tool_calls.h"
#include "engine/grammar/grammar_compiler.h"
#include "tests/grammar/byte_vocabulary.h"
#include "tests/grammar/random_text.h"
#include "tests/server/openai_calls.h"

namespace octavo::app {
namespace {

const std::string kChat = R"({"messages": [{"role": "user", "content": "a"}], "max_tokens": 5)";
const std::string kSchema =
    R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}}})";

std::optional<StructuredOutput> asked(ParseCall parse, const std::string& body) {
  const TestModel model;
  const Call call = call_of(parse, model, body);
  if (call.requests.empty()) return std::nullopt;
  return call.requests.front().sampling.structured_output;
}

TEST(StructuredFields, EveryProtocolSaysItInItsOwnWords) {
  const StructuredOutput schema = JsonSchema{kSchema};
  const std::vector<std::pair<std::string, StructuredOutput>> openai = {
      {R"("response_format": {"type": "json_object"})", AnyJsonObject{}},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": )" +
           kSchema + "}}",
       schema},
      {R"("structured_outputs": {"json": )" + kSchema + "}", schema},
      {R"("structured_outputs": {"json_object": true})", AnyJsonObject{}},
      {R"("structured_outputs": {"regex": "a+"})", RegularExpression{"a+"}},
      {R"("structured_outputs": {"choice": ["a", "b"]})", ChoiceOfTexts{{"a", "b"}}},
      {R"("structured_outputs": {"grammar": "root ::= \"a\""})", GrammarText{"root ::= \"a\""}},
      {R"("structured_outputs": {"structural_tag": "{}"})", StructuralTag{"{}"}},
      {R"("guided_json": )" + kSchema, schema},
      {R"("guided_json": ")" + std::string(R"({\"type\":\"null\"})") + "\"",
       JsonSchema{R"({"type":"null"})"}},
      {R"("guided_regex": "a+")", RegularExpression{"a+"}},
      {R"("guided_choice": ["a", "b"])", ChoiceOfTexts{{"a", "b"}}},
      {R"("guided_grammar": "root ::= \"a\"")", GrammarText{"root ::= \"a\""}},
      {R"("grammar": "root ::= \"a\"")", GrammarText{"root ::= \"a\""}},
      {R"("json_schema": )" + kSchema, schema},
  };
  for (const auto& [field, wanted] : openai) {
    EXPECT_EQ(asked(parse_chat_completion, kChat + ", " + field + "}"), wanted) << field;
    EXPECT_EQ(asked(parse_completion, R"({"prompt": "a", )" + field + "}"), wanted) << field;
  }
  const std::string format = R"({"type": "json_schema", "name": "n", "schema": )" + kSchema + "}";
  EXPECT_EQ(asked(parse_response_call, R"({"input": "a", "text": {"format": )" + format + "}}"), schema);
  EXPECT_EQ(asked(parse_response_call, R"({"input": "a", "text": {"format": {"type": "json_object"}}})"),
            StructuredOutput(AnyJsonObject{}));
  EXPECT_EQ(asked(parse_message_call, kChat + R"(, "output_config": {"format": )" + format + "}}"), schema);
  EXPECT_EQ(asked(parse_message_call, kChat + R"(, "output_format": )" + format + "}"), schema);
}

TEST(StructuredFields, TextIsNoForm) {
  EXPECT_EQ(
      asked(
          parse_chat_completion,
          kChat +
              R"(, "response_format": {"type": "text"}, "guided_json": null, "grammar": "", "json_schema": {}})"),
      std::nullopt);
  EXPECT_EQ(asked(parse_response_call,
                  R"({"input": "a", "text": {"format": {"type": "text"}, "verbosity": "low"}})"),
            std::nullopt);
}

// A vocabulary of bytes with a template of this family.
class FamilyVocabulary final : public octavo::testing::ByteVocabulary {
 public:
  explicit FamilyVocabulary(std::string source) : source_(std::move(source)) {}
  std::string_view chat_template_source() const override { return source_; }
  bool knows_tools() const override { return true; }

 private:
  std::string source_;
};

std::vector<FunctionTool> two_tools() {
  return {
      {.name = "clock",
       .parameters = {{"type", "object"},
                      {"properties",
                       {{"zone", {{"enum", {"UTC", "CET"}}}},
                        {"hours", {{"type", "integer"}, {"minimum", 0}, {"maximum", 9}}}}},
                      {"required", {"zone", "hours"}},
                      {"additionalProperties", false}}},
      {.name = "ping",
       .parameters = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}}}};
}

struct ReadCall {
  std::string name;
  Json arguments;
};

// All that the reader finds; a text beside them is a failure.
std::vector<ReadCall> calls_in(const std::string& text, const std::string& source) {
  AnswerCalls reader({.format = tool_call_format(source),
                      .tools = std::make_shared<const CallableTools>(tools_text(two_tools()))});
  std::vector<ToolCallPiece> pieces;
  const auto take = [&](std::vector<ToolCallPiece> more) {
    std::ranges::move(more, std::back_inserter(pieces));
  };
  for (const AnswerPart& part : answer_parts(text, /*is_final=*/true)) {
    EXPECT_EQ(part.kind, PartKind::kAnswer) << text;
    take(reader.begin_part(text, part.begin));
    take(reader.add(std::string_view(text).substr(part.begin, part.end - part.begin)));
    take(reader.end_part());
  }
  std::vector<ReadCall> calls;
  for (const ToolCallPiece& piece : pieces) {
    if (piece.kind == ToolCallPiece::Kind::kText) ADD_FAILURE() << "'" << piece.text << "' in " << text;
    if (piece.kind == ToolCallPiece::Kind::kCallBegun) calls.push_back({piece.text, nullptr});
    if (piece.kind == ToolCallPiece::Kind::kArguments)
      calls.back().arguments = Json::parse(piece.text, nullptr, false);
  }
  return calls;
}

const std::vector<std::string> kFamilies = {
    "<tool_call>",          "<tool_call><function=", "<|python_tag|>",
    "[TOOL_CALLS]",         "[TOOL_CALLS][ARGS]",    "<|channel|><|message|>",
    "<arg_key><tool_call>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>```json",
    "<|tool_call|>",        "<|tool_call>",          "<|tool_call_start|>",
    "<｜DSML｜invoke",      "<atem:function_calls>",
};

TEST(ForcedCalls, AreWhatTheReaderOfTheFamilyFinds) {
  for (const std::string& source : kFamilies) {
    const FamilyVocabulary vocabulary(source);
    ServedModel model;
    model.tokenizer = &vocabulary;
    GrammarCompiler compiler(vocabulary);
    for (const bool only_first : {false, true}) {
      std::vector<std::string> notes;
      const auto format =
          forced_calls_format(two_tools(), {.must_call = true, .only_first = only_first}, model, notes);
      ASSERT_TRUE(format.has_value()) << source << ": " << format.error().message;
      const auto grammar = compiler.compile(structure_of(*format));
      ASSERT_TRUE(grammar.has_value()) << source << ": " << grammar.error().message;
      std::mt19937_64 random(7);
      std::size_t num_read = 0, most = 0;
      for (int i = 0; i < 12; ++i) {
        const auto ids = octavo::testing::random_tokens(**grammar, vocabulary, random, 60);
        if (!ids) continue;
        const std::string text = vocabulary.decode(*ids, false);
        const std::vector<ReadCall> calls = calls_in(text, source);
        EXPECT_FALSE(calls.empty()) << source << ": " << text;
        num_read += calls.size();
        most = std::max(most, calls.size());
        for (const ReadCall& call : calls) {
          ASSERT_TRUE(call.arguments.is_object()) << text;
          if (call.name == "ping") {
            EXPECT_EQ(call.arguments.size(), 0u) << text;
          }
          if (call.name != "clock") continue;
          EXPECT_TRUE(call.arguments["zone"] == "UTC" || call.arguments["zone"] == "CET") << text;
          EXPECT_TRUE(call.arguments["hours"].is_number_integer()) << text;
        }
      }
      EXPECT_GT(num_read, 2u) << source;
      if (only_first) {
        EXPECT_EQ(most, 1u) << source;
      }
    }
  }
}

TEST(ForcedCalls, NameTheFunctionThatWasChosen) {
  const FamilyVocabulary vocabulary("<tool_call>");
  ServedModel model;
  model.tokenizer = &vocabulary;
  GrammarCompiler compiler(vocabulary);
  std::vector<std::string> notes;
  const auto format =
      forced_calls_format(two_tools(), {.must_call = true, .name = "ping", .only_first = true}, model, notes);
  ASSERT_TRUE(format.has_value());
  const auto grammar = compiler.compile(structure_of(*format));
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(octavo::testing::accepts(**grammar, vocabulary,
                                       "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(octavo::testing::accepts(
      **grammar, vocabulary, "<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(octavo::testing::accepts(**grammar, vocabulary, "Hello"));
}

TEST(ForcedCalls, OfMuseStandInMessagesForTheFunction) {
  const FamilyVocabulary vocabulary("<atem:function_calls>");
  ServedModel model;
  model.tokenizer = &vocabulary;
  GrammarCompiler compiler(vocabulary);
  std::vector<std::string> notes;
  const auto format = forced_calls_format(two_tools(), {.must_call = true}, model, notes);
  ASSERT_TRUE(format.has_value());
  const auto grammar = compiler.compile(structure_of(*format));
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  const std::string ping =
      " to=ping<|message|><atem:function_calls>\n<atem:invoke name=\"ping\">\n</atem:invoke>\n"
      "</atem:function_calls>";
  const std::string clock =
      " to=clock<|message|><atem:function_calls>\n<atem:invoke name=\"clock\">\n"
      "<atem:parameter name=\"zone\">UTC</atem:parameter>\n<atem:parameter "
      "name=\"hours\">7</atem:parameter>\n"
      "</atem:invoke>\n</atem:function_calls>";
  for (const std::string& text : {ping, clock, ping + "<|eom|><|start|>assistant" + clock})
    EXPECT_TRUE(octavo::testing::accepts(**grammar, vocabulary, text)) << text;
  for (const std::string& text :
       {std::string(" to=user<|message|>Hello"), std::string(" to=clock") + ping.substr(8)})
    EXPECT_FALSE(octavo::testing::accepts(**grammar, vocabulary, text)) << text;
  const std::vector<ReadCall> read =
      calls_in(ping + "<|eom|><|start|>assistant" + clock, "<atem:function_calls>");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].arguments, (Json{{"zone", "UTC"}, {"hours", 7}}));
}

TEST(ForcedCalls, ASchemaThatCannotBeKeptIsRefusedWhereItIsStrict) {
  const FamilyVocabulary vocabulary("<tool_call>");
  ServedModel model;
  model.tokenizer = &vocabulary;
  std::vector<FunctionTool> tools = {
      {.name = "f", .parameters = {{"type", "object"}, {"properties", {{"a", {{"not", Json::object()}}}}}}}};
  std::vector<std::string> notes;
  EXPECT_TRUE(forced_calls_format(tools, {.must_call = true}, model, notes).has_value());
  EXPECT_EQ(notes.size(), 1u);
  tools.front().strict = true;
  const auto refused = forced_calls_format(tools, {.must_call = true}, model, notes);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().subject, "tools");
  EXPECT_NE(refused.error().message.find("'not' at #/properties/a"), std::string::npos)
      << refused.error().message;
}

TEST(StrictCalls, LeaveTextAsItIsAndBindTheArguments) {
  const FamilyVocabulary vocabulary("<tool_call>");
  ServedModel model;
  model.tokenizer = &vocabulary;
  std::vector<FunctionTool> tools = two_tools();
  EXPECT_FALSE(strict_calls_format(tools, {}, model)->has_value()) << "none is strict";
  tools.front().strict = true;
  const auto format = strict_calls_format(tools, {}, model);
  ASSERT_TRUE(format.has_value() && format->has_value());
  GrammarCompiler compiler(vocabulary);
  const auto grammar = compiler.compile(structure_of(**format));
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  const auto allows_text = [&](const std::string& text) {
    return octavo::testing::accepts(**grammar, vocabulary, text);
  };
  const std::string call = "<tool_call>\n{\"name\": \"clock\", \"arguments\": ";
  EXPECT_TRUE(allows_text("Just a text."));
  EXPECT_TRUE(allows_text("Let me see. " + call + "{\"zone\": \"UTC\", \"hours\": 3}}\n</tool_call>"));
  EXPECT_FALSE(allows_text(call + "{\"zone\": \"EST\", \"hours\": 3}}\n</tool_call>"));
}

}  // namespace
}  // namespace octavo::app
