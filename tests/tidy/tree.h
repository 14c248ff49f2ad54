// The files of the repository as the tidy tests read them. Paths are relative to the repository, with '/'.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace octavo::tidy {

inline std::filesystem::path root() { return test::source_folder(); }

inline std::string relative_name(const std::filesystem::path& file) {
  return std::filesystem::relative(file, root()).generic_string();
}

inline bool is_source(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh";
}

// Every source below the folder.
inline std::vector<std::filesystem::path> sources_under(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / folder))
    if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path());
  return files;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What stands in quotes after #include.
inline std::vector<std::string> quoted_includes(const std::filesystem::path& file) {
  std::vector<std::string> includes;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("#include \"", 0) != 0) continue;
    includes.push_back(line.substr(10, line.find('"', 10) - 10));
  }
  return includes;
}

inline bool is_under(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

}  // namespace octavo::tidy
