#include "engine/block/reservation.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo::block {
namespace {

constexpr std::int32_t kMaxLen = 2'048;

TEST(Reservation, Pow2Reserves32ForATrueOutputOf25) {
  EXPECT_EQ(estimated_output_tokens(MemoryManager::kOrcaPow2, 25, kMaxLen), 32);
  EXPECT_EQ(reservation_tokens(MemoryManager::kOrcaPow2, 100, 25, kMaxLen), 132);
}

TEST(Reservation, Pow2IsTheNextPowerOfTwoOfEveryLength) {
  std::int32_t power = 1;
  for (std::int32_t length = 1; length <= kMaxLen; ++length) {
    if (length > power) power *= 2;
    EXPECT_EQ(estimated_output_tokens(MemoryManager::kOrcaPow2, length, kMaxLen), power) << length;
  }
}

TEST(Reservation, OracleReservesThePromptAndTheTrueOutput) {
  EXPECT_EQ(reservation_tokens(MemoryManager::kOrcaOracle, 161, 338, kMaxLen), 499);
}

TEST(Reservation, MaxReservesTheLongestSequenceWhateverComes) {
  EXPECT_EQ(reservation_tokens(MemoryManager::kOrcaMax, 1, 1, kMaxLen), kMaxLen);
  EXPECT_EQ(reservation_tokens(MemoryManager::kOrcaMax, 2'000, 48, kMaxLen), kMaxLen);
}

TEST(Reservation, NeverExceedsTheLongestSequence) {
  constexpr std::int32_t kEndless = std::numeric_limits<std::int32_t>::max();
  for (const MemoryManager manager :
       {MemoryManager::kOrcaMax, MemoryManager::kOrcaPow2, MemoryManager::kOrcaOracle}) {
    EXPECT_EQ(reservation_tokens(manager, 1'030, 1'018, kMaxLen), kMaxLen);
    EXPECT_EQ(reservation_tokens(manager, 100, kEndless, kMaxLen), kMaxLen);
  }
}

TEST(Reservation, TakesAPowerOfTwoOfBlocks) {
  EXPECT_EQ(reservation_blocks(1, 16), 1);
  EXPECT_EQ(reservation_blocks(16, 16), 1);
  EXPECT_EQ(reservation_blocks(17, 16), 2);
  EXPECT_EQ(reservation_blocks(132, 16), 16) << "9 blocks hold 132 tokens";
  EXPECT_EQ(reservation_blocks(kMaxLen, 16), 128);
  EXPECT_EQ(reservation_blocks(kMaxLen, 1), kMaxLen);
}

TEST(Reservation, StopsAtWhatNoCallerMayAsk) {
  EXPECT_DEATH(reservation_tokens(MemoryManager::kPaged, 1, 1, kMaxLen), "paging reserves nothing");
  EXPECT_DEATH(reservation_tokens(MemoryManager::kOrcaPow2, 1, 0, kMaxLen), "0 output tokens");
  EXPECT_DEATH(reservation_tokens(MemoryManager::kOrcaPow2, 2'049, 1, kMaxLen), "2049 prompt tokens");
}

}  // namespace
}  // namespace octavo::block
