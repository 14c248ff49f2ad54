#include "app/chat/finish_text.h"

#include <variant>

#include "engine/base/text.h"

namespace octavo::app {

std::string finish_text(FinishReason reason, const StopReason& stop_reason) {
  switch (reason) {
    case FinishReason::kStop:
      if (const auto* const text = std::get_if<std::string>(&stop_reason))
        return "stopped at " + escape_for_message(*text, 24);
      return "finished";
    case FinishReason::kLength: return "reached the length limit";
    case FinishReason::kAbort: return "stopped";
    case FinishReason::kError: return "failed";
  }
  return {};
}

}  // namespace octavo::app
