// A person at the page "Paper": runs experiments, watches them, cancels, saves what was found; and pictures
// of every kind of plot.

#include <imgui.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/support/sweep.h"
#include "tests/support/tiny_models.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
using ui::ExperimentPhase;

class PaperWindow : public WindowTest {
 protected:
  const ui::EvaluationState& evaluation() const { return state().memory_workspace.evaluation; }
  std::size_t index_of(const std::string& name) const {
    const auto found = std::ranges::find(evaluation().experiments, name, &ui::ShownExperiment::name);
    return static_cast<std::size_t>(found - evaluation().experiments.begin());
  }
  const ui::ShownExperiment& experiment(const std::string& name) const {
    return evaluation().experiments[index_of(name)];
  }
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  void open_page() {
    apply(act::ShowWorkspace{ui::Workspace::kMemory});
    apply(act::ShowMemoryPage{ui::MemoryPage::kPaper});
    apply(act::ChangeExperiments{{.seed = 1, .is_quick = true}});
  }
  // From within a script: as long as it takes, up to a minute or so.
  void wait_until(ImGuiTestContext* context, const std::function<bool()>& done) const {
    for (int i = 0; i < 12'000 && !done(); ++i) context->Yield();
  }
};

TEST_F(PaperWindow, AnExperimentRunsBesideTheWindowIsCancelledAndRunsAgain) {
  open({}, large_settings());
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    context->Yield(2);
    context->KeyPress(ImGuiKey_4);
    context->Yield(2);
    context->ItemClick("**/figure-16");
    context->Yield(2);
    IM_CHECK(evaluation().chosen == index_of("figure-16"));
    context->ItemClick("**/quick_experiment");
    context->ItemInputValue("**/##experiment_seed", "23");
    context->Yield(2);
    IM_CHECK(evaluation().settings.is_quick);
    IM_CHECK_EQ(evaluation().settings.seed, 23u);
    context->ItemClick("**/run_experiment");
    context->Yield(2);
    IM_CHECK(experiment("figure-16").phase == ExperimentPhase::kRunning);
    wait_until(context, [this] { return experiment("figure-16").done > 0.1; });
    IM_CHECK(experiment("figure-16").findings != nullptr);
  });
  draw_frames(2);
  EXPECT_TRUE(is_said("request rate (requests/s)"));
  EXPECT_TRUE(is_said("normalised latency (s/token)"));
  EXPECT_TRUE(is_said("Orca (Oracle): last rate of the authors"));
  write_screenshot("paper-running");
  play([this](ImGuiTestContext* context) {
    // One thing at a time.
    context->ItemClick("**/queue");
    context->Yield(2);
    context->ItemClick("**/run_paper");
    context->Yield(2);
    IM_CHECK(!evaluation().is_queue_running);
    context->ItemClick("**/figure-16");
    context->Yield(2);
    context->ItemClick("**/cancel_experiment");
    wait_until(context, [this] { return !evaluation().is_running; });
    IM_CHECK(experiment("figure-16").phase == ExperimentPhase::kCutShort);
  });
  draw_frames(2);
  EXPECT_TRUE(is_said("cut short"));
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/figure-13");
    context->Yield(2);
    context->ItemClick("**/run_experiment");
    wait_until(context, [this] { return experiment("figure-13").phase == ExperimentPhase::kDone; });
  });
  draw_frames(2);
  EXPECT_TRUE(is_said("Ours beside the paper"));
  EXPECT_TRUE(is_said("ShareGPT, 2 requests/s: paged"));
  EXPECT_TRUE(is_said("of 8 within 15 %"));
  EXPECT_TRUE(is_said("memory manager"));
  EXPECT_TRUE(is_said("Source: Kwon et al. 2023"));
}

TEST_F(PaperWindow, ThePictureIsSavedWhereThePersonSays) {
  open({}, large_settings());
  open_page();
  apply(act::ChooseExperiment{index_of("transformers")});
  apply(act::RunExperiments{index_of("transformers")});
  ASSERT_TRUE(loop_until([this] { return experiment("transformers").phase == ExperimentPhase::kDone; }));
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/save_figures");
    context->Yield(2);
    IM_CHECK(context->ItemExists("**/save_markdown"));
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    context->ItemClick("**/save_plots");
    context->Yield(2);
    context->ItemClick("**/save_png");
    wait_until(context, [this] { return state().files.open && !state().files.reading; });
    IM_CHECK_STR_EQ(state().files.title.c_str(), "Save the plots as PNG");
    IM_CHECK(state().files.text.ends_with("transformers.png"));
  });
  apply(act::CloseFileBrowser{});
  const std::filesystem::path path = folder_ / "plots.png";
  apply(act::SavePlots{index_of("transformers"), act::PictureKind::kPng, path.string()});
  ASSERT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  EXPECT_EQ(state().banner->path, path.string());
  EXPECT_GT(std::filesystem::file_size(path), 10'000u);
}

