// For `Controller::attach_engine`: plans on the caller's thread, before it goes on.
#pragma once

#include <memory>

#include "app/chat/context_plan.h"
#include "app/window/controller.h"
#include "engine/engine.h"

namespace octavo::testing {

inline app::PlanContext plan_at_once(app::Controller& controller, const Engine& engine) {
  auto counts = std::make_shared<app::TokenCounts>(engine.tokenizer());
  return [&controller, counts](const app::PlanWanted& wanted) {
    controller.fold_plan({wanted.purpose, app::plan_context(wanted.question, *counts, /*today=*/0)});
  };
}

}  // namespace octavo::testing
