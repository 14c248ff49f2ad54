// The window itself: which workspace and which panels are open, its settings, and what leaves for the
// desktop.
//
// Writes workspace, settings, banner, desktop and the panels' flags of the state. UI thread. What the
// constructor takes must outlive it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "app/window/compare/compare_workspace.h"
#include "app/window/memory/memory_workspace.h"
#include "app/window/settings.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"

namespace octavo::app {

struct DesktopEffects {
  std::optional<std::string> clipboard = {};
  std::optional<std::string> open_link = {};       // an address that a person confirmed
  std::optional<std::string> show_in_folder = {};  // a file
  bool settings_changed = false;
};

class Desktop {
 public:
  Desktop(MemoryWorkspace& memory, CompareWorkspace& compare, Settings& settings, ui::UiState& state)
      : memory_(memory), compare_(compare), settings_(settings), state_(state) {}

  void apply(const ui::actions::ShowWorkspace& a);
  void apply(const ui::actions::ShowSettings& a) { state_.settings_open = a.open; }
  void apply(const ui::actions::ShowPalette& a) { state_.palette_open = a.open; }
  void apply(const ui::actions::ShowSampling& a) { state_.sampling_open = a.open; }
  void apply(const ui::actions::ShowKeys& a) { state_.desktop.keys_open = a.open; }
  void apply(const ui::actions::ShowInFolder& a) { effects_.show_in_folder = a.path; }
  void apply(const ui::actions::ShowPresets& a) { state_.desktop.presets_open = a.open; }
  void apply(const ui::actions::ShowTree& a) { state_.desktop.tree_open = a.open; }
  void apply(const ui::actions::DismissBanner&) { state_.banner.reset(); }
  void apply(const ui::actions::ChangeSettings& a);
  void apply(const ui::actions::CopyText& a) { effects_.clipboard = a.text; }
  void apply(const ui::actions::OpenLink& a) { effects_.open_link = a.address; }

  DesktopEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  MemoryWorkspace& memory_;
  CompareWorkspace& compare_;
  Settings& settings_;
  ui::UiState& state_;
  DesktopEffects effects_;
};

}  // namespace octavo::app
