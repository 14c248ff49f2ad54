#include "app/server/api_error.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace octavo::app {

std::string_view error_type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

ApiError api_error(int status, std::string sentence) {
  return {.status = status, .type = std::string(error_type_of(status)), .message = std::move(sentence)};
}

ApiError api_error_of(const Error& error) {
  ApiError told{.message = error.message, .param = error.subject};
  switch (error.code) {
    case ErrorCode::kTooLong: told.code = "context_length_exceeded"; break;
    case ErrorCode::kNotFound:
      told.status = 404;
      if (error.subject == "model") told.code = "model_not_found";
      break;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported: break;
    case ErrorCode::kOutOfMemory:  // what does not fit the pool does not fit it a second later either
      told.code = "out_of_memory";
      break;
    case ErrorCode::kInvalidLogits: told.code = "invalid_logits"; break;
    case ErrorCode::kIo:
    case ErrorCode::kDamagedFile:
    case ErrorCode::kDevice:
    case ErrorCode::kDeviceLost:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal: told.status = 500; break;
  }
  told.type = error_type_of(told.status);
  return told;
}

Json openai_error(const ApiError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", text_or_null(error.param)},
            {"code", text_or_null(error.code)}}}};
}

}  // namespace octavo::app
