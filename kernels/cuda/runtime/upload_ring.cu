#include "kernels/cuda/runtime/upload_ring.h"

#include <algorithm>

namespace octavo::kernels::cuda {

// Twice the most: one can be put together while another is on its way.
Result<UploadRing> UploadRing::create(std::int64_t most_bytes) {
  OCTAVO_TRY(PinnedMemory pinned, PinnedMemory::allocate(2 * padded(most_bytes), "the inputs of a step"));
  OCTAVO_TRY(DeviceMemory device, DeviceMemory::allocate(2 * padded(most_bytes), "the inputs of a step"));
  OCTAVO_TRY(Event sent, Event::create());
  return UploadRing(std::move(pinned), std::move(device), std::move(sent));
}

void UploadRing::begin_at(Stream& stream, std::int64_t num_bytes, std::byte* target) {
  if (position_ + num_bytes > pinned_.bytes()) {
    stream.await(sent_);
    position_ = 0;
  }
  begin_ = position_;
  target_ = target != nullptr ? target : device_.data() + begin_;
}

void UploadRing::send(Stream& stream) {
  const std::int64_t bytes = std::min(position_, pinned_.bytes()) - begin_;
  stream.copy(target_, pinned_.data() + begin_, bytes);
  stream.record(sent_);
}

}  // namespace octavo::kernels::cuda
