// The window on the real engine with the default model: skipped when its file is not there.

#include <imgui.h>

#include <algorithm>
#include <string>

#include "tests/engine/default_model.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

class RealEngineWindow : public WindowTest {
 protected:
  void open_model(std::int32_t max_tokens = 48, bool ignore_eos = false) {
    if (IsSkipped()) return;
    OCTAVO_NEEDS_DEFAULT_MODEL();
    app::Settings settings = test_settings();
    settings.sampling.temperature = 0;
    settings.sampling.max_tokens = max_tokens;
    settings.sampling.ignore_eos = ignore_eos;
    open_with(Engine::create, model::default_model_path().string(), settings);
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  bool all_idle() const {
    return std::all_of(state().chats.begin(), state().chats.end(),
                       [](const ui::ChatState& chat) { return chat.activity == ui::Activity::kIdle; });
  }
  void ask(const char* text) {
    play([text](ImGuiTestContext* context) {
      context->KeyChars(text);
      context->KeyPress(ImGuiKey_Enter);
      context->Yield(2);
    });
  }
};

TEST_F(RealEngineWindow, TypedQuestionIsAnsweredAndTheNextTurnReusesItsBlocks) {
  open_model();
  if (IsSkipped()) return;
  ask("What is the capital of Japan?");
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_NE(chat().messages[1].text.find("Tokyo"), std::string::npos) << chat().messages[1].text;
  ask("And of Spain?");
  ASSERT_TRUE(loop_until([this] { return all_idle() && chat().messages.size() == 4; }));
  EXPECT_GE(chat().messages[3].figures.num_cached_tokens.value_or(0), 16);
}

TEST_F(RealEngineWindow, TwoChatsGenerateAtOnceAndShareTheirStart) {
  open_model(/*max_tokens=*/400, /*ignore_eos=*/true);  // long enough to be seen together on a fast machine
  if (IsSkipped()) return;
  auto& controller = application_->controller();
  const std::string prompt =
      "You are a careful assistant who answers in complete sentences and never in a hurry. Say what is known "
      "and what is not.";
  controller.apply(ui::actions::ChangeSystemPrompt{chat().id, prompt});
  ask("Tell me about the sea.");
  ASSERT_TRUE(loop_until([this] {
    return chat().activity == ui::Activity::kGenerating && chat().messages.back().text.size() > 8;
  }));
  controller.apply(ui::actions::NewChat{});
  controller.apply(ui::actions::ChangeSystemPrompt{chat().id, prompt});
  controller.apply(ui::actions::SendMessage{chat().id, "Tell me about mountains."});
  bool both = false, shared = false;
  ASSERT_TRUE(loop_until([&] {
    const auto generating = std::count_if(state().chats.begin(), state().chats.end(), [](const auto& chat) {
      return chat.activity == ui::Activity::kGenerating && !chat.messages.back().text.empty();
    });
    both |= generating == 2;
    shared |= state().memory.snapshot != nullptr && state().memory.snapshot->figures.sharing_ratio > 1.0;
    return all_idle();
  }));
  EXPECT_TRUE(both);
  EXPECT_TRUE(shared);
}

}  // namespace
}  // namespace octavo::testing
