#include "kernels/kv_layout.h"

#include <gtest/gtest.h>

#include <limits>
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
  for (std::int32_t index = 0; index < layout.num_layers(); ++index) {
    const KvLayer& layer = layout.layer(index);
    for (std::int32_t head = 0; head < layer.num_kv_heads; ++head) {
      const std::int64_t start = layout.head_offset(block, index, head);
      for (std::int32_t token = 0; token < layout.block_size; ++token) {
        for (std::int32_t d = 0; d < layer.head_dim; ++d) {
          use(start + layer.key_index(d, token) * bytes, bytes);
          use(start + layer.half_head_bytes + layer.value_index(token, d) * bytes, bytes);
        }
        if (!layout.has_scales()) continue;
        EXPECT_EQ((start + layer.key_scale_offset(token)) % 4, 0);
        use(start + layer.key_scale_offset(token), 4);
        use(start + layer.value_scale_offset(token), 4);
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

TEST(KvLayout, LayersOfUnequalHeadsLieOneBehindTheOther) {
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 3, 16}) {
      const KvHeads layers[] = {{2, 8}, {1, 24}, {1, 5}, {2, 8}, {3, 1}};
      const KvLayout layout{type, block_size, layers};
      ASSERT_EQ(layout.num_layers(), 5);
      const bool fills_up = type == KvType::kInt8 && block_size % 2 != 0;
      EXPECT_EQ(count_gaps(layout, 0), fills_up ? 2 * (1 + 3) : 0) << name_of(type) << " " << block_size;
      EXPECT_EQ(count_gaps(layout, 4), count_gaps(layout, 0));
      std::int64_t offset = 0;
      for (std::int32_t i = 0; i < 5; ++i) {
        const KvLayout alone{type, block_size, 1, layers[i].num_kv_heads, layers[i].head_dim};
        EXPECT_EQ(layout.layer(i).offset, offset) << i;
        EXPECT_EQ(layout.layer(i).bytes(), alone.block_bytes()) << i;
        offset += alone.block_bytes();
      }
      EXPECT_EQ(layout.block_bytes(), offset);
    }
  }
}

// The addresses that follow from one size for all.
TEST(KvLayout, LayersThatAreAlikeStandAtMultiplesOfTheirSize) {
  for (const KvType type : kEveryKvType) {
    const KvLayout layout{type, 16, 7, 3, 80};
    const std::int64_t scales = type == KvType::kInt8 ? 2 * 16 * 4 : 0;
    const std::int64_t head = 2 * 16 * 80 * kv_element_bytes(type) + scales;
    EXPECT_EQ(layout.block_bytes(), 7 * 3 * head);
    for (std::int32_t layer = 0; layer < 7; ++layer) {
      for (std::int32_t kv_head = 0; kv_head < 3; ++kv_head)
        EXPECT_EQ(layout.head_offset(5, layer, kv_head), ((5 * 7 + layer) * 3 + kv_head) * head);
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
      EXPECT_EQ((KvLayout{type, block_size, 30, 3, 64}.layer(0).head_bytes % 64), 0);
    }
  }
}

TEST(KvPoolSize, IsThatOfItsBlocks) {
  for (const KvType type : kEveryKvType) {
    const KvLayout layout{type, 3, 5, 2, 7};
    EXPECT_EQ(kv_pool_bytes(layout, 11).value(), 11 * layout.block_bytes());
  }
}

TEST(KvPoolSize, AnImpossibleLayoutHasNoLayersAndNoPool) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  const KvHeads one_without_heads[] = {{2, 8}, {0, 8}}, one_too_many[] = {{1, kMost}, {kMost, kMost}};
  for (const KvLayout& layout :
       {KvLayout(), KvLayout(KvType::kF16, 0, 1, 1, 8), KvLayout(KvType::kF16, 257, 1, 1, 8),
        KvLayout(KvType::kF16, 16, -1, 1, 8), KvLayout(KvType::kF16, 16, kMost, 1, 8),
        KvLayout(KvType::kF16, 16, 1, -1, 8), KvLayout(KvType::kF16, 16, 1, 1, 0),
        KvLayout(KvType::kF16, 16, one_without_heads), KvLayout(KvType::kF32, 256, one_too_many)}) {
    EXPECT_EQ(layout.num_layers(), 0);
    EXPECT_EQ(layout.block_bytes(), 0);
    EXPECT_EQ(kv_pool_bytes(layout, 1).error().code, ErrorCode::kInvalidArgument);
  }
  const KvHeads large[] = {{1 << 20, 1 << 20}};
  const KvLayout possible(KvType::kF32, 256, large);
  EXPECT_EQ(kv_pool_bytes(possible, 1).value(), std::int64_t{1} << 51);
  EXPECT_FALSE(kv_pool_bytes(possible, 1 << 12)) << "more than 63 bits";
}

}  // namespace
}  // namespace octavo::kernels::testing
