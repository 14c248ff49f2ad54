#include "app/server/request_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/openai_calls.h"

namespace octavo::app {
namespace {

TEST(FieldReader, NullIsAbsent) {
  const Json body = Json::parse(R"({"a": null, "b": null})");
  FieldReader fields(body);
  EXPECT_FALSE(fields.has("a"));
  EXPECT_FALSE(fields.flag("a") || fields.text("a") || fields.integer("b") || fields.number("b"));
  EXPECT_FALSE(fields.texts("a", 1) || fields.token_ids("a", 10));
  EXPECT_EQ(fields.object("a"), nullptr);
  EXPECT_EQ(fields.list("a", 1), nullptr);
  EXPECT_TRUE(fields.check().has_value());
}

TEST(FieldReader, ReadsWhatIsThere) {
  const Json body = Json::parse(
      R"({"flag": true, "text": "x", "whole": 7, "float": 16.0, "half": 0.5, "one": "a", "many": ["a", "b"],
          "ids": [1, 2.0]})");
  FieldReader fields(body);
  EXPECT_EQ(fields.flag("flag"), true);
  EXPECT_EQ(fields.text("text"), "x");
  EXPECT_EQ(fields.integer("whole", 7, 7), 7);
  EXPECT_EQ(fields.integer("float"), 16);
  EXPECT_EQ(fields.number("half", 0.5, 0.5), 0.5);
  EXPECT_EQ(fields.number("whole"), 7.0);
  EXPECT_EQ(fields.texts("one", 1), std::vector<std::string>{"a"});
  EXPECT_EQ(fields.texts("many", 2), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.token_ids("ids", 3), (std::vector<TokenId>{1, 2}));
  EXPECT_TRUE(fields.check().has_value());
  EXPECT_TRUE(fields.unread().empty());
}

TEST(FieldReader, SaysInOneSentenceWhatIsWrong) {
  struct Case {
    const char* value;
    void (*read)(FieldReader&);
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {"1", [](FieldReader& f) { f.flag("x"); }, "m.x must be true or false, but it is 1"},
      {"[1]", [](FieldReader& f) { f.text("x"); }, "m.x must be a text, but it is a list"},
      {"30", [](FieldReader& f) { f.integer("x", 0, 20); },
       "m.x must be a whole number from 0 to 20, but it is 30"},
      {"1.5", [](FieldReader& f) { f.integer("x"); }, "m.x must be a whole number, but it is 1.5"},
      {"true", [](FieldReader& f) { f.integer("x", 1); },
       "m.x must be a whole number of at least 1, but it is true"},
      {"1e300", [](FieldReader& f) { f.integer("x"); }, "m.x must be a whole number, but it is 1e+300"},
      {"18446744073709551615", [](FieldReader& f) { f.integer("x"); },
       "m.x must be a whole number, but it is 18446744073709551615"},
      {"4294967297", [](FieldReader& f) { f.small_integer("x", 1); },
       "m.x must be a whole number from 1 to 2147483647, but it is 4294967297"},
      {"\"0.5\"", [](FieldReader& f) { f.number("x", 0.0, 1.0); },
       "m.x must be a number from 0 to 1, but it is \"0.5\""},
      {"[\"a\", 1]", [](FieldReader& f) { f.texts("x", 4); },
       "m.x must be a text or a list of at most 4 texts, but it is a list"},
      {"[\"a\", \"b\"]", [](FieldReader& f) { f.texts("x", 1); },
       "m.x must be a text or a list of at most 1 texts, but it is a list of 2"},
      {"[3]", [](FieldReader& f) { f.token_ids("x", 3); },
       "m.x must be a list of the model's token ids, 0 to 2, but it is a list of something else"},
      {"[-1]", [](FieldReader& f) { f.token_ids("x", 3); },
       "m.x must be a list of the model's token ids, 0 to 2, but it is a list of something else"},
      {"{}", [](FieldReader& f) { f.list("x", 1, 3); },
       "m.x must be a list with at least 1 and at most 3 entries, but it is an empty object"},
      {"[]", [](FieldReader& f) { f.list("x", 1); },
       "m.x must be a list with at least 1 entries, but it is an empty list"},
      {"\"\\u001b[2J\"", [](FieldReader& f) { f.object("x"); },
       "m.x must be an object, but it is \"\\x1b[2J\""},
  };
  for (const Case& one : cases) {
    const Json object = {{"x", Json::parse(one.value)}};
    FieldReader fields(object, "m");
    one.read(fields);
    const auto checked = fields.check();
    ASSERT_FALSE(checked.has_value()) << one.value;
    EXPECT_EQ(checked.error().message, one.sentence);
    EXPECT_EQ(checked.error().subject, "m.x");
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(FieldReader, KeepsTheFirstErrorAndKnowsWhatNobodyAskedFor) {
  const Json body = Json::parse(R"({"b": 1, "a": 1, "new": 1, "none": null})");
  FieldReader fields(body);
  fields.text("a");
  fields.text("b");
  EXPECT_EQ(fields.check().error().subject, "a");
  EXPECT_EQ(fields.unread(), std::vector<std::string>{"new"});
}

TEST(FieldReader, AnythingButAnObjectIsAnError) {
  for (const char* text : {"[]", "1", "null", "\"x\""}) {
    const Json body = Json::parse(text);
    FieldReader fields(body);
    EXPECT_FALSE(fields.has("a"));
    EXPECT_FALSE(fields.check().has_value()) << text;
  }
}

SamplingFields sampling_of(const char* text) {
  const TestModel model;
  const Json body = Json::parse(text);
  FieldReader fields(body);
  SamplingFields read = read_sampling(fields, model.served);
  EXPECT_TRUE(fields.check().has_value()) << text;
  return read;
}

TEST(ReadSampling, EveryFieldArrives) {
  const SamplingFields read = sampling_of(
      R"({"n": 2, "best_of": 3, "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "seed": 7,
          "presence_penalty": 0.25, "frequency_penalty": -0.25, "repetition_penalty": 1.5, "min_tokens": 3,
          "stop": "end", "stop_token_ids": [5], "ignore_eos": true, "include_stop_str_in_output": true,
          "skip_special_tokens": false,
          "bad_words": ["bad"], "allowed_token_ids": [1, 2], "logit_bias": {"9": -100, "3": 1.5},
          "length_penalty": 0.5, "early_stopping": true})");
  const SamplingParams& sampling = read.sampling;
  EXPECT_EQ(read.num_choices, 2);
  EXPECT_EQ(sampling.n, 2);
  EXPECT_EQ(sampling.best_of, 3);
  EXPECT_EQ(sampling.temperature, 0.0);
  EXPECT_EQ(sampling.top_p, 0.5);
  EXPECT_EQ(sampling.top_k, -1);
  EXPECT_EQ(sampling.min_p, 0.1);
  EXPECT_EQ(sampling.seed, 7u);
  EXPECT_EQ(sampling.presence_penalty, 0.25);
  EXPECT_EQ(sampling.frequency_penalty, -0.25);
  EXPECT_EQ(sampling.repetition_penalty, 1.5);
  EXPECT_EQ(sampling.min_tokens, 3);
  EXPECT_EQ(sampling.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(sampling.stop_token_ids, std::vector<TokenId>{5});
  EXPECT_TRUE(sampling.ignore_eos && sampling.include_stop_str_in_output && sampling.early_stopping);
  EXPECT_FALSE(sampling.skip_special_tokens);
  EXPECT_EQ(sampling.bad_words, std::vector<std::string>{"bad"});
  EXPECT_EQ(sampling.allowed_token_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(sampling.logit_bias, (std::map<TokenId, double>{{3, 1.5}, {9, -100.0}}));
  EXPECT_EQ(sampling.length_penalty, 0.5);
  EXPECT_FALSE(sampling.beam_width.has_value());
}

TEST(ReadSampling, NothingSaidIsTheEnginesOwn) {
  const SamplingParams sampling = sampling_of("{}").sampling;
  EXPECT_EQ(sampling.temperature, 1.0);
  EXPECT_EQ(sampling.n, 1);
  EXPECT_FALSE(sampling.best_of || sampling.seed || sampling.beam_width || sampling.allowed_token_ids);
}

TEST(ReadSampling, SeedsAreAny64BitsAndMinusOneIsNone) {
  EXPECT_EQ(sampling_of(R"({"seed": 18446744073709551615})").sampling.seed, UINT64_MAX);
  EXPECT_EQ(sampling_of(R"({"seed": -2})").sampling.seed, UINT64_MAX - 1);
  EXPECT_FALSE(sampling_of(R"({"seed": -1})").sampling.seed.has_value());
}

TEST(ReadSampling, BeamsAreAsManyAsBestOfAndTheBestNAreTold) {
  const SamplingFields wide = sampling_of(R"({"use_beam_search": true, "n": 2, "best_of": 5})");
  EXPECT_EQ(wide.sampling.beam_width, 5);
  EXPECT_FALSE(wide.sampling.best_of.has_value());
  EXPECT_EQ(wide.num_choices, 2);
  EXPECT_EQ(sampling_of(R"({"use_beam_search": true, "n": 4})").sampling.beam_width, 4);
}

TEST(ReadSampling, BestOfOfAsManyAsNIsNone) {
  EXPECT_FALSE(sampling_of(R"({"n": 2, "best_of": 2})").sampling.best_of.has_value());
}

TEST(ReadSampling, WrongOnesAreNamed) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"n": 0})", "n"},
      {R"({"n": 129})", "n"},
      {R"({"n": 3, "best_of": 2})", "best_of"},
      {R"({"best_of": 129})", "best_of"},
      {R"({"temperature": "hot"})", "temperature"},
      {R"({"temperature": -1})", "temperature"},
      {R"({"top_p": 0})", "top_p"},
      {R"({"top_k": 1.5})", "top_k"},
      {R"({"min_p": 2})", "min_p"},
      {R"({"presence_penalty": 3})", "presence_penalty"},
      {R"({"frequency_penalty": 3})", "frequency_penalty"},
      {R"({"repetition_penalty": 0})", "repetition_penalty"},
      {R"({"seed": 1.5})", "seed"},
      {R"({"seed": "1"})", "seed"},
      {R"({"stop": 1})", "stop"},
      {R"({"stop": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"]})", "stop"},
      {R"({"stop_token_ids": [1000]})", "stop_token_ids"},
      {R"({"logit_bias": [1]})", "logit_bias"},
      {R"({"logit_bias": {"1000": 1}})", "logit_bias"},
      {R"({"logit_bias": {"-1": 1}})", "logit_bias"},
      {R"({"logit_bias": {"1x": 1}})", "logit_bias"},
      {R"({"logit_bias": {"1": "x"}})", "logit_bias"},
      {R"({"allowed_token_ids": [-1]})", "allowed_token_ids"},
      {R"({"allowed_token_ids": []})", "allowed_token_ids"},
      {R"({"bad_words": [1]})", "bad_words"},
      {R"({"ignore_eos": 1})", "ignore_eos"},
      {R"({"skip_special_tokens": "no"})", "skip_special_tokens"},
      {R"({"include_stop_str_in_output": "yes"})", "include_stop_str_in_output"},
      {R"({"min_tokens": 17})", "min_tokens"},
      {R"({"use_beam_search": 1})", "use_beam_search"},
      {R"({"early_stopping": "never"})", "early_stopping"},
      {R"({"length_penalty": "x"})", "length_penalty"},
  };
  const TestModel model;
  for (const auto& [text, subject] : cases) {
    const Json body = Json::parse(text);
    FieldReader fields(body);
    const SamplingFields read = read_sampling(fields, model.served);
    auto checked = fields.check();
    if (checked) checked = check_sampling(read.sampling, model.served);
    ASSERT_FALSE(checked.has_value()) << text;
    EXPECT_EQ(checked.error().subject, subject) << text;
    EXPECT_TRUE(checked.error().message.starts_with(subject)) << checked.error().message;
  }
}

