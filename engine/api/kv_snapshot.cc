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

}  // namespace octavo
