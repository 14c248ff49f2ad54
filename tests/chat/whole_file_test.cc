#include "app/files/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t num_files(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(WholeFile, IsReplacedAndReadableByItsOwnerOnly) {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "new" / "notes.txt";
  EXPECT_EQ(write_whole_file(path, "one"), 0);
  EXPECT_EQ(write_whole_file(path, std::string(100'000, 'x')), 0);
  EXPECT_EQ(text_of(path), std::string(100'000, 'x'));
  EXPECT_EQ(num_files(path.parent_path()), 1) << "nothing stays behind";
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST(WholeFile, StaysAsItWasWhenItCannotBeReplaced) {
  const test::TemporaryFolder folder;
  const fs::path target = folder / "a folder";
  fs::create_directories(target / "with something in it");
  EXPECT_NE(write_whole_file(target, "text"), 0);
  EXPECT_TRUE(fs::is_directory(target));
  EXPECT_EQ(num_files(folder.path()), 1) << "nothing stays behind";
  EXPECT_NE(write_whole_file("/proc/octavo/settings.json", "{}"), 0);
  EXPECT_NE(write_whole_file("/dev/null/notes.txt", "text"), 0);
}

}  // namespace
}  // namespace octavo::app
