// The refusal of what structured output was asked for: one sentence, about that option.
#pragma once

#include <string>
#include <utility>

#include "engine/base/result.h"

namespace octavo {

inline Error structure_error(std::string message) {
  return Error{
      .code = ErrorCode::kInvalidArgument, .message = std::move(message), .subject = "structured_output"};
}

}  // namespace octavo
