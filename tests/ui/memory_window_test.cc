// A person in front of the Memory workspace.

#include <imgui.h>

#include <algorithm>
#include <string>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using MemoryWindow = WindowTest;

TEST_F(MemoryWindow, ChatsWithTheSameStartShareBlocks) {
  open();
  const std::string start(320, 'p');  // 80 tokens: five whole blocks
  engine_->answers = {std::string(4000, 'a'), std::string(4000, 'b')};
  play([&](ImGuiTestContext* context) {
    context->KeyChars((start + " first").c_str());
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(5);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    context->Yield(3);
    context->KeyChars((start + " second").c_str());
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(6);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    context->Yield(3);
    const KvSnapshot& snapshot = *state().memory.snapshot;
    const auto shared = std::count_if(snapshot.blocks.begin(), snapshot.blocks.end(),
                                      [](const BlockSnapshot& block) { return block.ref_count > 1; });
    IM_CHECK_GE(static_cast<int>(shared), 5);
    IM_CHECK_GT(snapshot.figures.sharing_ratio, 1.0);
    IM_CHECK_EQ(static_cast<int>(state().memory.snapshot->sequences.size()), 2);
    for (const auto& chat : state().chats) {
      IM_CHECK_GE(chat.memory.num_shared, 5);
      IM_CHECK_EQ(chat.memory.num_sharing_chats, 1);
    }
    // A click on the first cell opens its card.
    context->ItemClick("**/map", 0, ImGuiTestOpFlags_NoCheckHoveredId);
    context->Yield(2);
  });
}

TEST_F(MemoryWindow, PointerOverAChatsOwnBlockLightsItAndAClickOpensItsCard) {
  open();
  engine_->answers = {std::string(400, 'a')};
  play([this](ImGuiTestContext* context) {
    context->KeyChars("hello there");
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(12);
    IM_CHECK(!chat().memory.blocks.empty());
    const ImGuiTestItemInfo cells = context->ItemInfo("**/chat_blocks");
    context->MouseMoveToPos({cells.RectFull.Min.x + 6, cells.RectFull.Min.y + 6});
    context->Yield(2);
    IM_CHECK(state().memory_workspace.hover.block == chat().memory.blocks.front().block_id);
    context->MouseMoveToPos({cells.RectFull.Min.x + 6, cells.RectFull.Min.y - 60});
    context->Yield(3);
    IM_CHECK(!state().memory_workspace.hover.block.has_value());
    context->MouseMoveToPos({cells.RectFull.Min.x + 6, cells.RectFull.Min.y + 6});
    context->MouseClick();
    context->Yield(3);
    IM_CHECK(state().workspace == ui::Workspace::kMemory);
    IM_CHECK(state().memory_workspace.card.has_value());
    IM_CHECK(state().memory_workspace.card->block == chat().memory.blocks.front().block_id);
  });
}

TEST_F(MemoryWindow, EverySizeOfPoolIsDrawn) {
  for (const std::int32_t num_blocks : {1, 40, 4'096, 65'536}) {
    open({.num_blocks = num_blocks});
    play([this](ImGuiTestContext* context) {
      context->KeyChars("hi");
      context->KeyPress(ImGuiKey_Enter);
      context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
      context->Yield(4);
      IM_CHECK(context->ItemExists("**/map"));
    });
    TearDown();
    SetUp();
  }
}

TEST_F(MemoryWindow, IdleChatKeepsItsCachedBlocksUntilTheyAreReused) {
  open({.num_blocks = 64});
  play([this](ImGuiTestContext* context) {
    context->KeyChars(std::string(200, 'k').c_str());
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(80);
  });
  ASSERT_TRUE(loop_until(
      [this] { return chat().activity == ui::Activity::kIdle && !application_->controller().wants_poll(); }));
  const auto& blocks = chat().memory.blocks;
  ASSERT_GE(blocks.size(), 3u);
  EXPECT_TRUE(
      std::all_of(blocks.begin(), blocks.end(), [](const ui::ChatBlock& block) { return block.cached; }));
}

}  // namespace
}  // namespace octavo::testing
