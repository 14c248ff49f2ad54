#include "app/commands/input.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "engine/base/text.h"

namespace octavo::app {

Result<std::string> read_input(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code unused;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, unused)) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "the file '" + escape_for_message(path) +
                            "' cannot be read; check its name and permissions"};
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace octavo::app
