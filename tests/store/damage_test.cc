// Files that are not what they should be: kept as they are under another name, what can be read is read, and
// the person is told. Whatever the bytes, nothing crashes.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "app/store/rescue.h"
#include "tests/store/worker_fixture.h"

namespace octavo::testing {
namespace {

constexpr int kChats = 40, kPairs = 10;
constexpr std::size_t kPage = 4096;

class Damage : public WorkerTest {
 protected:
  void SetUp() override {
    open();
    fill(kChats, kPairs);
    reopen();  // makes the backup of the day
    close();
    ASSERT_EQ(options().paths.existing_backups().size(), 1u);
    std::filesystem::copy(options().paths.backups(), folder_ / "backups",
                          std::filesystem::copy_options::recursive);
    original_ = read(database_path());
    ASSERT_GT(original_.size(), 20 * kPage);
  }
  void TearDown() override { close(); }

  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  static void write(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  void start_over(const std::string& bytes, bool with_backup) {
    close();
    for (const auto& entry : std::filesystem::directory_iterator(database_path().parent_path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("chats.") && name != "chats.lock") std::filesystem::remove(entry.path());
    }
    std::filesystem::remove_all(options().paths.backups());
    if (with_backup)
      std::filesystem::copy(folder_ / "backups", options().paths.backups(),
                            std::filesystem::copy_options::recursive);
    write(database_path(), bytes);
    reset_reports();
    open();
  }
  // Messages whose text is exactly what it was.
  int num_intact() {
    int intact = 0;
    for (const app::ChatHead& head : contents_->chats) {
      const auto loaded = load(head.id.value);
      if (!loaded) continue;
      const app::Chat expected = some_chat(head.id.value, kPairs);
      for (const app::Message& message : loaded->messages()) {
        const app::Message* same = expected.find(message.id);
        intact += same != nullptr && same->content == message.content ? 1 : 0;
      }
    }
    return intact;
  }
  std::filesystem::path kept() const { return database_path().parent_path() / "chats.damaged-1.db"; }

  std::string original_;
};

TEST_F(Damage, AnotherFileIsKeptAsItIsAndTheBackupTakesItsPlace) {
  const std::string bytes = "Dear diary, this is no database at all." + std::string(9000, '.');
  start_over(bytes, true);
  EXPECT_EQ(read(kept()), bytes);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_EQ(
      notices_[0].sentence,
      "The chat database was damaged: 40 chats with 800 messages were recovered, with gaps filled from the "
      "backup of 2027-01-15; newer text that could not be read is lost. The damaged file is kept as "
      "chats.damaged-1.db.");
  EXPECT_EQ(num_intact(), kChats * kPairs * 2);
  EXPECT_FALSE(problem_);
}

TEST_F(Damage, SomebodyElsesDatabaseIsKeptAsItIs) {
  const auto path = folder_ / "other.db";
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_exec(handle,
               "CREATE TABLE chats (id INTEGER PRIMARY KEY, title); INSERT INTO chats VALUES (1, 'theirs');",
               nullptr, nullptr, nullptr);
  sqlite3_close(handle);
  const std::string bytes = read(path);
  start_over(bytes, false);
  EXPECT_EQ(read(kept()), bytes);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_TRUE(contents_->chats.empty());
}

TEST_F(Damage, AnUntrustedTriggerNeverRuns) {
  write(folder_ / "hostile.db", original_);
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ / "hostile.db").c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM chats; END;",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(handle);
  start_over(read(folder_ / "hostile.db"), false);
  push_all(changes_for(some_head(99), some_chat(99, 1)));
  wait_ms(200);
  reopen();
  EXPECT_EQ(contents_->chats.size(), kChats + 1u);
}

TEST_F(Damage, AnEmptyFileIsANewStore) {
  start_over("", false);
  EXPECT_TRUE(notices_.empty());
  EXPECT_TRUE(contents_->chats.empty());
}

TEST_F(Damage, WithoutItsFirstPageEveryRowIsStillRead) {
  std::string bytes = original_;
  std::fill_n(bytes.begin(), kPage, '\0');
  start_over(bytes, false);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_EQ(read(kept()), bytes);
  EXPECT_EQ(contents_->chats.size(), static_cast<std::size_t>(kChats));
  EXPECT_EQ(num_intact(), kChats * kPairs * 2);
}

TEST_F(Damage, AZeroPageCostsWhatLiesOnIt) {
  int num_pages_tried = 0, most_lost = 0;
  for (std::size_t page = 1; page * kPage < original_.size(); page += 3, ++num_pages_tried) {
    std::string bytes = original_;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * kPage), kPage, '\0');
    start_over(bytes, false);
    const int lost = kChats * kPairs * 2 - num_intact();
    most_lost = std::max(most_lost, lost);
    EXPECT_FALSE(problem_) << page;
  }
  EXPECT_GT(num_pages_tried, 10);
  // The root of the tree of messages is a page too: without it none of them can be found but in the backup.
  start_over(original_, false);
  RecordProperty("most_lost", most_lost);
}

