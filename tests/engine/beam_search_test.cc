#include "engine/core/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/toy_tokens.h"

namespace octavo {
namespace {

using simulation::ToyTokenizer;
using Tokens = std::vector<TokenId>;

constexpr TokenId kEos = ToyTokenizer::kEos;
constexpr double kNever = -1e9;

// A model as a table: what each of a few tokens costs after a text. Multiples of 1/8, so that sums are exact
// and ties occur.
class Table {
 public:
  Table(unsigned seed, Tokens vocabulary) : seed_(seed), vocabulary_(std::move(vocabulary)) {}

  const Tokens& vocabulary() const { return vocabulary_; }
  double logprob(const Tokens& before, TokenId token_id) {
    const auto [found, is_new] = drawn_.try_emplace({before, token_id}, 0.0);
    if (is_new) {
      std::seed_seq seed{seed_, static_cast<unsigned>(drawn_.size())};
      std::mt19937 random(seed);
      found->second = -static_cast<double>(1 + random() % 24) / 8.0;
    }
    return found->second;
  }
  void set(const Tokens& before, TokenId token_id, double logprob) { drawn_[{before, token_id}] = logprob; }
  // Log-probabilities of the model are these; the search may follow others.
  double bias = 0.0;

 private:
  unsigned seed_;
  Tokens vocabulary_;
  std::map<std::pair<Tokens, TokenId>, double> drawn_;
};

// The search as the engine drives it: seats are handed out anew in each step.
class Driven {
 public:
  Driven(Table& table, const SamplingParams& sampling)
      : table_(table),
        sampling_(sampling),
        search_(sampling_, OutputProcessor(kToyTokenizer, sampling_, sampling_.max_tokens), SequenceId{1}),
        carried_{{SequenceId{1}, {}}} {}

  BeamSearch::Advance step() {
    for (const auto& [seat, tokens] : carried_) report(seat);
    EXPECT_TRUE(search_.all_reported());
    BeamSearch::Advance advance = search_.advance();
    steps_.push_back(advance.step);
    std::map<SequenceId, Tokens> next;
    std::vector<SequenceId> seats;
    for (const auto& continuation : advance.continuations) {
      seats.push_back(SequenceId{100 * steps_.size() + seats.size()});
      next[seats.back()] = carried_.at(continuation.parent);
      next[seats.back()].push_back(continuation.token_id);
    }
    carried_ = std::move(next);
    if (!advance.is_over) search_.take_seats(seats);
    is_over_ = advance.is_over;
    return advance;
  }

  std::vector<BeamSearch::Hypothesis> run() {
    while (!is_over_) step();
    return search_.best(FinishReason::kAbort);
  }

  void report(SequenceId seat) {
    runner::SampledToken sampled{.sequence_id = seat};
    for (const TokenId token_id : table_.vocabulary()) {
      const double logprob = table_.logprob(carried_.at(seat), token_id);
      if (logprob == kNever) continue;
      sampled.candidates.push_back({token_id, static_cast<float>(logprob + table_.bias), logprob});
    }
    std::ranges::stable_sort(sampled.candidates, std::ranges::greater(),
                             &runner::BeamCandidate::search_logprob);
    sampled.top_logprobs = {{sampled.candidates[0].token_id, sampled.candidates[0].logprob}};
    search_.report(sampled);
  }

  BeamSearch& search() { return search_; }
  const std::vector<BeamStep>& steps() const { return steps_; }
  const std::map<SequenceId, Tokens>& carried() const { return carried_; }

