#include "engine/api/event.h"

namespace octavo {

RequestId request_id_of(const EngineEvent& event) {
  return std::visit([](const auto& kind) { return kind.request_id; }, event);
}

}  // namespace octavo
