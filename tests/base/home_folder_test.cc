#include "engine/base/home_folder.h"

#include <gtest/gtest.h>

#include "engine/base/ascii.h"

namespace octavo {
namespace {

TEST(HomeFolder, IsExpandedAsAShellDoes) {
  EXPECT_EQ(expand_home("~/notes.txt", "/home/ann"), "/home/ann/notes.txt");
  EXPECT_EQ(expand_home("~", "/home/ann"), "/home/ann/");
  EXPECT_EQ(expand_home("~ann/notes.txt", "/home/bob"), "~ann/notes.txt");
  EXPECT_EQ(expand_home("a/~", "/home/ann"), "a/~");
}

TEST(Ascii, LowersItsOwnLettersOnly) { EXPECT_EQ(ascii_lower_case("Q4_K \xc3\x84 Z"), "q4_k \xc3\x84 z"); }

}  // namespace
}  // namespace octavo
