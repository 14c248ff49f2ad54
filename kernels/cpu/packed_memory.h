// Memory for packed weights: large mappings that the system may back with 2 MiB pages, cut into pieces in the
// order of asking. A model of 96 MB is read once per decoded token; with 4 KiB pages that is 23,500 address
// translations each time, and most matrices of a small model are smaller than a large page.
//
// Pieces are not freed one by one: all memory is freed with this object, so it outlives what was packed
// into it. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/result.h"
#include "kernels/cpu/mapped_memory.h"

namespace octavo::kernels::cpu {

class PackedMemory {
 public:
  static constexpr std::int64_t kAlignment = 64;

  // Zeroed, aligned to kAlignment; committed when first touched. Error kOutOfMemory. REQUIRES: num_bytes >= 0
  Result<std::byte*> allocate(std::int64_t num_bytes);

 private:
  std::vector<MappedMemory> mappings_;
  std::byte* next_ = nullptr;  // where the next piece begins: num_free_ bytes
  std::int64_t num_free_ = 0;
};

}  // namespace octavo::kernels::cpu
