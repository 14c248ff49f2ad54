// What was measured, as one JSON object.
#pragma once

#include <string>

#include "tests/bench/gpu/measure.h"

namespace octavo::bench {

// {"device": {...}, "error": "" or why it stopped, "records": [...]}. A record's rates and shares are of
// its median: "seconds", "bytes_per_s", "operations_per_s", "tokens_per_s"; "of_bandwidth", "of_peak", and
// "of_roofline", the share of the time that the slower of bandwidth and peak needs. What cannot be told is
// not there.
std::string json_report(const Bench& bench, const std::string& error);

}  // namespace octavo::bench