TEST(ReadSampling, WhatIsNotSaidIsWhatTheMakersAdvise) {
  TestModel model;
  model.served.description.model.sampling_advice = {.temperature = 0.6, .top_k = 20, .presence_penalty = 1.5};
  const Json body = Json::parse(R"({"top_k": 5})");
  FieldReader fields(body);
  const SamplingParams sampling = read_sampling(fields, model.served).sampling;
  EXPECT_EQ(sampling.temperature, 0.6);
  EXPECT_EQ(sampling.top_k, 5);
  EXPECT_EQ(sampling.presence_penalty, 1.5);
  EXPECT_EQ(sampling.top_p, 1.0);
}

TEST(ReadSampling, MoreBiasesThanAnyoneNeedsAreRefused) {
  for (const std::size_t count : {kMaxListed, kMaxListed + 1}) {
    TestModel large;
    large.served.description.model.vocabulary_size = 5000;
    Json biases = Json::object();
    for (std::size_t id = 0; id < count; ++id) biases[std::to_string(id)] = 1;
    const Json body = {{"logit_bias", biases}};
    FieldReader fields(body);
    read_sampling(fields, large.served);
    EXPECT_EQ(fields.ok(), count <= kMaxListed);
  }
}

TEST(ReadModel, NamesTheOneThatIsThere) {
  const TestModel model;
  for (const char* good : {R"({})", R"({"model": null})", R"({"model": "tiny"})", R"({"model": "alias"})"}) {
    const Json body = Json::parse(good);
    FieldReader fields(body);
    read_model(fields, model.served);
    EXPECT_TRUE(fields.ok()) << good;
  }
  const Json body = Json::parse(R"({"model": "gpt-5"})");
  FieldReader fields(body);
  read_model(fields, model.served);
  const Error error = fields.check().error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.subject, "model");
  EXPECT_NE(error.message.find("'tiny'"), std::string::npos) << error.message;
}

