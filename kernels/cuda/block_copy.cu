// Copies within the pool go with the operations, moves between the pools in a stream of their own.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/runtime/block_moves.h"

namespace octavo::kernels::cuda {

void CudaBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  constexpr std::size_t kMostTogether = 4096;  // 32 KiB of indices
  if (copies.empty()) return;
  await_moves();
  OCTAVO_CHECK(scratch_.has_value(), "copies of blocks before reserve_step");
  for (std::size_t begin = 0; begin < copies.size(); begin += kMostTogether) {
    const auto some = copies.subspan(begin, std::min(kMostTogether, copies.size() - begin));
    scratch_->inputs.begin(*compute_, UploadRing::padded(static_cast<std::int64_t>(some.size_bytes())));
    const BlockCopy* const list = scratch_->inputs.put(some);
    scratch_->inputs.send(*compute_);
    copy_pool_blocks(*compute_, static_cast<const CudaKvCache&>(kv).data(), kv.layout().block_bytes(), list,
                     static_cast<std::int32_t>(some.size()));
  }
}

void CudaBackend::swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) {
  move_blocks(static_cast<const CudaKvCache&>(device).data(),
              static_cast<const CudaHostKvCache&>(host).data(), host.layout().block_bytes(), copies,
              *out_timer_);
}

void CudaBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  move_blocks(static_cast<const CudaHostKvCache&>(host).data(),
              static_cast<const CudaKvCache&>(device).data(), host.layout().block_bytes(), copies,
              *in_timer_);
}

// After all that was started: it may read the blocks that are overwritten, or write those that leave. What
// the moves wait for is not their time.
void CudaBackend::move_blocks(const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                              std::span<const BlockCopy> copies, MoveTimer& timer) {
  if (copies.empty()) return;
  compute_->record(*computed_);
  moves_->wait_for(*computed_);
  moves_->record(timer.begin);
  move_pool_blocks(*moves_, sources, targets, block_bytes, copies);
  moves_->record(timer.end);
  moves_->record(*moved_);
  timer.is_running = true;
  moves_are_pending_ = true;
}

std::optional<SwapTimes> CudaBackend::take_swap_times() {
  return SwapTimes{.out_us = take_time(*out_timer_), .in_us = take_time(*in_timer_)};
}

std::int64_t CudaBackend::take_time(MoveTimer& timer) {
  if (!std::exchange(timer.is_running, false) || !status_.ok()) return 0;
  float milliseconds = 0.0f;
  moves_->await(timer.end);
  if (status_.ok()) {
    status_.check(cudaEventElapsedTime(&milliseconds, timer.begin.handle(), timer.end.handle()),
                  "cudaEventElapsedTime");
  }
  return std::llround(milliseconds * 1000.0);
}

// Before the first operation that touches keys and values: what comes before it runs beside the moves.
void CudaBackend::await_moves() {
  if (!moves_are_pending_) return;
  compute_->wait_for(*moved_);
  moves_are_pending_ = false;
}

}  // namespace octavo::kernels::cuda
