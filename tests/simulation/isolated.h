// Lives in processes of their own, so that one that crashes, breaks an invariant of the engine's own or never
// ends is a report like any other.
#pragma once

#include "tests/simulation/simulation.h"

namespace octavo::simulation {

// As `live`. A life that does not end within so much processor time is ended.
Report live_isolated(const Script& script, Mutation mutation = Mutation::kNone, double most_seconds = 60.0);

}  // namespace octavo::simulation
