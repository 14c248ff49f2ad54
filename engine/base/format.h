// Figures as people read them: one way of writing counts, bytes, shares and durations, for the window, the
// command line and the engine's own sentences. Any thread; no locale.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// "-1234567" as "-1,234,567".
std::string group_digits(std::string number);

// "1,204"
std::string with_thousands(std::integral auto value) { return group_digits(std::to_string(value)); }

// "1 block", "1,204 blocks"
std::string count_text(std::integral auto count, const char* singular) {
  return with_thousands(count) + " " + singular + (count == 1 ? "" : "s");
}

// Exactly so many digits after the point: "0.50".
std::string fixed_text(double value, int num_decimals);
// "41.3", "0.7", "118", "13,229": three digits or the whole part, no exponent
std::string short_number(double value);
// "−0.82": two decimals, with the minus of typesetting, which is as wide as a digit
std::string two_decimals(double value);
// "46 %", "2.1 %"; "0 %" for exactly nothing
std::string percent_text(double fraction);
// "1.1 B", "135 M", "12 K": parameters of a model, in billions, millions and thousands
std::string parameters_text(std::int64_t count);

// "360 KiB", "5.13 MiB": as short_number writes, in the largest unit that leaves at least 1.
std::string bytes_text(std::int64_t bytes);
// "168 GiB", "3.515625 MiB", "17 B": the same unit, in decimal digits computed from whole numbers: exact when
// six digits after the point suffice, else rounded to six.
std::string exact_bytes_text(std::uint64_t bytes);
// "1536.0 MiB": amounts that are compared with one another.
std::string mebibytes_text(std::int64_t bytes);

// "512 MiB", "1.5GiB", "100" (MiB): a positive amount of memory. Units B, KiB, MiB, GiB, TiB. nullopt: no
// such amount.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "38 ms", "1.2 s"
std::string duration_text(double milliseconds);
// "12.41 s"
std::string seconds_text(std::int64_t microseconds, int num_decimals = 2);

}  // namespace octavo
