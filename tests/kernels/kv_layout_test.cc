#include "kernels/kv_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/pool_size.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

// How many of a block's bytes hold nothing, after counting each element and each scale at its own address.
std::int64_t count_gaps(const KvLayout& layout, std::int32_t block) {
  std::vector<int> uses(static_cast<std::size_t>(layout.block_bytes()));
  const auto use = [&](std::int64_t offset, std::int64_t num_bytes) {
    for (std::int64_t i = 0; i < num_bytes; ++i) {
      ++uses.at(static_cast<std::size_t>(offset - block * layout.block_bytes() + i));
    }
  };
  const std::int64_t bytes = kv_element_bytes(layout.type);
  for (std::int32_t layer = 0; layer < layout.num_layers; ++layer) {
    for (std::int32_t head = 0; head < layout.num_kv_heads; ++head) {
      const std::int64_t start = layout.head_offset(block, layer, head);
      for (std::int32_t token = 0; token < layout.block_size; ++token) {
        for (std::int32_t d = 0; d < layout.head_dim; ++d) {
          use(start + layout.key_index(d, token) * bytes, bytes);
          use(start + layout.half_head_bytes() + layout.value_index(token, d) * bytes, bytes);
        }
        if (!layout.has_scales()) continue;
        EXPECT_EQ((start + layout.key_scale_offset(token)) % 4, 0);
        use(start + layout.key_scale_offset(token), 4);
        use(start + layout.value_scale_offset(token), 4);
      }
    }
  }
  std::int64_t num_gaps = 0;
  for (const int count : uses) {
    EXPECT_LE(count, 1) << "two things at one address";
    num_gaps += count == 0 ? 1 : 0;
  }
  return num_gaps;
}

TEST(KvLayout, HoldsEveryElementAndScaleOnceInOnePiece) {
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 3, 8, 16, 32, 256}) {
      for (const std::int32_t head_dim : {1, 5, 8, 64, 80}) {
        const KvLayout layout{type, block_size, 3, 2, head_dim};
        const bool fills_up = type == KvType::kInt8 && block_size % 2 != 0 && head_dim % 2 != 0;
        EXPECT_EQ(count_gaps(layout, 0), fills_up ? 2 * 3 * 2 : 0)
            << name_of(type) << " block size " << block_size << " head " << head_dim;
        EXPECT_EQ(count_gaps(layout, 7), count_gaps(layout, 0));
      }
    }
  }
}

TEST(KvLayout, SaysWhatATokenTakesScalesIncluded) {
  const auto bytes = [](KvType type, std::int32_t block_size) {
    return KvLayout{type, block_size, 30, 3, 64}.bytes_per_token();
  };
  for (const std::int32_t block_size : {1, 8, 16, 32, 256}) {
    EXPECT_EQ(bytes(KvType::kF32, block_size), 46'080);
    EXPECT_EQ(bytes(KvType::kF16, block_size), 23'040);
    EXPECT_EQ(bytes(KvType::kBf16, block_size), 23'040);
    EXPECT_EQ(bytes(KvType::kInt8, block_size), 30 * 3 * 2 * (64 + 4));
    EXPECT_EQ(bytes(KvType::kFp8E4m3, block_size), 11'520);
    EXPECT_EQ(bytes(KvType::kFp8E5m2, block_size), 11'520);
  }
}

TEST(KvLayout, BlocksOfTheUsualSizesStartAtCacheLines) {
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {8, 16, 32}) {
      EXPECT_EQ((KvLayout{type, block_size, 30, 3, 64}.head_bytes() % 64), 0);
    }
  }
}

TEST(KvPoolSize, IsThatOfItsBlocks) {
  for (const KvType type : kEveryKvType) {
    const KvLayout layout{type, 3, 5, 2, 7};
    EXPECT_EQ(kv_pool_bytes(layout, 11).value(), 11 * layout.block_bytes());
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
