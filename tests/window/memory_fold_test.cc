// What happens to blocks, folded into what a chat shows of it. (memory_truth_test.cc compares it with the
// engine.)

#include "app/window/memory/memory_fold.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace octavo::app {
namespace {

constexpr metrics::PoolShape kShape = {.block_size = 16, .num_blocks = 8, .num_host_blocks = 4};

BlockEvent event_of(BlockEventKind kind, std::uint64_t sequence, std::int32_t block, std::int32_t aux = 0) {
  return {.sequence = sequence, .block = block, .aux = aux, .kind = kind};
}

// Chat n asks as sequence n.
class MemoryFoldTest : public ::testing::Test {
 protected:
  MemoryFoldTest() {
    for (const std::uint64_t id : {1u, 2u}) {
      ui::ChatState chat;
      chat.id = ChatId{id};
      state_.chats.push_back(chat);
      memory_.learn(SequenceId{id}, chat.id);
    }
    recorder_.record(std::nullopt, {});
  }

  // The blocks of a sequence, full and findable but for the last, which has `filled` slots.
  void begin(std::uint64_t sequence, const std::vector<std::int32_t>& blocks, std::int32_t filled = 16) {
    std::vector<BlockEvent> events;
    for (const std::int32_t block : blocks) {
      const bool is_last = block == blocks.back();
      events.push_back(event_of(BlockEventKind::kAlloc, sequence, block));
      events.push_back(event_of(BlockEventKind::kFill, sequence, block, is_last ? filled : 16));
      events.push_back(event_of(BlockEventKind::kSeal, sequence, block));
    }
    happen(std::move(events));
  }
  void end(std::uint64_t sequence, const std::vector<std::int32_t>& blocks) {
    std::vector<BlockEvent> events;
    for (const std::int32_t block : blocks) {
      const auto& now = *moment_;
      events.push_back(
          event_of(BlockEventKind::kUnref, sequence, block, now.state.block(BlockId{block}).ref_count - 1));
    }
    happen(std::move(events));
  }
  void happen(std::vector<BlockEvent> events) {
    recorder_.record(std::nullopt, events);
    metrics::Trace trace;
    trace.block_events = std::move(events);
    memory_.fold(trace);
    show();
  }
  void show() {
    const Result<void> moved = recorder_.move_to(moment_, recorder_.next_event_mark());
    ASSERT_TRUE(moved) << moved.error().message;
    memory_.show(*moment_, state_);
  }
  std::vector<std::int32_t> blocks_of(std::size_t chat) const {
    std::vector<std::int32_t> ids;
    for (const ui::ChatBlock& block : state_.chats[chat].memory.blocks) ids.push_back(block.block_id.value);
    return ids;
  }
  const ui::ChatMemory& memory_of(std::size_t chat) const { return state_.chats[chat].memory; }

