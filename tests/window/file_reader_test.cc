// What dropped and attached files turn out to be.

#include "app/window/chat/file_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "app/chat/chat_json.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

class FileReaderTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  ReadFile read(const std::string& name, const std::string& bytes, ReadAs as = ReadAs::kAny) {
    return read_file(write(name, bytes), as);
  }

  test::TemporaryFolder folder_;
};

std::string exported_chat() {
  Chat chat;
  chat.append(kRootMessage, Role::kUser, "hello");
  return chat_to_json(chat);
}

TEST_F(FileReaderTest, TextIsText) {
  const ReadFile file = read("notes.txt", "eins\nzwei \xc3\xa4\n");
  EXPECT_EQ(file.kind, FileKind::kText);
  EXPECT_EQ(file.name, "notes.txt");
  EXPECT_EQ(file.text, "eins\nzwei \xc3\xa4\n");
  EXPECT_EQ(file.problem, "");
}

TEST_F(FileReaderTest, LinesOfOtherSystemsBecomeOrdinaryOnes) {
  EXPECT_EQ(read("a.txt", "\xef\xbb\xbfone\r\ntwo\rthree\n").text, "one\ntwo\nthree\n");
}

TEST_F(FileReaderTest, ModelsAndRecordingsAreKnownByTheirBeginning) {
  EXPECT_EQ(read("anything.bin", "GGUF\3\0\0\0").kind, FileKind::kModel);
  EXPECT_EQ(read("notes.gguf", "not a model").kind, FileKind::kText);
}

TEST_F(FileReaderTest, ExportedChatsAreChatsUnlessTextIsWanted) {
  const ReadFile chats = read("chat.json", exported_chat());
  EXPECT_EQ(chats.kind, FileKind::kChats);
  ASSERT_EQ(chats.chats.size(), 1u);
  EXPECT_EQ(read("chat.json", exported_chat(), ReadAs::kText).kind, FileKind::kText);
  EXPECT_EQ(read("data.json", R"({"a": [1, 2]})").kind, FileKind::kText);
}

TEST_F(FileReaderTest, WhatCannotBeUsedIsOneSentence) {
  const auto expect_problem = [](const ReadFile& file, const std::string& words) {
    EXPECT_EQ(file.kind, FileKind::kUnusable);
    EXPECT_NE(file.problem.find(words), std::string::npos) << file.problem;
    EXPECT_EQ(file.problem.find('\n'), std::string::npos);
  };
  expect_problem(read("a.png", std::string("\x89PNG\r\n\x1a\n\0\0", 10)), "is not UTF-8 text");
  expect_problem(read("latin.txt", "caf\xe9"), "is not UTF-8 text");
  expect_problem(read("zero.txt", std::string("a\0b", 3)), "is not UTF-8 text");
  expect_problem(read("empty.txt", " \n"), "is empty");
  expect_problem(read("large.txt", std::string(kLargestAttachment + 1, 'x')), "is larger than 1 MiB");
  expect_problem(read("large.json", std::string(kLargestAttachment + 1, 'x')), "large.json");
  expect_problem(read_file((folder_ / "missing").string(), ReadAs::kAny), "does not exist");
  expect_problem(read_file((folder_ / "").string(), ReadAs::kAny), "is a folder");
  expect_problem(read_file("/dev/null", ReadAs::kText), "is not a regular file");
}

TEST_F(FileReaderTest, OneMebibyteIsStillAttached) {
  EXPECT_EQ(read("full.txt", std::string(kLargestAttachment, 'x')).kind, FileKind::kText);
}

TEST_F(FileReaderTest, TypedPathsMayHaveBlanksAroundThemAndBeginAtHome) {
  write("notes.txt", "text");
  const test::EnvironmentVariable home("HOME", (folder_ / "").parent_path().string());
  EXPECT_EQ(read_file("  ~/notes.txt ", ReadAs::kText).kind, FileKind::kText);
}

TEST_F(FileReaderTest, ReadsOnAThreadOfItsOwnInTheOrderOfThePaths) {
  std::atomic<int> num_wake_ups = 0;
  FileReader reader([&] { ++num_wake_ups; });
  reader.read({.chat_id = ChatId{7},
               .as = ReadAs::kAny,
               .paths = {write("b.txt", "b"), (folder_ / "none").string(), write("a.txt", "a")}});
  std::vector<FilesRead> results;
  for (int i = 0; i < 5'000 && results.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    results = reader.take_results();
  }
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].chat_id, ChatId{7});
  ASSERT_EQ(results[0].files.size(), 3u);
  EXPECT_EQ(results[0].files[0].text, "b");
  EXPECT_EQ(results[0].files[1].kind, FileKind::kUnusable);
  EXPECT_EQ(results[0].files[2].text, "a");
}

}  // namespace
}  // namespace octavo::app
