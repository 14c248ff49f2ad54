#include "engine/base/result.h"

namespace octavo {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kDamagedFile: return "damaged_file";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kTooLong: return "too_long";
    case ErrorCode::kInvalidLogits: return "invalid_logits";
    case ErrorCode::kDevice: return "device";
    case ErrorCode::kDeviceLost: return "device_lost";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace octavo
