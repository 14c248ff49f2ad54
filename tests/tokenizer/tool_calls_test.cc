#include "engine/chat_template/tool_calls.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace octavo {
namespace {

constexpr std::string_view kCallableTools =
    R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
        "properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"},
          "b": {"type": "boolean"}, "o": {"type": "object"}, "l": {"type": "array", "items": {"type": "string"}},
          "m": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "t": {"type": ["string", "null"]}, "any": {}}}}},
        {"type": "function", "function": {"name": "g"}}])";

// Whether the text is an object, or the beginning of one.
bool may_become_object(std::string_view text) {
  if (!text.starts_with('{')) return false;
  JsonScanner scanner;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const JsonScanner::Step step = scanner.add(text[i]);
    if (step == JsonScanner::Step::kWrong) return false;
    if (step == JsonScanner::Step::kEnded) return i + 1 == text.size();
  }
  return true;
}

// Pieces on a line each: text in quotes, calls as name and arguments; what is told apart is joined.
std::string told_pieces(const std::vector<ToolCallPiece>& pieces) {
  std::string told, text, arguments;
  const auto flush = [&] {
    if (!text.empty()) told += quoted_json(text) + "\n";
    text.clear();
  };
  for (const ToolCallPiece& piece : pieces) {
    EXPECT_EQ(piece.text.empty(), piece.kind == ToolCallPiece::Kind::kCallEnded);
    if (piece.kind == ToolCallPiece::Kind::kText) {
      text += piece.text;
      continue;
    }
    flush();
    if (piece.kind == ToolCallPiece::Kind::kCallBegun) told += piece.text + "(";
    if (piece.kind == ToolCallPiece::Kind::kArguments) arguments += piece.text;
    if (piece.kind != ToolCallPiece::Kind::kCallEnded) continue;
    EXPECT_TRUE(may_become_object(arguments)) << arguments;
    if (!is_json_object(arguments)) arguments += " CUT";
    told += std::exchange(arguments, {}) + ")\n";
  }
  flush();
  return told;
}

std::shared_ptr<const CallableTools> callable_tools() {
  static const auto kTools = std::make_shared<const CallableTools>(kCallableTools);
  return kTools;
}

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33u;
}

// Fed in pieces of 1 to `most` bytes; most 0: whole.
std::string told_in_pieces(ToolCallFormat format, std::string_view answer, std::size_t most,
                           std::uint64_t seed = 1, CallsAreTold told = CallsAreTold::kWhole) {
  ToolCallReader reader(format, callable_tools(), told);
  std::vector<ToolCallPiece> pieces;
  const auto take = [&](std::vector<ToolCallPiece> more) {
    for (ToolCallPiece& piece : more) pieces.push_back(std::move(piece));
  };
  for (std::size_t at = 0; at < answer.size();) {
    const std::size_t length = most == 0 ? answer.size() : 1 + next_random(seed) % most;
    take(reader.add(answer.substr(at, length)));
    at += length;
  }
  take(reader.end());
  return told_pieces(pieces);
}

struct ToldAnswer {
  ToolCallFormat format;
  std::string answer, told;
};

// "begun:f arguments:{ ": as they come.
std::string told_kinds(const std::vector<ToolCallPiece>& pieces) {
  static const char* const kNames[] = {"text", "begun", "arguments", "ended"};
  std::string told;
  for (const ToolCallPiece& piece : pieces)
    told += std::string(kNames[static_cast<std::size_t>(piece.kind)]) + ":" + piece.text + " ";
  return told;
}

// With every kind of value, escapes, blank space and words that look like marks.
std::string random_value(std::uint64_t& state, int depth);
std::string random_object(std::uint64_t& state, int depth) {
  std::string object = "{";
  const std::uint64_t num_members = next_random(state) % 4;
  for (std::uint64_t i = 0; i < num_members; ++i) {
    object += (i > 0 ? ", " : "") + std::string("\"k") + std::to_string(i) + "\"" +
              (next_random(state) % 2 == 0 ? ":" : " : ") + random_value(state, depth + 1);
  }
  return object + (next_random(state) % 3 == 0 ? " }" : "}");
}
std::string random_value(std::uint64_t& state, int depth) {
  static const std::vector<std::string> kValues = {"1",
                                                   "-2.5e3",
                                                   "true",
                                                   "null",
                                                   "\"\"",
                                                   "\"a b\"",
                                                   "\"\\n\\\"\\u00e9\\ud83d\\ude00é\"",
                                                   "\"</tool_call> } ]\"",
                                                   "[]",
                                                   "{}"};
  const std::uint64_t kind = next_random(state) % (kValues.size() + 2);
  if (kind < kValues.size() || depth > 3) return kValues[kind % kValues.size()];
  if (kind == kValues.size()) return random_object(state, depth);
  return "[" + random_value(state, depth + 1) + ",\n" + random_value(state, depth + 1) + "]";
}

