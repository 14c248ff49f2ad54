#include "app/json/stop_reason_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <variant>

namespace octavo::app {

Json stop_reason_json(const StopReason& reason) {
  if (const auto* const text = std::get_if<std::string>(&reason)) return *text;
  if (const auto* const id = std::get_if<TokenId>(&reason)) return *id;
  return nullptr;
}

}  // namespace octavo::app
