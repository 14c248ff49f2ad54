// Attention over blocks that several sequences of a step share: the same bits as over copies of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>

#include "kernels/cpu/attention_work.h"
#include "tests/kernels/attention_claims.h"

// The plan of a tile's visits, as it is in every instruction set.
#define OCTAVO_ISA shared_blocks_test
#include "kernels/cpu/simd/attention_visits.h"

namespace octavo::kernels::testing {
namespace {

namespace visits = cpu::shared_blocks_test;

class SharedBlocks : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, SharedBlocks,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

std::int32_t number_below(std::mt19937_64& random, std::int32_t end) {
  return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(end));
}

// Chats that branch from each other anywhere, among them prompts that are still being computed, in no
// particular order of lengths.
std::vector<SequenceSpec> random_family(std::uint64_t seed, std::int32_t num_sequences,
                                        std::int32_t longest) {
  std::mt19937_64 random(seed);
  std::vector<SequenceSpec> sequences;
  for (std::int32_t i = 0; i < num_sequences; ++i) {
    SequenceSpec spec{seed * 1000 + static_cast<std::uint64_t>(i), 0, 1};
    const std::int32_t kind = number_below(random, 8);
    if (kind == 0) spec.new_tokens = 1 + number_below(random, 60);
    if (kind == 1) spec.new_tokens = 2;
    if (i > 0 && number_below(random, 6) > 0) {
      spec.parent = number_below(random, i);
      const SequenceSpec& parent = sequences[static_cast<std::size_t>(spec.parent)];
      const std::int32_t context = parent.history + parent.new_tokens;
      spec.num_shared = number_below(random, 3) == 0 ? number_below(random, context + 1) : context;
    }
    const std::int32_t own = number_below(random, 2) == 0 ? 20 : longest;
    spec.history = spec.num_shared + number_below(random, own);
    sequences.push_back(spec);
  }
  return sequences;
}

std::string show(const std::vector<SequenceSpec>& sequences) {
  std::string text;
  for (const SequenceSpec& s : sequences) {
    text += "{" + std::to_string(s.history) + "+" + std::to_string(s.new_tokens) + ", " +
            std::to_string(s.num_shared) + " of " + std::to_string(s.parent) + "} ";
  }
  return text;
}

void expect_same_bits(cpu::InstructionSet isa, const Shape& shape, const std::vector<SequenceSpec>& sequences,
                      ProblemOptions options, std::initializer_list<std::int32_t> numbers_of_threads) {
  const PagedProblem copies = make_problem(shape, sequences, options);
  options.share_blocks = true;
  const PagedProblem shared = make_problem(shape, sequences, options);
  const std::vector<float> expected = run_attention(*cpu_backend(isa, 1), copies);
  for (const std::int32_t threads : numbers_of_threads) {
    const std::vector<float> got = run_attention(*cpu_backend(isa, threads), shared);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), copies.num_rows() * shape.query_width()))
        << describe(copies) << ", " << threads << " threads: " << show(sequences);
  }
}

TEST_P(SharedBlocks, GiveTheSameBitsAsCopies) {
  std::uint64_t seed = 1;
  for (const Shape& shape : {one_tiny_head(), odd_shape()}) {
    for (const KvType type : kEveryKvType) {
      for (const std::int32_t block_size : {1, 3, 8, 16, 24, 32}) {
        ++seed;
        const std::vector<SequenceSpec> family = random_family(seed, 12, 150);
        expect_same_bits(GetParam(), shape, family, {.type = type, .block_size = block_size},
                         {1 + static_cast<std::int32_t>(seed % 3)});
      }
    }
  }
}

// More queries than a tile holds, over several ranges.
TEST_P(SharedBlocks, GiveTheSameBitsAsCopiesToManySequencesOfTheDefaultModelsShape) {
  std::vector<SequenceSpec> samples = {{1, 530, 1}};
  for (std::uint64_t i = 2; i <= 40; ++i)
    samples.push_back({i, 512 + static_cast<std::int32_t>(i), 1, 0, i % 3 == 0 ? 512 : 300});
  for (const KvType type : {KvType::kF16, KvType::kInt8})
    expect_same_bits(GetParam(), smollm2_shape(), samples, {.type = type, .num_layers = 2}, {1, 2});
  for (const std::uint64_t seed : {50u, 51u})
    expect_same_bits(GetParam(), smollm2_shape(), random_family(seed, 20, 300), {.num_layers = 2}, {2});
}

TEST_P(SharedBlocks, GiveTheSameBitsAsCopiesThroughWindows) {
  const std::vector<SequenceSpec> sequences = {
      {1, 700, 1}, {2, 600, 30, 0, 590}, {3, 320, 1, 1, 320}, {4, 690, 12, 0, 688}};
  for (const std::int32_t window : {30, 200, 400})
    expect_same_bits(GetParam(), with_window(smollm2_shape(), window), sequences, {}, {1, 2, 3});
  for (const std::int32_t chunk : {30, 200, 300}) {
    Shape shape = with_window(smollm2_shape(), chunk);
    shape.attention.window_form = WindowForm::kChunk;
    expect_same_bits(GetParam(), shape, sequences, {}, {1, 2, 3});
  }
}

