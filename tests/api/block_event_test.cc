#include "engine/api/block_event.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(BlockEvent, AChildsNumberIsWholeBeyondTheLowerHalf) {
  const auto child_of = [](std::uint64_t parent, std::uint64_t child) {
    return forked_child(
        {.sequence = parent, .aux = static_cast<std::int32_t>(child), .kind = BlockEventKind::kFork});
  };
  for (const std::uint64_t parent : {1ull, 0xffff'ffffull, 0x1'0000'0000ull, 0x7'ffff'fffeull}) {
    for (const std::uint64_t step : {1ull, 2ull, 1000ull})
      EXPECT_EQ(child_of(parent, parent + step), parent + step);
  }
}

}  // namespace
}  // namespace octavo