  metrics::StepRecorder recorder_{kShape};
  std::optional<metrics::PoolMoment> moment_;
  MemoryFold memory_;
  ui::UiState state_;
};

using Ids = std::vector<std::int32_t>;

TEST_F(MemoryFoldTest, SharedBlocksAreCountedForEveryChatThatNamesThem) {
  begin(1, {0, 1, 2});
  happen({event_of(BlockEventKind::kHit, 2, 0, 2), event_of(BlockEventKind::kHit, 2, 1, 2)});
  begin(2, {3});
  EXPECT_EQ(memory_of(0).num_shared, 2);
  EXPECT_EQ(memory_of(0).num_sharing_chats, 1);
  EXPECT_EQ(blocks_of(1), (Ids{0, 1, 3}));
  EXPECT_TRUE(memory_of(1).blocks[1].shared);
  EXPECT_FALSE(memory_of(1).blocks[2].shared);
}

// While a chat is swapped out its blocks stand on the host; what it left in the cache of the device is still
// told, until somebody else has it: then nothing is shared.
TEST_F(MemoryFoldTest, ASwappedChatSharesNothingWithWhoTakesItsBlocks) {
  begin(1, {0, 1});
  happen({event_of(BlockEventKind::kPreempt, 1, -1, 1), event_of(BlockEventKind::kSwapOut, 1, 0, 0),
          event_of(BlockEventKind::kSwapOut, 1, 1, 1), event_of(BlockEventKind::kUnref, 1, 1),
          event_of(BlockEventKind::kUnref, 1, 0)});
  EXPECT_EQ(memory_of(0).host_blocks, (std::vector<BlockId>{BlockId{0}, BlockId{1}}));
  EXPECT_EQ(blocks_of(0), (Ids{0, 1})) << "still there";
  happen({event_of(BlockEventKind::kEvict, 2, 1)});
  begin(2, {1});
  EXPECT_EQ(blocks_of(0), Ids{0});
  EXPECT_EQ(memory_of(1).num_shared, 0);
  happen({event_of(BlockEventKind::kEvict, 1, 0), event_of(BlockEventKind::kAlloc, 1, 0),
          event_of(BlockEventKind::kAlloc, 1, 4), event_of(BlockEventKind::kSwapIn, 1, 0, 0),
          event_of(BlockEventKind::kSwapDrop, 1, -1, 0), event_of(BlockEventKind::kSwapIn, 1, 4, 1),
          event_of(BlockEventKind::kSwapDrop, 1, -1, 1), event_of(BlockEventKind::kResume, 1, -1)});
  EXPECT_TRUE(memory_of(0).host_blocks.empty()) << "it came back";
  EXPECT_EQ(blocks_of(0), (Ids{0, 4}));
  EXPECT_EQ(memory_of(0).num_shared, 0);
  EXPECT_EQ(memory_of(1).num_shared, 0);
}

TEST_F(MemoryFoldTest, EndedChatKeepsCachedBlocksUntilTheirContentsGo) {
  begin(1, {0, 1, 2}, 9);
  EXPECT_TRUE(memory_of(0).blocks[2].being_written);
  EXPECT_FALSE(memory_of(0).blocks[2].cached);
  end(1, {0, 1, 2});
  EXPECT_EQ(blocks_of(0), (Ids{0, 1, 2}));
  EXPECT_TRUE(memory_of(0).blocks[0].cached);
  EXPECT_EQ(memory_of(0).blocks[2].filled, 9);
  EXPECT_FALSE(memory_of(0).blocks[2].being_written);
  happen({event_of(BlockEventKind::kEvict, 2, 1)});
  EXPECT_EQ(blocks_of(0), (Ids{0, 2})) << "given up, and nobody has taken it yet: so it is after a reset";
  begin(2, {1});
  EXPECT_EQ(blocks_of(0), (Ids{0, 2}));
  EXPECT_EQ(blocks_of(1), Ids{1});
}

TEST_F(MemoryFoldTest, ACopyTakesThePlaceOfWhatItCopies) {
  begin(1, {0, 1});
  happen({event_of(BlockEventKind::kShare, 2, 0, 2), event_of(BlockEventKind::kShare, 2, 1, 2),
          event_of(BlockEventKind::kAlloc, 2, 5), event_of(BlockEventKind::kCopyOnWrite, 2, 1, 5),
          event_of(BlockEventKind::kUnref, 2, 1, 1)});
  EXPECT_EQ(blocks_of(1), (Ids{0, 5}));
  EXPECT_EQ(memory_of(1).num_shared, 1);
  end(2, {0, 5});
  EXPECT_EQ(blocks_of(1), (Ids{0, 5})) << "the source is not what it left";
}

// An answer may be over before the window hears whose it was.
TEST_F(MemoryFoldTest, AChatThatIsToldLateHasItsBlocks) {
  begin(7, {3});
  end(7, {3});
  EXPECT_TRUE(blocks_of(0).empty());
  memory_.learn(SequenceId{7}, ChatId{1});
  show();
  EXPECT_EQ(blocks_of(0), Ids{3});
}

TEST_F(MemoryFoldTest, TheNextTurnTakesThePlaceOfWhatTheLastOneLeft) {
  begin(1, {0, 1});
  end(1, {0, 1});
  memory_.learn(SequenceId{3}, ChatId{1});
  happen({event_of(BlockEventKind::kHit, 3, 0, 1)});
  begin(3, {4});
  EXPECT_EQ(blocks_of(0), (Ids{0, 4}));
}

TEST_F(MemoryFoldTest, LostEventsMakeWhatIdleChatsHoldUnknown) {
  begin(1, {0});
  end(1, {0});
  EXPECT_EQ(blocks_of(0), Ids{0});
  metrics::Trace lossy;
  lossy.num_lost = 5;
  memory_.fold(lossy);
  show();
  EXPECT_TRUE(blocks_of(0).empty());
}

}  // namespace
}  // namespace octavo::app
