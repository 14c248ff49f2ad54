// The comparison as one table on standard output, printed when all tests have run: what the paper states,
// what a simulation says, what we measured. A figure that nobody states stays empty.
#pragma once

#include <optional>
#include <string>

namespace octavo::paper {

struct Row {
  std::string section;  // rows of one section stand together under its name
  std::string name;
  std::optional<double> paper = {};
  std::optional<double> simulation = {};
  double ours = 0.0;
  std::string unit = "%";
};

void print_at_end(Row row);

}  // namespace octavo::paper
