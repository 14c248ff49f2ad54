#include "kernels/cpu/packed_memory.h"

#include <utility>

namespace octavo::kernels::cpu {
namespace {

// Few mappings for a model, and little address space wasted. Larger pieces than a quarter get a mapping of
// their own.
constexpr std::int64_t kMappingBytes = std::int64_t{32} << 20;

}  // namespace

Result<std::byte*> PackedMemory::allocate(std::int64_t num_bytes) {
  const std::int64_t size = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (size > num_free_) {
    const bool own_mapping = size > kMappingBytes / 4;
    OCTAVO_TRY(MappedMemory mapping,
               MappedMemory::create(own_mapping ? size : kMappingBytes, "packed weights"));
    mappings_.push_back(std::move(mapping));
    if (own_mapping) return mappings_.back().data();
    next_ = mappings_.back().data();
    num_free_ = kMappingBytes;
  }
  std::byte* const piece = next_;
  next_ += size;
  num_free_ -= size;
  return piece;
}

}  // namespace octavo::kernels::cpu
