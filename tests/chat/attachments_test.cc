// Files in messages: what goes in comes out again.

#include "app/chat/attachments.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo::app {
namespace {

std::vector<AttachedFile> files_of(const std::string& content) {
  return attached_files(split_attachments(content));
}

TEST(Attachments, StandBehindTheTextAsFencedBlocksWithTheirNames) {
  EXPECT_EQ(with_attachments("What is this?", {{"notes.txt", "one\ntwo\n"}}),
            "What is this?\n\n```file: notes.txt\none\ntwo\n```");
}

TEST(Attachments, AloneGetALineThatNamesThem) {
  const std::string content = with_attachments(" \n", {{"a.txt", "a"}, {"b.md", "b"}});
  EXPECT_EQ(split_attachments(content).text, "Attached: a.txt, b.md");
  EXPECT_EQ(files_of(content).size(), 2u);
}

TEST(Attachments, LeaveADraftAsItWasTyped) {
  const std::string content = with_attachments("", {{"a.txt", "a\n"}}, BlankText::kKeep);
  EXPECT_EQ(split_attachments(content).text, "");
  ASSERT_EQ(files_of(content).size(), 1u);
  EXPECT_EQ(files_of(content)[0].text, "a\n");
}

TEST(Attachments, MayHoldFencesOfAnyLengthAndOtherAttachments) {
  const std::string inner = with_attachments("inner", {{"x.md", "```cpp\nint x;\n```\n"}}) + "\n````\n";
  const std::string content = with_attachments("outer", {{"chat.md", inner}, {"y.txt", "y\n"}});
  EXPECT_EQ(split_attachments(content).text, "outer");
  const auto files = files_of(content);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].text, inner);
  EXPECT_EQ(files[1].name, "y.txt");
}

TEST(Attachments, NamesAreOneLineWithoutFences) {
  const auto files = files_of(with_attachments("t", {{"a`\nb", "x\n"}, {"", "y\n"}}));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "a'");
  EXPECT_EQ(files[1].name, "file");
}

TEST(Attachments, CodeThatAPersonTypedIsText) {
  for (const std::string content :
       {"Look:\n\n```python\nprint()\n```", "```file: a\nno end", "a\n\n```file: a\nx\n```\nand more",
        "\n\n```file: \nx\n```", "text ```file: a\nx\n```", "", "```file: "}) {
    const SplitMessage parts = split_attachments(content);
    EXPECT_EQ(parts.text, content);
    EXPECT_TRUE(parts.files.empty()) << content;
  }
}

TEST(Attachments, ComeBackWhateverTheyHold) {
  const unsigned seed = 20'26;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string pieces[] = {"`",       "``",           "```",  "\n", "\n\n",
                                "file: a", "```file: b\n", "word", " ",  "~~~"};
  for (int round = 0; round < 2'000; ++round) {
    const auto text = [&](std::size_t length) {
      std::string result;
      for (std::size_t i = 0; i < length; ++i) result += pieces[random() % std::size(pieces)];
      return result;
    };
    std::vector<AttachedFile> files;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i)
      files.push_back({"n" + std::to_string(i), text(random() % 12) + "\n"});
    const std::string content = with_attachments("question", files);
    const SplitMessage parts = split_attachments(content);
    ASSERT_EQ(parts.text, "question") << content;
    const auto back = attached_files(parts);
    ASSERT_EQ(back.size(), files.size()) << content;
    for (std::size_t i = 0; i < files.size(); ++i) ASSERT_EQ(back[i].text, files[i].text) << content;
  }
}

}  // namespace
}  // namespace octavo::app