 private:
  Table& table_;
  const SamplingParams sampling_;
  BeamSearch search_;
  std::map<SequenceId, Tokens> carried_;
  std::vector<BeamStep> steps_;
  bool is_over_ = false;
};

SamplingParams beams(std::int32_t width, std::int32_t max_tokens, double length_penalty = 1.0,
                     bool early_stopping = false) {
  SamplingParams sampling;
  sampling.beam_width = width;
  sampling.max_tokens = max_tokens;
  sampling.length_penalty = length_penalty;
  sampling.early_stopping = early_stopping;
  return sampling;
}

// ---- against all texts there are (tests/engine/beams_test.cc: against another program)

struct Scored {
  Tokens tokens;
  double score = 0.0;
};

double score(double logprob, std::size_t num_tokens, double length_penalty) {
  return logprob / std::pow(static_cast<double>(num_tokens), length_penalty);
}

// With room for every text, nothing is pruned: the best of all texts is found.
TEST(BeamSearch, WithRoomForEveryTextFindsTheBestOfAll) {
  for (const double length_penalty : {0.0, 1.0, 2.0, -1.0}) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      Table table(seed, {kEos, kA, kB});
      std::vector<Scored> all;
      std::vector<std::pair<Tokens, double>> open{{{}, 0.0}};
      while (!open.empty()) {
        const auto [before, logprob] = open.back();
        open.pop_back();
        for (const TokenId token_id : table.vocabulary()) {
          Tokens tokens = before;
          tokens.push_back(token_id);
          const double sum = logprob + table.logprob(before, token_id);
          if (token_id == kEos || tokens.size() == 4) {
            all.push_back({tokens, score(sum, tokens.size(), length_penalty)});
          } else {
            open.emplace_back(tokens, sum);
          }
        }
      }
      const auto best = Driven(table, beams(200, 4, length_penalty)).run();
      ASSERT_EQ(best.size(), all.size());
      EXPECT_EQ(best[0].score, std::ranges::max(all, {}, &Scored::score).score);
    }
  }
}

// ---- single rules

// A table in which only what is set can come.
Table strict_table(std::initializer_list<std::tuple<Tokens, TokenId, double>> entries) {
  Table table(1, {kEos, kA, kB, kC});
  std::vector<Tokens> texts{{}};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (const TokenId token_id : table.vocabulary()) {
      table.set(texts[i], token_id, kNever);
      if (texts[i].size() == 3) continue;
      texts.push_back(texts[i]);
      texts.back().push_back(token_id);
    }
  }
  for (const auto& [before, token_id, logprob] : entries) table.set(before, token_id, logprob);
  return table;
}

TEST(BeamSearch, TiesGoToTheBetterParentAndThenToTheLowerToken) {
  Table table = strict_table({{{}, kB, -1.0},
                              {{}, kA, -1.0},
                              {{}, kC, -2.0},
                              {{kA}, kC, -1.0},
                              {{kA}, kB, -1.0},
                              {{kB}, kA, -1.0},
                              {{kC}, kA, 0.0}});
  Driven driven(table, beams(3, 10));
  const auto first = driven.step();
  ASSERT_EQ(first.continuations.size(), 3u);
  EXPECT_EQ(first.continuations[0].token_id, kA);
  EXPECT_EQ(first.continuations[1].token_id, kB);
  const auto second = driven.step();  // all of -2: a then b and c, b then a, c then a
  std::vector<Tokens> kept;
  for (const auto& [seat, tokens] : driven.carried()) kept.push_back(tokens);
  EXPECT_EQ(kept, (std::vector<Tokens>{{kA, kB}, {kA, kC}, {kB, kA}}));
}

TEST(BeamSearch, AnEndCountsOnlyAmongTheBest) {
  Table table = strict_table(
      {{{}, kA, -1.0}, {{}, kB, -2.0}, {{}, kEos, -3.0}, {{kA}, kEos, -1.0}, {{kB}, kEos, -1.0}});
  Driven driven(table, beams(2, 10));
  EXPECT_TRUE(driven.step().step.ended.empty()) << "the end comes third of two";
  const auto second = driven.step();
  EXPECT_EQ(second.step.ended.size(), 2u);
  EXPECT_TRUE(second.is_over) << "no beam is left";
  const auto best = driven.search().best(FinishReason::kAbort);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].token_ids, (Tokens{kA, kEos}));
  EXPECT_EQ(best[0].end.finish_reason, FinishReason::kStop);
  EXPECT_EQ(best[0].text, "a");
}

