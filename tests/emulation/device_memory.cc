#include "tests/emulation/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace octavo::emulation {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRegionBytes = std::size_t{1} << 40;  // addresses only
// Less than the 256 of a device: the smaller it is, the less room there is between an end and the page behind
// it.
constexpr std::size_t kAlignment = 16;
constexpr int kFill = 0xff;  // a NaN in every type

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

DeviceMemory::DeviceMemory() {
  void* region = ::mmap(nullptr, kRegionBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) std::abort();
  region_ = static_cast<std::byte*>(region);
}

void* DeviceMemory::allocate(std::size_t bytes, std::int64_t total_bytes) {
  if (bytes > static_cast<std::size_t>(total_bytes - std::min(total_bytes, allocated_bytes_))) return nullptr;
  const std::size_t num_page_bytes = round_up(round_up(bytes, kAlignment), kPage);
  if (used_ + num_page_bytes + 2 * kPage > kRegionBytes) std::abort();
  std::byte* const pages = region_ + used_ + kPage;
  used_ += num_page_bytes + kPage;
  ::mprotect(pages, num_page_bytes, PROT_READ | PROT_WRITE);
  std::memset(pages, kFill, num_page_bytes);
  allocations_.push_back(
      {pages, num_page_bytes, pages + num_page_bytes - round_up(bytes, kAlignment), bytes});
  allocated_bytes_ += static_cast<std::int64_t>(bytes);
  ::mprotect(pages, num_page_bytes, PROT_NONE);
  return allocations_.back().data;
}

void* DeviceMemory::allocate_pinned(std::size_t bytes) {
  void* memory = ::operator new(bytes, std::align_val_t(kPage), std::nothrow);
  if (memory == nullptr) return nullptr;
  std::memset(memory, kFill, bytes);
  pinned_.push_back({static_cast<std::byte*>(memory), bytes});
  return memory;
}

bool DeviceMemory::release(void* memory) {
  const auto found = std::find_if(allocations_.begin(), allocations_.end(),
                                  [memory](const Allocation& each) { return each.data == memory; });
  if (found == allocations_.end()) return false;
  ::madvise(found->pages, found->num_page_bytes, MADV_DONTNEED);
  ::mprotect(found->pages, found->num_page_bytes, PROT_NONE);
  allocated_bytes_ -= static_cast<std::int64_t>(found->bytes);
  allocations_.erase(found);
  return true;
}

bool DeviceMemory::release_pinned(void* memory) {
  const auto found = std::find_if(pinned_.begin(), pinned_.end(),
                                  [memory](const Pinned& each) { return each.data == memory; });
  if (found == pinned_.end()) return false;
  ::operator delete(memory, std::align_val_t(kPage));
  pinned_.erase(found);
  return true;
}

DeviceMemory::Place DeviceMemory::place_of(const void* address, std::size_t bytes) const {
  const auto* start = static_cast<const std::byte*>(address);
  const auto holds = [&](const auto& each) {
    return start >= each.data && start + bytes <= each.data + each.bytes;
  };
  if (std::any_of(allocations_.begin(), allocations_.end(), holds)) return Place::kDevice;
  if (start >= region_ && start < region_ + kRegionBytes) return Place::kOutside;
  return std::any_of(pinned_.begin(), pinned_.end(), holds) ? Place::kPinned : Place::kPageable;
}

bool DeviceMemory::is_pageable_address(std::uint64_t word) const {
  // Below 2^45 stands what an AddressSanitizer notes of memory, where two small integers side by side would
  // point to.
  if (word < (std::uint64_t{1} << 45) || word >> 47 != 0) return false;
  const auto* address = reinterpret_cast<const std::byte*>(word);
  if (place_of(address, 1) != Place::kPageable) return false;
  auto* page = reinterpret_cast<void*>(word / kPage * kPage);
  return ::msync(page, kPage, MS_ASYNC) == 0;  // fails where nothing is mapped
}

const DeviceMemory::Allocation* DeviceMemory::holder_of(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto found = std::find_if(allocations_.begin(), allocations_.end(), [byte](const Allocation& each) {
    return byte >= each.data && byte < each.data + each.bytes;
  });
  return found == allocations_.end() ? nullptr : &*found;
}

void DeviceMemory::add_use(const void* address, bool writes, std::vector<Use>& uses) const {
  const Allocation* const holder = holder_of(address);
  if (holder == nullptr) return;
  for (Use& use : uses) {
    if (use.data != holder->data) continue;
    use.writes = use.writes || writes;
    return;
  }
  uses.push_back({holder->pages, holder->num_page_bytes, holder->data, holder->bytes, writes});
}

std::vector<DeviceMemory::Use> DeviceMemory::all_uses() const {
  std::vector<Use> uses;
  for (const Allocation& each : allocations_) {
    uses.push_back({each.pages, each.num_page_bytes, each.data, each.bytes, true});
  }
  return uses;
}

OpenMemory::OpenMemory(std::vector<DeviceMemory::Use> uses) : uses_(std::move(uses)) {
  for (const DeviceMemory::Use& each : uses_) {
    ::mprotect(each.pages, each.num_page_bytes, each.writes ? PROT_READ | PROT_WRITE : PROT_READ);
  }
}

OpenMemory::~OpenMemory() {
  for (const DeviceMemory::Use& each : uses_) ::mprotect(each.pages, each.num_page_bytes, PROT_NONE);
}

std::vector<std::byte> OpenMemory::image() const {
  std::vector<std::byte> image;
  for (const DeviceMemory::Use& each : uses_) {
    if (each.writes) image.insert(image.end(), each.data, each.data + each.bytes);
  }
  return image;
}

void OpenMemory::set_image(const std::vector<std::byte>& image) {
  const std::byte* source = image.data();
  for (const DeviceMemory::Use& each : uses_) {
    if (!each.writes) continue;
    std::memcpy(each.data, source, each.bytes);
    source += each.bytes;
  }
}

std::string OpenMemory::difference(const std::vector<std::byte>& image) const {
  const std::byte* expected = image.data();
  for (const DeviceMemory::Use& each : uses_) {
    if (!each.writes) continue;
    if (std::memcmp(each.data, expected, each.bytes) != 0) {
      const auto offset = std::mismatch(each.data, each.data + each.bytes, expected).first - each.data;
      return "byte " + std::to_string(offset) + " of an allocation of " + std::to_string(each.bytes);
    }
    expected += each.bytes;
  }
  return {};
}

std::string OpenMemory::broken_border() const {
  const auto is_filled = [](const std::byte* first, const std::byte* last) {
    return std::all_of(first, last, [](std::byte byte) { return byte == std::byte{kFill}; });
  };
  for (const DeviceMemory::Use& each : uses_) {
    const std::byte* const end = each.pages + each.num_page_bytes;
    if (is_filled(each.pages, each.data) && is_filled(each.data + each.bytes, end)) continue;
    return "a write beside an allocation of " + std::to_string(each.bytes) + " bytes";
  }
  return {};
}

}  // namespace octavo::emulation
