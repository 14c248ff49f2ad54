#include "kernels/cuda/matmul/weight_loader.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/matmul/repack.h"
#include "kernels/cuda/matmul/weight_planes.h"

namespace octavo::kernels::cuda {

Result<WeightLoader::Place> WeightLoader::create_place(DeviceStatus& status, std::int64_t bytes) {
  constexpr const char* kPurpose = "loading weights";
  OCTAVO_TRY(PinnedMemory pinned, PinnedMemory::allocate(bytes, kPurpose));
  OCTAVO_TRY(DeviceMemory device, DeviceMemory::allocate(bytes, kPurpose));
  OCTAVO_TRY(Stream stream, Stream::create(status));
  return Place{.pinned = std::move(pinned), .device = std::move(device), .stream = std::move(stream)};
}

Result<WeightLoader> WeightLoader::create(DeviceStatus& status, std::int64_t piece_bytes) {
  constexpr std::int64_t kLeast = 256;  // more than a block of any type
  const std::int64_t bytes = (std::max(piece_bytes, kLeast) + kLeast - 1) / kLeast * kLeast;
  OCTAVO_TRY(Place first, create_place(status, bytes));
  OCTAVO_TRY(Place second, create_place(status, bytes));
  OCTAVO_TRY(Event filled, Event::create());
  return WeightLoader(status, std::move(first), std::move(second), std::move(filled));
}

Result<std::unique_ptr<DeviceMatrix>> WeightLoader::prepare(const MatrixSource& source) {
  const TensorTypeTraits& file = traits_of(source.type);
  const PlaneLayout layout = plane_layout(source.type, source.rows, source.columns);
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(layout.bytes, "a weight matrix"));
  const WeightPlanes planes = planes_at(memory.data(), source.type, source.rows, source.columns);
  places_[0].stream.fill(memory.data(), 0, memory.bytes());
  places_[0].stream.record(filled_);
  places_[1].stream.wait_for(filled_);

  const std::int64_t num_blocks = source.rows * (source.columns / file.block_elements);
  const std::int64_t most = places_[0].device.bytes() / file.block_bytes;
  int turn = 0;
  for (std::int64_t first = 0; first < num_blocks && status_->ok(); first += most, turn = 1 - turn) {
    Place& place = places_[turn];
    const std::int64_t count = std::min(most, num_blocks - first), bytes = count * file.block_bytes;
    place.stream.synchronize();  // its piece before has been taken apart
    std::memcpy(place.pinned.data(), source.bytes.data() + first * file.block_bytes,
                static_cast<std::size_t>(bytes));
    place.stream.copy(place.device.data(), place.pinned.data(), bytes);
    launch_repack(place.stream, place.device.data(), first, count, planes);
  }
  for (Place& place : places_) place.stream.synchronize();
  OCTAVO_TRY_VOID(status_->result());
  return std::make_unique<DeviceMatrix>(source, planes, std::move(memory));
}

}  // namespace octavo::kernels::cuda
