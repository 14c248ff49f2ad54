// What the window costs by itself: while nothing happens, with a long chat, with a large pool.

#include <imgui.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "tests/bench/window/bar_window.h"
#include "tests/bench/window/bars.h"
#include "ui/views.h"

namespace octavo::bench {
namespace {

constexpr std::size_t kNumIdleChats = 50;
constexpr double kQuietSeconds = 6, kIdleSeconds = 20;
constexpr std::int32_t kLargePool = 65'536;
constexpr int kNumFrames = 60;

// Milliseconds of this thread until the draw lists of a frame are finished, and everything before them.
double frame_ms(BarWindow& window, const std::function<void()>& before) {
  const double begin = thread_seconds();
  before();
  window.application().window().wait_events(0);
  window.application().update();
  window.application().draw_frame();
  return (thread_seconds() - begin) * 1e3;
}

std::vector<double> frames_ms(BarWindow& window, int count, const std::function<void(int)>& before) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(frame_ms(window, [&] { before(i); }));
  return times;
}

// A pool of which two thirds are held, every block by someone.
ui::UiState large_pool(const ui::UiState& ready) {
  ui::UiState state = ready;
  auto snapshot = std::make_shared<KvSnapshot>();
  snapshot->totals.block_size = 16;
  snapshot->totals.num_blocks = kLargePool;
  for (std::int32_t i = 0; i < kLargePool; ++i) {
    snapshot->blocks.push_back({.state = static_cast<BlockState>(i % 3),
                                .ref_count = 1 + i % 2,
                                .filled = 1 + i % 16,
                                .first_owner = SequenceId{1}});
  }
  state.memory_workspace.pool.num_blocks = kLargePool;
  state.memory_workspace.blocks.assign(static_cast<std::size_t>(kLargePool), {.owner = 0});
  state.memory_workspace.sequences = {{ChatId{1}, "one", 0}};
  state.memory_workspace.snapshot = snapshot;
  state.memory_workspace.version = 1;
  state.workspace = ui::Workspace::kMemory;
  return state;
}

}  // namespace

Rows measure_idle() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kDrawn));
  for (std::size_t i = 0; i < kNumIdleChats; ++i) window->ask("Chat " + std::to_string(i), 8);
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  window->loop_for(kQuietSeconds);
  const std::uint64_t frames = window->application().num_frames_drawn();
  const double begin = wall_seconds(), processor = process_seconds();
  window->loop_for(kIdleSeconds);
  const double seconds = wall_seconds() - begin;
  const auto drawn = static_cast<double>(window->application().num_frames_drawn() - frames);
  const double share = (process_seconds() - processor) / seconds;
  return std::vector<BarRow>{
      {"idle, 50 chats open: frames drawn a second", number(drawn / seconds, 2), "0", drawn == 0},
      {"idle, 50 chats open: of a core, whole process", number(share * 100, 2) + " %", "< 0.5 %",
       share < 0.005}};
}

Rows measure_long_chat() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut));
  std::vector<app::Chat> chats;
  chats.push_back(long_chat());
  window->controller().take_imported(std::move(chats));
  const ChatId chat = window->state().active_chat;
  window->controller().apply(ui::actions::NewChat{});
  window->loop_for(0.5);
  // With the two frames in which what was laid out first finds its place.
  double opening = frame_ms(*window, [&] { window->controller().apply(ui::actions::SelectChat{chat}); });
  for (const double ms : frames_ms(*window, 2, [](int) {})) opening += ms;
  const ui::ChatState* shown = ui::active_chat(window->state());
  if (shown == nullptr || shown->id != chat || shown->messages.size() != std::size_t{kLongChatMessages})
    return Error{ErrorCode::kInternal, "another chat than the long one is shown"};
  window->loop_for(0.5);
  const std::vector<double> scrolling = frames_ms(*window, kNumFrames, [](int i) {
    ImGui::GetIO().AddMousePosEvent(700, 400);
    ImGui::GetIO().AddMouseWheelEvent(0, i % 2 == 0 ? 9.0f : 2.0f);
  });
  const double usual = median(scrolling);
  return std::vector<BarRow>{
      {"2,000 messages, 1 M characters: opens in", number(opening, 1) + " ms", "< 100 ms", opening < 100},
      {"2,000 messages, 1 M characters: a frame while scrolling",
       number(usual, 2) + " ms (worst of 60: " + number(largest(scrolling), 2) + " ms)", "< 4 ms",
       usual < 4}};
}

Rows measure_block_map() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut));
  ui::UiState state = large_pool(window->state());
  ui::Views views;
  ui::ActionSink sink;
  const auto draw = [&] {
    const double begin = thread_seconds();
    window->application().window().wait_events(0);
    window->application().window().draw_frame([&] { views.draw(state, sink, 1.0f); });
    return (thread_seconds() - begin) * 1e3;
  };
  for (int i = 0; i < 5; ++i) draw();
  std::vector<double> resting, changing;
  for (int i = 0; i < kNumFrames; ++i) resting.push_back(draw());
  for (int i = 0; i < kNumFrames; ++i) {
    ++state.memory_workspace.version;
    for (ui::ShownBlock& block : state.memory_workspace.blocks) ++block.last_us;
    changing.push_back(draw());
  }
  return std::vector<BarRow>{{"65,536 blocks: a frame while all of them change",
                              number(median(changing), 2) + " ms", "<= 4 ms", median(changing) <= 4},
                             {"65,536 blocks: a frame while none does", number(median(resting), 2) + " ms",
                              "<= 4 ms", median(resting) <= 4}};
}

}  // namespace octavo::bench