TEST_F(Damage, GapsAreFilledFromTheBackup) {
  for (std::size_t page = 1; page * kPage < original_.size(); page += 5) {
    std::string bytes = original_;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * kPage), kPage, '\0');
    start_over(bytes, true);
    EXPECT_EQ(num_intact(), kChats * kPairs * 2) << "page " << page;
  }
}

TEST_F(Damage, TruncatedAnywhereItOpensAndKeepsWhatIsThere) {
  for (std::size_t size = 1; size < original_.size(); size += original_.size() / 12) {
    start_over(original_.substr(0, size), false);
    EXPECT_TRUE(contents_.has_value());
    EXPECT_FALSE(problem_) << size << ": " << problem_.sentence;
    start_over(original_.substr(0, size), true);
    EXPECT_GE(num_intact(), kChats * kPairs * 2 - 4) << size;
  }
}

TEST_F(Damage, FlippedBytesNeverCrashAndUntouchedRowsSurvive) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::int64_t lost = 0, total = 0;
  const int rounds =
      std::getenv("OCTAVO_DAMAGE_ROUNDS") != nullptr ? std::atoi(std::getenv("OCTAVO_DAMAGE_ROUNDS")) : 60;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = original_;
    const auto num_flips = 1 + random() % 4;
    for (std::uint64_t i = 0; i < num_flips; ++i)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    start_over(bytes, true);
    ASSERT_TRUE(contents_.has_value());
    EXPECT_FALSE(problem_) << problem_.sentence;
    total += kChats * kPairs * 2;
    lost += kChats * kPairs * 2 - num_intact();
    push_all(changes_for(some_head(500), some_chat(500, 1)));
    wait_ms(200);
    EXPECT_EQ(worker_->committed(), ticket_);
  }
  EXPECT_LT(lost * 100, total) << lost << " of " << total;
  std::printf("%d damaged files: %lld of %lld messages lost\n", rounds, static_cast<long long>(lost),
              static_cast<long long>(total));
}

TEST_F(Damage, FoundWhileTheWindowIsOpenTheWindowIsAskedForWhatItHas) {
  constexpr std::uint64_t kMany = 300;  // more than SQLite's cache holds
  start_over(original_, false);
  for (std::uint64_t id = 1; id <= kMany; ++id) push_all(changes_for(some_head(id), some_chat(id, 10, 3000)));
  wait_ms(200);
  reopen();
  std::string bytes = read(database_path());
  for (std::size_t page = 1; page * kPage < bytes.size(); ++page)
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(page * kPage), 64, '\xff');
  {
    std::fstream file(database_path(), std::ios::binary | std::ios::in | std::ios::out);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  for (std::uint64_t id = 1; id <= kMany && notices_.empty(); ++id) load(id);
  ASSERT_FALSE(notices_.empty());
  EXPECT_TRUE(notices_[0].save_everything_again);
  EXPECT_TRUE(std::filesystem::exists(kept()));
  push_all(changes_for(some_head(1), some_chat(1, kPairs)));
  wait_ms(200);
  EXPECT_EQ(worker_->committed(), ticket_);
  reopen();
  EXPECT_EQ(load(1)->messages().size(), static_cast<std::size_t>(2 * kPairs));
}

TEST_F(Damage, ARescueThatWasInterruptedIsDoneAgain) {
  std::string bytes = original_;
  std::fill_n(bytes.begin() + 3 * kPage, kPage, '\0');
  start_over(original_, true);
  close();
  // As a kill leaves it after the copy was made and before the new file is in place: also without the file.
  for (const bool file_is_there : {true, false}) {
    write(database_path(), bytes);
    write(kept(), bytes);
    write(database_path().parent_path() / "chats.rescue", "chats.damaged-1.db");
    if (!file_is_there) std::filesystem::remove(database_path());
    reset_reports();
    open();
    EXPECT_EQ(num_intact(), kChats * kPairs * 2);
    EXPECT_EQ(read(kept()), bytes);
    EXPECT_FALSE(std::filesystem::exists(database_path().parent_path() / "chats.damaged-2.db"));
    EXPECT_FALSE(std::filesystem::exists(database_path().parent_path() / "chats.rescue"));
    close();
  }
}

}  // namespace
}  // namespace octavo::testing
