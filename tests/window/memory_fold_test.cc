// The engine's reports about memory, folded into what is drawn.

#include "app/window/memory/memory_fold.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace octavo::app {
namespace {

ui::UiState two_chats() {
  ui::UiState state;
  for (const std::uint64_t id : {1u, 2u}) {
    ui::ChatState chat;
    chat.id = ChatId{id};
    chat.title = "chat " + std::to_string(id);
    chat.colour_index = static_cast<std::uint32_t>(id);
    state.chats.push_back(chat);
  }
  return state;
}

// Sequence n belongs to request n and chat n.
std::optional<ChatId> same_number(RequestId id) { return ChatId{id.value}; }

// Without the blocks of the pool, as while nobody shows them.
KvSnapshot snapshot_of(std::vector<std::vector<int>> tables) {
  KvSnapshot snapshot;
  snapshot.totals.block_size = 16;
  snapshot.totals.num_blocks = 8;
  std::uint64_t sequence = 1;
  for (const auto& table : tables) {
    SequenceSnapshot row{
        .sequence_id = SequenceId{sequence}, .request_id = RequestId{sequence}, .block_table = {}};
    for (const int block : table) row.block_table.push_back(BlockId{block});
    row.num_computed_tokens = 16 * static_cast<std::int32_t>(table.size());
    if (!table.empty()) snapshot.sequences.push_back(row);
    ++sequence;
  }
  return snapshot;
}

void fold(MemoryFold& memory, KvSnapshot snapshot, ui::UiState& state) {
  memory.learn_sequences(snapshot, same_number);
  memory.fold_snapshot(std::make_shared<KvSnapshot>(std::move(snapshot)), state);
}

Engine::Trace trace_of(std::vector<BlockEvent> events) {
  Engine::Trace trace;
  trace.block_events = std::move(events);
  return trace;
}

TEST(MemoryFold, SharedBlocksAreCountedForEveryChatThatNamesThem) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  fold(memory, snapshot_of({{0, 1, 2}, {0, 1, 3, 4}}), state);
  EXPECT_EQ(state.chats[0].memory.num_shared, 2);
  EXPECT_EQ(state.chats[0].memory.num_sharing_chats, 1);
  ASSERT_EQ(state.chats[1].memory.blocks.size(), 4u);
  EXPECT_TRUE(state.chats[1].memory.blocks[1].shared);
  EXPECT_FALSE(state.chats[1].memory.blocks[2].shared);
}

// While a chat is swapped out its blocks stand on the host; what it left in the
// cache of the device is still told.
TEST(MemoryFold, SwappedChatHasItsBlocksOnTheHost) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  fold(memory, snapshot_of({{0, 1, 2}, {3}}), state);
  EXPECT_TRUE(state.chats[0].memory.host_blocks.empty());
  KvSnapshot swapped = snapshot_of({{}, {3}});
  swapped.sequences.insert(swapped.sequences.begin(), {.sequence_id = SequenceId{1},
                                                       .request_id = RequestId{1},
                                                       .state = SequenceState::kSwapped,
                                                       .block_table = {BlockId{5}, BlockId{6}, BlockId{7}}});
  swapped.step = 1;
  memory.fold_trace(trace_of({{.step = 1, .sequence = 1, .block = 2, .kind = BlockEventKind::kFree},
                              {.step = 1, .sequence = 2, .block = 0, .kind = BlockEventKind::kEvict}}));
  fold(memory, swapped, state);
  EXPECT_EQ(state.chats[0].memory.host_blocks, (std::vector<BlockId>{BlockId{5}, BlockId{6}, BlockId{7}}));
  ASSERT_EQ(state.chats[0].memory.blocks.size(), 1u);
  EXPECT_EQ(state.chats[0].memory.blocks[0].block_id, BlockId{1});
  EXPECT_TRUE(state.chats[1].memory.host_blocks.empty());
  fold(memory, snapshot_of({{4, 1, 2}, {3}}), state);
  EXPECT_TRUE(state.chats[0].memory.host_blocks.empty()) << "it came back";
  EXPECT_EQ(state.chats[0].memory.blocks.size(), 3u);
}

