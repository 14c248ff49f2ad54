#include "app/json/json_text.h"

#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace octavo::app {

Result<Json> parse_json(std::string_view text, std::string_view what) {
  // nlohmann's text parser is iterative, but destroying a value that is nested a
  // million deep is not free: bound it.
  constexpr int kMaxDepth = 64;
  const auto failed = [&](const std::string& why) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = std::string(what) + ": " + why};
  };
  bool too_deep = false;
  Json json;
  try {
    json = Json::parse(
        text,
        [&](int depth, Json::parse_event_t, Json&) {
          if (depth > kMaxDepth) too_deep = true;
          return !too_deep;
        },
        /*allow_exceptions=*/true);
  } catch (const nlohmann::json::exception& exception) {
    const std::string reason = exception.what();
    const std::size_t bracket = reason.find("] ");
    return failed("is not valid JSON (" +
                  escape_for_message(bracket == std::string::npos ? reason : reason.substr(bracket + 2)) +
                  ")");
  }
  if (too_deep) return failed("is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  return json;
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace octavo::app
