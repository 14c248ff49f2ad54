#include "ui/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace octavo::ui {
namespace {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace

std::string with_thousands(std::int64_t value) {
  const std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  std::string text(digits, 0, sign);
  for (std::size_t i = sign; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  return short_number(value) + " " + kUnits[unit];
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "–";
  const double magnitude = std::abs(value);
  if (magnitude >= 999.5) return with_thousands(std::llround(std::clamp(value, -1e18, 1e18)));
  std::string text = fixed(value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string two_decimals(double value) {
  const std::string digits = fixed(std::abs(value), 2);
  return (value < 0 && digits != "0.00" ? "−" : "") + digits;
}

std::string percent_text(double fraction) {
  const double percent = fraction * 100.0;
  if (percent == 0.0 || percent >= 9.95) return fixed(percent, 0) + " %";
  return fixed(percent, 1) + " %";
}

std::string duration_text(double milliseconds) {
  if (milliseconds < 999.5) return fixed(milliseconds, milliseconds < 9.95 ? 1 : 0) + " ms";
  return fixed(milliseconds / 1000.0, milliseconds < 99'950.0 ? 1 : 0) + " s";
}

std::string seconds_text(std::int64_t microseconds) {
  return fixed(static_cast<double>(microseconds) / 1e6, 2) + " s";
}

std::string count_text(std::int64_t count, const char* singular) {
  return with_thousands(count) + " " + singular + (count == 1 ? "" : "s");
}

}  // namespace octavo::ui
