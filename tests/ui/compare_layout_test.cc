// The pure parts of the Compare workspace: differences of words, the layout of a beam tree, figures of
// tokens.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ui/views/compare/beam_tree_layout.h"
#include "ui/views/compare/column_view.h"
#include "ui/views/compare/divergence_tree.h"
#include "ui/views/compare/token_card.h"
#include "ui/views/compare/token_colours.h"
#include "ui/views/compare/word_diff.h"
#include "ui/widgets/sampling_fields.h"

namespace octavo::ui {
namespace {

std::string told(std::string_view reference, std::string_view other) {
  std::string text;
  for (const DiffSegment& segment : diff_words(reference, other).segments) {
    const auto& source = segment.kind == DiffKind::kRemoved ? reference : other;
    const std::string words(source.substr(segment.begin, segment.end - segment.begin));
    text += segment.kind == DiffKind::kEqual
                ? words
                : (segment.kind == DiffKind::kRemoved ? "[-" : "[+") + words + "]";
  }
  return text;
}

TEST(WordDiff, MarksWordsNotCharacters) {
  EXPECT_EQ(told("The cat sat.", "The dog sat."), "The [-cat ][+dog ]sat.");
  EXPECT_EQ(told("one two ", "one two three"), "one two [+three]");
  EXPECT_EQ(told("", "new"), "[+new]");
  EXPECT_EQ(told("old", ""), "[-old]");
  EXPECT_EQ(told("same text", "same text"), "same text");
}

TEST(WordDiff, WhiteSpaceIsNoDifference) { EXPECT_EQ(told("a b\nc", "a  b c"), "a  b c"); }

TEST(WordDiff, ScriptsWithoutSpacesAreComparedByCharacter) {
  EXPECT_EQ(diff_words("雨が降る", "雨が止む").num_inserted, 2);
}

// The plain table of the longest common subsequence.
std::size_t common_words(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j)
      table[i + 1][j + 1] = a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
  }
  return table[a.size()][b.size()];
}

TEST(WordDiff, IsAShortestScriptAndGivesBothTextsBack) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 600; ++round) {
    const auto words = 1 + random() % 5;
    std::vector<std::string> a, b;
    std::string text_a, text_b;
    const auto fill = [&](std::vector<std::string>& list, std::string& text) {
      for (auto i = random() % 24; i > 0; --i)
        list.push_back(std::string(1, static_cast<char>('a' + random() % words)));
      for (const std::string& word : list) text += word + " ";
    };
    fill(a, text_a);
    fill(b, text_b);
    const WordDiff diff = diff_words(text_a, text_b);
    const std::size_t common = common_words(a, b);
    ASSERT_EQ(static_cast<std::size_t>(diff.num_removed), a.size() - common) << text_a << "| " << text_b;
    ASSERT_EQ(static_cast<std::size_t>(diff.num_inserted), b.size() - common) << text_a << "| " << text_b;
    std::string other, reference_words;
    for (const DiffSegment& segment : diff.segments) {
      if (segment.kind != DiffKind::kRemoved)
        other += text_b.substr(segment.begin, segment.end - segment.begin);
    }
    ASSERT_EQ(other, text_b);
  }
}

// ---- the tree

class TreeMaker {
 public:
  explicit TreeMaker(std::int32_t width) { tree.width = width; }
  // A step whose live nodes continue these parents, best first.
  std::vector<std::int32_t> step(const std::vector<std::int32_t>& parents,
                                 const std::vector<std::int32_t>& ends = {}) {
    std::vector<std::int32_t> born;
    for (const std::int32_t parent : ends) add(parent, -1);
    std::int32_t rank = 0;
    for (const std::int32_t parent : parents) born.push_back(add(parent, rank++));
    tree.live = born;
    ++tree.num_steps;
    return born;
  }
  BeamTree tree;

 private:
  std::int32_t add(std::int32_t parent, std::int32_t rank) {
    const double before = parent < 0 ? 0.0 : tree.nodes[static_cast<std::size_t>(parent)].cumulative_logprob;
    tree.nodes.push_back({.parent = parent,
                          .step = tree.num_steps,
                          .rank = rank,
                          .token_id = 3,
                          .text = "ab",
                          .logprob = -0.5f,
                          .cumulative_logprob = before - 0.5});
    return static_cast<std::int32_t>(tree.nodes.size()) - 1;
  }
};

BeamTreeSpacing spacing() {
  return {.least_step = 10, .run_padding = 30, .dead_padding = 6, .measure = [](std::string_view text) {
            return 8.0f * static_cast<float>(text.size());
          }};
}