// ---- what is read together

void rows_in_tiles(const PagedProblem& problem, cpu::AttentionWork& work, std::int32_t window = 0) {
  cpu::plan_attention(problem.batch(),
                      {.block_size = problem.layout.block_size,
                       .num_kv_heads = 3,
                       .group_size = 3,
                       .num_threads = 1,
                       .floats_per_row = 1,
                       .window = window},
                      work);
}

TEST(AttentionWork, SequencesWithACommonBeginningStandInOneTile) {
  std::vector<SequenceSpec> sequences = {{1, 600, 1}, {2, 900, 1}};
  for (std::uint64_t i = 3; i < 10; ++i)
    sequences.push_back({i, 560, 1, static_cast<std::int32_t>(i % 2), 512});
  cpu::AttentionWork work;
  rows_in_tiles(make_problem(smollm2_shape(), sequences, {.share_blocks = true}), work);
  ASSERT_EQ(work.tiles.size(), 2u);
  EXPECT_EQ(work.tiles[0].num_rows + work.tiles[1].num_rows, 9);
  for (const cpu::AttentionWork::Tile& tile : work.tiles) {
    for (std::int32_t i = 1; i < tile.num_rows; ++i)
      EXPECT_GE(work.rows[static_cast<std::size_t>(tile.first_row + i)].num_shared, 512);
  }
}

TEST(AttentionWork, LayersOfAKindHaveOneAndAnotherStepHasItsOwn) {
  const PagedProblem problem = make_problem(smollm2_shape(), {{1, 600, 1}, {2, 900, 1}}, {});
  const PagedProblem other = make_problem(smollm2_shape(), {{1, 600, 3}}, {});
  const cpu::AttentionPlan all{.block_size = problem.layout.block_size,
                               .num_kv_heads = 3,
                               .group_size = 3,
                               .num_threads = 1,
                               .floats_per_row = 1};
  cpu::AttentionPlan windowed = all;
  windowed.window = 100;
  cpu::StepAttention step;
  step.begin_step(problem.batch());
  ASSERT_EQ(step.work_for(problem.batch(), all).rows.size(), 2u);
  step.work_for(problem.batch(), all)
      .rows.pop_back();  // what nobody would do, to see whether it was planned again
  EXPECT_GT(step.work_for(problem.batch(), windowed).rows.front().first, 0);
  EXPECT_EQ(step.work_for(problem.batch(), all).rows.size(), 1u);
  EXPECT_DEATH(step.work_for(other.batch(), all), "not those of begin_step");
  step.begin_step(other.batch());
  EXPECT_EQ(step.work_for(other.batch(), all).rows.size(), 3u);
}

TEST(AttentionWork, SequencesThatShareTooLittleStandApart) {
  cpu::AttentionWork work;
  rows_in_tiles(
      make_problem(smollm2_shape(), {{1, 3000, 1}, {2, 3000, 1, 0, 96}, {3, 40, 1}, {4, 40, 1, 2, 32}},
                   {.share_blocks = true}),
      work);
  EXPECT_EQ(work.tiles.size(), 4u);
}

TEST(AttentionWork, EveryRowStandsInOneTileAndEveryRangeInOneItem) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const PagedProblem problem =
        make_problem(one_tiny_head(), random_family(seed, 30, 2000),
                     {.num_layers = 1, .new_tokens_stored = false, .share_blocks = true});
    cpu::AttentionWork work;
    cpu::plan_attention(
        problem.batch(),
        {.block_size = 16, .num_kv_heads = 2, .group_size = 4, .num_threads = 2, .floats_per_row = 10}, work);
    std::vector<int> seen(static_cast<std::size_t>(problem.num_rows()));
    std::vector<int> ranges(work.tiles.size() * 2);
    for (const auto& tile : work.tiles) {
      for (std::int32_t i = 0; i < tile.num_rows; ++i)
        ++seen[static_cast<std::size_t>(work.rows[static_cast<std::size_t>(tile.first_row + i)].row)];
    }
    for (const auto& item : work.items)
      ranges[static_cast<std::size_t>(item.tile * 2 + item.kv_head)] += item.end_range - item.first_range;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), problem.num_rows()) << "seed " << seed;
    for (std::size_t i = 0; i < ranges.size(); ++i)
      EXPECT_EQ(ranges[i], work.tiles[i / 2].num_ranges) << "seed " << seed;
  }
}

