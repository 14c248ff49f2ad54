// A whole life of an engine core: the real core, scheduler and block manager over a simulated runner and a
// clock that moves when told to. After each step everything that can be known is checked; when the script is
// at its end, everything must drain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/simulation/counts.h"
#include "tests/simulation/mutation.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

struct Report {
  std::optional<std::string> problem;  // the first
  std::int64_t step = 0;               // in which it was noticed
  Counts counts;
};

// Lives out a script: the same script gives the same report. `progress`, if any, is the number of the step
// under way, for whoever watches from another process.
Report live(const Script& script, Mutation mutation = Mutation::kNone,
            volatile std::int64_t* progress = nullptr);

}  // namespace octavo::simulation
