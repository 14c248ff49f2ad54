// Makes a script that goes wrong short: leaves out what happens in it, then makes plainer what is left, as
// long as the life still goes wrong in the same way. After Zeller and Hildebrandt, "Simplifying and Isolating
// Failure-Inducing Input" (IEEE TSE 28(2), 2002).
#pragma once

#include <cstdint>
#include <functional>

#include "tests/simulation/simulation.h"

namespace octavo::simulation {

struct Shrunk {
  Script script;
  Report report;  // how it goes wrong
  std::int32_t num_tries = 0;
};

// How a script is tried. Its report has a problem or not.
using TryScript = std::function<Report(const Script&)>;

// REQUIRES: `attempt` of `script` gives a problem.
Shrunk shrink(const Script& script, const TryScript& attempt, std::int32_t most_tries = 3000);

}  // namespace octavo::simulation