TEST(BeamSearch, EarlyStoppingDoesNotWaitForABeamThatCouldWin) {
  const auto table = [] {
    return strict_table({{{}, kEos, -1.0}, {{}, kA, -1.5}, {{kA}, kB, -0.1}, {{kA, kB}, kEos, -0.1}});
  };
  Table eager = table(), patient = table();
  EXPECT_EQ(Driven(eager, beams(1, 10, 2.0, /*early_stopping=*/true)).run()[0].token_ids, Tokens{kEos});
  SamplingParams sampling = beams(1, 10, 2.0);
  Driven driven(patient, sampling);
  EXPECT_TRUE(driven.step().is_over) << "at its present length the beam does not beat the end";
  Table closer = strict_table(
      {{{}, kEos, -1.5}, {{}, kA, -1.0}, {{kA}, kEos, -0.2}, {{kA}, kB, -0.3}, {{kA, kB}, kEos, -0.1}});
  EXPECT_EQ(Driven(closer, beams(1, 10)).run()[0].token_ids, (Tokens{kA, kEos}));
}

TEST(BeamSearch, TheLengthPenaltyDividesByTheLengthToItsPower) {
  for (const double length_penalty : {0.0, 1.0, 2.0, -1.0}) {
    Table table = strict_table({{{}, kA, -1.0}, {{kA}, kB, -1.0}, {{kA, kB}, kEos, -2.0}});
    const auto best = Driven(table, beams(1, 10, length_penalty)).run();
    EXPECT_DOUBLE_EQ(best[0].score, -4.0 / std::pow(3.0, length_penalty));
  }
}

TEST(BeamSearch, EndsAtTheMostTokens) {
  Table table(5, {kA, kB, kC});
  const auto best = Driven(table, beams(3, 4)).run();
  ASSERT_EQ(best.size(), 3u);
  for (const auto& hypothesis : best) {
    EXPECT_EQ(hypothesis.token_ids.size(), 4u);
    EXPECT_EQ(hypothesis.end.finish_reason, FinishReason::kLength);
    EXPECT_EQ(hypothesis.text.size(), 4u);
  }
}

TEST(BeamSearch, AStopStringEndsAHypothesisAndIsCutFromItsText) {
  Table table = strict_table({{{}, kA, -1.0}, {{kA}, kB, -1.0}, {{kA, kB}, kC, -1.0}});
  SamplingParams sampling = beams(1, 10);
  sampling.stop = {"bc"};
  const auto best = Driven(table, sampling).run();
  EXPECT_EQ(best[0].token_ids, (Tokens{kA, kB, kC}));
  EXPECT_EQ(best[0].text, "a");
  EXPECT_EQ(best[0].end.finish_reason, FinishReason::kStop);
  EXPECT_EQ(best[0].end.stop_reason, StopReason("bc"));
}

TEST(BeamSearch, TextHeldBackForAStopStringIsGivenWhenTheSearchIsCutShort) {
  Table table = strict_table({{{}, kA, -1.0}, {{kA}, kB, -1.0}, {{kA, kB}, kC, -1.0}});
  SamplingParams sampling = beams(1, 10);
  sampling.stop = {"bca"};
  Driven driven(table, sampling);
  driven.step(), driven.step();
  EXPECT_EQ(driven.search().best(FinishReason::kLength)[0].text, "ab");
}

TEST(BeamSearch, FollowsSearchLogprobsAndReportsTheModelsOwn) {
  Table table = strict_table({{{}, kA, -1.0}, {{}, kB, -2.0}, {{kA}, kEos, -1.0}, {{kB}, kEos, -1.0}});
  table.bias = -0.5;
  SamplingParams sampling = beams(2, 10);
  sampling.logprobs = 1;
  const auto best = Driven(table, sampling).run();
  EXPECT_EQ(best[0].logprobs, (std::vector<float>{-1.5f, -1.5f}));
  EXPECT_DOUBLE_EQ(best[0].score, -1.5);
  EXPECT_EQ(best[0].top_logprobs.size(), 2u);
  sampling.logprobs = 0;
  EXPECT_TRUE(Driven(table, sampling).run()[0].top_logprobs.empty());
}

// ---- its history

