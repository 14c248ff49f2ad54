// JSON whose lists are too long to be held as a tree: parts are taken out of it while it is read, so that no
// more than one of them is in memory at once.
//
// Pure; any thread.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::app {

// Where an object stands, from the outside in: the key of a member, or none for an element of a list.
using JsonPath = std::vector<std::optional<std::string>>;

// Called with every object as it ends, inner ones first. True: it is taken, and missing from what holds it.
using TakePart = std::function<bool(const JsonPath& path, nlohmann::json& object)>;

// What was not taken; a discarded value when the text is not JSON, of which parts may have been taken even
// so.
nlohmann::json parse_in_parts(std::string_view text, const TakePart& take);

}  // namespace octavo::app