TEST(RefuseUnsupported, OnlyValuesThatSaySomething) {
  const std::vector<std::pair<Harmless, std::vector<const char*>>> good = {
      {Harmless::kNothing, {"null"}},
      {Harmless::kEmpty, {"null", "\"\"", "[]", "{}"}},
      {Harmless::kFalse, {"null", "false"}},
      {Harmless::kTrue, {"true"}},
      {Harmless::kZero, {"0", "0.0", "-1"}},
      {Harmless::kOne, {"1", "1.0"}},
      {Harmless::kTextFormat, {R"({"type": "text"})"}},
      {Harmless::kTextModality, {R"(["text"])"}},
      {Harmless::kAutoOrNone, {R"("auto")", R"("none")"}},
  };
  const std::vector<const char*> all = {"null",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        "false",
                                        "true",
                                        "0",
                                        "0.0",
                                        "-1",
                                        "1",
                                        "1.0",
                                        R"({"type": "text"})",
                                        R"(["text"])",
                                        R"("auto")",
                                        R"("none")",
                                        "\"x\"",
                                        "2",
                                        R"({"type": "json_object"})",
                                        R"(["text", "audio"])",
                                        R"({"type": 1})"};
  for (const auto& [harmless, fine] : good) {
    for (const char* text : all) {
      const bool is_fine = std::string(text) == "null" || std::ranges::any_of(fine, [&](const char* one) {
                             return std::string(one) == text;
                           });
      const Json body = {{"field", Json::parse(text)}};
      FieldReader fields(body);
      const UnsupportedField unsupported{"field", harmless, "do something else"};
      refuse_unsupported(fields, {&unsupported, 1});
      EXPECT_EQ(fields.ok(), is_fine) << static_cast<int>(harmless) << " " << text;
      if (fields.ok()) continue;
      EXPECT_EQ(fields.check().error().subject, "field");
      EXPECT_EQ(fields.check().error().code, ErrorCode::kUnsupported);
    }
  }
}

