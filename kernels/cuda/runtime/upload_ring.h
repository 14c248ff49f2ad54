// Small arrays of the host on their way to the device: put together in pinned memory, sent in one copy.
//
// What put() returned holds from send() until the ring has come round. The device's copy is overwritten in
// the order of the stream, so nothing that was started before sees it; the host waits only when it would
// overwrite what has not left yet. REQUIRES: one stream for all calls. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/base/check.h"
#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

class UploadRing {
 public:
  // `most_bytes`: of what is sent together, each array filled up to kAlignment.
  static Result<UploadRing> create(std::int64_t most_bytes);
  static constexpr std::int64_t kAlignment = 16;

  // Before the arrays that are sent together. REQUIRES: num_bytes <= most_bytes
  void begin(Stream& stream, std::int64_t num_bytes) { begin_at(stream, num_bytes, nullptr); }
  // The same for arrays that are to stand at `target`, device memory of the caller (null: in the ring).
  void begin_at(Stream& stream, std::int64_t num_bytes, std::byte* target);
  // The address on the device.
  template <class T>
  const T* put(std::span<const T> values) {
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    OCTAVO_CHECK(position_ + bytes <= pinned_.bytes(), "%lld bytes are too many",
                 static_cast<long long>(bytes));
    if (bytes > 0) std::memcpy(pinned_.data() + position_, values.data(), values.size_bytes());
    const T* const address = reinterpret_cast<const T*>(target_ + (position_ - begin_));
    position_ += padded(bytes);
    return address;
  }
  void send(Stream& stream);

  static constexpr std::int64_t padded(std::int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::int64_t bytes() const { return device_.bytes(); }

 private:
  UploadRing(PinnedMemory pinned, DeviceMemory device, Event sent)
      : pinned_(std::move(pinned)), device_(std::move(device)), sent_(std::move(sent)) {}

  PinnedMemory pinned_;
  DeviceMemory device_;
  Event sent_;  // the newest
  std::int64_t begin_ = 0, position_ = 0;
  std::byte* target_ = nullptr;  // where what stands at begin_ goes
};

}  // namespace octavo::kernels::cuda
