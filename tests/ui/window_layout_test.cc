// Every view in every size of window and at every zoom: no text is cut without an ellipsis, no control lies
// outside of its window, over another one or below something. A few pairs here; all of them, twelve sizes at
// four zooms, in `tests/long/run window`, which sets OCTAVO_FULL_SWEEP.

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/ui/compare_scene.h"
#include "tests/ui/drawn_controls.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/memory_scene.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

struct Look {
  int width = 0, height = 0;
  double zoom = 1;
  std::string text() const {
    return std::to_string(width) + "x" + std::to_string(height) + " at " +
           std::to_string(static_cast<int>(zoom * 100)) + " %";
  }
};

std::vector<Look> looks() {
  if (std::getenv("OCTAVO_FULL_SWEEP") == nullptr)
    return {{900, 600, 1}, {900, 600, 3}, {1280, 720, 0.75}, {1280, 720, 2}};
  std::vector<Look> all;
  for (const auto& [width, height] : {std::pair{900, 600},
                                      {1000, 700},
                                      {1024, 768},
                                      {1100, 620},
                                      {1280, 720},
                                      {1280, 1024},
                                      {1366, 768},
                                      {1440, 900},
                                      {1600, 1000},
                                      {1920, 1080},
                                      {1920, 1200},
                                      {2560, 1440}}) {
    for (const double zoom : {0.75, 1.0, 1.5, 3.0}) all.push_back({width, height, zoom});
  }
  return all;
}

// A view, and how to leave it.
struct Screen {
  std::string name;
  std::function<void()> show, hide = [] {};
};

class WindowLayout : public CompareScene {
 protected:
  template <class Action>
  void apply(Action action) {
    application_->controller().apply(std::move(action));
  }
  auto applied(ui::Action action) {
    return [this, action] { application_->controller().apply(action); };
  }
  Screen workspace(const std::string& name, ui::Workspace which) {
    return {name, applied(act::ShowWorkspace{which})};
  }

  // Every screen in every look; each fault is told once, with where it was seen first and how often.
  void expect_all_in_place(const std::vector<Screen>& screens) {
    struct Seen {
      std::string where;
      int times = 0;
    };
    std::map<std::string, Seen> faults;
    for (const Look& look : looks()) {
      glfwSetWindowSize(glfwGetCurrentContext(), look.width, look.height);
      ui::SettingsState settings = state().settings;
      settings.ui_scale = look.zoom;
      apply(act::ChangeSettings{settings});
      ASSERT_TRUE(loop_until([&] {
        draw_frames(1);
        return ImGui::GetIO().DisplaySize.x == static_cast<float>(look.width) &&
               ImGui::GetIO().DisplaySize.y == static_cast<float>(look.height);
      })) << look.text();
      for (const Screen& screen : screens) {
        screen.show();
        draw_frames(4);
        std::vector<std::string> found;
        std::istringstream cut(cut_off(drawn_texts(application_->window())));
        for (std::string line; std::getline(cut, line);) found.push_back("cut off: " + line);
        play([&](ImGuiTestContext* context) {
          for (std::string& line : misplaced_controls(context)) found.push_back(std::move(line));
        });
        for (const std::string& line : found) {
          Seen& seen = faults[screen.name + ": " + line.substr(0, line.find(" ["))];
          if (seen.times++ == 0)
            seen.where = look.text() + line.substr(std::min(line.size(), line.find(" [")));
        }
        screen.hide();
        draw_frames(2);
      }
    }
    for (const auto& [fault, seen] : faults)
      ADD_FAILURE() << fault << ", " << seen.times << " times, first in " << seen.where;
  }
};

TEST_F(WindowLayout, OfTheChatAndItsPanels) {
  open_compare();
  ask_in_chat("Write four lines about rain, and a table of what it costs.");
  application_->controller().apply(
      act::RenameChat{chat().id, "A title that is a good deal longer than any column of the window is wide"});
  draw_frames(10);
  expect_all_in_place({
      workspace("chat", ui::Workspace::kChat),
      {"tree", applied(act::ShowTree{true}), applied(act::ShowTree{false})},
      {"sampling", applied(act::ShowSampling{true}), applied(act::ShowSampling{false})},
      {"settings", applied(act::ShowSettings{true}), applied(act::ShowSettings{false})},
      {"presets", applied(act::ShowPresets{true}), applied(act::ShowPresets{false})},
      {"files", applied(act::AskForFile{act::FileWish::kAttach}), applied(act::CloseFileBrowser{})},
      {"keys", applied(act::ShowKeys{true}), applied(act::ShowKeys{false})},
      {"palette", applied(act::ShowPalette{true}), applied(act::ShowPalette{false})},
      {"models", applied(act::OpenModelPicker{}), applied(act::CloseModelPicker{})},
      {"an empty chat", applied(act::NewChat{})},
  });
}

TEST_F(WindowLayout, OfComparisons) {
  open_compare();
  const auto samples = [this] {
    if (state().comparison.columns.size() != 4) run_samples(4);
  };
  const auto beams = [this] {
    if (state().comparison.beams.final.empty()) run_beams();
  };
  expect_all_in_place({workspace("an empty comparison", ui::Workspace::kCompare)});
  samples();
  expect_all_in_place({workspace("samples", ui::Workspace::kCompare)});
  beams();
  expect_all_in_place({workspace("beams", ui::Workspace::kCompare)});
}

TEST_F(WindowLayout, OfMemory) {
  open();
  const std::filesystem::path path = folder_ / "layout.kvrec";
  MemoryScene().record(path, 260);
  apply(act::ShowWorkspace{ui::Workspace::kMemory});
  const auto open_recording = [this, path] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
    apply(act::OpenRecording{path.string()});
    EXPECT_TRUE(
        loop_until([this] { return state().memory_workspace.source == ui::MemorySource::kRecording; }));
    apply(act::ChooseBlock{17});
  };
  const auto open_tour = [this] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{4});
    for (int i = 0; i < 5; ++i) apply(act::MoveTour{+1});
  };
  const auto open_swap = [this] {
    apply(act::ShowChapter{8});
    for (int i = 0; i < 12; ++i) apply(act::MoveTour{+1});
  };
  const auto open_trial = [this] {
    apply(act::ShowChapter{10});
    for (int i = 0; i < 5; ++i) apply(act::MoveTour{+1});
  };
  expect_all_in_place({
      {"recording", open_recording, applied(act::CloseRecording{})},
      {"pools", applied(act::ShowMemoryPage{ui::MemoryPage::kPools})},
      {"tour", open_tour},
      {"tour with a host pool", open_swap},
      {"tour, a visitor's text", open_trial},
      {"paper", applied(act::ShowMemoryPage{ui::MemoryPage::kPaper})},
  });
}

}  // namespace
}  // namespace octavo::testing
