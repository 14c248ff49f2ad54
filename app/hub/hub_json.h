// Answers of a hub as values. What a server sends is never trusted: lists are capped, names and paths are
// checked, and whatever does not hold is one sentence that names the hub.
//
// Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "app/hub/hub_values.h"
#include "engine/base/result.h"

namespace octavo::hub {

inline constexpr std::size_t kMostModelsFound = 200;
inline constexpr std::size_t kMostFiles = 10'000;

//   host  names the hub in sentences

// GET /api/models?search=…: rows that name no repository are left out.
Result<std::vector<HubModel>> read_search(std::string_view text, std::string_view host);

// GET /api/models/ORG/NAME: everything but the files and the revision that was asked for. The commit may be
// missing.
Result<HubRepository> read_repository(std::string_view text, std::string_view host);

// GET /api/models/ORG/NAME/tree/REVISION: the files of one page; folders are left out.
Result<std::vector<HubFile>> read_files(std::string_view text, std::string_view host);

// What an answer with an error says, for a person: valid UTF-8, one line, short; may be empty.
std::string read_error(std::string_view text);

}  // namespace octavo::hub
