// Model files for tests: the installed default model, and folders of their own for files that a test writes.
#pragma once

#include <unistd.h>

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

// A folder that is gone with its object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "octavo-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) != nullptr ? name : ".";
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace octavo::test
