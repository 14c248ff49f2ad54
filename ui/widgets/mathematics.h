// Where TeX stands in a text: \( ... \) and \[ ... \], $$ ... $$, and $ ... $ where it is surely mathematics.
// It is shown as it was written, and Markdown must not read it: neither its backslashes nor its underscores
// and asterisks. Code is no mathematics, and none goes over an empty line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::ui {

// Bytes [begin, end) of the text, with what stands around the formula.
struct Formula {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const Formula&) const = default;
};

// Ascending, and apart from each other.
std::vector<Formula> find_formulas(std::string_view text);

// Before which places marks are known to have no other half, so that a text full of marks is read once. Of
// one text, read from front to back.
struct HopelessMarks {
  std::array<std::size_t, 4> until = {};
};

// Lines that a formula may have to itself.
struct Display {
  // Open: it is not closed, or its last line is not, and what comes may change that.
  enum class State { kNone, kOpen, kClosed } state = State::kNone;
  std::size_t end = 0;  // of a closed one: behind the break of its last line
};

// What the line that begins at `begin` begins.
Display display_at(std::string_view text, std::size_t begin, HopelessMarks& hopeless);

}  // namespace octavo::ui
