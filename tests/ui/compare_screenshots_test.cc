// Pictures of the Compare workspace for people to look at, beside the design's: tests/output/compare-*.png.

#include <imgui.h>

#include <string>
#include <utility>

#include "tests/ui/compare_scene.h"

namespace octavo::testing {
namespace {

class CompareScreenshots : public CompareScene {
 protected:
  void open_large() { open_compare(large_settings()); }
  // Without the Test Engine, which closes what a script has opened.
  void press_here(ImGuiKey key) {
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddKeyEvent(key, down);
      draw_frames(1);
    }
  }
  void press(ImGuiKeyChord key) {
    play([key](ImGuiTestContext* context) {
      context->KeyPress(key);
      context->Yield(2);
    });
  }
};

TEST_F(CompareScreenshots, SamplesInEveryLayout) {
  open_large();
  run_samples(4);
  in_every_look([this](const std::string& name) { write_screenshot("compare-" + name); });
  press(ImGuiKey_D);
  in_every_look([this](const std::string& name) { write_screenshot("compare-diff-" + name); });
  press(ImGuiKey_6);
  press(ImGuiKey_G);
  in_every_look([this](const std::string& name) { write_screenshot("compare-grid-" + name); });
  press(ImGuiKey_3);
  press(ImGuiKey_C);
  for (int i = 0; i < 5; ++i) press_here(ImGuiKey_Period);
  press_here(ImGuiKey_Enter);
  draw_frames(3);
  in_every_look([this](const std::string& name) { write_screenshot("compare-card-" + name); });
  EXPECT_EQ(state().comparison.columns.size(), 4u);
}

TEST_F(CompareScreenshots, WhereAnswersPartAndAsMarkdown) {
  open_large();
  run_samples(4);
  press(ImGuiKey_T);
  in_every_look([this](const std::string& name) { write_screenshot("compare-parts-" + name); });
  press(ImGuiKey_C);
  press(ImGuiKey_F);
  write_screenshot("compare-formatted");
  press(ImGuiKey_F);
  for (const ImGuiKey key : {ImGuiKey_2, ImGuiKey_4, ImGuiKey_5}) {
    press(key);
    write_screenshot("compare-key-" + std::to_string(key - ImGuiKey_0));
  }
  EXPECT_EQ(state().comparison.columns.size(), 4u);
}

TEST_F(CompareScreenshots, Beams) {
  open_large();
  run_beams();
  in_every_look([this](const std::string& name) { write_screenshot("compare-beams-" + name); });
  press(ImGuiKey_P);
  in_every_look([this](const std::string& name) { write_screenshot("compare-scores-" + name); });
  EXPECT_EQ(state().comparison.beams.final.size(), 4u);
}

TEST_F(CompareScreenshots, EmptyAndEightAndSettings) {
  open_large();
  application_->controller().apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  in_every_look([this](const std::string& name) { write_screenshot("compare-empty-" + name); });
  run_samples(8);
  in_every_look([this](const std::string& name) { write_screenshot("compare-eight-" + name); });
  run_settings();
  in_every_look([this](const std::string& name) { write_screenshot("compare-settings-" + name); });
  EXPECT_EQ(state().comparison.columns.size(), 2u);
}

}  // namespace
}  // namespace octavo::testing