TEST(BeamTreeLayout, ChainsBecomeOneRunAndBranchesEndIt) {
  TreeMaker maker(2);
  const auto first = maker.step({-1, -1});
  const auto second = maker.step({first[0], first[1]});
  const auto third = maker.step({second[0], second[0]});  // the beam of rank 1 dies
  const BeamTreeLayout layout = lay_out_beam_tree(maker.tree, spacing());
  ASSERT_EQ(layout.runs.size(), 4u);
  EXPECT_EQ(layout.runs[0].text, "abab");
  EXPECT_EQ(layout.runs[0].first_step, 0);
  EXPECT_EQ(layout.runs[0].last_step, 1);
  EXPECT_EQ(layout.runs[1].state, BeamRunState::kDead);
  EXPECT_EQ(layout.runs[2].parent, 0);
  EXPECT_EQ(layout.runs[2].state, BeamRunState::kLive);
  EXPECT_EQ(layout.runs[2].last_node, third[0]);
  EXPECT_EQ(layout.runs[2].row, 0);
  EXPECT_EQ(layout.runs[3].row, 1);
  EXPECT_EQ(layout.num_rows, 2);
}

TEST(BeamTreeLayout, HypothesesThatEndedStandBelowTheBeams) {
  TreeMaker maker(2);
  const auto first = maker.step({-1, -1});
  maker.step({first[0], first[1]}, /*ends=*/{first[0]});
  const BeamTreeLayout layout = lay_out_beam_tree(maker.tree, spacing());
  const auto ended = std::find_if(layout.runs.begin(), layout.runs.end(),
                                  [](const BeamRun& run) { return run.state == BeamRunState::kEnded; });
  ASSERT_NE(ended, layout.runs.end());
  EXPECT_EQ(ended->row, 2);
  EXPECT_EQ(layout.num_rows, 3);
}

TEST(BeamTreeLayout, AnswersAreWhatIsLeftInTheEnd) {
  TreeMaker maker(2);
  const auto first = maker.step({-1, -1});
  const auto second = maker.step({first[1], first[1]});
  maker.tree.live.clear();
  maker.tree.final = {second[1]};
  const BeamTreeLayout layout = lay_out_beam_tree(maker.tree, spacing());
  EXPECT_EQ(layout.runs[0].state, BeamRunState::kDead);
  EXPECT_EQ(layout.runs[1].state, BeamRunState::kAnswer);
  EXPECT_EQ(layout.runs[2].state, BeamRunState::kDead);
  EXPECT_EQ(layout.runs[3].state, BeamRunState::kAnswer);
  EXPECT_DOUBLE_EQ(length_penalised(maker.tree, second[1]), -0.5);
}

// Random searches: no two runs ever cover the same place, beams stay within as many rows as the search is
// wide, texts fit, and what was placed keeps its row when the search goes on.
TEST(BeamTreeLayout, NothingOverlapsAndNothingJumps) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto width = static_cast<std::int32_t>(2 + random() % 7);
    TreeMaker maker(width);
    std::vector<std::int32_t> live(static_cast<std::size_t>(width), -1);
    live = maker.step(live);
    std::map<std::int32_t, std::int32_t> row_of;  // by first node, of the layout before
    for (int i = 0; i < 30; ++i) {
      std::vector<std::int32_t> parents;
      for (std::int32_t k = 0; k < width; ++k) parents.push_back(live[random() % live.size()]);
      live = maker.step(parents);
      const BeamTreeLayout layout = lay_out_beam_tree(maker.tree, spacing());
      ASSERT_LE(layout.num_rows, width) << "round " << round;
      std::set<std::pair<std::int32_t, std::int32_t>> taken;
      for (const BeamRun& run : layout.runs) {
        for (std::int32_t at = run.first_step; at <= run.last_step; ++at)
          ASSERT_TRUE(taken.insert({run.row, at}).second) << "round " << round << " step " << at;
        const float room = layout.step_left[static_cast<std::size_t>(run.last_step) + 1] -
                           layout.step_left[static_cast<std::size_t>(run.first_step)];
        ASSERT_GE(room, 8.0f * static_cast<float>(run.text.size()));
        const auto before = row_of.find(run.first_node);
        if (before != row_of.end()) {
          ASSERT_EQ(before->second, run.row) << "round " << round;
        }
        row_of[run.first_node] = run.row;
      }
    }
  }
}

// ---- where answers part

