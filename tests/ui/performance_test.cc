// What a frame costs on the UI's side: from NewFrame to Render, without the graphics driver. The bars are
// design/desktop.md's; sanitizers and busy machines make them softer here, and the measured figures are
// printed.

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "app/window/chat/branch_tree.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

class Performance : public WindowTest {
 protected:
  void open_large() {
    app::Settings large = test_settings();
    large.width = 1600;
    large.height = 1000;
    open({}, large);
  }
};

// Median milliseconds of building a frame.
double frame_ms(app::Application& application, ui::Views& views, const ui::UiState& state, int count,
                const std::function<void(int)>& before = {}) {
  std::vector<double> times;
  ui::ActionSink sink;
  for (int i = 0; i < count; ++i) {
    if (before) before(i);
    application.window().wait_events(0);
    std::chrono::steady_clock::time_point begin;
    application.window().draw_frame([&] {
      begin = std::chrono::steady_clock::now();
      views.draw(state, sink, 1.0f);
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    });
    (void)begin;
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// How high everything in the transcript is, pixels: that it was all laid out.
float transcript_height() {
  float height = 0;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (std::string(window->Name).find("transcript") != std::string::npos)
      height = std::max(height, window->ContentSize.y);
  }
  return height;
}

ui::UiState long_chat(const ui::UiState& ready, int num_messages, std::size_t bytes_each) {
  ui::UiState state = ready;
  const std::string paragraph =
      "With **blocks of sixteen tokens**, memory is taken one block at a time, and `block tables` say "
      "where.\n\n";
  ui::ChatState& chat = state.chats.front();
  chat.messages.clear();
  for (int i = 0; i < num_messages; ++i) {
    ui::MessageState message;
    message.id = {static_cast<std::uint64_t>(i) + 1};
    message.role = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    while (message.text.size() < bytes_each) message.text += paragraph;
    chat.messages.push_back(std::move(message));
  }
  return state;
}

TEST_F(Performance, TwoThousandMessagesScrollSmoothly) {
  open_large();
  ui::Views views;
  const ui::UiState state = long_chat(this->state(), 2000, 500);
  const double opening = frame_ms(*application_, views, state, 1);
  const double scrolling = frame_ms(*application_, views, state, 20, [](int i) {
    ImGui::GetIO().AddMousePosEvent(700, 400);
    ImGui::GetIO().AddMouseWheelEvent(0, i % 2 == 0 ? 3.0f : 1.0f);
  });
  std::printf(
      "[ measured ] 2,000 messages, 1 M characters: opens in %.1f ms, %.2f ms a frame while scrolling\n",
      opening, scrolling);
  EXPECT_GT(transcript_height(), 100'000);
  RecordProperty("opening_ms", std::to_string(opening));
  RecordProperty("scrolling_ms", std::to_string(scrolling));
  EXPECT_LT(opening, 1000);
  EXPECT_LT(scrolling, 40);
}

TEST_F(Performance, TenThousandMessagesScrollSmoothly) {
  open_large();
  ui::Views views;
  const ui::UiState state = long_chat(this->state(), 10'000, 500);
  const double opening = frame_ms(*application_, views, state, 1);
  const double scrolling = frame_ms(*application_, views, state, 60, [](int i) {
    ImGui::GetIO().AddMousePosEvent(700, 400);
    ImGui::GetIO().AddMouseWheelEvent(0, i % 2 == 0 ? 30.0f : 10.0f);
  });
  std::printf(
      "[ measured ] 10,000 messages, 5 M characters: opens in %.1f ms, %.2f ms a frame while scrolling\n",
      opening, scrolling);
  EXPECT_LT(opening, 1000);
  EXPECT_LT(scrolling, 40);
}

// A chat in which every fourth message was asked again: two and a half thousand branches, one below the
// other.
app::Chat branching_chat(int num_messages) {
  app::Chat chat;
  MessageId leaf = app::kRootMessage;
  for (int i = 0; i < num_messages; ++i) {
    const Role role = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    const MessageId added =
        chat.append(leaf, role, "Message " + std::to_string(i) + " says something about blocks.");
    if (i % 4 != 3) leaf = added;
  }
  return chat;
}

TEST_F(Performance, TheTreeOfTenThousandMessagesIsDrawnQuickly) {
  open_large();
  ui::Views views;
  ui::UiState state = this->state();
  const app::Chat chat = branching_chat(10'000);
  const auto begin = std::chrono::steady_clock::now();
  state.desktop.tree = app::branch_tree(chat, state.active_chat);
  const double building =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  state.desktop.tree_open = true;
  ASSERT_EQ(state.desktop.tree->messages.size(), 10'000u);
  frame_ms(*application_, views, state, 3);
  const double drawing = frame_ms(*application_, views, state, 30, [](int i) {
    ImGui::GetIO().AddMousePosEvent(1400, 500);
    ImGui::GetIO().AddMouseWheelEvent(0, i % 2 == 0 ? 30.0f : -10.0f);
  });
  std::printf("[ measured ] tree of 10,000 messages: built in %.1f ms, %.2f ms a frame\n", building, drawing);
  EXPECT_LT(building, 400);
  EXPECT_LT(drawing, 40);
}

TEST_F(Performance, AMessageOfOneLineOfAMegabyteScrollsSmoothly) {
  open_large();
  ui::Views views;
  ui::UiState state = long_chat(this->state(), 2, 100);
  state.chats.front().messages.back().text = std::string(1 << 20, 'w');
  const double opening = frame_ms(*application_, views, state, 1);
  const double scrolling = frame_ms(*application_, views, state, 20, [](int) {
    ImGui::GetIO().AddMousePosEvent(700, 400);
    ImGui::GetIO().AddMouseWheelEvent(0, 3.0f);
  });
  std::printf("[ measured ] a line of 1 MB: opens in %.1f ms, %.2f ms a frame while scrolling\n", opening,
              scrolling);
  EXPECT_LT(opening, 1000);
  EXPECT_LT(scrolling, 40);
}

TEST_F(Performance, StreamingAnswerCostsOnlyItsOpenEnd) {
  open_large();
  ui::Views views;
  ui::UiState state = long_chat(this->state(), 200, 500);
  ui::MessageState& last = state.chats.front().messages.back();
  last.streaming = true;
  while (last.text.size() < 100'000)
    last.text += "Another paragraph of the answer that is already closed.\n\n";
  frame_ms(*application_, views, state, 2);
  const double streaming = frame_ms(*application_, views, state, 20, [&](int) { last.text += "word "; });
  std::printf("[ measured ] streaming into 100,000 characters: %.2f ms a frame\n", streaming);
  EXPECT_LT(streaming, 40);
}

TEST_F(Performance, BlockMapsAreDrawnQuickly) {
  open_large();
  for (const int num_blocks : {4'096, 65'536}) {
    ui::Views views;
    ui::UiState state = this->state();
    auto snapshot = std::make_shared<KvSnapshot>();
    snapshot->totals.block_size = 16;
    snapshot->totals.num_blocks = num_blocks;
    for (int i = 0; i < num_blocks; ++i) {
      snapshot->blocks.push_back({.state = static_cast<BlockState>(i % 3),
                                  .ref_count = 1 + i % 2,
                                  .filled = 1 + i % 16,
                                  .first_owner = SequenceId{1}});
    }
    state.memory_workspace.pool.num_blocks = num_blocks;
    state.memory_workspace.blocks.assign(static_cast<std::size_t>(num_blocks), {.owner = 0});
    state.memory_workspace.sequences = {{ChatId{1}, "one", 0}};
    state.memory_workspace.snapshot = snapshot;
    state.memory_workspace.version = 1;
    state.workspace = ui::Workspace::kMemory;
    const double drawing = frame_ms(*application_, views, state, 10);
    // Every block has just changed, so that each one flashes.
    const double changing = frame_ms(*application_, views, state, 10, [&](int) {
      ++state.memory_workspace.version;
      for (ui::ShownBlock& block : state.memory_workspace.blocks) ++block.last_us;
    });
    std::printf("[ measured ] %d blocks: %.2f ms a frame, %.2f ms while all of them change\n", num_blocks,
                drawing, changing);
    EXPECT_LT(drawing, 60) << num_blocks;
    EXPECT_LT(changing, 60) << num_blocks;
  }
}

}  // namespace
}  // namespace octavo::testing
