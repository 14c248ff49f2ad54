// Brings weights from the host's memory, a mapped file say, to the device, and takes them apart there
// (weight_planes.h): in pieces, through two places that each have pinned memory, device memory and a stream.
// While one place's piece is copied and repacked, the host copies the next into the other, and nowhere else.
//
// Ownership: both places live as long as the loader, which whoever loads ends when all is loaded. Thread:
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/base/result.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/tensor.h"

namespace octavo::kernels::cuda {

class WeightLoader {
 public:
  // The copy of a piece takes some 0.1 ms, ten times what starting its kernel takes.
  static constexpr std::int64_t kPieceBytes = 4 << 20;

  // Failures go to the status, which outlives it. `piece_bytes`: of each place, filled up to 256. Errors:
  // kOutOfMemory, kDevice.
  static Result<WeightLoader> create(DeviceStatus& status, std::int64_t piece_bytes = kPieceBytes);

  // The matrix is there when it returns, for any stream, and `source.bytes` is not needed afterwards. Errors:
  // kOutOfMemory, kDevice, and the status's.
  Result<std::unique_ptr<DeviceMatrix>> prepare(const MatrixSource& source);

  // Of the device.
  std::int64_t bytes() const { return places_[0].device.bytes() + places_[1].device.bytes(); }

 private:
  struct Place {
    PinnedMemory pinned;
    DeviceMemory device;
    Stream stream;
  };
  static Result<Place> create_place(DeviceStatus& status, std::int64_t bytes);
  WeightLoader(DeviceStatus& status, Place first, Place second, Event filled)
      : status_(&status), places_{std::move(first), std::move(second)}, filled_(std::move(filled)) {}

  DeviceStatus* status_;
  Place places_[2];
  Event filled_;  // a matrix's memory with zeros, before its first piece
};

}  // namespace octavo::kernels::cuda
