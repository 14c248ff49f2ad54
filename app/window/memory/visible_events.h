// Which block events a person is told of, in the chat's panel as in the log of the Memory workspace.
#pragma once

#include "engine/api/block_event.h"

namespace octavo::app {

// What happens at every step or token is no news.
constexpr bool is_told(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kStepBegin:
    case BlockEventKind::kStepEnd:
    case BlockEventKind::kFill:
    case BlockEventKind::kSeal:
    case BlockEventKind::kUnref: return false;
    default: return true;
  }
}

}  // namespace octavo::app
