// A mark of which only the beginning has come yet: what a stream holds back. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace octavo {

// Where the end of the text, from `from` on, may be the beginning of the mark; its size when it is not.
// REQUIRES: a mark that is not empty.
inline std::size_t begun_mark(std::string_view text, std::size_t from, std::string_view mark) {
  const std::size_t most = std::min(mark.size() - 1, text.size() - std::min(from, text.size()));
  for (std::size_t length = most; length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) return text.size() - length;
  }
  return text.size();
}

}  // namespace octavo
