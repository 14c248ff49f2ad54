#include "engine/core/output_processor.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo {
namespace {

using simulation::ToyTokenizer;

const ToyTokenizer kTokenizer;

TokenId id_of(std::string_view piece) {
  for (TokenId id = 0; id < kTokenizer.vocabulary_size(); ++id) {
    if (kTokenizer.token_bytes(id) == piece) return id;
  }
  ADD_FAILURE() << "no token " << piece;
  return -1;
}

// What one output gave, token by token.
struct Heard {
  std::vector<std::string> pieces;
  std::optional<OutputEnd> end;

  std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Heard hear(const SamplingParams& sampling, const std::vector<std::string_view>& tokens,
           std::int32_t limit = 100) {
  OutputProcessor output(kTokenizer, sampling, limit);
  Heard heard;
  for (const std::string_view token : tokens) {
    OutputProcessor::Step step = output.append(id_of(token));
    heard.pieces.push_back(step.text);
    heard.end = step.end;
    if (heard.end) break;
  }
  return heard;
}

TEST(OutputProcessor, GivesWholeCharactersOnly) {
  const Heard heard = hear({}, {"a", "\xf0", "\x9f", "\x98", "\x80", "b"});
  EXPECT_EQ(heard.pieces, (std::vector<std::string>{"a", "", "", "", "\U0001f600", "b"}));
}

TEST(OutputProcessor, TurnsBytesThatAreNoTextIntoReplacementCharacters) {
  EXPECT_EQ(hear({}, {"\xff", "a"}).text(),
            "\ufffd"
            "a");
  EXPECT_EQ(hear({}, {"\xc3", "a"}).text(),
            "\ufffd"
            "a");
}

TEST(OutputProcessor, GivesAnUnfinishedCharacterWhenTheOutputEnds) {
  const Heard heard = hear({}, {"a", "\xc3"}, 2);
  EXPECT_EQ(heard.text(), kTokenizer.decode(std::vector<TokenId>{id_of("a"), id_of("\xc3")}, true));
  EXPECT_EQ(heard.end->finish_reason, FinishReason::kLength);
}

TEST(OutputProcessor, HoldsBackWhatMayBecomeAStopString) {
  const Heard heard = hear({.stop = {"abca"}}, {"d", "ab", "c", "b"});
  EXPECT_EQ(heard.pieces, (std::vector<std::string>{"d", "", "", "abcb"}));
}

TEST(OutputProcessor, CutsAtAStopStringAcrossTokens) {
  const Heard heard = hear({.stop = {"abca"}}, {"d", "ab", "ca", "e"});
  EXPECT_EQ(heard.text(), "d");
  EXPECT_EQ(heard.end->finish_reason, FinishReason::kStop);
  EXPECT_EQ(heard.end->stop_reason, StopReason("abca"));
}

TEST(OutputProcessor, FindsAStopStringInsideAToken) {
  EXPECT_EQ(hear({.stop = {"b"}}, {"d", "abc"}).text(), "da");
}

TEST(OutputProcessor, FindsAStopStringAcrossTheBytesOfACharacter) {
  const Heard heard = hear({.stop = {"\u00e9"}}, {"a", "\xc3", "\xa9", "b"});
  EXPECT_EQ(heard.text(), "a");
  EXPECT_EQ(heard.end->stop_reason, StopReason("\u00e9"));
}

TEST(OutputProcessor, TakesTheEarliestOfSeveralStopStrings) {
  const Heard heard = hear({.stop = {"c", "bc"}}, {"d", "abc"});
  EXPECT_EQ(heard.text(), "da");
  EXPECT_EQ(heard.end->stop_reason, StopReason("bc"));
}

TEST(OutputProcessor, OfStopStringsAtOnePlaceTakesTheOneNamedFirst) {
  EXPECT_EQ(hear({.stop = {"ab", "abc"}}, {"abc"}).end->stop_reason, StopReason("ab"));
  EXPECT_EQ(hear({.stop = {"abc", "ab"}}, {"abc"}).end->stop_reason, StopReason("abc"));
}

TEST(OutputProcessor, HoldsBackForTheLongestOfSeveralStopStrings) {
  for (const auto& stop : {std::vector<std::string>{"abca", "cd"}, {"cd", "abca"}}) {
    EXPECT_EQ(hear({.stop = stop}, {"abc"}).text(), "") << stop[0];
  }
}

TEST(OutputProcessor, GivesHeldTextWhenTheOutputIsEndedFromOutside) {
  const SamplingParams sampling{.stop = {"abca"}};
  OutputProcessor output(kTokenizer, sampling, 100);
  EXPECT_EQ(output.append(id_of("abc")).text, "");
  EXPECT_EQ(output.end_now(), "abc");
}

TEST(OutputProcessor, GivesAnUnfinishedCharacterWhenTheOutputIsEndedFromOutside) {
  const SamplingParams sampling;
  OutputProcessor output(kTokenizer, sampling, 100);
  EXPECT_EQ(output.append(id_of("\xc3")).text, "");
  EXPECT_EQ(output.end_now(), "\ufffd");
}

TEST(OutputProcessor, GivesHeldTextAtTheLastToken) {
  EXPECT_EQ(hear({.stop = {"abca"}}, {"abc"}, 1).text(), "abc");
  EXPECT_EQ(hear({.stop = {"abca"}}, {"abc", "</s>"}).text(), "abc");
}

TEST(OutputProcessor, EndsAtAnyEndOfSequence) {
  for (const std::string_view eos : {"</s>", "<end>"}) {
    const Heard heard = hear({}, {"a", eos});
    EXPECT_EQ(heard.text(), "a");
    EXPECT_EQ(heard.end->finish_reason, FinishReason::kStop);
    EXPECT_EQ(heard.end->stop_reason, StopReason());
  }
}

TEST(OutputProcessor, IgnoresEndOfSequenceWhenAsked) {
  const Heard heard = hear({.ignore_eos = true}, {"a", "</s>", "b"});
  EXPECT_EQ(heard.text(), "ab");
  EXPECT_FALSE(heard.end);
}

TEST(OutputProcessor, StopTokenNamesItselfEvenWhenEndOfSequenceIsIgnored) {
  const Heard heard = hear({.stop_token_ids = {ToyTokenizer::kEos}, .ignore_eos = true}, {"a", "</s>"});
  EXPECT_EQ(heard.end->finish_reason, FinishReason::kStop);
  EXPECT_EQ(heard.end->stop_reason, StopReason(ToyTokenizer::kEos));
}

TEST(OutputProcessor, StopTokenThatIsTextIsNoneOfTheOutputs) {
  const Heard heard = hear({.stop_token_ids = {id_of("b")}}, {"a", "b"});
  EXPECT_EQ(heard.text(), "a");
  EXPECT_EQ(heard.end->stop_reason, StopReason(id_of("b")));
  const Heard held = hear({.stop = {"abc"}, .stop_token_ids = {id_of("c")}}, {"ab", "c"});
  EXPECT_EQ(held.text(), "ab") << "no stop string ends in it, and what was held back is given out";
  EXPECT_EQ(held.end->stop_reason, StopReason(id_of("c")));
}

TEST(OutputProcessor, KeepsWhatEndedTheOutputWhenAsked) {
  SamplingParams sampling{.stop = {"abca"}, .include_stop_str_in_output = true};
  EXPECT_EQ(hear(sampling, {"d", "ab", "ca", "e"}).text(), "dabca");
  sampling.stop = {"b"};
  EXPECT_EQ(hear(sampling, {"d", "abc"}).text(), "dab") << "nothing after it";
  sampling.stop_token_ids = {id_of("e")};
  EXPECT_EQ(hear(sampling, {"d", "e"}).text(), "de");
  sampling.stop = {"de"};
  EXPECT_EQ(hear(sampling, {"d", "e"}).end->stop_reason, StopReason("de"));
  EXPECT_EQ(hear(sampling, {"d", "</s>"}).text(), "d") << "an end of sequence is never text";
}

TEST(OutputProcessor, LeavesControlTokensOutUnlessTheyAreAskedFor) {
  const std::string control(kTokenizer.token_bytes(ToyTokenizer::kSpecial));
  EXPECT_EQ(hear({}, {"a", control, "b", "</s>"}).text(), "ab");
  EXPECT_EQ(hear({.skip_special_tokens = false}, {"a", control, "b", "</s>"}).text(), "a" + control + "b")
      << "an end of sequence is never text";
  const Heard stopped = hear({.stop = {control}, .skip_special_tokens = false}, {"a", control, "b"});
  EXPECT_EQ(stopped.text(), "a");
  EXPECT_EQ(stopped.end->stop_reason, StopReason(control));
}

TEST(OutputProcessor, DoesNotEndBeforeMinTokens) {
  const SamplingParams sampling{.min_tokens = 2, .stop = {"a"}, .stop_token_ids = {id_of("b")}};
  const Heard heard = hear(sampling, {"a", "b", "d", "ba"});
  EXPECT_EQ(heard.text(), "abdb");
  EXPECT_EQ(heard.end->stop_reason, StopReason("a"));
  const Heard at_the_last = hear({.min_tokens = 2, .stop = {"b"}}, {"a", "b", "b"});
  EXPECT_EQ(at_the_last.pieces.size(), 3u) << "the second token is still one of min_tokens";
}

TEST(OutputProcessor, EndOfSequenceWinsOverLength) {
  EXPECT_EQ(hear({}, {"a", "</s>"}, 2).end->finish_reason, FinishReason::kStop);
  EXPECT_EQ(hear({}, {"a", "b"}, 2).end->finish_reason, FinishReason::kLength);
}

}  // namespace
}  // namespace octavo
