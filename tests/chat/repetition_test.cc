// Answers that go round in circles are noticed, and what only looks like it is not.

#include "app/chat/repetition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace octavo::app {
namespace {

// A token for each word, line break and punctuation mark.
std::vector<TokenId> tokens_of(const std::string& text) {
  std::map<std::string, TokenId> known;
  std::vector<TokenId> ids;
  std::string word;
  const auto add = [&](const std::string& piece) {
    if (!piece.empty())
      ids.push_back(known.try_emplace(piece, static_cast<TokenId>(known.size())).first->second);
  };
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) {
      word += c;
      continue;
    }
    add(word);
    word.clear();
    if (c != ' ') add(std::string(1, c));
  }
  add(word);
  return ids;
}

// After how many tokens it is first noticed; 0: never.
std::size_t noticed_at(const std::vector<TokenId>& token_ids) {
  RepetitionDetector detector;
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    detector.take({&token_ids[i], 1});
    if (detector.repeats()) return i + 1;
  }
  return 0;
}

std::string times(int count, const std::string& text) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(Repetition, TheSameSentenceFourTimesIsNoticed) {
  const std::string sentence =
      "I am sorry, but I cannot say more about this, for I do not know what else there is to say. ";
  const auto beginning = tokens_of("Here is what I think. ").size();
  const auto one = tokens_of(sentence).size();
  const std::size_t at = noticed_at(tokens_of("Here is what I think. " + times(10, sentence)));
  EXPECT_GT(at, 0u);
  EXPECT_LE(at, beginning + 4 * one);
  EXPECT_EQ(noticed_at(tokens_of("Here is what I think. " + times(3, sentence))), 0u);
}

TEST(Repetition, ShortRunsAreNoticedLater) {
  EXPECT_GT(noticed_at(tokens_of(times(400, "ha "))), 200u);
  EXPECT_GT(noticed_at(tokens_of(times(200, "and then "))), 200u);
  EXPECT_GT(noticed_at(tokens_of(times(80, "and so on, "))), 0u);
  EXPECT_EQ(noticed_at(tokens_of(times(40, "ha ") + "that was good.")), 0u);
  EXPECT_EQ(noticed_at(tokens_of(times(10, "no, "))), 0u);
}

TEST(Repetition, WholeParagraphsAreNoticed) {
  std::string paragraph;
  for (int i = 0; i < 300; ++i) paragraph += "word" + std::to_string(i) + " ";
  EXPECT_EQ(noticed_at(tokens_of(times(6, paragraph))), 1200u);
}

TEST(Repetition, TablesCodeAndPoemsAreNone) {
  std::string table = "| hour | Monday | Tuesday |\n|---|---|---|\n";
  for (int hour = 8; hour < 20; ++hour) table += "| " + std::to_string(hour) + " | | |\n";
  EXPECT_EQ(noticed_at(tokens_of(table)), 0u);
  EXPECT_EQ(noticed_at(tokens_of("| a | b | c |\n" + times(10, "| | | |\n"))), 0u);
  std::string code = "int main() {\n";
  for (int i = 0; i < 40; ++i) code += "  values[" + std::to_string(i) + "] = 0;\n";
  EXPECT_EQ(noticed_at(tokens_of(code + "}\n")), 0u);
  EXPECT_EQ(noticed_at(tokens_of("int zeros[8][8] = {" + times(8, "{0, 0, 0, 0, 0, 0, 0, 0},\n") + "};")),
            0u);
  EXPECT_EQ(noticed_at(tokens_of("std::array zeros = {" + times(100, "0, ") + "};")), 0u);
  std::string poem;
  for (int verse = 0; verse < 8; ++verse) {
    poem += "Verse " + std::to_string(verse) + " tells of day number " + std::to_string(verse * 7) + ".\n";
    poem += "Row, row, row your boat, gently down the stream,\nmerrily, merrily, merrily, life is a dream.\n";
  }
  EXPECT_EQ(noticed_at(tokens_of(poem)), 0u);
  EXPECT_EQ(noticed_at(tokens_of(times(3, "Na na na nananana, nananana, hey Jude.\n") + "The end.")), 0u);
}

TEST(Repetition, RandomTextIsNone) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<TokenId> ids;
    for (int i = 0; i < 2'000; ++i) ids.push_back(static_cast<TokenId>(random() % 3));
    EXPECT_EQ(noticed_at(ids), 0u) << "seed " << seed;
  }
}

TEST(Repetition, ACircleThatIsLeftIsNoneAnyMore) {
  RepetitionDetector detector;
  std::vector<TokenId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(i % 20);
  detector.take(ids);
  EXPECT_TRUE(detector.repeats());
  detector.take(std::vector<TokenId>{77});
  EXPECT_FALSE(detector.repeats());
}

// Simply: whether any run stands often enough at the end, and is no shorter one several times.
bool ends_in_circle(const std::vector<TokenId>& ids) {
  const auto repeats = [&](std::size_t run, std::size_t covered) {
    if (covered > ids.size()) return false;
    return std::equal(ids.end() - static_cast<std::ptrdiff_t>(covered - run), ids.end(),
                      ids.end() - static_cast<std::ptrdiff_t>(covered));
  };
  for (std::size_t run = 1; run <= RepetitionDetector::kLongestRun && run < ids.size(); ++run) {
    const std::set<TokenId> different(ids.end() - static_cast<std::ptrdiff_t>(run), ids.end());
    const std::size_t least = different.size() > RepetitionDetector::kFewDifferent ? 60 : 240;
    bool shorter = false;
    for (std::size_t part = 1; part < run; ++part) shorter |= run % part == 0 && repeats(part, run);
    if (!shorter && repeats(run, std::max(4 * run, least))) return true;
  }
  return false;
}

TEST(Repetition, PiecesOfAnySizeAreNoticedAtTheSameToken) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<TokenId> ids;
    RepetitionDetector detector;
    while (ids.size() < 1'000) {
      const std::size_t begin = ids.size();
      const std::size_t run = 1 + random() % 60;
      std::vector<TokenId> one;
      for (std::size_t i = 0; i < run; ++i) one.push_back(static_cast<TokenId>(random() % 14));
      for (auto left = 1 + random() % 7; left > 0; --left) ids.insert(ids.end(), one.begin(), one.end());
      detector.take(std::span(ids).subspan(begin));
      ASSERT_EQ(detector.repeats(), ends_in_circle(ids));
    }
  }
}

}  // namespace
}  // namespace octavo::app