void expect_told(const ToldAnswer& one) {
  EXPECT_EQ(told_in_pieces(one.format, one.answer, 0), one.told) << one.answer;
  EXPECT_EQ(told_in_pieces(one.format, one.answer, 1), one.told) << one.answer;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(told_in_pieces(one.format, one.answer, 9, seed), one.told) << one.answer << " seed " << seed;
}

// Of calls that are whole: told while they come, they are the same.
void expect_streamed(const ToldAnswer& one) {
  expect_told(one);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(told_in_pieces(one.format, one.answer, 9, seed, CallsAreTold::kAsTheyCome), one.told)
        << one.answer << " seed " << seed;
  }
}

using enum ToolCallFormat;

TEST(ToolCalls, AreReadInTheMarksOfEachFormat) {
  const std::vector<ToldAnswer> answers = {
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a\"}}\n</tool_call>",
       "f({\"s\": \"a\"})\n"},
      {kHermes,
       "Let me "
       "see.\n\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n<tool_call>\n{\"arguments\": "
       "{\"n\": 1}, \"name\": \"g\"}\n</tool_call>\nDone. \n",
       "\"Let me see.\"\nf({})\ng({\"n\": 1})\n\"Done. \\n\"\n"},
      {kHermes, "<tool_call>{\"name\": \"f\"}</tool_call>", "f({})\n"},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": "{\"s\": \"\\n\"}"}</tool_call>)",
       "f({\"s\": \"\\n\"})\n"},
      {kHermes, R"(<tool_call>{"name": "f", "arguments": {"s": "}</tool_call>\""}}</tool_call>)",
       "f({\"s\": \"}</tool_call>\\\"\"})\n"},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n", "f({})\n"},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_c", "f({})\n"},
      {kHermes, "<tool_call>\n<function=f>\n</function>\n</tool_call>", "f({})\n"},
      {kFunctionTags,
       "I look.\n<tool_call>\n<function=f>\n<parameter=s>\nline 1\n line "
       "2\n\n</parameter>\n<parameter=n>\n12\n"
       "</parameter>\n<parameter=b>\ntrue\n</parameter>\n<parameter=o>\n{\"a\": [1]}\n</parameter>\n"
       "<parameter=l>\n[\"a\"]\n</parameter>\n</function>\n</tool_call>",
       "\"I look.\"\nf({\"s\": \"line 1\\n line 2\\n\", \"n\": 12, \"b\": true, \"o\": {\"a\": [1]}, \"l\": "
       "[\"a\"]})\n"},
      {kFunctionTags,
       "<tool_call>\n<function=f>\n<parameter=s>\n12\n</parameter>\n<parameter=n>\nmany\n</parameter>\n"
       "<parameter=x>\n1.5\n</parameter>\n<parameter=b>\nFalse\n</parameter>\n<parameter=m>\nnull\n</"
       "parameter>\n"
       "<parameter=t>\nnull\n</parameter>\n<parameter=any>\n7\n</parameter>\n<parameter=new>\n7\n</"
       "parameter>\n"
       "<parameter=o>\n[1]\n</parameter>\n</function>\n</tool_call>",
       "f({\"s\": \"12\", \"n\": \"many\", \"x\": 1.5, \"b\": false, \"m\": null, \"t\": null, \"any\": "
       "\"7\", "
       "\"new\": \"7\", \"o\": \"[1]\"})\n"},
      {kFunctionTags,
       "<tool_call>\n<function=f>\n<parameter=s>\nwrite </tool_call> or </parameter> here\n</parameter>\n"
       "</function>\n</tool_call>",
       "f({\"s\": \"write </tool_call> or </parameter> here\"})\n"},
      {kFunctionTags,
       "<function=g>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=f>\n"
       "</function>\n</tool_call>",
       "g({\"k\": \"v\"})\nf({})\n"},
      {kWholeJson, R"({"name": "f", "parameters": {"s": "a"}})", "f({\"s\": \"a\"})\n"},
      {kWholeJson, R"(<|python_tag|>{"name": "f", "parameters": {"s": "a"}})", "f({\"s\": \"a\"})\n"},
      {kWholeJson, "\n{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\"}\n",
       "f({})\ng({})\n"},
      {kMistral, R"([TOOL_CALLS][{"name": "f", "arguments": {"s": "a]"}}, {"name": "g", "arguments": {}}])",
       "f({\"s\": \"a]\"})\ng({})\n"},
      {kMistral, R"(Well. [TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "123456789"}])",
       "\"Well.\"\nf({})\n"},
      {kMistral, R"([TOOL_CALLS]f[ARGS]{"s": "a"}[TOOL_CALLS]g[CALL_ID]123456789[ARGS]{})",
       "f({\"s\": \"a\"})\ng({})\n"},
      {kMistral, R"([TOOL_CALLS]f{"s": "a"})", "f({\"s\": \"a\"})\n"},
      {kHarmony, R"(<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"s": "a"}<|call|>)",
       "f({\"s\": \"a\"})\n"},
      {kHarmony, R"(<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"s": "a"})",
       "f({\"s\": \"a\"})\n"},
      {kGemma,
       R"(<|tool_call>call:f{s:<|"|>a, "b"}<|"|>,n:12,b:true,o:{k:[1,<|"|>x<|"|>],e:{}}}<tool_call|>)",
       "f({\"s\": \"a, \\\"b\\\"}\", \"n\": 12, \"b\": true, \"o\": {\"k\": [1, \"x\"], \"e\": {}}})\n"},
      {kGemma, "I see. <|tool_call>call:g{}<tool_call|><|tool_call>call:f{b:False,m:None}<tool_call|>",
       "\"I see.\"\ng({})\nf({\"b\": false, \"m\": null})\n"},
      {kGemma, R"(<|tool_call>call:f{s:<|"|>a <tool_call|> b<|"|>}<tool_call|>)",
       "f({\"s\": \"a <tool_call|> b\"})\n"},
      {kArgumentTags,
       "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>a\nb</arg_value>\n<arg_key>n</arg_key>\n"
       "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
       "f({\"s\": \"a\\nb\", \"n\": 3})\ng({})\n"},
      {kArgumentTags, "<tool_call>f<arg_key>s</arg_key><arg_value>3</arg_value></tool_call>",
       "f({\"s\": \"3\"})\n"},
      {kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"s\": \"a\"}\n"
       "```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<"
       "｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       "f({\"s\": \"a\"})\ng({})\n"},
      {kDeepSeek,
       "Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"s\": \"a\"}<｜tool▁call▁end｜>"
       "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "\"Yes.\"\nf({\"s\": \"a\"})\ng({})\n"},
      {kGranite, R"(<|tool_call|>[{"name": "f", "arguments": {"s": "a"}}, {"name": "g"}])",
       "f({\"s\": \"a\"})\ng({})\n"},
      {kGranite, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "f({})\n"},
      {kGranite, R"(<|tool_call|>[{"name": "f", "arguments": {}}]<|/tool_call|>)", "f({})\n"},
      {kPython,
       R"(<|tool_call_start|>[f(s="a'b", n=1, l=['x', "y"], o={'k': None}, b=True), g()]<|tool_call_end|>)",
       "f({\"s\": \"a'b\", \"n\": 1, \"l\": [\"x\", \"y\"], \"o\": {\"k\": null}, \"b\": true})\ng({})\n"},
      {kPython, R"(<|tool_call_start|>[f(s='it\'s\né ü\u00e9')]<|tool_call_end|>I asked.)",
       "f({\"s\": \"it's\\né üé\"})\n\"I asked.\"\n"},
      {kPython, R"(<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>)", "f({})\n"},
  };
  for (const ToldAnswer& one : answers) expect_told(one);
}

