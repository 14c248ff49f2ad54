// The bars of the window's design, measured. Each function measures one of them in a process of its own and
// gives the rows of the table that `octavo_window_bars` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace octavo::bench {

struct BarRow {
  std::string what;
  std::string measured;
  std::string bar;
  bool met = false;
};

using Rows = Result<std::vector<BarRow>>;

Rows measure_idle();
Rows measure_long_chat();
Rows measure_streams();
Rows measure_chat_switch();
Rows measure_download();
Rows measure_samples();
Rows measure_block_map();
// `started_ns`: on the monotonic clock, when this process was asked for.
Rows measure_cold_start(std::int64_t started_ns);

// "3.14"
std::string number(double value, int decimals);

}  // namespace octavo::bench
