// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace octavo::ui {

// "1,204"
std::string with_thousands(std::int64_t value);
// "360 KiB", "5.2 MiB"
std::string bytes_text(std::int64_t bytes);
// "41.3", "0.7", "118", "13,229": three digits or the whole part, no exponent
std::string short_number(double value);
// "−0.82": two decimals, with the minus of typesetting, which is as wide as a digit
std::string two_decimals(double value);
// "46 %", "2.1 %"; "0 %" for exactly nothing
std::string percent_text(double fraction);
// "38 ms", "1.2 s"
std::string duration_text(double milliseconds);
// "12.41 s"
std::string seconds_text(std::int64_t microseconds);
// "1 block", "76 blocks"
std::string count_text(std::int64_t count, const char* singular);

}  // namespace octavo::ui
