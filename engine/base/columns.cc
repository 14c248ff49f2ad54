#include "engine/base/columns.h"

#include <algorithm>

#include "engine/base/text.h"

namespace octavo {

std::size_t count_columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !continues_utf8(c); }));
}

std::string pad_to_columns(std::string text, std::size_t columns, bool to_right) {
  const std::size_t count = count_columns(text);
  const std::string blanks(count < columns ? columns - count : 0, ' ');
  return to_right ? blanks + text : text + blanks;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  if (count_columns(text) <= columns) return std::string(text);
  std::string cut;
  for (std::size_t at = 0, num_kept = 0; at < text.size(); ++at) {
    if (!continues_utf8(text[at]) && ++num_kept >= columns) break;
    cut += text[at];
  }
  return cut + "…";
}

}  // namespace octavo
