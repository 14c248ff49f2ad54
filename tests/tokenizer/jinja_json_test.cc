#include "engine/chat_template/jinja_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace octavo::tokenizer::jinja {
namespace {

std::string round_trip(std::string_view json) {
  Budget budget;
  const Outcome value = read_json(json, budget);
  if (!value) return "error: " + value.error().message;
  const auto text = to_json(*value, {}, budget);
  return text ? (*text)->text() : text.error().message;
}

TEST(JinjaJson, ValuesAreWhatPythonReads) {
  EXPECT_EQ(round_trip(R"( {"b": [1, -2, 0, true, false, null], "a": {}, "c": []} )"),
            R"({"b": [1, -2, 0, true, false, null], "a": {}, "c": []})");
  EXPECT_EQ(round_trip("[1.0,-0.5,1e3,1E-7,9223372036854775807,-9223372036854775808]"),
            "[1.0, -0.5, 1000.0, 1e-07, 9223372036854775807, -9223372036854775808]");
  EXPECT_EQ(round_trip("18446744073709551615"), "1.8446744073709552e+19");
  EXPECT_EQ(round_trip(R"("\u00e4\ud83d\ude00\/\b\f\n\r\t\"\\ \u0000")"),
            "\"\u00e4\U0001f600/\\b\\f\\n\\r\\t\\\"\\\\ \\u0000\"");
  EXPECT_EQ(round_trip(R"({"a": 1, "b": 2, "a": 3})"), R"({"a": 3, "b": 2})");
}

TEST(JinjaJson, EverythingElseIsAnErrorWithItsPlace) {
  EXPECT_EQ(round_trip(""), "error: at byte 0 a value is missing");
  EXPECT_EQ(round_trip("[1,]"), "error: at byte 3 no value begins like this");
  EXPECT_EQ(round_trip("[1 2]"), "error: at byte 3 a comma or the end of a list is missing");
  for (const char* wrong : {"{",
                            "[",
                            "\"",
                            "{\"a\"}",
                            "{\"a\":}",
                            "{a:1}",
                            "{\"a\":1,}",
                            "{\"a\":1 \"b\":2}",
                            "01",
                            "-",
                            "1.",
                            ".5",
                            "1e",
                            "+1",
                            "NaN",
                            "Infinity",
                            "tru",
                            "True",
                            "'a'",
                            "1 2",
                            "[1]]",
                            "\"\\x\"",
                            "\"\\u12\"",
                            "\"\\ud800\"",
                            "\"\\ud800\\u0041\"",
                            "\"\\udc00\"",
                            "\"a\nb\"",
                            "1e999",
                            "-1e999",
                            "\"\xff\"",
                            "\"\xed\xa0\x80\"",
                            "//",
                            "\"\\u00-1\""}) {
    EXPECT_EQ(round_trip(wrong).find("error: "), 0u) << wrong;
  }
}

TEST(JinjaJson, NestingAndWorkAreBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(round_trip(nested(64)), nested(64));
  EXPECT_NE(round_trip(nested(65)).find("nested more than 64"), std::string::npos);
  EXPECT_NE(round_trip(std::string(1'000'000, '[')).find("nested more than 64"), std::string::npos);
  std::string many = "[0";
  for (int i = 0; i < 2'000'000; ++i) many += ",0";
  Budget budget;
  const Outcome value = read_json(many + "]", budget);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kUnsupported);
}

TEST(JinjaJson, EveryTextIsInput) {
  Budget budget;
  const Outcome value = read_json(R"({"k": ["v"]})", budget);
  ASSERT_TRUE(value);
  const auto& [key, list] = value->dict().entries.front();
  EXPECT_TRUE(key.text()->has_input());
  EXPECT_TRUE(list.items().front().text()->has_input());
  EXPECT_TRUE((*to_json(*value, {}, budget))->has_input());
}

// Valid texts with a few bytes changed: what is accepted and what it means is as another reader has it.
TEST(JinjaJson, AgreesWithAnotherReader) {
  const std::string valid =
      R"({"a": [1, -2.5e3, "x\u00e4\n\ud83d\ude00"], "bc": {"d": null, "e": true}, "f": ""})";
  std::mt19937 random(7);
  int num_accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = valid;
    for (std::size_t n = 1 + random() % 2; n > 0; --n) {
      constexpr std::string_view kBytes = "\"\\{}[]:,0159.eE+-utfn \n\xc3\xa4";
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = kBytes[random() % kBytes.size()]; break;
        case 1: text.erase(at, 1); break;
        default: text.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    const auto other = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    Budget budget;
    const Outcome value = read_json(text, budget);
    ASSERT_EQ(value.has_value(), !other.is_discarded()) << text;
    if (!value) continue;
    ++num_accepted;
    const JsonStyle compact = {.item_separator = ",", .key_separator = ":"};
    const auto again = nlohmann::ordered_json::parse((*to_json(*value, compact, budget))->text());
    EXPECT_EQ(again, other) << text;
  }
  EXPECT_GT(num_accepted, 500);
}

}  // namespace
}  // namespace octavo::tokenizer::jinja
