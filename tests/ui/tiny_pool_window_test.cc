// A tiny pool in the window: the question, the loads that it asks for, and the way back; with a scripted
// engine, and once with a real one that is seen to swap.

#include <imgui.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/ui/drawn_controls.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class TinyPoolWindow : public WindowTest {
 protected:
  // Engines with as many blocks as the options say. Tiny ones fail to load while `tiny_fails_`.
  void open_scripted(const app::Settings& settings = test_settings()) {
    open_with(
        [this](const EngineOptions& options, LoadProgress) -> Result<std::unique_ptr<Engine>> {
          loads_.push_back(options);
          if (tiny_fails_ && options.num_kv_blocks.value_or(1'000) < 100)
            return Error{ErrorCode::kOutOfMemory, "there is no room"};
          auto engine = std::make_unique<FakeEngine>(
              FakeEngine::Options{.num_blocks = options.num_kv_blocks.value_or(1'024),
                                  .max_model_len = options.max_model_len.value_or(8'192),
                                  .path = options.model,
                                  .first_request = 1'000 * loads_.size(),
                                  .weight_bytes = 96 << 20});
          engine->clock = clock_;
          engine_ = engine.get();
          return std::unique_ptr<Engine>(std::move(engine));
        },
        kModel, settings);
  }
  void apply(const ui::Action& action) {
    application_->controller().apply(action);
    draw_frames(2);
  }
  // As a person: the button of the Memory workspace, then the dialog's.
  void lend(const char* with = "//tiny_pool_question/**/confirm_tiny_pool") {
    apply(act::ShowWorkspace{ui::Workspace::kMemory});
    play([&](ImGuiTestContext* context) {
      context->ItemClick("**/tiny_pool");
      context->Yield(3);
      IM_CHECK(state().tiny_pool.question == ui::TinyPoolQuestion::kLend);
      IM_CHECK(misplaced_controls(context).empty());
      context->ItemClick(with);
      context->Yield(3);
    });
  }
  void give_back() {
    play([](ImGuiTestContext* context) {
      context->ItemClick("**/give_back_pool");
      context->Yield(3);
    });
  }
  bool has_pool(bool is_tiny) {
    return loop_until([&] {
      return state().tiny_pool.is_lent == is_tiny && state().model.phase == ui::ModelPhase::kReady &&
             !state().picker.loading;
    });
  }
  bool says(const std::string& words) {
    draw_frames(2);
    return is_said(words);
  }

  static constexpr const char* kModel = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  std::vector<EngineOptions> loads_;
  bool tiny_fails_ = false;
};

TEST_F(TinyPoolWindow, IsLentByTwoClicksShownPlainlyAndGivenBackByOne) {
  if (IsSkipped()) return;
  open_scripted();
  EXPECT_FALSE(says("A tiny pool is lent"));
  lend();
  ASSERT_TRUE(has_pool(true));
  ASSERT_EQ(loads_.size(), 2u);
  EXPECT_EQ(loads_[1].num_kv_blocks, 40);
  EXPECT_EQ(loads_[1].preemption_mode, PreemptionPolicy::kSwap);
  EXPECT_EQ(state().model.num_blocks, 40);
  EXPECT_TRUE(says("A tiny pool is lent: 40 blocks of 16 tokens."));
  apply(act::ShowWorkspace{ui::Workspace::kChat});
  EXPECT_TRUE(says("tiny · 40")) << "also beside the chats";
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  give_back();
  ASSERT_TRUE(has_pool(false));
  ASSERT_EQ(loads_.size(), 3u);
  EXPECT_FALSE(loads_[2].num_kv_blocks);
  EXPECT_FALSE(loads_[2].max_model_len);
  EXPECT_EQ(loads_[2].preemption_mode, loads_[0].preemption_mode);
  EXPECT_EQ(loads_[2].block_size, loads_[0].block_size);
  EXPECT_FALSE(says("A tiny pool is lent"));
}

TEST_F(TinyPoolWindow, AnswersInProgressFinishInTheirPoolOrAreStoppedAsAsked) {
  if (IsSkipped()) return;
  open_scripted();
  for (const bool stops : {false, true}) {
    apply(act::NewChat{});
    engine_->answers = {"one two three four five six seven eight nine ten"};
    engine_->steps_allowed = 2;
    apply(act::SendMessage{chat().id, "count"});
    const ChatId id = chat().id;
    ASSERT_TRUE(loop_until([&] { return !chat().messages.empty() && chat().messages.back().text != ""; }));
    FakeEngine* before = engine_;
    apply(act::ShowWorkspace{ui::Workspace::kMemory});
    if (!stops) {
      lend();
    } else {
      give_back();
      EXPECT_TRUE(says("1 answer in progress finishes in the present pool unless you stop it."));
      play([](ImGuiTestContext* context) {
        context->ItemClick("//tiny_pool_question/**/stop_for_tiny_pool");
        context->Yield(3);
      });
    }
    ASSERT_TRUE(has_pool(!stops));
    if (!stops) before->steps_allowed = -1;
    ASSERT_TRUE(loop_until([&] { return ui::find_chat(state(), id)->activity == ui::Activity::kIdle; }));
    const std::string& text = ui::find_chat(state(), id)->messages.back().text;
    EXPECT_EQ(text == "one two three four five six seven eight nine ten", !stops) << text;
  }
}

TEST_F(TinyPoolWindow, AnotherModelEndsTheLoanAndNothingOfItIsSaved) {
  if (IsSkipped()) return;
  open_scripted();
  lend();
  ASSERT_TRUE(has_pool(true));
  apply(act::LoadModelFile{"/models/Other.gguf"});
  ASSERT_TRUE(has_pool(false));
  EXPECT_EQ(loads_.back().model, "/models/Other.gguf");
  EXPECT_FALSE(loads_.back().num_kv_blocks);
  EXPECT_FALSE(loads_.back().max_model_len);
  lend();
  ASSERT_TRUE(has_pool(true));
  EXPECT_EQ(loads_.back().model, "/models/Other.gguf");
  ASSERT_NE(loads_.back().num_kv_blocks.value_or(0), 0);
}

TEST_F(TinyPoolWindow, AWindowThatIsClosedWithATinyPoolOpensWithItsOwn) {
  if (IsSkipped()) return;
  open_scripted();
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  apply(act::LendTinyPool{act::RunningAnswers::kStop});
  ASSERT_TRUE(loop_until([this] {
    application_->draw_frame();
    return state().tiny_pool.is_lent;
  }));
  const auto settings = [this] {
    std::ifstream file(folder_ / "settings.json");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  application_.reset();
  EXPECT_NE(settings().find(kModel), std::string::npos) << "the model is remembered";
  EXPECT_EQ(settings().find("blocks"), std::string::npos);
  open_scripted();
  EXPECT_FALSE(state().tiny_pool.is_lent);
  EXPECT_FALSE(loads_.back().num_kv_blocks);
}

TEST_F(TinyPoolWindow, ATinyPoolThatCannotBeLoadedLeavesTheOwn) {
  if (IsSkipped()) return;
  open_scripted();
  tiny_fails_ = true;
  lend();
  ASSERT_TRUE(loop_until([this] { return loads_.size() == 3 && !state().picker.loading; }));
  EXPECT_FALSE(loads_.back().num_kv_blocks) << "what there was before is loaded again";
  EXPECT_FALSE(state().tiny_pool.is_lent);
  EXPECT_EQ(state().model.num_blocks, 1'024);
  ASSERT_TRUE(state().banner);
  EXPECT_NE(state().banner->text.find("there is no room"), std::string::npos);
}

TEST_F(TinyPoolWindow, AllOfTheMemoryWorkspaceIsReachableInASmallWindow) {
  if (IsSkipped()) return;
  app::Settings small = test_settings();
  small.width = 900;
  small.height = 600;
  open_scripted(small);
  lend();
  ASSERT_TRUE(has_pool(true));
  EXPECT_TRUE(says("weights")) << "the memory of the machine";
  EXPECT_TRUE(says("can be allocated.")) << "the sentence to its end";
  EXPECT_TRUE(says("Give the pool back"));
  play([](ImGuiTestContext* context) {
    for (const std::string& problem : misplaced_controls(context)) IM_ERRORF("%s", problem.c_str());
    context->KeyPress(ImGuiKey_M);
    context->Yield(3);
  });
  for (const ui::HealthFigure& figure : state().memory_workspace.health)
    EXPECT_TRUE(says(figure.label)) << figure.id;
  play([](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_M);
    context->Yield(3);
    const ImRect button = context->ItemInfo("**/export").RectFull;
    context->ItemClick("**/export");
    context->Yield(2);
    const ImGuiTestItemInfo first = context->ItemInfo("//$FOCUSED/json");
    IM_CHECK_NE(first.ID, 0u);
    IM_CHECK_GE(first.RectFull.Min.y, button.Max.y);  // it covers none of the buttons
    context->KeyPress(ImGuiKey_Escape);
  });
  write_screenshot("tiny-pool-900x600");
}

TEST_F(TinyPoolWindow, TwoChatsOfTheRealEngineAreSeenToSwap) {
  if (IsSkipped()) return;
  OCTAVO_NEEDS_DEFAULT_MODEL();
  open_with(Engine::create, model::default_model_path().string(), large_settings());
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  const std::int32_t own_blocks = state().model.num_blocks;
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/tiny_pool");
    context->Yield(3);
  });
  write_screenshot("tiny-pool-question");
  play([](ImGuiTestContext* context) {
    context->ItemClick("//tiny_pool_question/**/confirm_tiny_pool");
    context->Yield(3);
  });
  ASSERT_TRUE(has_pool(true));
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/start_long_chats");
    context->Yield(3);
  });
  const auto is_swapped = [this] {
    return std::any_of(state().chats.begin(), state().chats.end(),
                       [](const ui::ChatState& chat) { return chat.activity == ui::Activity::kSwapped; });
  };
  ASSERT_TRUE(loop_until([&] { return is_swapped() && says("was swapped out"); }));
  write_screenshot("tiny-pool-swapped");
  ASSERT_TRUE(loop_until([&] { return !application_->controller().busy(); }));
  EXPECT_TRUE(says("was swapped in"));
  const std::size_t num_ended = static_cast<std::size_t>(
      std::count_if(state().chats.begin(), state().chats.end(), [](const ui::ChatState& chat) {
        return chat.messages.size() == 2 && !chat.messages.back().text.empty();
      }));
  EXPECT_EQ(num_ended, 2u);
  give_back();
  ASSERT_TRUE(has_pool(false));
  EXPECT_EQ(state().model.num_blocks, own_blocks);
}

}  // namespace
}  // namespace octavo::testing