// Each letter is a token.
ComparedColumn answer_of(std::uint64_t id, std::string_view letters) {
  ComparedColumn column;
  column.id = ColumnId{id};
  column.phase = ColumnPhase::kFinished;
  for (const char letter : letters) {
    ComparedToken token{.token_id = letter, .begin = static_cast<std::uint32_t>(column.text.size())};
    column.text += letter;
    token.end = static_cast<std::uint32_t>(column.text.size());
    token.logprob = -0.5f;
    token.alternatives = {{.token_id = letter, .text = std::string(1, letter), .logprob = -0.5f},
                          {.token_id = 'y', .text = "y", .logprob = -1.5f},
                          {.token_id = 0, .text = "</s>", .logprob = -1.7f, .ends_text = true},
                          {.token_id = 'z', .text = "z", .logprob = -2.5f}};
    column.tokens.push_back(std::move(token));
  }
  return column;
}

std::vector<ComparedColumn> answers_of(const std::vector<std::string_view>& texts) {
  std::vector<ComparedColumn> columns;
  for (const std::string_view text : texts) columns.push_back(answer_of(columns.size() + 1, text));
  return columns;
}

TEST(DivergenceTree, CountsWhoSharesWhatUntilWhere) {
  const DivergenceTree tree = divergence_tree(answers_of({"abcd", "abcx", "abe", "abcx"}), 0);
  ASSERT_EQ(tree.runs.size(), 5u);
  EXPECT_EQ(tree.runs[0].text, "ab");
  EXPECT_EQ(tree.runs[0].columns.size(), 4u);
  EXPECT_EQ(tree.runs[0].end, 2u);
  EXPECT_EQ(tree.runs[1].text, "c") << "most answers come first";
  EXPECT_EQ(tree.runs[1].columns, (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_EQ(tree.runs[2].text, "x");
  EXPECT_EQ(tree.runs[2].parent, 1);
  EXPECT_EQ(tree.runs[2].num_ended, 2);
  EXPECT_EQ(tree.runs[3].text, "d");
  EXPECT_EQ(tree.runs[4].text, "e");
  EXPECT_EQ(tree.runs[4].parent, 0);
  EXPECT_EQ(tree.runs[4].first, 2u);
}

TEST(DivergenceTree, AnAnswerThatIsTheStartOfAnotherEndsInsideIt) {
  const DivergenceTree tree = divergence_tree(answers_of({"ab", "abc"}), 0);
  ASSERT_EQ(tree.runs.size(), 2u);
  EXPECT_EQ(tree.runs[0].num_ended, 1);
  EXPECT_EQ(tree.runs[1].columns, std::vector<std::size_t>{1});
}

TEST(DivergenceTree, AnswersThatShareNothingPartBehindThePrompt) {
  const DivergenceTree tree = divergence_tree(answers_of({"ab", "cd"}), 0);
  ASSERT_EQ(tree.runs.size(), 3u);
  EXPECT_EQ(tree.runs[0].token_id, -1);
  EXPECT_EQ(tree.runs[0].end, 0u);
  EXPECT_TRUE(divergence_tree({}, 2).runs.empty());
}

TEST(DivergenceTree, WhatNobodyTookStandsBesideTheBranchesBestFirst) {
  const DivergenceTree tree = divergence_tree(answers_of({"aby", "abc"}), 2);
  std::string untaken;
  for (const DivergenceRun& run : tree.runs) {
    if (!run.columns.empty()) continue;
    untaken += run.text;
    EXPECT_EQ(run.parent, 0);
    EXPECT_EQ(run.first, 2u);
  }
  EXPECT_EQ(untaken, "z") << "“y” was taken, and an end leads nowhere";
  EXPECT_NEAR(tree.runs[1].logprob, -0.5, 1e-6);
}

// Every answer can be read along its runs, and no two leaves share a row.
TEST(DivergenceTree, RunsSpellTheAnswersAndNothingOverlaps) {
  std::mt19937 random(20261124);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      std::string text;
      for (std::size_t k = 0; k < random() % 9; ++k) text += static_cast<char>('a' + random() % 2);
      texts.push_back(text);
    }
    const auto columns = answers_of({texts.begin(), texts.end()});
    const DivergenceTree tree = divergence_tree(columns, 2);
    const DivergenceLayout layout = lay_out_divergence(tree);
    std::vector<std::string> spelled(columns.size());
    std::set<float> rows;
    std::set<std::int32_t> parents;
    for (const DivergenceRun& run : tree.runs) {
      for (const std::size_t column : run.columns) spelled[column] += run.text;
      parents.insert(run.parent);
    }
    for (std::size_t i = 0; i < columns.size(); ++i) ASSERT_EQ(spelled[i], texts[i]) << "round " << round;
    for (std::size_t i = 0; i < tree.runs.size(); ++i) {
      if (parents.count(static_cast<std::int32_t>(i)) > 0) continue;
      ASSERT_TRUE(rows.insert(layout.places[i].row).second) << "round " << round;
    }
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(layout.num_rows));
  }
}