// Reached and left by keys alone; the palette knows the page.
TEST_F(PaperWindow, ThePaletteOpensThePageAndKeysRunAnExperiment) {
  open({}, large_settings());
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    context->Yield(3);
    context->KeyChars("paper");
    context->Yield(3);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(state().workspace == ui::Workspace::kMemory);
    IM_CHECK(state().memory_workspace.page == ui::MemoryPage::kPaper);
    context->NavMoveTo("**/figure-1");
    context->NavActivate();
    context->Yield(2);
    IM_CHECK(evaluation().chosen == index_of("figure-1"));
    context->NavMoveTo("**/run_experiment");
    context->NavActivate();
    context->Yield(2);
    IM_CHECK(experiment("figure-1").phase == ExperimentPhase::kRunning);
    context->NavMoveTo("**/figure-2");  // keys move between the controls of this page
    context->KeyPress(ImGuiKey_DownArrow);
    context->KeyPress(ImGuiKey_Space);
    context->Yield(2);
    IM_CHECK(evaluation().chosen == index_of("figure-12"));
    wait_until(context, [this] { return !evaluation().is_running; });
  });
  EXPECT_EQ(experiment("figure-1").phase, ExperimentPhase::kDone);
}

TEST_F(PaperWindow, ARealExperimentSaysWhatItTakesAndRunsTheModelThatAnswers) {
  const std::filesystem::path path = folder_ / "model.gguf";
  test::make_tiny_model(test::tiny_model("qwen2"), {.context_length = 512}).write(path);
  open_with(Engine::create, path.string(), large_settings());
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  open_page();
  apply(act::ChooseExperiment{index_of("real-serving")});
  draw_frames(3);
  EXPECT_TRUE(is_said("Before you run it"));
  write_screenshot("paper-real-before");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/run_experiment");
    wait_until(context, [this] {
      return experiment("real-serving").done > 0.1 ||
             experiment("real-serving").phase == ExperimentPhase::kFailed;
    });
    context->Yield(3);
  });
  EXPECT_EQ(experiment("real-serving").problem, "");
  write_screenshot("paper-real-running");
  apply(act::CancelExperiments{});
  ASSERT_TRUE(loop_until([this] { return !evaluation().is_running; }));
  EXPECT_EQ(experiment("real-serving").phase, ExperimentPhase::kCutShort);
  EXPECT_FALSE(experiment("real-serving").findings->machine.empty());
}

// Simulated hardware needs no model.
TEST_F(PaperWindow, WithoutAModelSimulatedOnesRunAndRealOnesSayWhatTheyNeed) {
  open_with([](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> { return Error{}; }, "",
            large_settings());
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kNone);
  open_page();
  apply(act::ChooseExperiment{index_of("real-memory")});
  draw_frames(3);
  EXPECT_TRUE(is_said("This needs a model on this computer"));
  write_screenshot("paper-no-model");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/run_experiment");
    context->Yield(2);
    IM_CHECK(!evaluation().is_running);
    context->ItemClick("**/transformers");
    context->Yield(2);
    context->ItemClick("**/run_experiment");
    wait_until(context, [this] { return experiment("transformers").phase == ExperimentPhase::kDone; });
  });
  EXPECT_EQ(experiment("transformers").phase, ExperimentPhase::kDone);
}

// Where there is no room for it, the list is a menu.
TEST_F(PaperWindow, ASmallWindowChoosesFromAMenu) {
  app::Settings small = test_settings();
  small.width = 900;
  small.height = 600;
  open({}, small);
  open_page();
  apply(act::RunExperiments{index_of("figure-13")});
  ASSERT_TRUE(loop_until([this] { return !evaluation().is_running; }));
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/choose_experiment");
    context->Yield(3);
    IM_CHECK(context->ItemExists("**/figure-13"));
  });
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/choose_experiment");
    context->Yield(3);
    context->ItemClick("**/figure-13");
    context->Yield(3);
    IM_CHECK(!context->ItemExists("**/figure-13"));
    IM_CHECK(evaluation().chosen == index_of("figure-13"));
  });
  write_screenshot("paper-small");
  play([](ImGuiTestContext* context) {
    context->MouseMove("**/run_experiment");
    context->MouseWheelY(-40);
    context->Yield(3);
  });
  write_screenshot("paper-small-table");
}

// A full sweep: bars with the paper's crosses, long names, curves over a logarithm, curves by rate, several
// plots. What takes no half minute is drawn in every run.
TEST_F(PaperWindow, PicturesOfPlots) {
  app::Settings tall = large_settings();
  tall.height = 1400;
  open({}, tall);
  open_page();
  std::vector<std::string> names = {"figure-19", "figure-1"};
  if (test::is_full_sweep()) names.insert(names.end(), {"figure-13", "policy", "figure-16"});
  for (const std::string& name : names) {
    apply(act::RunExperiments{index_of(name)});
    const auto begin = std::chrono::steady_clock::now();
    while (evaluation().is_running && std::chrono::steady_clock::now() - begin < std::chrono::minutes(4))
      application_->step_for(0.05);
    ASSERT_EQ(experiment(name).phase, ExperimentPhase::kDone) << name;
  }
  in_every_look([&](const std::string& look) {
    for (const std::string& name : names) {
      apply(act::ChooseExperiment{index_of(name)});
      write_screenshot("paper-" + name + "-" + look);
    }
  });
}

}  // namespace
}  // namespace octavo::testing
