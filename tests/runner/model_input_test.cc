#include "engine/runner/model_input.h"

#include <gtest/gtest.h>

#include <utility>

namespace octavo::runner {
namespace {

using Numbers = std::vector<std::int32_t>;

Numbers numbers(std::span<const std::int32_t> values) { return {values.begin(), values.end()}; }

TEST(ModelInput, FlattensAChunkAndADecode) {
  const std::vector<TokenId> chunk = {11, 12, 13}, decode = {21};
  const std::vector<BlockId> chunk_table = {{7}, {2}}, decode_table = {{9}, {0}, {4}, {6}};
  scheduler::SchedulerOutput step;
  step.sequences.resize(2);
  step.sequences[0].start_position = 3;  // the last slot of its first block, then its second one
  step.sequences[0].token_ids = chunk;
  step.sequences[0].block_table = chunk_table;
  step.sequences[1].start_position = 10;
  step.sequences[1].token_ids = decode;
  step.sequences[1].block_table = decode_table;  // one more block than it needs
  step.block_copies = {{{3}, {5}}};
  step.swap_outs = {{.device_block = {8}, .host_block = {1}}};
  step.swap_ins = {{.device_block = {6}, .host_block = {2}}, {.device_block = {4}, .host_block = {2}}};

  ModelInput input;
  for (int repeat = 0; repeat < 2; ++repeat) {  // nothing is left of the step before
    input.assemble(step, /*block_size=*/4);
    const kernels::PagedBatch batch = input.batch();
    EXPECT_EQ(batch.num_tokens, 4);
    EXPECT_EQ(batch.num_sequences, 2);
    EXPECT_EQ(numbers(input.token_ids()), (Numbers{11, 12, 13, 21}));
    EXPECT_EQ(numbers(batch.positions), (Numbers{3, 4, 5, 10}));
    EXPECT_EQ(numbers(batch.slot_mapping), (Numbers{7 * 4 + 3, 2 * 4 + 0, 2 * 4 + 1, 4 * 4 + 2}));
    EXPECT_EQ(numbers(batch.query_start), (Numbers{0, 3, 4}));
    EXPECT_EQ(numbers(batch.context_lens), (Numbers{6, 11}));
    EXPECT_EQ(batch.max_blocks, 3);
    EXPECT_EQ(numbers(batch.block_tables), (Numbers{7, 2, 0, 9, 0, 4}));
    EXPECT_EQ(input.first_row(1), 3);
    ASSERT_EQ(input.block_copies().size(), 1u);
    EXPECT_EQ(input.block_copies()[0].source, 3);
    EXPECT_EQ(input.block_copies()[0].target, 5);
    ASSERT_EQ(input.swap_outs().size(), 1u);
    EXPECT_EQ(input.swap_outs()[0].source, 8) << "of the device pool";
    EXPECT_EQ(input.swap_outs()[0].target, 1) << "of the host pool";
    ASSERT_EQ(input.swap_ins().size(), 2u);
    EXPECT_EQ(input.swap_ins()[1].source, 2) << "of the host pool";
    EXPECT_EQ(input.swap_ins()[1].target, 4) << "of the device pool";
  }
  std::swap(step.sequences[0], step.sequences[1]);
  input.assemble(step, 4);
  EXPECT_EQ(numbers(input.batch().block_tables), (Numbers{9, 0, 4, 7, 2, 0})) << "4 stood in the last place";
  input.assemble({}, 4);
  EXPECT_EQ(input.num_tokens(), 0);
  EXPECT_TRUE(input.swap_outs().empty() && input.swap_ins().empty() && input.block_copies().empty());
  EXPECT_EQ(numbers(input.batch().query_start), (Numbers{0}));
}

}  // namespace
}  // namespace octavo::runner
