#include "engine/api/kv_snapshot.h"

namespace octavo {

std::string_view retention_class_name(RetentionClass retention) {
  switch (retention) {
    case RetentionClass::kScratch: return "scratch";
    case RetentionClass::kChat: return "chat";
    case RetentionClass::kSystemPrompt: return "system_prompt";
    case RetentionClass::kPinned: return "pinned";
  }
  return "unknown";
}

std::string_view checkpoint_reason_name(CheckpointReason reason) {
  switch (reason) {
    case CheckpointReason::kSystemPrompt: return "system_prompt";
    case CheckpointReason::kNextTurn: return "next_turn";
    case CheckpointReason::kEnd: return "end";
    case CheckpointReason::kLong: return "long";
  }
  return "unknown";
}

}  // namespace octavo
