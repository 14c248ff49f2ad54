#include "kernels/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include <sys/mman.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd/machine_limits.h"
#include "kernels/cpu/thread_pool.h"

namespace octavo::kernels {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{256} << 20;
constexpr std::int64_t kReadPiece = std::int64_t{1} << 20;
constexpr std::int64_t kArithmeticRounds = 2'000'000;

// Anonymous memory that is really there: untouched pages would all be one page of zeroes in the cache.
class TouchedMemory {
 public:
  explicit TouchedMemory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    void* const address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return;
    madvise(address, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(address);
    for (std::size_t i = 0; i < bytes_; i += 64) data_[i] = static_cast<std::byte>(i >> 6);
  }
  ~TouchedMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  TouchedMemory(const TouchedMemory&) = delete;
  TouchedMemory& operator=(const TouchedMemory&) = delete;
  const std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

constexpr int kRounds = 5;

template <class Work>
double rate_of(double amount, const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return amount / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The best of a few runs: interruptions only ever make it slower.
template <class Work>
double best_rate(double amount, const Work& work) {
  double best = 0.0;
  for (int round = 0; round < kRounds; ++round) best = std::max(best, rate_of(amount, work));
  return best;
}

}  // namespace

namespace cpu {

namespace portable {
extern const MachineLimitKernels kMachineLimitKernels;
}
namespace avx2 {
extern const MachineLimitKernels kMachineLimitKernels;
}
namespace avx_vnni {
extern const MachineLimitKernels kMachineLimitKernels;
}
namespace avx512 {
extern const MachineLimitKernels kMachineLimitKernels;
}
namespace avx512_vnni {
extern const MachineLimitKernels kMachineLimitKernels;
}

const MachineLimitKernels& machine_limit_kernels(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_AVX2)
    case InstructionSet::kAvx2: return avx2::kMachineLimitKernels;
#endif
#if defined(OCTAVO_HAS_AVX_VNNI)
    case InstructionSet::kAvxVnni: return avx_vnni::kMachineLimitKernels;
#endif
#if defined(OCTAVO_HAS_AVX512)
    case InstructionSet::kAvx512: return avx512::kMachineLimitKernels;
#endif
#if defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512Vnni: return avx512_vnni::kMachineLimitKernels;
#endif
    default: return portable::kMachineLimitKernels;
  }
}

}  // namespace cpu

Result<MachineLimits> measure_machine_limits(std::int32_t threads) {
  OCTAVO_TRY(const cpu::InstructionSet isa, cpu::choose_instruction_set());
  OCTAVO_TRY(const std::unique_ptr<cpu::ThreadPool> pool, cpu::ThreadPool::create(threads));
  const cpu::MachineLimitKernels& kernels = cpu::machine_limit_kernels(isa);
  MachineLimits limits;
  OCTAVO_TRY(const std::vector<double> reads, measure_reads(threads, kRounds));
  limits.read_bytes_per_s = *std::max_element(reads.begin(), reads.end());
  const double rounds = static_cast<double>(kArithmeticRounds) * threads;
  limits.int8_multiply_adds_per_s =
      best_rate(rounds * static_cast<double>(kernels.int8_multiply_adds_per_round), [&] {
        pool->parallel_for(threads,
                           [&](std::int64_t, std::int32_t) { kernels.int8_rounds(kArithmeticRounds); });
      });
  limits.float_multiply_adds_per_s =
      best_rate(rounds * static_cast<double>(kernels.float_multiply_adds_per_round), [&] {
        pool->parallel_for(threads,
                           [&](std::int64_t, std::int32_t) { kernels.float_rounds(kArithmeticRounds); });
      });
  return limits;
}

Result<std::vector<double>> measure_reads(std::int32_t threads, std::int32_t count) {
  OCTAVO_TRY(const cpu::InstructionSet isa, cpu::choose_instruction_set());
  OCTAVO_TRY(const std::unique_ptr<cpu::ThreadPool> pool, cpu::ThreadPool::create(threads));
  const cpu::MachineLimitKernels& kernels = cpu::machine_limit_kernels(isa);
  const TouchedMemory memory(kReadBytes);
  if (memory.data() == nullptr) {
    return Error{.code = ErrorCode::kOutOfMemory,
                 .message = "measuring the machine needs 256 MiB of memory, which the system refused"};
  }
  std::vector<double> reads;
  for (std::int32_t i = 0; i < count; ++i) {
    reads.push_back(rate_of(static_cast<double>(kReadBytes), [&] {
      pool->parallel_for_in_runs(kReadBytes / kReadPiece, [&](std::int64_t piece, std::int32_t) {
        kernels.read(memory.data() + piece * kReadPiece, kReadPiece);
      });
    }));
  }
  return reads;
}

}  // namespace octavo::kernels
