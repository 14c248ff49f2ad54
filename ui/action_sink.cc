#include "ui/action_sink.h"

#include <utility>

#include "ui/actions.h"

namespace octavo::ui {

ActionSink::ActionSink() = default;
ActionSink::~ActionSink() = default;

void ActionSink::push(const actions::ChatAction& action) { actions_.emplace_back(action); }
void ActionSink::push(const actions::CompareAction& action) { actions_.emplace_back(action); }
void ActionSink::push(const actions::MemoryAction& action) { actions_.emplace_back(action); }
void ActionSink::push(const actions::ModelAction& action) { actions_.emplace_back(action); }
void ActionSink::push(const actions::DesktopAction& action) { actions_.emplace_back(action); }
void ActionSink::push(const actions::TwoModelsAction& action) { actions_.emplace_back(action); }

std::vector<Action> ActionSink::take() { return std::exchange(actions_, {}); }

}  // namespace octavo::ui