TEST(ToolCalls, WhatOnlyLooksLikeACallStaysText) {
  const std::vector<std::pair<ToolCallFormat, std::string_view>> answers = {
      {kHermes, "Plain text. \n\n"},
      {kHermes, "  \n"},
      {kHermes, "a < b and a <tool b, <tool_cal"},
      {kHermes, "Models write <tool_call> and </tool_call> around calls."},
      {kHermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"a\n</tool_call>"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": }}</tool_call>"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>"},
      {kHermes, "<tool_call>{\"name\": \"a b\", \"arguments\": {}}</tool_call>"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}} is how"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"\\ud800\"}}</tool_call>"},
      {kHermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1e999}}</tool_call>"},
      {kHermes, "{\"name\": \"f\", \"arguments\": {}}"},
      {kHermes, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]"},
      {kFunctionTags, "<tool_call>\n<function=f>\n<parameter=s>\nunfinished"},
      {kFunctionTags, "<tool_call>\n<function=f>\n<parameter=s>\na\n</function>\n</tool_call>"},
      {kFunctionTags, "The tag <function=NAME> begins it."},
      {kWholeJson, R"({"name": "unknown", "parameters": {}})"},
      {kWholeJson, R"({"name": "f", "parameters": {}} is the call.)"},
      {kWholeJson, R"(Here: {"name": "f", "parameters": {}})"},
      {kWholeJson, R"({"answer": 42})"},
      {kWholeJson, R"({"name": "f", "parameters": {"s": "a")"},
      {kWholeJson, "<|python_tag|>print(1)"},
      {kMistral, "[TOOL_CALLS] is a mark, [TOOL is none."},
      {kMistral, "[TOOL_CALLS]f[ARGS]{\"s\": "},
      {kGemma, "<|tool_call>call:f{s:a}<tool_call|>"},
      {kGemma, "<|tool_call>call:f{s:<|\"|>a"},
      {kArgumentTags, "<tool_call>f\n<arg_key>s</arg_key>\n</tool_call>"},
      {kDeepSeek, "<｜tool▁calls▁begin｜>none"},
      {kDeepSeek,
       "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}"
       " and more"},
      {kGranite, "<|tool_call|>none"},
      {kPython, "<|tool_call_start|>[f(1)]<|tool_call_end|>"},
      {kPython, "<|tool_call_start|>[f(s=open('a'))]<|tool_call_end|>"},
      {kPython, "f(s=1)"},
  };
  for (const auto& [format, answer] : answers)
    expect_told({format, std::string(answer), quoted_json(answer) + "\n"});
}