TEST(ReadStream, OptionsAreRead) {
  const Json body = Json::parse(
      R"({"stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true, "x": 1}})");
  FieldReader fields(body);
  const StreamFields read = read_stream(fields);
  EXPECT_TRUE(read.stream && read.include_usage && read.continuous_usage_stats);
  EXPECT_TRUE(fields.ok());
  const Json wrong = Json::parse(R"({"stream_options": {"include_usage": 1}})");
  FieldReader wrong_fields(wrong);
  read_stream(wrong_fields);
  EXPECT_EQ(wrong_fields.check().error().subject, "stream_options.include_usage");
}

TestModel thinking_model(bool has_effort) {
  TestModel model;
  auto& switches = model.served.description.model.template_switches;
  switches.push_back({SwitchKind::kThinking, "enable_thinking", {true, false}, 0});
  if (has_effort) {
    switches.push_back(
        {SwitchKind::kEffort, "reasoning_strength", {std::string("low"), std::string("high")}, 0});
  }
  return model;
}

Result<TemplateValues> template_values_of(const char* text, const ServedModel& model) {
  const Json body = Json::parse(text);
  FieldReader fields(body);
  TemplateValues values = read_template_values(fields, model);
  OCTAVO_TRY_VOID(fields.check());
  return values;
}

TEST(ReadTemplateValues, AnEffortIsSaidInTheTemplatesWords) {
  const TestModel both = thinking_model(true), switch_only = thinking_model(false), none;
  using Values = TemplateValues;
  EXPECT_EQ(*template_values_of(R"({"reasoning_effort": "low"})", both.served),
            (Values{{"reasoning_strength", std::string("low")}}));
  EXPECT_EQ(*template_values_of(R"({"reasoning_effort": "none"})", both.served),
            (Values{{"enable_thinking", false}}));
  EXPECT_EQ(*template_values_of(R"({"reasoning_effort": "low"})", switch_only.served),
            (Values{{"enable_thinking", true}}));
  EXPECT_TRUE(template_values_of(R"({"reasoning_effort": "low"})", none.served)->empty());
  for (const auto& [effort, nearest] :
       {std::pair{"minimal", "low"}, {"medium", "low"}, {"xhigh", "high"}, {"max", "high"}}) {
    EXPECT_EQ(
        *template_values_of((std::string(R"({"reasoning_effort": ")") + effort + "\"}").c_str(), both.served),
        (Values{{"reasoning_strength", std::string(nearest)}}))
        << effort;
  }
  const auto refused = template_values_of(R"({"reasoning_effort": "much"})", both.served);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            R"(reasoning_effort must be "low" or "high" for this model, but it is "much")");
}

TEST(ReadTemplateValues, WhatTheTemplateIsToldItselfGoesFirst) {
  const TestModel model = thinking_model(false);
  EXPECT_EQ(
      *template_values_of(
          R"({"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false}})", model.served),
      (TemplateValues{{"enable_thinking", false}}));
  const auto refused = template_values_of(R"({"chat_template_kwargs": {"messages": "x"}})", model.served);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().subject, "chat_template_kwargs");
}

}  // namespace
}  // namespace octavo::app
