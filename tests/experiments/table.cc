#include "tests/experiments/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace octavo::paper {
namespace {

std::string figure(std::optional<double> value) {
  if (!value) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", *value);
  return text;
}

class Table final : public testing::Environment {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }

  void TearDown() override {
    std::vector<std::string> sections;
    for (const Row& row : rows_) {
      if (std::ranges::find(sections, row.section) == sections.end()) sections.push_back(row.section);
    }
    for (const std::string& section : sections) print(section);
    std::fflush(stdout);
  }

 private:
  void print(const std::string& section) const {
    std::printf("\n%-66s %12s %11s %9s\n", section.c_str(), "paper states", "simulation", "ours");
    for (const Row& row : rows_) {
      if (row.section != section) continue;
      std::printf("  %-64s %12s %11s %9s %s\n", row.name.c_str(), figure(row.paper).c_str(),
                  figure(row.simulation).c_str(), figure(row.ours).c_str(), row.unit.c_str());
    }
  }

  std::vector<Row> rows_;
};

// GoogleTest owns it.
Table& table() {
  static Table* const the_table = [] {
    auto* const made = new Table;
    testing::AddGlobalTestEnvironment(made);
    return made;
  }();
  return *the_table;
}

// Environments added while tests run are not torn down.
[[maybe_unused]] const Table& added_before_main = table();

}  // namespace

void print_at_end(Row row) { table().add(std::move(row)); }

}  // namespace octavo::paper
