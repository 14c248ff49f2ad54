// Finding words in texts: letters match whatever their case, in all scripts that have one. A text matches
// when every word of the query is in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::app {

// Where the first word was found, with some text around it on one line.
struct TextMatch {
  std::string excerpt;
  std::size_t begin = 0, end = 0;  // bytes of the excerpt
};

class TextQuery {
 public:
  // Words are what stands between spaces.
  explicit TextQuery(std::string_view query);

  bool empty() const { return words_.empty(); }
  // nullopt when a word is missing; the text is valid UTF-8.
  std::optional<TextMatch> find_in(std::string_view text) const;

 private:
  std::vector<std::string> words_;  // folded
};

}  // namespace octavo::app
