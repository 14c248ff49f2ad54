// Everything that a person can ask for, of every area. Only what takes actions of all areas includes this.
//
// How actions are copied and destroyed stands in actions.cc, also for each area: it is a case for each kind
// of action, and would be compiled in every file that passes one on, five seconds of it.
#pragma once

#include <variant>

#include "ui/chat_actions.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/model_actions.h"
#include "ui/two_models_actions.h"

namespace octavo::ui {

struct Action : std::variant<actions::ChatAction, actions::CompareAction, actions::MemoryAction,
                             actions::ModelAction, actions::DesktopAction, actions::TwoModelsAction> {
  using variant::variant;
  Action(const Action&);
  Action(Action&&) noexcept;
  Action& operator=(const Action&);
  Action& operator=(Action&&) noexcept;
  ~Action();
};

}  // namespace octavo::ui
