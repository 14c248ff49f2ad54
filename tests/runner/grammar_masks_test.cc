#include "engine/runner/grammar_masks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "engine/api/sampling_params.h"
#include "kernels/backends.h"
#include "tests/simulation/toy_grammar.h"

namespace octavo::runner {
namespace {

using simulation::ToyGrammar;
using simulation::ToyTokenizer;

// Steps of sequences that have these outputs, and what the grammar's definition says of each.
class GrammarMasksTest : public testing::Test {
 protected:
  struct Output {
    std::uint64_t sequence_id;
    std::vector<TokenId> token_ids;
  };

  // Each with a target for all of its tokens, and with `num_draft_tokens` further ones that are guesses.
  void expect_masks(const std::vector<Output>& outputs, std::int32_t num_draft_tokens = 0) {
    scheduler::SchedulerOutput step;
    for (const Output& output : outputs) {
      scheduler::ScheduledSequence& sequence = step.sequences.emplace_back();
      sequence.sequence_id = SequenceId{output.sequence_id};
      sequence.sampling = &sampling_;
      const std::span<const TokenId> all = output.token_ids;
      for (std::int32_t i = num_draft_tokens; i >= 0; --i)
        sequence.samples.push_back({.sequence_id = sequence.sequence_id,
                                    .output_token_ids = all.first(all.size() - static_cast<std::size_t>(i))});
    }
    masks_.compute(step);
    by_threads_.compute(step, backend_.get());
    for (std::size_t index = 0; index < outputs.size(); ++index) {
      const auto& samples = step.sequences[index].samples;
      bool is_possible = true;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto before = samples[i].output_token_ids;
        if (i > 0)
          is_possible = is_possible && simulation::toy_allows(before.first(before.size() - 1), before.back());
        const TokenMask mask = masks_.of(index, i);
        EXPECT_TRUE(std::ranges::equal(mask, by_threads_.of(index, i))) << "threads change nothing";
        for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
          EXPECT_EQ(allows(mask, token), is_possible && simulation::toy_allows(before, token))
              << "sequence " << outputs[index].sequence_id << ", token " << token << " behind "
              << before.size();
        }
      }
    }
  }

  // `count` tokens that are allowed, the `choice`-th of them each time.
  static std::vector<TokenId> longer(std::vector<TokenId> tokens, std::size_t count, TokenId choice) {
    for (std::size_t i = 0; i < count; ++i) {
      const TokenId next = simulation::allowed_from(4 + choice, [&](TokenId token) {
        return !simulation::ends_text(token) && simulation::toy_allows(tokens, token);
      });
      tokens.push_back(next);
    }
    return tokens;
  }

  SamplingParams sampling_ = {.grammar = std::make_shared<const ToyGrammar>()};
  GrammarMasks masks_{ToyTokenizer::kVocabularySize}, by_threads_{ToyTokenizer::kVocabularySize};
  std::unique_ptr<kernels::Backend> backend_ =
      kernels::create_backend({.device = "cpu", .threads = 3}).value();
};

TEST_F(GrammarMasksTest, FollowOutputsThatGrow) {
  std::vector<TokenId> first, second;
  for (int i = 0; i < 20; ++i) {
    expect_masks({{1, first}, {2, second}});
    first = longer(first, 1, 3);
    second = longer(second, 1, 9);
  }
}

TEST_F(GrammarMasksTest, FollowSamplesThatPartAndBeamsThatChangeSeats) {
  const auto shared = longer({}, 6, 2);
  expect_masks({{1, shared}, {2, shared}, {3, shared}});
  const auto a = longer(shared, 1, 5), b = longer(shared, 1, 11), c = longer(shared, 1, 17);
  expect_masks({{1, a}, {2, b}, {3, c}});
  expect_masks({{1, longer(b, 1, 4)}, {2, longer(b, 1, 12)}, {3, longer(a, 1, 7)}});
  expect_masks({{1, longer(a, 2, 7)}, {4, longer(c, 1, 3)}});
}

TEST_F(GrammarMasksTest, TakeBackGuessesThatWereWrong) {
  const auto known = longer({}, 5, 2);
  expect_masks({{1, longer(known, 4, 6)}}, 4);
  expect_masks({{1, longer(known, 1, 13)}});
  auto impossible = longer(known, 1, 13);
  impossible.push_back(ToyTokenizer::kSpecial);
  impossible.push_back(5);
  expect_masks({{1, impossible}}, 2);
  expect_masks({{1, longer(known, 3, 13)}});
}

TEST_F(GrammarMasksTest, KnowASequenceThatWasAwayForLong) {
  const auto output = longer({}, 30, 8);
  expect_masks({{1, output}});
  for (int i = 0; i < 100; ++i) expect_masks({{2, longer({}, static_cast<std::size_t>(i % 5), 3)}});
  expect_masks({{1, longer(output, 2, 8)}});
}

TEST_F(GrammarMasksTest, AreNoneWithoutAGrammar) {
  const SamplingParams plain;
  scheduler::SchedulerOutput step;
  step.sequences.push_back({.sequence_id = SequenceId{1},
                            .request_id = {},
                            .sampling = &plain,
                            .prompt_token_ids = {},
                            .known_token_ids = {},
                            .token_ids = {},
                            .block_table = {},
                            .samples = {{.sequence_id = SequenceId{1}}}});
  masks_.compute(step);
  EXPECT_TRUE(masks_.of(0, 0).empty());
}

}  // namespace
}  // namespace octavo::runner
