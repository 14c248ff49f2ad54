// The emulated device's memory, and the host's pinned memory: who owns which addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo::emulation {

class DeviceMemory {
 public:
  DeviceMemory();

  // nullptr: more than `total_bytes` would be in use.
  void* allocate(std::size_t bytes, std::int64_t total_bytes);
  void* allocate_pinned(std::size_t bytes);
  // False: not the start of an allocation of that kind.
  bool release(void* memory);
  bool release_pinned(void* memory);

  enum class Place {
    kDevice,
    kPinned,
    kPageable,
    kOutside
  };  // kOutside: of the device, but of no allocation
  // Of a whole range.
  Place place_of(const void* address, std::size_t bytes) const;
  // Whether the address is one of the host's that a program could follow, and neither device nor pinned.
  bool is_pageable_address(std::uint64_t word) const;

  // An allocation that a kernel or a copy may use, and how.
  struct Use {
    std::byte* pages;  // its first page
    std::size_t num_page_bytes;
    std::byte* data;
    std::size_t bytes;
    bool writes;
  };
  // Of the allocation that holds the address, if one does; else nothing is added.
  void add_use(const void* address, bool writes, std::vector<Use>& uses) const;
  std::vector<Use> all_uses() const;

  std::int64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  struct Allocation {
    std::byte* pages;  // its first page
    std::size_t num_page_bytes;
    std::byte* data;
    std::size_t bytes;
  };
  struct Pinned {
    std::byte* data;
    std::size_t bytes;
  };

  const Allocation* holder_of(const void* address) const;

  std::byte* region_;  // addresses for all allocations, one after the other, never used twice
  std::size_t used_ = 0;
  std::vector<Allocation> allocations_;
  std::vector<Pinned> pinned_;
  std::int64_t allocated_bytes_ = 0;
};

// Opens allocations while it lives; all others stay closed. One at a time.
class OpenMemory {
 public:
  explicit OpenMemory(std::vector<DeviceMemory::Use> uses);
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

  // The bytes of what may be written.
  std::vector<std::byte> image() const;
  void set_image(const std::vector<std::byte>& image);
  // The first allocation that differs from the image: "byte 20 of an allocation of 64"; empty if none does.
  std::string difference(const std::vector<std::byte>& image) const;
  // A write beside an allocation, as a sentence; empty if there was none.
  std::string broken_border() const;

 private:
  std::vector<DeviceMemory::Use> uses_;
};

}  // namespace octavo::emulation
