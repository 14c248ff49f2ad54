// Lives in processes of their own, so that one that crashes, breaks an invariant of the engine's own or never
// ends is a report like any other.
#pragma once

#include <chrono>

#include "tests/simulation/simulation.h"

namespace octavo::simulation {

// As `live`. A life that does not end within `limit` is ended.
Report live_isolated(const Script& script, Mutation mutation = Mutation::kNone,
                     std::chrono::milliseconds limit = std::chrono::seconds(60));

}  // namespace octavo::simulation
