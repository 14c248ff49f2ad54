#include "engine/api/metrics.h"

namespace octavo {

std::string_view miss_cause_name(MissCause cause) {
  switch (cause) {
    case MissCause::kNone: return "none";
    case MissCause::kFirstUse: return "first_use";
    case MissCause::kEvicted: return "evicted";
    case MissCause::kOtherSalt: return "other_salt";
    case MissCause::kDifferingToken: return "differing_token";
    case MissCause::kNoCheckpoint: return "no_checkpoint";
    case MissCause::kNotRead: return "not_read";
  }
  return "unknown";
}

}  // namespace octavo