TEST(BeamSearch, ItsHistoryTellsEveryHypothesisAndWhoWasLive) {
  Table table(9, {kEos, kA, kB, kC});
  Driven driven(table, beams(4, 6));
  std::vector<BeamNode> nodes;
  std::vector<Tokens> ended;
  const auto text_of = [&](std::int32_t node) {
    Tokens tokens;
    for (; node >= 0; node = nodes[static_cast<std::size_t>(node)].parent) {
      tokens.insert(tokens.begin(), nodes[static_cast<std::size_t>(node)].token_id);
    }
    return tokens;
  };
  for (bool is_over = false; !is_over;) {
    const auto advance = driven.step();
    is_over = advance.is_over;
    EXPECT_EQ(advance.step.first_node, std::ssize(nodes)) << "numbered in order of birth";
    nodes.insert(nodes.end(), advance.step.nodes.begin(), advance.step.nodes.end());
    EXPECT_EQ(advance.step.live.size() + advance.step.ended.size(), advance.step.nodes.size());
    std::vector<Tokens> live, carried;
    for (const std::int32_t node : advance.step.live) live.push_back(text_of(node));
    for (const auto& [seat, tokens] : driven.carried()) carried.push_back(tokens);
    EXPECT_EQ(live, carried) << "best first";
    for (const std::int32_t node : advance.step.ended) ended.push_back(text_of(node));
  }
  for (const auto& hypothesis : driven.search().best(FinishReason::kAbort)) {
    EXPECT_EQ(std::ranges::count(ended, hypothesis.token_ids), 1);
  }
  for (const BeamNode& node : nodes) {
    const double before =
        node.parent < 0 ? 0.0 : nodes[static_cast<std::size_t>(node.parent)].cumulative_logprob;
    EXPECT_DOUBLE_EQ(node.cumulative_logprob, before + static_cast<double>(node.logprob));
  }
}

// ---- its end from outside

TEST(BeamSearch, CutShortItGivesTheBestOfWhatEndedAndOfWhatWasUnderWay) {
  for (const auto reason : {FinishReason::kAbort, FinishReason::kLength}) {
    Table table = strict_table({{{}, kA, -1.0}, {{}, kEos, -2.5}, {{kA}, kB, -1.0}, {{kA}, kC, -1.1}});
    Driven driven(table, beams(2, 10));
    driven.step(), driven.step();
    const auto best = driven.search().best(reason);
    ASSERT_EQ(best.size(), 2u);
    EXPECT_EQ(best[0].token_ids, (Tokens{kA, kB}));
    EXPECT_EQ(best[0].end.finish_reason, reason);
    EXPECT_EQ(best[1].token_ids, (Tokens{kA, kC})) << "-1.05 beats the -2.5 that ended";
    EXPECT_EQ(driven.search().num_generated_tokens(), 2);
  }
}

TEST(BeamSearch, CutShortBeforeItsFirstStepItGivesNothing) {
  Table table(1, {kA});
  Driven driven(table, beams(2, 10));
  EXPECT_TRUE(driven.search().best(FinishReason::kAbort).empty());
}

// ---- who reports

TEST(BeamSearch, WaitsForEveryBeamAndAReportMayComeTwice) {
  Table table(3, {kA, kB, kC});
  Driven driven(table, beams(3, 10));
  driven.step();
  std::vector<SequenceId> seats;
  for (const auto& [seat, tokens] : driven.carried()) seats.push_back(seat);
  ASSERT_EQ(seats.size(), 3u);
  driven.report(seats[2]);
  driven.report(seats[0]);
  driven.report(seats[0]);  // after a preemption
  EXPECT_FALSE(driven.search().all_reported());
  EXPECT_DEATH(driven.search().advance(), "not all have reported");
  driven.report(seats[1]);
  EXPECT_TRUE(driven.search().all_reported());
  EXPECT_DEATH(driven.search().report({.sequence_id = SequenceId{7777}}), "carries no beam");
  driven.search().advance();
  EXPECT_DEATH(driven.search().take_seats({}), "0 seats for 3 beams");
}

}  // namespace
}  // namespace octavo