TEST(MemoryFold, EndedChatKeepsCachedBlocksUntilTheirContentsGo) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  fold(memory, snapshot_of({{0, 1, 2}, {}}), state);
  KvSnapshot ended = snapshot_of({{}, {}});
  ended.step = 1;
  fold(memory, ended, state);
  ASSERT_EQ(state.chats[0].memory.blocks.size(), 3u);
  EXPECT_TRUE(state.chats[0].memory.blocks[0].cached);

  memory.fold_trace(trace_of({{.step = 2, .sequence = 0, .block = 1, .kind = BlockEventKind::kEvict},
                              {.step = 2, .sequence = 2, .block = 1, .kind = BlockEventKind::kAlloc}}));
  KvSnapshot reused = ended;
  reused.step = 2;
  fold(memory, reused, state);
  ASSERT_EQ(state.chats[0].memory.blocks.size(), 2u);
  EXPECT_EQ(state.chats[0].memory.blocks[1].block_id, BlockId{2});
}

TEST(MemoryFold, BlockTakenAfterTheLastSnapshotBelongsToItsChat) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  fold(memory, snapshot_of({{0}, {}}), state);
  memory.fold_trace(trace_of({{.step = 1, .sequence = 1, .block = 6, .kind = BlockEventKind::kAlloc}}));
  KvSnapshot ended = snapshot_of({{}, {}});
  ended.step = 2;
  fold(memory, ended, state);
  ASSERT_EQ(state.chats[0].memory.blocks.size(), 2u);
  EXPECT_EQ(state.chats[0].memory.blocks[1].block_id, BlockId{6});
}

TEST(MemoryFold, BlocksSayHowFarTheyAreFilledAndWhetherSomebodyUsesThem) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  KvSnapshot running = snapshot_of({{0, 1}, {}});
  running.sequences[0].num_computed_tokens = 20;
  fold(memory, running, state);
  const auto& blocks = state.chats[0].memory.blocks;
  EXPECT_EQ(blocks[0].filled, 16);
  EXPECT_EQ(blocks[1].filled, 4);
  EXPECT_TRUE(blocks[1].being_written);
  EXPECT_FALSE(blocks[1].cached);
  memory.fold_trace(
      trace_of({{.step = 1, .sequence = 1, .block = 1, .aux = 9, .kind = BlockEventKind::kFill}}));
  KvSnapshot ended = snapshot_of({{}, {0}});
  ended.step = 1;
  fold(memory, ended, state);
  EXPECT_EQ(blocks[1].filled, 9) << "its last tokens came after the snapshot that had its table";
  EXPECT_TRUE(blocks[1].cached);
  EXPECT_FALSE(blocks[1].being_written);
  EXPECT_FALSE(blocks[0].cached) << "another chat uses it";
}

// Events are read after the snapshot, and may know more.
TEST(MemoryFold, WhatWasGivenUpAfterTheSnapshotIsNotShown) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  memory.fold_trace(trace_of({{.step = 1, .sequence = 1, .block = 0, .kind = BlockEventKind::kFree},
                              {.step = 2, .sequence = 1, .block = 1, .kind = BlockEventKind::kFree}}));
  KvSnapshot running = snapshot_of({{0, 1}, {}});
  running.step = 1;
  fold(memory, running, state);
  ASSERT_EQ(state.chats[0].memory.blocks.size(), 1u);
  EXPECT_EQ(state.chats[0].memory.blocks[0].block_id, BlockId{0}) << "the snapshot has it again";
}

TEST(MemoryFold, LostEventsMakeWhatIdleChatsHoldUnknown) {
  MemoryFold memory;
  ui::UiState state = two_chats();
  fold(memory, snapshot_of({{0}, {}}), state);
  KvSnapshot ended = snapshot_of({{}, {}});
  fold(memory, ended, state);
  Engine::Trace lossy;
  lossy.num_lost = 5;
  memory.fold_trace(lossy);
  fold(memory, ended, state);
  EXPECT_TRUE(state.chats[0].memory.blocks.empty());
}

}  // namespace
}  // namespace octavo::app
