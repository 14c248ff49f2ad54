// Everything that a person can ask for, of every area. Only what takes actions of all areas includes this.
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
};

}  // namespace octavo::ui
