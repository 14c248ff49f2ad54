#include "engine/grammar/grammar_compiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/grammar/byte_vocabulary.h"
#include "tests/grammar/random_schema.h"
#include "tests/grammar/random_text.h"
#include "tests/grammar/schema_validator.h"

namespace octavo {
namespace {

using testing::accepts;
using testing::ByteVocabulary;

const ByteVocabulary kVocabulary;

std::shared_ptr<const TokenGrammar> compiled(GrammarCompiler& compiler, const StructuredOutput& wanted) {
  auto grammar = compiler.compile(wanted);
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  return grammar ? *grammar : nullptr;
}

std::string refusal(GrammarCompiler& compiler, const StructuredOutput& wanted) {
  const auto grammar = compiler.compile(wanted);
  EXPECT_FALSE(grammar.has_value());
  return grammar ? "" : grammar.error().message;
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(GrammarCompiler, AllowsWhatEachFormDescribesAndNothingElse) {
  GrammarCompiler compiler(kVocabulary);
  struct Case {
    StructuredOutput wanted;
    std::vector<std::string> allowed, refused;
  };
  const std::vector<Case> cases = {
      {AnyJsonObject{}, {"{}", R"({"a": [1, {"b": null}]})"}, {"[]", "1", "{", R"({"a":1}x)"}},
      {JsonSchema{R"({"type":"object","properties":{"n":{"type":"integer","minimum":3}},"required":["n"]})"},
       {R"({"n": 3})", R"({"n":12})"},
       {R"({"n": 2})", R"({})", R"({"n": 3, "m": 1})", R"({"n": "3"})"}},
      {RegularExpression{"a(b|c)*[0-9]{2}"}, {"a12", "abcb00"}, {"a1", "b12", "a12x"}},
      {GrammarText{"root ::= \"(\" root \")\" | \"x\""}, {"x", "((x))"}, {"(x", "()", ""}},
      {GrammarText{"root ::= item{,2} .\nitem ::= \"\\x41\" # GBNF"}, {"AAz", "\n"}, {"AAAz", ""}},
      {ChoiceOfTexts{{"yes", "no\n", "\"both\\\""}}, {"yes", "no\n", "\"both\\\""}, {"no", "yesno", ""}},
      {StructuralTag{
           R"({"format":{"type":"tag","begin":"<a>","content":{"type":"regex","pattern":"[0-9]+"},"end":"</a>"}})"},
       {"<a>17</a>"},
       {"<a></a>", "17"}},
      {StructuralTag{
           R"({"structures":[{"begin":"<f>","schema":{"type":"integer"},"end":"</f>"}],"triggers":["<f>"]})"},
       {"hello", "hello <f>12</f> end"},
       {"hello <f>x</f>"}},
  };
  for (const Case& one : cases) {
    const auto grammar = compiled(compiler, one.wanted);
    ASSERT_TRUE(grammar);
    for (const std::string& text : one.allowed)
      EXPECT_TRUE(accepts(*grammar, kVocabulary, text)) << structured_output_name(one.wanted) << ": " << text;
    for (const std::string& text : one.refused)
      EXPECT_FALSE(accepts(*grammar, kVocabulary, text))
          << structured_output_name(one.wanted) << ": " << text;
  }
}

TEST(GrammarCompiler, EveryTextThatEndsIsValidByItsSchema) {
  GrammarCompiler compiler(kVocabulary);
  int num_ended = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const nlohmann::json schema = testing::SchemaDrawer(seed).draw();
    const auto grammar = compiler.compile(JsonSchema{schema.dump()});
    ASSERT_TRUE(grammar.has_value()) << "seed " << seed << ": " << grammar.error().message << "\n"
                                     << schema.dump();
    std::mt19937_64 random(seed);
    for (int i = 0; i < 15; ++i) {
      const auto ids = testing::random_tokens(**grammar, kVocabulary, random, 40);
      if (!ids) continue;
      ++num_ended;
      const std::string text = kVocabulary.decode(*ids, false);
      const auto value = nlohmann::json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << "seed " << seed << ": " << text << "\n" << schema.dump();
      EXPECT_EQ(testing::problem_of(value, schema, schema), "") << "seed " << seed << ": " << text;
    }
  }
  EXPECT_GT(num_ended, 300);
}

TEST(GrammarCompiler, NeverAllowsAControlToken) {
  GrammarCompiler compiler(kVocabulary);
  for (const StructuredOutput& wanted : std::vector<StructuredOutput>{
           AnyJsonObject{}, RegularExpression{"[^x]*"}, GrammarText{"root ::= [^]*"}}) {
    const auto grammar = compiled(compiler, wanted);
    ASSERT_TRUE(grammar);
    const auto matcher = grammar->start();
    for (int i = 0; i < 8; ++i) {
      const auto allowed = testing::allowed_tokens(*matcher, kVocabulary.vocabulary_size());
      EXPECT_EQ(std::count(allowed.begin(), allowed.end(), ByteVocabulary::kControl), 0);
      if (allowed.empty()) break;
      ASSERT_TRUE(matcher->accept(allowed.back()));
    }
  }
}

TEST(GrammarCompiler, BoundsBlanks) {
  GrammarCompiler compiler(kVocabulary);
  const auto grammar = compiled(
      compiler, JsonSchema{R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})"});
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(accepts(*grammar, kVocabulary, "{  \"a\" : 1\n}"));
  EXPECT_FALSE(accepts(*grammar, kVocabulary, "{   \"a\": 1}"));
  EXPECT_FALSE(accepts(*grammar, kVocabulary, "{\"a\": 1}\n"));
}

TEST(GrammarCompiler, StringsAreJsonWhateverBoundsThem) {
  GrammarCompiler compiler(kVocabulary);
  for (const char* const bound :
       {R"("type":"string")", R"("type":"string","maxLength":5)", R"("type":"string","pattern":".*")",
        R"("type":"string","pattern":"[^a]{0,3}")"}) {
    const auto grammar = compiled(compiler, JsonSchema{"{" + std::string(bound) + "}"});
    ASSERT_TRUE(grammar);
    EXPECT_TRUE(accepts(*grammar, kVocabulary, "\"b\"")) << bound;
    EXPECT_FALSE(accepts(*grammar, kVocabulary, "\"\t\"")) << bound;
    EXPECT_FALSE(accepts(*grammar, kVocabulary, "\"\"\"")) << bound;
    EXPECT_FALSE(accepts(*grammar, kVocabulary, "\"\\\"")) << bound;
  }
  const auto any = compiled(compiler, JsonSchema{R"({"type":"string"})"});
  EXPECT_TRUE(accepts(*any, kVocabulary, R"("\u00e9\uD83D\uDE00")"));
  EXPECT_FALSE(accepts(*any, kVocabulary, R"("\uD83D")")) << "half of a pair is no character";
}

TEST(GrammarCompiler, FurtherPropertiesAreNoneOfTheListedOnes) {
  GrammarCompiler compiler(kVocabulary);
  const auto grammar = compiled(
      compiler,
      JsonSchema{
          R"({"properties":{"name":{"type":"null"},"gr\u00f6\u00dfe":{"type":"null"}},"additionalProperties":{"type":"integer"}})"});
  ASSERT_TRUE(grammar);
  const auto allows_text = [&](const std::string& text) { return accepts(*grammar, kVocabulary, text); };
  EXPECT_TRUE(allows_text(R"({"name": null, "größe": null, "names": 1, "nam": 2, "größer": 3, "x\n": 4})"));
  EXPECT_FALSE(allows_text(R"({"name": 1})"));
  EXPECT_FALSE(allows_text(R"({"\u006eame": 1})"));
  EXPECT_FALSE(allows_text(R"({"größe": 1})"));
  EXPECT_FALSE(allows_text("{\"gr\xc3\": 1}")) << "half of a character";
  const auto escaped = compiled(
      compiler,
      JsonSchema{R"({"properties":{"a\"b":{"type":"null"}},"additionalProperties":{"type":"integer"}})"});
  ASSERT_TRUE(escaped);
  EXPECT_TRUE(accepts(*escaped, kVocabulary, R"({"a\"b": null, "a": 1, "ab": 2})"));
  EXPECT_FALSE(accepts(*escaped, kVocabulary, R"({"a\"b": 1})"));
  EXPECT_FALSE(accepts(*escaped, kVocabulary, R"({"a"b": 1})"));
}

TEST(GrammarCompiler, MatchersForkAndRollBack) {
  GrammarCompiler compiler(kVocabulary);
  const auto grammar = compiled(compiler, AnyJsonObject{});
  ASSERT_TRUE(grammar);
  const auto ids = *kVocabulary.encode(R"({"a": [1, 2]})", false, false, {});
  const auto matcher = grammar->start();
  std::vector<std::vector<TokenId>> allowed;
  std::vector<std::unique_ptr<TokenMatcher>> forks;
  for (const TokenId id : ids) {
    allowed.push_back(testing::allowed_tokens(*matcher, kVocabulary.vocabulary_size()));
    forks.push_back(matcher->fork());
    ASSERT_TRUE(matcher->accept(id));
  }
  ASSERT_TRUE(matcher->accept(ByteVocabulary::kEnd));
  EXPECT_FALSE(matcher->accept(ByteVocabulary::kEnd));
  matcher->roll_back(1);
  for (std::size_t i = ids.size(); i-- > 0;) {
    matcher->roll_back(1);
    EXPECT_EQ(testing::allowed_tokens(*matcher, kVocabulary.vocabulary_size()), allowed[i]);
    EXPECT_EQ(testing::allowed_tokens(*forks[i], kVocabulary.vocabulary_size()), allowed[i]);
  }
}

TEST(GrammarCompiler, KeepsWhatItCompiledAndWhatItRefused) {
  GrammarCompiler compiler(kVocabulary);
  const auto first = compiled(compiler, RegularExpression{"a+"});
  EXPECT_EQ(compiled(compiler, RegularExpression{"a+"}), first);
  EXPECT_EQ(compiler.num_compiled(), 1);
  EXPECT_NE(refusal(compiler, RegularExpression{"a("}), "");
  EXPECT_NE(refusal(compiler, RegularExpression{"a("}), "");
  EXPECT_EQ(compiler.num_compiled(), 2);
}

TEST(GrammarCompiler, RefusesInOneSentence) {
  GrammarCompiler compiler(kVocabulary);
  const std::vector<std::pair<StructuredOutput, std::string>> cases = {
      {RegularExpression{"(unclosed"}, "a regular expression cannot be compiled"},
      {RegularExpression{"(a)\\1"}, "refers back"},
      {RegularExpression{"(?=a)b"}, "(?="},
      {GrammarText{"root ::= other"}, "a grammar cannot be compiled"},
      {GrammarText{"start ::= \"a\""}, "a grammar cannot be compiled"},
      {GrammarText{"root ::= Token(1)"}, "Token(...)"},
      {GrammarText{"root ::= <think>"}, "line 1"},
      {StructuralTag{R"({"format":{"type":"token","token":1}})"}, "names tokens"},
      {StructuralTag{R"({"format":{"type":"any_text","max_tokens":4}})"}, "max_tokens"},
      {StructuralTag{"[]"}, "structural tag"},
      {ChoiceOfTexts{{}}, "a choice of 1 to"},
      {JsonSchema{R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"}, "oneOf"},
  };
  for (const auto& [wanted, part] : cases) {
    const std::string message = refusal(compiler, wanted);
    EXPECT_TRUE(holds(message, part)) << message;
    EXPECT_FALSE(holds(message, ".cc") || holds(message, "\n")) << message;
  }
}

// None of them takes this process along, and the next is compiled as ever.
TEST(GrammarCompiler, OutlivesHostileInput) {
  GrammarLimits limits;
  limits.work.processor_time = std::chrono::seconds(1);
  limits.work.time = std::chrono::seconds(3);
  limits.work.memory_bytes = std::int64_t{256} << 20u;
  GrammarCompiler compiler(kVocabulary, limits);
  std::string deep_rules, deep_schema, wide;
  for (int i = 0; i < 5000; ++i)
    deep_rules +=
        "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" + std::to_string(i + 1) + "\n";
  for (int i = 0; i < 5000; ++i) deep_schema += R"({"items":)";
  for (int i = 0; i < 4000; ++i)
    wide += (i == 0 ? "" : ",") + std::string("\"p") + std::to_string(i) +
            R"(":{"type":"array","minItems":900,"items":{"type":"string","maxLength":900}})";
  const std::vector<StructuredOutput> hostile = {
      JsonSchema{std::string(kMostStructureBytes + 1, ' ')},
      JsonSchema{deep_schema},
      JsonSchema{R"({"$ref":"#"})"},
      JsonSchema{R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"},
      JsonSchema{R"({"type":"string","pattern":"((a{1000}){1000}){1000}"})"},
      JsonSchema{R"({"type":"object","properties":{)" + wide + "}}"},
      RegularExpression{"((((a{1,900}){1,900}){1,900}){1,900})"},
      RegularExpression{"(a*)*(b*)*(c|c)*[^a]*(((x+)+)+)+y"},
      RegularExpression{std::string(300, '(') + "a" + std::string(300, ')')},
      GrammarText{"root ::= (" + std::string(5000, '(') + "\"a\"" + std::string(5000, ')') + ")"},
      GrammarText{"root ::= \"a\"{999999999999}"},
      GrammarText{"root ::= root root | root | \"\" | \"a\""},
      GrammarText{"root ::= r0\n" + deep_rules + "r5000 ::= \"a\""},
  };
  for (const StructuredOutput& wanted : hostile) {
    const auto grammar = compiler.compile(wanted);
    if (!grammar) {
      EXPECT_EQ(grammar.error().subject, "structured_output");
      EXPECT_LT(grammar.error().message.size(), 600u);
      continue;
    }
    const auto matcher = (*grammar)->start();
    EXPECT_FALSE(testing::allowed_tokens(*matcher, kVocabulary.vocabulary_size()).empty());
  }
  EXPECT_TRUE(compiler.compile(RegularExpression{"ab"}).has_value());
}

TEST(GrammarCompiler, LeavesOffWhenItIsStopped) {
  GrammarLimits limits;
  limits.work.processor_time = std::chrono::seconds(60);
  limits.work.time = std::chrono::seconds(60);
  GrammarCompiler compiler(kVocabulary, limits);
  std::stop_source stop;
  std::jthread stopper([&] {
    while (compiler.num_compiled() == 0) std::this_thread::yield();
    stop.request_stop();
  });
  const auto grammar =
      compiler.compile(RegularExpression{"((((a{1,99}b?){1,99}c?){1,99}){1,99})"}, stop.get_token());
  ASSERT_FALSE(grammar.has_value());
  EXPECT_EQ(grammar.error().code, ErrorCode::kCancelled) << grammar.error().message;
}

TEST(ConfinedWork, GivesBackWhatItMadeOrWhyItMadeNothing) {
  const WorkLimits limits{
      .processor_time = std::chrono::seconds(1), .time = std::chrono::seconds(3), .memory_bytes = 64 << 20};
  EXPECT_EQ(run_confined([] { return std::string("made"); }, limits, {}).text, "made");
  EXPECT_EQ(run_confined([]() -> std::string { throw std::bad_alloc(); }, limits, {}).end,
            WorkEnd::kMemoryLimit);
  EXPECT_EQ(run_confined([]() -> std::string { throw 1; }, limits, {}).end, WorkEnd::kCrashed);
  EXPECT_EQ(run_confined([]() -> std::string { std::abort(); }, limits, {}).end, WorkEnd::kCrashed);
  const auto spin = []() -> std::string {
    for (volatile bool goes_on = true; goes_on;) {
    }
    return {};
  };
  EXPECT_EQ(run_confined(spin, limits, {}).end, WorkEnd::kTimeLimit);
}

}  // namespace
}  // namespace octavo
