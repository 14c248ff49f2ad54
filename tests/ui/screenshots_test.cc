// Pictures of both workspaces for people to look at, beside the design's: tests/output/*.png.

#include <imgui.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using Screenshots = WindowTest;

constexpr const char* kAnswer =
    "Because nobody knows how long an answer will become. A single buffer must be as long as the longest "
    "answer that could "
    "ever come, and most of it stays empty for the whole chat.\n\n"
    "With **blocks of sixteen tokens**, memory is taken one block at a time:\n\n"
    "```\nlogical    0   1   2   3\n           \xe2\x86\x93   \xe2\x86\x93   \xe2\x86\x93   "
    "\xe2\x86\x93\nphysical  17   4  92  31   # anywhere in the pool\n```\n\n"
    "- Two chats that begin alike can point to the same blocks.\n"
    "- Only when one of them writes into a shared block is a `copy` made.\n\n"
    "So the waste of a chat is less than one block, and a long system prompt is kept once for all chats that "
    "begin with it. ";

std::string system_prompt() {
  std::string text = "You are a patient teacher who explains one thing at a time. ";
  while (text.size() < 2400) text += "Use plain words and short sentences, and say what a figure means. ";
  return text;
}

class Scene {
 public:
  Scene(app::Application& application, FakeEngine& engine, ManualClock& clock)
      : application_(application), engine_(engine), clock_(clock) {}

  ChatId chat(const std::string& question, const std::string& answer, const std::string& prompt = {}) {
    apply(ui::actions::NewChat{});
    const ChatId id = application_.controller().state().active_chat;
    if (!prompt.empty()) apply(ui::actions::ChangeSystemPrompt{id, prompt});
    engine_.answers.push_back(answer);
    const std::size_t num_asked = engine_.requests().size();
    apply(ui::actions::SendMessage{id, question});
    // It is planned on another thread before it is asked; the picture is the same however long that takes.
    const std::int64_t steps_allowed = std::exchange(engine_.steps_allowed, 0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (engine_.requests().size() == num_asked && std::chrono::steady_clock::now() < end) {
      application_.update();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(engine_.requests().size(), num_asked + 1) << question;
    engine_.steps_allowed = steps_allowed;
    return id;
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      clock_.advance_us(12'000 + 3'000 * static_cast<std::int64_t>(engine_.num_active()));
      application_.update();
    }
  }
  void apply(const ui::Action& action) { application_.controller().apply(action); }

 private:
  app::Application& application_;
  FakeEngine& engine_;
  ManualClock& clock_;
};

// Several chats as after a few minutes of use; the one about paging is shown while it is answered.
void play_scene(app::Application& application, FakeEngine& engine, ManualClock& clock) {
  Scene scene(application, engine, clock);
  const std::string letter(2600, 'l');
  scene.chat("Letter to the landlord", letter);
  scene.steps(670);
  scene.chat("Names for a cat", "Mimi, Minka, Felix, Moritz and Luzie are all good names for a cat.");
  scene.steps(40);
  std::string poem;
  for (int i = 0; i < 400; ++i) poem += "Rain on the roof, line " + std::to_string(i) + "\n";
  scene.chat("Poems about rain", poem, system_prompt());
  scene.steps(160);
  scene.chat("Trip to Lisbon", poem, system_prompt());
  scene.steps(120);
  scene.chat("SQL for the report", poem);
  scene.steps(220);
  const ChatId shown =
      scene.chat("Why does a chat program keep keys and values in blocks instead of one long buffer?",
                 std::string(kAnswer) + poem, system_prompt());
  scene.apply(ui::actions::RenameChat{shown, "Paging, explained"});
  scene.steps(static_cast<int>(std::string(kAnswer).size() / 4));
  engine.steps_allowed = 0;
  scene.steps(2);
}

TEST_F(Screenshots, ChatAndMemoryInBothThemesAndTwoSizes) {
  ManualClock clock;
  clock_ = &clock;
  open({}, large_settings());
  play_scene(*application_, *engine_, clock);
  auto& controller = application_->controller();
  in_every_look([&](const std::string& look) {
    controller.apply(ui::actions::ShowWorkspace{ui::Workspace::kChat});
    write_screenshot("chat-" + look);
    controller.apply(ui::actions::ShowSampling{true});
    write_screenshot("sampling-" + look);
    controller.apply(ui::actions::ShowSampling{false});
    controller.apply(ui::actions::ShowSettings{true});
    write_screenshot("settings-" + look);
    controller.apply(ui::actions::ShowSettings{false});
    draw_frames(2);
    controller.apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
    write_screenshot("memory-" + look);
  });
  EXPECT_EQ(state().chats.size(), 6u);
  application_.reset();  // it reads the clock
}

}  // namespace
}  // namespace octavo::testing
