#include "engine/core/embedding_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace octavo {
namespace {

using Rows = std::vector<float>;

TEST(EmbeddingPool, TheMeanHasTheSameBitsHoweverTheRowsCome) {
  const Rows rows = {0.1f, 1e8f, 0.2f, -1e8f, 0.3f, 3.0f, 0.4f, 0.25f};  // of 4 positions
  const auto pooled = [&](std::initializer_list<std::size_t> cuts) {
    EmbeddingPool pool({.pooling = Pooling::kMean, .normalise = false}, 4);
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
      EXPECT_FALSE(pool.is_complete());
      pool.add(static_cast<std::int32_t>(begin), 2, std::span(rows).subspan(2 * begin, 2 * (end - begin)));
      begin = end;
    }
    EXPECT_TRUE(pool.is_complete());
    return pool.take().value();
  };
  const Rows whole = pooled({4});
  EXPECT_EQ(whole,
            (Rows{static_cast<float>((double{0.1f} + double{0.2f} + double{0.3f} + double{0.4f}) / 4.0),
                  static_cast<float>((1e8 - 1e8 + 3.0 + 0.25) / 4.0)}));
  EXPECT_EQ(pooled({1, 2, 3, 4}), whole);
  EXPECT_EQ(pooled({3, 4}), whole);
}

TEST(EmbeddingPool, WhatIsComputedAgainAfterAPreemptionCountsOnce) {
  EmbeddingPool pool({.pooling = Pooling::kMean, .normalise = false}, 3);
  pool.add(0, 1, Rows{1.0f, 2.0f});
  pool.add(0, 1, Rows{1.0f});
  pool.add(1, 1, Rows{2.0f, 6.0f});
  EXPECT_EQ(pool.take(), (Rows{3.0f}));
}

TEST(EmbeddingPool, OfTheLastTokenNothingElseCounts) {
  EmbeddingPool pool({.pooling = Pooling::kLast}, 3);
  pool.add(0, 2, Rows{9.0f, 9.0f, 8.0f, 8.0f});
  EXPECT_FALSE(pool.is_complete());
  pool.add(2, 2, Rows{3.0f, 4.0f});
  EXPECT_EQ(pool.take(), (Rows{0.6f, 0.8f})) << "of length 1";
  EmbeddingPool found({.pooling = Pooling::kLast, .normalise = false}, 3);
  found.add(2, 2, Rows{3.0f, 4.0f});  // all before it was in the cache
  EXPECT_EQ(found.take(), (Rows{3.0f, 4.0f}));
}

TEST(EmbeddingPool, WhatHasNoDirectionOrIsNoNumberIsNoRow) {
  for (const float value : {0.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EmbeddingPool pool({}, 1);
    pool.add(0, 2, Rows{0.0f, value});
    EXPECT_EQ(pool.take(), std::nullopt) << value;
  }
}

TEST(EmbeddingPool, APositionThatIsLeftOutIsABrokenPromise) {
  EmbeddingPool pool({.pooling = Pooling::kMean}, 3);
  EXPECT_DEATH(pool.add(1, 1, Rows{1.0f}), "wanted are those of 0");
}

}  // namespace
}  // namespace octavo
