// What is asked of whoever plans what a request sends (app/chat/context_plan.h), and what comes back.
//
// Values. UI thread.
#pragma once

#include <cstdint>
#include <functional>

#include "app/chat/context_plan.h"

namespace octavo::app {

// Who waits for a plan. What is only shown is planned last, and of one chat the newest alone.
struct PlanPurpose {
  enum class Kind { kShown, kQuestion, kComparison, kBatch };
  Kind kind = Kind::kShown;
  ChatId chat_id = {};         // none of a comparison or a batch
  std::uint64_t asked_id = 0;  // of the question, or of what a lane or a cell sends
};

struct PlanWanted {
  PlanPurpose purpose;
  ContextQuestion question;
};

struct PlanMade {
  PlanPurpose purpose;
  ContextPlan plan;
};

// Plans, later or at once, and hands the result to `Controller::fold_plan`.
using PlanContext = std::function<void(PlanWanted)>;

}  // namespace octavo::app
