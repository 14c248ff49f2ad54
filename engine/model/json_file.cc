#include "engine/model/json_file.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/base/text.h"
#include "engine/model/file_mapping.h"

namespace octavo::model {
namespace {

constexpr int kMaxDepth = 64;

// Counts brackets outside strings, whatever else is wrong with the text.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  OCTAVO_TRY(const auto file, FileMapping::open(path));
  if (file->size() > max_bytes) {
    return Error{ErrorCode::kDamagedFile, path_for_message(path) + " has " + std::to_string(file->size()) +
                                              " bytes; at most " + std::to_string(max_bytes) +
                                              " are allowed: download it again"};
  }
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  OCTAVO_TRY_VOID(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<nlohmann::json> parse_json_text(std::string_view text, std::string_view name) {
  if (is_too_deep(text)) {
    return Error{ErrorCode::kDamagedFile, escape_for_message(name, 1000) + " is nested more than " +
                                              std::to_string(kMaxDepth) + " deep; download it again"};
  }
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return Error{ErrorCode::kDamagedFile,
               escape_for_message(name, 1000) + " is no valid JSON; download it again"};
}

Result<nlohmann::json> read_json_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  OCTAVO_TRY(const std::string text, read_text_file(path, max_bytes));
  return parse_json_text(text, path.string());
}

}  // namespace octavo::model
