// The installed default model, for tests that need it.
#pragma once

#include <filesystem>
#include <string>

#include "engine/model/model_files.h"

namespace octavo::test {

// Why a test that needs the default model cannot run; empty when it can.
inline std::string missing_default_model() {
  const std::filesystem::path path = model::default_model_path();
  if (std::filesystem::exists(path)) return {};
  return "the default model is not at " + path.string() + ": packaging/setup fetches it";
}

}  // namespace octavo::test
