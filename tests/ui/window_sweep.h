// Shows screens of the window in many looks, and says what is wrong with them. Three sweeps share all
// screens:
//   - layout: every size of window at every zoom; no text is cut without an ellipsis, none ends with an
//   ellipsis
//     without showing the whole while the pointer rests on it, no control lies outside, over another one or
//     below something;
//   - contrast: every theme; no text has less contrast than 4.5 : 1 with what is behind it;
//   - keyboard: Tab comes to every control.
// Some of them here; all of them, and twelve sizes at four zooms, in `tests/long/run window`, which sets
// OCTAVO_FULL_SWEEP.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/ui/compare_scene.h"
#include "ui/state.h"

namespace octavo::testing {

enum class Sweep { kLayout, kContrast, kKeyboard };

// A screen, and how to leave it.
struct Screen {
  std::string name;
  std::function<void()> show, hide = [] {};
};

class WindowSweep : public CompareScene, public ::testing::WithParamInterface<Sweep> {
 protected:
  // Every screen in every look; each fault is told once, with where it was seen first and how often.
  void sweep(const std::vector<Screen>& screens);

  void apply(const ui::Action& action) { application_->controller().apply(action); }
  std::function<void()> applied(ui::Action action) {
    return [this, action] { apply(action); };
  }
  Screen workspace(const std::string& name, ui::Workspace which) {
    return {name, applied(ui::actions::ShowWorkspace{which})};
  }
  void key(ImGuiKeyChord chord);
  std::function<void()> keys(ImGuiKeyChord chord) {
    return [this, chord] { key(chord); };
  }
  // Presses a control by hand: what a script has opened is closed at its end. Where the window is too small
  // to show the control, the screen is not there to be looked at.
  void press(const std::string& control);
  std::function<void()> pressing(std::string control) {
    return [this, control] { press(control); };
  }
  void point_at(ImVec2 place);
  void write_file(const std::string& name, const std::string& bytes) const;

 private:
  std::vector<std::string> faults();

  bool is_shown_ = true;
};

// Screens that every run would be too long with.
class LongWindowSweep : public WindowSweep {};

}  // namespace octavo::testing
