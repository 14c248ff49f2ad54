#include "engine/base/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace octavo {
namespace {

constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

std::optional<std::uint64_t> unit_bytes(std::string_view name) {
  const auto found = std::find(kUnits.begin(), kUnits.end(), name);
  if (found == kUnits.end()) return std::nullopt;
  return std::uint64_t{1} << (10 * (found - kUnits.begin()));
}

}  // namespace

std::string group_digits(std::string number) {
  const std::size_t sign = number.starts_with('-') ? 1 : 0;
  for (std::size_t at = number.size(); at > sign + 3;) number.insert(at -= 3, 1, ',');
  return number;
}

std::string fixed_text(double value, int num_decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  std::snprintf(text.data(), text.size(), "%.*f", num_decimals, value);
  return text.data();
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "–";
  const double magnitude = std::abs(value);
  if (magnitude >= 999.5) return with_thousands(std::llround(std::clamp(value, -1e18, 1e18)));
  std::string text = fixed_text(value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string two_decimals(double value) {
  const std::string digits = fixed_text(std::abs(value), 2);
  return (value < 0 && digits != "0.00" ? "−" : "") + digits;
}

std::string percent_text(double fraction) {
  const double percent = fraction * 100.0;
  if (percent == 0.0 || percent >= 9.95) return fixed_text(percent, 0) + " %";
  return fixed_text(percent, 1) + " %";
}

std::string parameters_text(std::int64_t count) {
  const double billions = static_cast<double>(count) / 1e9;
  if (billions >= 0.9995) return fixed_text(billions, 1) + " B";
  if (billions >= 0.00095) return fixed_text(billions * 1e3, 0) + " M";
  return fixed_text(billions * 1e6, 0) + " K";
}

std::string bytes_text(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return short_number(value) + " " + std::string(kUnits[unit]);
}

std::string exact_bytes_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMillion = 1'000'000;
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >> (10 * (unit + 1)) != 0) ++unit;
  // In millionths of the unit, rounded half up. 64 + 20 bits need more than a word.
  const unsigned shift = static_cast<unsigned>(10 * unit);
  __extension__ using Wide = unsigned __int128;
  const Wide half = unit == 0 ? 0 : Wide{1} << (shift - 1);
  const auto millionths = static_cast<std::uint64_t>((Wide{bytes} * kMillion + half) >> shift);
  std::string text = std::to_string(millionths / kMillion);
  std::string fraction = std::to_string(kMillion + millionths % kMillion).substr(1);  // with leading zeros
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (!fraction.empty()) text += "." + fraction;
  return text + " " + std::string(kUnits[unit]);
}

std::string mebibytes_text(std::int64_t bytes) {
  return fixed_text(static_cast<double>(bytes) / 1048576.0, 1) + " MiB";
}

std::string duration_text(double milliseconds) {
  if (milliseconds < 999.5) return fixed_text(milliseconds, milliseconds < 9.95 ? 1 : 0) + " ms";
  return fixed_text(milliseconds / 1000.0, milliseconds < 99'950.0 ? 1 : 0) + " s";
}

std::string seconds_text(std::int64_t microseconds, int num_decimals) {
  return fixed_text(static_cast<double>(microseconds) / 1e6, num_decimals) + " s";
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  double amount = 0.0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), amount, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto scale = unit_bytes(unit.empty() ? "MiB" : unit);
  if (!scale) return std::nullopt;
  const double bytes = amount * static_cast<double>(*scale);
  if (!(bytes >= 1.0 && bytes < 0x1.0p63)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace octavo