// ---- figures of tokens

ComparedToken token_of(std::vector<double> probabilities, std::size_t chosen) {
  ComparedToken token;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    token.alternatives.push_back({.token_id = static_cast<TokenId>(i),
                                  .text = "t",
                                  .logprob = static_cast<float>(std::log(probabilities[i]))});
  token.token_id = static_cast<TokenId>(chosen);
  token.logprob = token.alternatives[chosen].logprob;
  return token;
}

TEST(TokenColours, SayWhatTheyAreCalled) {
  const ComparedToken token = token_of({0.5, 0.25, 0.25}, 1);
  EXPECT_EQ(rank_of(token), 2);
  EXPECT_NEAR(*relative_probability(token), 0.5, 1e-6);
  EXPECT_NEAR(*entropy_bits(token), 1.5, 1e-6);
  EXPECT_NEAR(*surprise(token_of({1.0, 1e-9}, 0), TextColour::kProbability), 0.0f, 1e-6f);
  EXPECT_NEAR(*surprise(token_of({0.9, 0.001}, 1), TextColour::kProbability), 1.0f, 1e-5f);
  EXPECT_NEAR(*surprise(token_of({0.5, 0.05}, 1), TextColour::kRelative), 0.5f, 1e-5f);
  EXPECT_NEAR(*surprise(token_of({0.1, 0.1, 0.1, 0.1}, 0), TextColour::kEntropy), 1.0f, 1e-5f);
}

TEST(TokenColours, SayNothingWithoutAlternatives) {
  ComparedToken token;
  token.logprob = -2;
  EXPECT_FALSE(surprise(token, TextColour::kRelative).has_value());
  EXPECT_FALSE(surprise(token, TextColour::kEntropy).has_value());
  EXPECT_FALSE(surprise(token, TextColour::kNone).has_value());
}

// The key's shades are those that words of these figures have.
TEST(TokenColours, TheKeySaysWhatTheShadesMean) {
  const auto legend = colour_legend(TextColour::kProbability, 8);
  ASSERT_EQ(legend.size(), 4u);
  const double probabilities[] = {1, 0.3, 0.03, 0.001};
  for (std::size_t i = 0; i < legend.size(); ++i) {
    EXPECT_NEAR(legend[i].surprise, *surprise(token_of({1.0, probabilities[i]}, 1), TextColour::kProbability),
                1e-6f);
    EXPECT_TRUE(legend[i].label.starts_with(i == 0 ? "100" : i == 1 ? "30" : i == 2 ? "3" : "0.1"));
  }
  const auto relative = colour_legend(TextColour::kRelative, 8);
  ASSERT_EQ(relative.size(), 3u);
  EXPECT_NEAR(relative[1].surprise, 0.5f, 1e-6f);
  EXPECT_EQ(colour_legend(TextColour::kEntropy, 8).back().label, "3.00 bit");
  EXPECT_EQ(colour_legend(TextColour::kSharedPrefix, 8).size(), 2u);
  EXPECT_EQ(colour_legend(TextColour::kBlocks, 8).size(), 2u);
  EXPECT_TRUE(colour_legend(TextColour::kNone, 8).empty());
}

TEST(SeedSuffix, TellsSeedsApartByTheirLastDigits) {
  EXPECT_EQ(seed_suffix(11), "11");
  EXPECT_EQ(seed_suffix(12345), "12345");
  EXPECT_EQ(seed_suffix(9007199254740991), "…0991");
}

TEST(StopSequences, AreWrittenOneOnEachLineAndReadBack) {
  const std::vector<std::string> stops = {"END", "\n\n", "a\\b\tc"};
  EXPECT_EQ(lines_of_texts(stops), "END\n\\n\\n\na\\\\b\\tc");
  EXPECT_EQ(texts_of_lines(lines_of_texts(stops)), stops);
  EXPECT_TRUE(texts_of_lines("\n\n").empty());
}

TEST(TokenCard, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(visible_token(" rain"), "·rain");
  EXPECT_EQ(visible_token("\n"), "\\n");
  EXPECT_EQ(visible_token("a\xe2\x80\xae"
                          "b\x1b[31m"),
            "ab[31m");
}

TEST(TokenCard, KnowsTheSlotOfAToken) {
  ComparedColumn column;
  column.num_prompt_tokens = 40;
  EXPECT_EQ(slot_of(column, 16, 0).block_index, 2u);
  EXPECT_EQ(slot_of(column, 16, 0).slot, 8);
  EXPECT_EQ(slot_of(column, 16, 8).block_index, 3u);
  EXPECT_EQ(slot_of(column, 16, 8).slot, 0);
}

}  // namespace
}  // namespace octavo::ui