// Positions that the visits of a tile read, summed over all its ranges.
std::int64_t positions_read(const PagedProblem& problem, const cpu::AttentionWork& work,
                            const cpu::AttentionWork::Tile& tile) {
  cpu::AttentionTile kernel_tile = {};
  kernel_tile.block_size = problem.layout.block_size;
  kernel_tile.group_size = 3;
  kernel_tile.num_rows = tile.num_rows;
  kernel_tile.rows = work.rows.data() + tile.first_row;
  std::vector<visits::Visit> target(static_cast<std::size_t>(tile.num_rows * visits::kMostVisitsPerRow));
  std::int64_t sum = 0;
  for (std::int32_t range = 0; range < tile.num_ranges; ++range) {
    const visits::Visits list = visits::plan_visits(kernel_tile, range, target.data());
    EXPECT_LE(list.size, static_cast<int>(target.size()));
    for (int i = 0; i < list.size; ++i) sum += list.start[i].count;
  }
  return sum;
}

TEST(AttentionVisits, ReadWhatSequencesShareOnce) {
  std::vector<SequenceSpec> sequences = {{1, 575, 1}};
  for (std::uint64_t i = 2; i <= 16; ++i) sequences.push_back({i, 575, 1, 0, 512});
  cpu::AttentionWork work;
  const PagedProblem problem = make_problem(smollm2_shape(), sequences, {.share_blocks = true});
  rows_in_tiles(problem, work);
  ASSERT_EQ(work.tiles.size(), 1u);
  EXPECT_EQ(positions_read(problem, work, work.tiles[0]), 512 + 16 * 64);
}

TEST(AttentionVisits, ReadNestedBeginningsOnceEach) {
  // A beginning of all, two chats on it, two samples of each; 272 is not a multiple of a range.
  const std::vector<SequenceSpec> sequences = {
      {1, 799, 1}, {2, 799, 1, 0, 272}, {3, 799, 1, 0, 784}, {4, 799, 1, 1, 784}};
  cpu::AttentionWork work;
  const PagedProblem problem = make_problem(smollm2_shape(), sequences, {.share_blocks = true});
  rows_in_tiles(problem, work);
  ASSERT_EQ(work.tiles.size(), 1u);
  EXPECT_EQ(positions_read(problem, work, work.tiles[0]), 272 + 2 * (784 - 272) + 4 * 16);
}

// Every row meets every position of its window exactly once, in ascending order, through its own blocks, and
// no whole visit holds others.
TEST(AttentionVisits, LeadEveryRowThroughItsPositionsInOrder) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PagedProblem problem =
        make_problem(one_tiny_head(), random_family(seed, 12, 700),
                     {.num_layers = 1, .new_tokens_stored = false, .share_blocks = true});
    std::mt19937_64 random(seed);
    cpu::AttentionWork work;
    rows_in_tiles(problem, work, seed % 2 == 0 ? 0 : 1 + number_below(random, 500));
    for (const cpu::AttentionWork::Tile& tile : work.tiles) {
      cpu::AttentionTile kernel_tile = {};
      kernel_tile.block_size = 16;
      kernel_tile.group_size = 1;
      kernel_tile.num_rows = tile.num_rows;
      kernel_tile.rows = work.rows.data() + tile.first_row;
      std::vector<visits::Visit> target(static_cast<std::size_t>(tile.num_rows * visits::kMostVisitsPerRow));
      std::vector<std::int32_t> next;
      for (std::int32_t r = 0; r < tile.num_rows; ++r) next.push_back(kernel_tile.rows[r].first);
      for (std::int32_t range = tile.first_range; range < tile.first_range + tile.num_ranges; ++range) {
        const visits::Visits list = visits::plan_visits(kernel_tile, range, target.data());
        ASSERT_LE(list.size, static_cast<int>(target.size()));
        for (int i = 0; i < list.size; ++i) {
          const visits::Visit& visit = list.start[i];
          const std::int32_t end = visit.first_position + visit.count;
          ASSERT_EQ(visit.first_position % visits::kLanes, 0);
          for (std::int32_t r = visit.first_query; r < visit.end_query; ++r) {
            const cpu::AttentionRow& row = kernel_tile.rows[r];
            if (visit.is_whole) {
              ASSERT_GE(visit.first_position, row.first);
              ASSERT_LE(end, row.position + 1);
            }
            if (end <= row.first || visit.first_position > row.position) continue;  // masked
            std::int32_t& reached = next[static_cast<std::size_t>(r)];
            ASSERT_EQ(reached, std::max(visit.first_position, row.first));
            for (; reached < std::min(end, row.position + 1); ++reached)
              ASSERT_EQ(visit.block_table[reached / 16], row.block_table[reached / 16]);
          }
        }
      }
      for (std::int32_t r = 0; r < tile.num_rows; ++r)
        ASSERT_EQ(next[static_cast<std::size_t>(r)], kernel_tile.rows[r].position + 1);
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