TEST(ToolCalls, BehindABrokenCallAGoodOneIsFound) {
  expect_told({kHermes,
               "<tool_call>{bad}</tool_call>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
               "\"<tool_call>{bad}</tool_call>\"\nf({})\n"});
  expect_told({kHarmony, "<|channel|>commentary to=functions.f<|message|>{bad", "\"{bad\"\n"});
}

TEST(ToolCalls, NothingOfACallIsShownBeforeItIsWhole) {
  constexpr std::string_view kAnswer =
      "Yes. <tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a\"}}</tool_call>";
  ToolCallReader reader(kHermes);
  std::string shown;
  for (std::size_t i = 0; i + 1 < kAnswer.size(); ++i) {
    for (const ToolCallPiece& piece : reader.add(kAnswer.substr(i, 1))) {
      ASSERT_EQ(piece.kind, ToolCallPiece::Kind::kText);
      shown += piece.text;
    }
  }
  EXPECT_EQ(shown, "Yes.");
  EXPECT_EQ(told_pieces(reader.add(">")), "f({\"s\": \"a\"})\n");
}

TEST(ToolCalls, InAStreamTheNameComesWithTheFirstBraceAndArgumentsAsTheyAreWritten) {
  ToolCallReader reader(kHermes, callable_tools(), CallsAreTold::kAsTheyCome);
  EXPECT_EQ(told_kinds(reader.add("Yes.\n<tool_call>\n{\"name\": \"f\", \"arguments\": ")), "text:Yes. ");
  EXPECT_EQ(told_kinds(reader.add("{\"s\"")), "begun:f arguments:{\"s\" ");
  EXPECT_EQ(told_kinds(reader.add(": \"a\\")), "arguments:: \"a ");
  EXPECT_EQ(told_kinds(reader.add("n\", \"n\": 1")), "arguments:\\n\", \"n\":  ");
  EXPECT_EQ(told_kinds(reader.add("2}")), "arguments:12} ended: ");
  EXPECT_EQ(told_kinds(reader.add("}\n</tool_call>")), "");
  EXPECT_EQ(told_kinds(reader.end()), "");
}

TEST(ToolCalls, InAStreamArgumentsBetweenTagsGrowAsTheyAreWritten) {
  ToolCallReader reader(kFunctionTags, callable_tools(), CallsAreTold::kAsTheyCome);
  EXPECT_EQ(told_kinds(reader.add("Yes.\n<tool_call>\n<function=f>\n")), "text:Yes. ");
  EXPECT_EQ(told_kinds(reader.add("<parameter=s>\n")), "begun:f arguments:{\"s\": \" ");
  EXPECT_EQ(told_kinds(reader.add("line \"1\"\n")), "arguments:line \\\"1\\\" ");
  EXPECT_EQ(told_kinds(reader.add("line 2\n</par")), "arguments:\\nline 2 ");
  EXPECT_EQ(told_kinds(reader.add("ade>\n</parameter>\n")), "arguments:\\n</parade> ");
  EXPECT_EQ(told_kinds(reader.add("<parameter=n>\n1")), "arguments:\", \"n\":  ");
  EXPECT_EQ(told_kinds(reader.add("2\n</parameter>\n<parameter=t>\nnul")), "arguments:12, \"t\":  ");
  EXPECT_EQ(told_kinds(reader.add("lable")), "arguments:\"nullable ");
  EXPECT_EQ(told_kinds(reader.add("\n</parameter>\n</function>")), "arguments:\"} ended: ");
  EXPECT_EQ(told_kinds(reader.add("\n</tool_call>")), "");
  EXPECT_EQ(told_kinds(reader.end()), "");

  ToolCallReader invocations(kInvokeTags, callable_tools(), CallsAreTold::kAsTheyCome);
  EXPECT_EQ(told_kinds(invocations.add("<atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter "
                                       "name=\"s\">a <b")),
            "begun:f arguments:{\"s\": \"a <b ");
  EXPECT_EQ(told_kinds(invocations.add("></atem:parameter>\n</atem:invoke>\n<atem:invoke name=\"g\">\n</")),
            "arguments:>\"} ended: ");
  EXPECT_EQ(told_kinds(invocations.add("atem:invoke></atem:function_calls>")),
            "begun:g arguments:{} ended: ");
}

