#include "kernels/cpu/mapped_memory.h"

#include <limits>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace octavo::kernels::cpu {
namespace {

// 0 when the system does not say.
std::int64_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::int64_t>(pages) * page_bytes;
}

Error out_of_memory(std::int64_t num_bytes, const char* purpose) {
  return Error{ErrorCode::kOutOfMemory, std::string(purpose) + " needs " + std::to_string(num_bytes) +
                                            " bytes, which the system refused; it has " +
                                            std::to_string(physical_memory_bytes()) +
                                            " bytes of memory: choose a smaller size"};
}

std::byte* align_to_large_page(std::byte* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const auto page = static_cast<std::uintptr_t>(MappedMemory::kLargePage);
  return address + ((page - value % page) % page);
}

}  // namespace

Result<MappedMemory> MappedMemory::create(std::int64_t num_bytes, const char* purpose) {
  const std::int64_t physical = physical_memory_bytes();
  const bool absurd = num_bytes < 0 || num_bytes > std::numeric_limits<std::int64_t>::max() - kLargePage;
  if (absurd || (physical > 0 && num_bytes > physical)) return out_of_memory(num_bytes, purpose);
  const bool large = num_bytes >= kLargePage;
  const auto mapping_bytes = static_cast<std::size_t>(num_bytes + (large ? kLargePage : 1));
  void* mapping = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return out_of_memory(num_bytes, purpose);
  auto* start = static_cast<std::byte*>(mapping);
  std::byte* data = large ? align_to_large_page(start) : start;
  if (large)
    madvise(data, static_cast<std::size_t>(num_bytes), MADV_HUGEPAGE);  // a wish: failing costs only speed
  return MappedMemory(start, mapping_bytes, data);
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      data_(other.data_) {}

MappedMemory::~MappedMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

}  // namespace octavo::kernels::cpu
