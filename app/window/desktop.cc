#include "app/window/desktop.h"

namespace octavo::app {

void Desktop::apply(const ui::actions::ShowWorkspace& a) {
  state_.workspace = a.workspace;
  state_.memory_workspace.hover = {};  // what was pointed at is not there any more
  if (a.workspace == ui::Workspace::kCompare) compare_.show_newest_question();
  if (a.workspace == ui::Workspace::kMemory) memory_.refresh(state_);
}

void Desktop::apply(const ui::actions::ChangeSettings& a) {
  state_.settings = settings_.ui = a.settings;
  effects_.settings_changed = true;
}

}  // namespace octavo::app
