// A script from a seed: pools and limits of every size, traffic from idle to flooded, prompts that share
// their beginnings or continue earlier answers, and faults.
#pragma once

#include <cstdint>

#include "tests/simulation/script.h"

namespace octavo::simulation {

Script draw_script(std::uint64_t seed);

}  // namespace octavo::simulation
