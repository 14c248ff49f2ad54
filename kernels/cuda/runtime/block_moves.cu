#include "kernels/cuda/runtime/block_moves.h"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kWordsPerThread = 4;  // loads under way before the first is stored

template <class Word>
__global__ void copy_kernel(Word* pool, std::int64_t block_words, const BlockCopy* copies) {
  const BlockCopy copy = copies[blockIdx.y];
  const Word* const source = pool + copy.source * block_words;
  Word* const target = pool + copy.target * block_words;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * kWordsPerThread + threadIdx.x;
  Word words[kWordsPerThread];
#pragma unroll
  for (int i = 0; i < kWordsPerThread; ++i) {
    const std::int64_t index = first + i * std::int64_t{blockDim.x};
    if (index < block_words) words[i] = source[index];
  }
#pragma unroll
  for (int i = 0; i < kWordsPerThread; ++i) {
    const std::int64_t index = first + i * std::int64_t{blockDim.x};
    if (index < block_words) target[index] = words[i];
  }
}

template <class Word>
void copy_words(Stream& stream, std::byte* pool, std::int64_t block_bytes, const BlockCopy* copies,
                std::int32_t num_copies) {
  const std::int64_t block_words = block_bytes / static_cast<std::int64_t>(sizeof(Word));
  launch(
      copy_kernel<Word>,
      {.grid = dim3(num_pieces(block_words, kThreads * kWordsPerThread), static_cast<unsigned>(num_copies)),
       .block = dim3(kThreads)},
      stream, reinterpret_cast<Word*>(pool), block_words, copies);
}

}  // namespace

// Blocks of odd sizes exist: 8-bit types with an odd number of dimensions.
void copy_pool_blocks(Stream& stream, std::byte* pool, std::int64_t block_bytes, const BlockCopy* copies,
                      std::int32_t num_copies) {
  if (block_bytes % 16 == 0) return copy_words<uint4>(stream, pool, block_bytes, copies, num_copies);
  if (block_bytes % 4 == 0) return copy_words<std::uint32_t>(stream, pool, block_bytes, copies, num_copies);
  copy_words<std::uint8_t>(stream, pool, block_bytes, copies, num_copies);
}

void move_pool_blocks(Stream& stream, const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                      std::span<const BlockCopy> copies) {
  for (std::size_t begin = 0, end; begin < copies.size(); begin = end) {
    end = begin + 1;
    while (end < copies.size() && copies[end].source == copies[end - 1].source + 1 &&
           copies[end].target == copies[end - 1].target + 1) {
      ++end;
    }
    stream.copy(targets + copies[begin].target * block_bytes, sources + copies[begin].source * block_bytes,
                static_cast<std::int64_t>(end - begin) * block_bytes);
  }
}

}  // namespace octavo::kernels::cuda
