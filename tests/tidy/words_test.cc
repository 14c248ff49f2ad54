// One word for one thing: the words that STYLE.md has replaced do not come back. Its table "Words that are
// gone" is the data.

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tidy/tree.h"

namespace octavo::tidy {
namespace {

struct Words {
  std::map<std::string, std::string> instead;  // gone, in lower case -> what to write
  std::vector<std::string> names_of_others;    // texts in which a gone word may stand
};

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream stream(row.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    const std::size_t begin = cell.find_first_not_of(" `");
    const std::size_t end = cell.find_last_not_of(" `");
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

std::vector<std::string> listed(const std::string& cell) {
  std::vector<std::string> words;
  std::istringstream stream(cell);
  for (std::string word; std::getline(stream, word, ',');) {
    const std::size_t begin = word.find_first_not_of(" `");
    const std::size_t end = word.find_last_not_of(" `");
    if (begin != std::string::npos) words.push_back(word.substr(begin, end - begin + 1));
  }
  return words;
}

// The rows below "| gone | write | names of others |" in STYLE.md.
Words read_words() {
  Words words;
  std::istringstream style(text_of(root() / "STYLE.md"));
  bool in_table = false;
  for (std::string line; std::getline(style, line);) {
    if (line.starts_with("| gone |")) {
      in_table = true;
    } else if (in_table && line.starts_with("|---")) {
      continue;
    } else if (in_table && line.starts_with("|")) {
      const auto cells = cells_of(line);
      if (cells.size() < 3) continue;
      for (const std::string& word : listed(cells[0])) words.instead[word] = cells[1];
      for (const std::string& name : listed(cells[2])) words.names_of_others.push_back(name);
    } else {
      in_table = false;
    }
  }
  return words;
}

// The words of a text as a reader sees them: ShowSessionList and show_session_list are show, session and
// list.
std::set<std::string> parts_of(const std::string& text) {
  std::set<std::string> parts;
  std::string part;
  const auto end_part = [&] {
    if (!part.empty()) parts.insert(part);
    part.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool starts_word =
        std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(text[i - 1])) != 0;
    if (std::isalpha(c) == 0 || starts_word) end_part();
    if (std::isalpha(c) != 0) part.push_back(static_cast<char>(std::tolower(c)));
  }
  end_part();
  return parts;
}

std::string without(std::string text, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.erase(at, name.size());
  return text;
}

std::vector<std::string> gone_words_in(const std::string& text, const Words& words) {
  std::vector<std::string> found;
  const auto parts = parts_of(without(text, words.names_of_others));
  for (const auto& [word, instead] : words.instead)
    if (parts.contains(word)) found.push_back("'" + word + "' is gone; write " + instead);
  return found;
}

TEST(Words, ThatAreGoneDoNotComeBack) {
  const Words words = read_words();
  ASSERT_GE(words.instead.size(), 6u) << "STYLE.md has no table of words that are gone";
  for (const char* folder : {"app", "engine", "kernels", "ui", "tests"}) {
    for (const auto& file : sources_under(folder)) {
      if (relative_name(file) == "tests/tidy/words_test.cc") continue;
      for (const std::string& complaint : gone_words_in(text_of(file), words))
        ADD_FAILURE() << relative_name(file) << ": " << complaint;
    }
  }
}

TEST(Words, AreFoundInIdentifiersAndSentences) {
  const Words words{{{"session", "chat"}, {"lies", "malformed"}}, {"octavo-session"}};
  EXPECT_EQ(gone_words_in("ShowSessionList list;", words).size(), 1u);
  EXPECT_EQ(gone_words_in("int session_id = 0;  // a file that lies", words).size(), 2u);
  EXPECT_TRUE(gone_words_in("families of obsessions, \"octavo-session\"", words).empty());
}

}  // namespace
}  // namespace octavo::tidy
