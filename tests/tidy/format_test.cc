// The tree is as clang-format leaves it (.clang-format).

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/tidy/tree.h"

namespace octavo::tidy {
namespace {

// What a command prints, and its exit status.
struct Outcome {
  std::string output;
  int status = 0;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"popen failed", -1};
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) outcome.output += buffer;
  outcome.status = pclose(pipe);
  return outcome;
}

bool has_clang_format() {
  return run("clang-format --version").output.find("version 14.") != std::string::npos;
}

// The complaints about the sources of a folder.
Outcome complaints(const std::string& folder) {
  std::string files;
  for (const auto& file : sources_under(folder)) files += " '" + file.string() + "'";
  return run("clang-format --dry-run --Werror --style=file" + files);
}

TEST(Format, EverySourceIsAsClangFormatLeavesIt) {
  if (!has_clang_format())
    GTEST_SKIP() << "clang-format 14 is not installed; packaging/setup test installs it";
  for (const char* folder : {"app", "engine", "kernels", "ui", "tests"}) {
    const Outcome outcome = complaints(folder);
    EXPECT_EQ(outcome.status, 0) << "run clang-format -i on these files of " << folder << ":\n"
                                 << outcome.output;
  }
}

TEST(Format, AnUnformattedFileIsNoticed) {
  if (!has_clang_format()) GTEST_SKIP() << "clang-format 14 is not installed";
  const std::string style = "'{BasedOnStyle: Google, ColumnLimit: 110}'";
  EXPECT_NE(run("echo 'int  a ;' | clang-format --dry-run --Werror --style=" + style).status, 0);
}

}  // namespace
}  // namespace octavo::tidy
