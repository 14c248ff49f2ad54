// The data of the experiments, for tests: a missing or damaged file fails the test with its reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/experiments/workload.h"
#include "tests/experiments/beam_search.h"
#include "tests/support/paths.h"

namespace octavo::paper {

template <class T>
T value_or_abort(Result<T> result) {
  if (result) return *std::move(result);
  ADD_FAILURE() << result.error().message;
  std::abort();
}

inline std::filesystem::path golden_file(const char* name) {
  return test::source_folder() / "tests" / "golden" / name;
}

inline RecordedBeams recorded_beams(std::int32_t width) {
  return value_or_abort(RecordedBeams::read(golden_file("beam_parents.json"), width));
}

}  // namespace octavo::paper
