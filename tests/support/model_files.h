// The installed default model, and folders for model files that a test writes.
#pragma once

#include <filesystem>
#include <string>

#include "engine/model/model_files.h"
#include "tests/support/temporary_folder.h"

namespace octavo::test {

// Why a test that needs the default model cannot run; empty when it can.
inline std::string missing_default_model() {
  const std::filesystem::path path = model::default_model_path();
  if (std::filesystem::exists(path)) return {};
  return "the default model is not at " + path.string() + ": packaging/setup fetches it";
}

}  // namespace octavo::test
