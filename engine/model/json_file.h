// Small JSON files that come with a model, read whole. They are untrusted: nothing larger than a cap is read,
// and nothing nested deep is parsed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::model {

// Errors: kNotFound; kIo; kDamagedFile for more bytes than `max_bytes`, and for what is no JSON or nested
// more than 64 deep. Of equal keys the last one counts.
Result<nlohmann::json> read_json_file(const std::filesystem::path& path, std::uint64_t max_bytes);

// The same of a text; `name` is for messages.
Result<nlohmann::json> parse_json_text(std::string_view text, std::string_view name);

// A whole text file. Errors as above.
Result<std::string> read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace octavo::model
