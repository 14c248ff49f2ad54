#include "app/json/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace octavo::app {
namespace {

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string problem_of(const std::string& text) {
  const auto read = parse_json(text, "the body");
  return read ? std::string() : read.error().message;
}

TEST(JsonText, DepthAndWidthAreBoundedAndSaid) {
  EXPECT_EQ(problem_of(repeated("[", 64) + repeated("]", 64)), "");
  EXPECT_EQ(problem_of(repeated("[", 65) + repeated("]", 65)), "the body: is nested deeper than 64 levels");
  EXPECT_EQ(problem_of(repeated("[", 1'000'000)), "the body: is nested deeper than 64 levels");
  const auto with_members = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_EQ(problem_of(with_members(4096)), "");
  EXPECT_EQ(problem_of("[" + with_members(4097) + "]"),
            "the body: has an object with more than 4096 members");
  EXPECT_EQ(problem_of("[{\"a\":" + with_members(4096) + ",\"b\":0}]"), "");
}

TEST(JsonText, ALongListIsReadInTimeThatGrowsWithItAlone) {
  const auto list = parse_json("[" + repeated("{},", 400'000) + "0]", "the body");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 400'001u);
}

TEST(JsonText, WhatIsNoJsonIsOneSentence) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "\"\xff\"", "1 2", "{\"a\":\n\x01}"}) {
    const std::string problem = problem_of(text);
    EXPECT_NE(problem.find("is not valid JSON"), std::string::npos) << text;
    EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
  }
}

TEST(JsonText, MembersStayInTheirOrder) {
  EXPECT_EQ(dump(*parse_json(R"({"b":1,"a":[2.5,null,"x"]})", "it")), R"({"b":1,"a":[2.5,null,"x"]})");
}

}  // namespace
}  // namespace octavo::app