TEST(ToolCalls, ACallBetweenTagsThatIsCutEndsAsFarAsItCame) {
  const auto streamed = [](std::string_view answer) {
    return told_in_pieces(kFunctionTags, answer, 3, 5, CallsAreTold::kAsTheyCome);
  };
  EXPECT_EQ(streamed("<tool_call>\n<function=f>\n<parameter=s>\nunfinished"),
            "f({\"s\": \"unfinished CUT)\n");
  EXPECT_EQ(streamed("<tool_call>\n<function=f>\n<parameter=s>\na\n</parameter>\nmore"),
            "f({\"s\": \"a\\n</parameter>\\nmore CUT)\n");
  EXPECT_EQ(streamed("<tool_call>\n<function=f>\n</function> more"), "f({})\n\"more\"\n");
  EXPECT_EQ(streamed("<tool_call>\n<function=a b>\n</function>\n</tool_call>"),
            "\"<tool_call>\\n<function=a b>\\n</function>\\n</tool_call>\"\n");
}

TEST(ToolCalls, TagsOfInvocationsAndStatementsOfPythonAreCalls) {
  expect_told({kInvokeTags,
               "Yes.\n<atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter name=\"s\">a "
               "<b>\n</atem:parameter>\n"
               "<atem:parameter name=\"n\">3</atem:parameter>\n</atem:invoke>\n<atem:invoke "
               "name=\"g\">\n</atem:invoke>\n"
               "</atem:function_calls>",
               "\"Yes.\"\nf({\"s\": \"a <b>\\n\", \"n\": 3})\ng({})\n"});
  expect_told({kInvokeTags,
               "<atem:invoke name=\"f\"><atem:parameter name=\"n\">3</atem:parameter></atem:invoke>",
               "f({\"n\": 3})\n"});
  expect_told({kInvokeTags,
               "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n"
               "<｜DSML｜parameter name=\"s\" string=\"true\">7</｜DSML｜parameter>\n"
               "<｜DSML｜parameter name=\"l\" string=\"false\">[\"x\"]</｜DSML｜parameter>\n"
               "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
               "f({\"s\": \"7\", \"l\": [\"x\"]})\n"});
  expect_told({kHermesOrCode, "<code>\nf(s=\"a\", n=2)\nx = g()\nprint(f(b=True))\n</code>",
               "f({\"s\": \"a\", \"n\": 2})\ng({})\nf({\"b\": true})\n"});
  expect_told({kHermesOrCode, "<tool_call>{\"name\": \"g\"}</tool_call>", "g({})\n"});
  for (const std::string code : {"<code>import os\nf()</code>", "<code>open(s=\"a\")</code>",
                                 "<code>f() + g()</code>", "<code></code>"})
    expect_told({kHermesOrCode, code, quoted_json(code) + "\n"});
  for (const std::string tags :
       {"<atem:function_calls></atem:function_calls>", "<atem:invoke name=\"f\"><atem:parameter>",
        "<atem:function_calls><atem:invoke name=\"a b\"></atem:invoke></atem:function_calls>"})
    expect_told({kInvokeTags, tags, quoted_json(tags) + "\n"});
}

