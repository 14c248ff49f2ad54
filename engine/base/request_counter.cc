#include "engine/base/request_counter.h"

#include <atomic>
#include <cstdint>

namespace octavo {

RequestId next_request_id() {
  static std::atomic<std::uint64_t> next = 1;
  return RequestId{next.fetch_add(1, std::memory_order_relaxed)};
}

}  // namespace octavo
