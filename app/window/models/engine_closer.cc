#include "app/window/models/engine_closer.h"

#include <optional>

namespace octavo::app {

EngineCloser::EngineCloser()
    : jobs_(
          [](const HeldEngine&) -> std::optional<std::monostate> {
            return std::nullopt;
          },  // ends with the call
          [] {}, JobsLeft::kDone) {}

}  // namespace octavo::app