TEST(ToolCalls, ACallThatIsCutEndsAsFarAsItCame) {
  const auto streamed = [](std::string_view answer) {
    return told_in_pieces(kHermes, answer, 3, 5, CallsAreTold::kAsTheyCome);
  };
  EXPECT_EQ(streamed("<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": 12"), "f({\"n\": 12 CUT)\n");
  EXPECT_EQ(streamed("<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": x} more"),
            "f({\"n\":  CUT)\n\"x} more\"\n");
  EXPECT_EQ(streamed("<tool_call>{\"name\": \"f\", \"argu"),
            "\"<tool_call>{\\\"name\\\": \\\"f\\\", \\\"argu\"\n");
}

// Whole calls with random arguments, in every form: however it is cut.
TEST(ToolCalls, StreamedOrWholeTheyAreTheSame) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::uint64_t state = seed;
    const std::string arguments = random_object(state, 0);
    const std::string call = "{\"name\": \"f\", \"arguments\": " + arguments + "}";
    const std::string told = "f(" + arguments + ")\n";
    expect_streamed({kHermes, "<tool_call>\n" + call + "\n</tool_call>", told});
    expect_streamed({kHermes, "a <tool_call>" + call + "</tool_call>\n<tool_call>" + call + "</tool_call>",
                     "\"a\"\n" + told + told});
    expect_streamed(
        {kHermes, "<tool_call>{\"arguments\": " + arguments + ", \"name\": \"f\"}</tool_call>", told});
    expect_streamed({kHermes,
                     "<tool_call>{\"id\": \"1\", \"name\": \"f\", \"parameters\": " + arguments +
                         ", \"x\": [{\"name\": \"g\"}]}</tool_call>",
                     told});
    expect_streamed({kMistral, "[TOOL_CALLS]f[ARGS]" + arguments, told});
    expect_streamed({kMistral, "[TOOL_CALLS][" + call + ", " + call + "]", told + told});
    expect_streamed(
        {kHarmony, "<|channel|>commentary to=functions.f<|message|>" + arguments + "<|call|>", told});
    expect_streamed({kDeepSeek,
                     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>" + arguments +
                         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                     told});
    expect_streamed({kGranite, "<|tool_call|>[" + call + "]", told});
    expect_streamed({kWholeJson, call, told});
    expect_streamed({kWholeJson, "<|python_tag|>" + call, told});
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

// The same for arguments between tags: random values of parameters of every type, however they are cut.
TEST(ToolCalls, BetweenTagsTheyAreTheSameStreamedOrWhole) {
  const std::vector<std::string> kNames = {"s", "n", "x", "b", "o", "l", "m", "t", "any", "new"};
  const std::vector<std::string> kValues = {
      "",    "a",    "\n", "a\n\n  b\n",         " 12 ",       "-1.5e3", "null",        "None",   "nullable",
      "nul", "True", "no", "{\"a\": [1, null]}", "[\"x\", 2]", "[1",     "é \"\\\" \t", "<b> </", "a < b"};
  std::size_t num_calls = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    std::uint64_t state = seed;
    std::string lines, keys, attributes, marked;
    for (std::uint64_t i = next_random(state) % 5; i > 0; --i) {
      const std::string& name = kNames[next_random(state) % kNames.size()];
      const std::string& value = kValues[next_random(state) % kValues.size()];
      const bool has_lines = next_random(state) % 4 > 0;
      lines += "<parameter=" + name + ">" + (has_lines ? "\n" + value + "\n" : value) + "</parameter>\n";
      keys += "\n<arg_key>" + name + "</arg_key>\n<arg_value>" + value + "</arg_value>";
      attributes += "<atem:parameter name=\"" + name + "\">" + value + "</atem:parameter>\n";
      marked += "<｜DSML｜parameter name=\"" + name + "\" string=\"" +
                (next_random(state) % 2 == 0 ? "true" : "false") + "\">" + value + "</｜DSML｜parameter>\n";
    }
    const std::string tags = "<function=f>\n" + lines + "</function>\n";
    const std::string invoked = "<atem:invoke name=\"f\">\n" + attributes + "</atem:invoke>\n";
    const std::string marked_call = "<｜DSML｜invoke name=\"f\">\n" + marked + "</｜DSML｜invoke>\n";
    const std::vector<std::pair<ToolCallFormat, std::string>> answers = {
        {kFunctionTags, "<tool_call>\n" + tags + "</tool_call>"},
        {kFunctionTags,
         "So. <tool_call>" + tags + "</tool_call>\n<tool_call>\n" + tags + "</tool_call> Done."},
        {kFunctionTags, tags + "</tool_call>"},
        {kHermes, "<tool_call>\n" + tags + "</tool_call>"},
        {kArgumentTags, "<tool_call>f" + keys + "\n</tool_call>"},
        {kArgumentTags, "<tool_call> f\n" + keys},
        {kInvokeTags, "<atem:function_calls>\n" + invoked + invoked + "</atem:function_calls>"},
        {kInvokeTags, invoked},
        {kInvokeTags, "So.\n<｜DSML｜function_calls>\n" + marked_call + "</｜DSML｜function_calls>\nDone."}};
    for (const auto& [format, answer] : answers) {
      const std::string whole = told_in_pieces(format, answer, 0);
      ASSERT_NE(whole.find("f({"), std::string::npos) << answer;
      expect_streamed({format, answer, whole});
      ++num_calls;
    }
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_EQ(num_calls, 3600u);
}

// Marks, halves of them and what stands in calls, in any order: however it is cut.
TEST(ToolCalls, AnyTextIsToldTheSameHoweverItIsCut) {
  const std::vector<std::string_view> kParts = {"<tool_call>",
                                                "</tool_call>",
                                                "{\"name\": \"f\", \"arguments\": {}}",
                                                "\n",
                                                " ",
                                                "word",
                                                "<",
                                                "[",
                                                "{",
                                                "}",
                                                "<function=f>",
                                                "</function>",
                                                "<parameter=s>",
                                                "</parameter>",
                                                "[TOOL_CALLS]",
                                                "f[ARGS]{}",
                                                ";",
                                                "\"",
                                                "[{\"name\":\"g\"}]",
                                                "<|tool_call>",
                                                "call:f{n:1}",
                                                "<tool_call|>",
                                                "<|python_tag|>",
                                                "<|tool_call_start|>",
                                                "[f(n=1)]",
                                                "<|tool_call_end|>",
                                                "<|tool_call|>",
                                                "<｜tool▁calls▁begin｜>",
                                                "<｜tool▁call▁begin｜>",
                                                "f<｜tool▁sep｜>{}",
                                                "<｜tool▁call▁end｜>",
                                                "<｜tool▁calls▁end｜>",
                                                "<|channel|>commentary to=functions.f",
                                                "<|message|>",
                                                "<|call|>",
                                                "<arg_key>s</arg_key>",
                                                "<arg_value>v</arg_value>",
                                                "<code>",
                                                "</code>",
                                                "<atem:invoke name=\"f\">",
                                                "</atem:invoke>",
                                                "</atem:function_calls>",
                                                "f"};
  // Of each format, in their order.
  const std::vector<std::string_view> kCalls = {
      "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
      "<code>f(n=1)</code>",
      "<tool_call><function=f><parameter=s>a</parameter></function></tool_call>",
      "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
      "[TOOL_CALLS]f[ARGS]{}",
      "<|channel|>commentary to=functions.f<|message|>{}<|call|>",
      "<|tool_call>call:f{n:1}<tool_call|>",
      "<tool_call>f<arg_key>s</arg_key><arg_value>v</arg_value></tool_call>",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
      "<|tool_call|>[{\"name\": \"f\"}]",
      "<|tool_call_start|>[f(n=1)]<|tool_call_end|>",
      "<atem:function_calls><atem:invoke name=\"f\"></atem:invoke></atem:function_calls>"};
  std::size_t num_calls = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    std::uint64_t state = seed;
    std::string answer;
    for (std::uint64_t i = next_random(state) % 12 + 2; i > 0; --i)
      answer += next_random(state) % 4 == 0 ? kCalls[seed % kCalls.size()]
                                            : kParts[next_random(state) % kParts.size()];
    const auto format = static_cast<ToolCallFormat>(seed % kCalls.size());
    const std::string whole = told_in_pieces(format, answer, 0);
    ASSERT_EQ(told_in_pieces(format, answer, 1), whole) << "seed " << seed << ": " << answer;
    ASSERT_EQ(told_in_pieces(format, answer, 7, seed), whole) << "seed " << seed << ": " << answer;
    constexpr auto kAsTheyCome = CallsAreTold::kAsTheyCome;
    const std::string streamed = told_in_pieces(format, answer, 0, 1, kAsTheyCome);
    ASSERT_EQ(told_in_pieces(format, answer, 1, 1, kAsTheyCome), streamed)
        << "seed " << seed << ": " << answer;
    ASSERT_EQ(told_in_pieces(format, answer, 7, seed, kAsTheyCome), streamed)
        << "seed " << seed << ": " << answer;
    if (whole.find(")\n") != std::string::npos) ++num_calls;
  }
  EXPECT_GT(num_calls, 1000u);
}

// Each would be read again from every mark on if nothing bounded it: hours.
TEST(ToolCalls, HostileTextTakesLinearTime) {
  for (const std::string_view part : {"<tool_call>{\"a", "<tool_call><function=f>", "<tool_call>{",
                                      "<tool_call>  ", "<tool_call>[\"", "<"}) {
    std::string answer;
    while (answer.size() < 400'000) answer += part;
    for (const ToolCallFormat format : {kHermes, kFunctionTags, kArgumentTags, kGranite}) {
      const std::string told = told_in_pieces(format, answer, 4096);
      EXPECT_GE(told.size(), answer.size()) << part;
    }
  }
}

TEST(ToolCalls, HostileArgumentsBetweenTagsTakeLinearTime) {
  for (const std::string_view part : {"a", "</parameter> ", "</parameter", "</parameter>\n\n\n\n", "\n"}) {
    std::string answer = "<tool_call><function=f><parameter=s>";
    while (answer.size() < 100'000) answer += part;
    const std::string told = told_in_pieces(kFunctionTags, answer, 1, 1, CallsAreTold::kAsTheyCome);
    EXPECT_GE(told.size(), answer.size() - 100) << part;
  }
}

TEST(ToolCalls, ManyBlanksAreText) {
  const std::string blanks(10'000, ' ');
  for (const ToolCallFormat format : {kHermes, kWholeJson}) {
    ToolCallReader reader(format, callable_tools());
    std::string told;
    for (std::size_t i = 0; i < blanks.size(); ++i) {
      for (const ToolCallPiece& piece : reader.add(" ")) told += piece.text;
    }
    EXPECT_GT(told.size(), 5'000u);
    for (const ToolCallPiece& piece : reader.end()) told += piece.text;
    EXPECT_EQ(told, blanks);
  }
}

TEST(ToolCalls, TheFormatIsToldByTheMarksOfTheTemplate) {
  EXPECT_EQ(tool_call_format(""), kHermes);
  EXPECT_EQ(tool_call_format("{{ message.content }}"), kHermes);
  EXPECT_EQ(tool_call_format("'<tool_call>\\n{\"name\": ' <|im_end|>"), kHermes);
  EXPECT_EQ(tool_call_format("<tool_call>\n<function= <|im_end|>"), kFunctionTags);
  EXPECT_EQ(tool_call_format("<|channel|>commentary <|message|>"), kHarmony);
  EXPECT_EQ(tool_call_format("<tool_call> <arg_key>"), kArgumentTags);
  EXPECT_EQ(tool_call_format("<|start_of_role|> <tool_call>"), kGranite);
  EXPECT_EQ(tool_call_format("<|tool_call_start|>"), kPython);
  EXPECT_EQ(tool_call_format("<|tool_call>call:"), kGemma);
  EXPECT_EQ(tool_call_format("<｜tool▁calls▁begin｜>"), kDeepSeek);
  EXPECT_EQ(tool_call_format("[TOOL_CALLS]"), kMistral);
  EXPECT_EQ(tool_call_format("<|python_tag|>"), kWholeJson);
}

TEST(ToolCalls, TheTemplatesOfTheTestsAreOfTheirFamilies) {
  const auto format_of = [](const std::string& name) {
    const std::ifstream file(test::source_folder() / "tests/golden/templates" / (name + ".jinja"));
    EXPECT_TRUE(file.good()) << name;
    std::ostringstream text;
    text << file.rdbuf();
    return tool_call_format(text.str());
  };
  EXPECT_EQ(format_of("chatml"), kHermes);
  EXPECT_EQ(format_of("qwen2.5"), kHermes);
  EXPECT_EQ(format_of("qwen3"), kHermes);
  EXPECT_EQ(format_of("smollm2"), kHermes);
  EXPECT_EQ(format_of("llama3.1"), kWholeJson);
  EXPECT_EQ(format_of("llama3.2"), kWholeJson);
  EXPECT_EQ(format_of("mistral"), kMistral);
  EXPECT_EQ(format_of("mistral-nemo"), kMistral);
  EXPECT_EQ(format_of("gemma4"), kGemma);
  EXPECT_EQ(format_of("glm4.7"), kArgumentTags);
  EXPECT_EQ(format_of("granite4"), kGranite);
  EXPECT_EQ(format_of("lfm2"), kPython);
  EXPECT_EQ(format_of("deepseek-r1"), kDeepSeek);
}

TEST(ToolCalls, AHeaderNamesTheFunctionThatItsMessageCalls) {
  const auto called = [](std::string answer) { return std::string(called_by_header(answer, answer.size())); };
  EXPECT_EQ(called("<|channel|>commentary to=functions.f <|constrain|>json<|message|>"), "f");
  EXPECT_EQ(called("<|start|>assistant to=functions.f<|channel|>commentary json<|message|>\n"), "f");
  EXPECT_EQ(called(" to=functions.f<|channel|>commentary json<|message|>"), "f");
  EXPECT_EQ(called("<|channel|>final<|message|>"), "");
  EXPECT_EQ(
      called("<|channel|>commentary to=functions.f<|message|>{}<|end|><|start|>assistant<|channel|>final"
             "<|message|>"),
      "");
  EXPECT_EQ(called("<|channel|>commentary to=functions.f<|message|>{}"), "");
}

}  // namespace
}  // namespace octavo
