#include "app/store/text_search.h"

#include <utf8proc.h>

#include <algorithm>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kBytesBefore = 40, kBytesAfter = 80;

void append_folded(std::string& folded, std::string_view text, std::size_t offset, std::size_t length) {
  const auto first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80) {
    folded += static_cast<char>(first >= 'A' && first <= 'Z' ? first + 32 : first);
    return;
  }
  const CodePoint point = decode_utf8(text.substr(0, offset + length), offset);
  append_utf8(folded, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value))));
}

std::size_t character_length(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]) < 0x80 ? 1 : decode_utf8(text, offset).length;
}

std::string folded(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = character_length(text, offset);
    append_folded(result, text, offset, length);
    offset += length;
  }
  return result;
}

// The offset in `text` of what became byte `folded_offset` of its folded form.
std::size_t unfolded_offset(std::string_view text, std::size_t folded_offset) {
  std::string so_far;
  std::size_t offset = 0;
  while (offset < text.size() && so_far.size() < folded_offset) {
    const std::size_t length = character_length(text, offset);
    append_folded(so_far, text, offset, length);
    offset += length;
  }
  return offset;
}

TextMatch excerpt_around(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t first = begin > kBytesBefore ? begin - kBytesBefore : 0;
  while (first < begin && continues_utf8(text[first])) ++first;
  std::size_t last = std::min(text.size(), end + kBytesAfter);
  while (last > end && last < text.size() && continues_utf8(text[last])) --last;
  TextMatch match;
  if (first > 0) match.excerpt = "…";
  match.begin = match.excerpt.size() + begin - first;
  match.end = match.begin + end - begin;
  match.excerpt += text.substr(first, last - first);
  if (last < text.size()) match.excerpt += "…";
  std::replace_if(
      match.excerpt.begin(), match.excerpt.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; },
      ' ');
  return match;
}

}  // namespace

TextQuery::TextQuery(std::string_view query) {
  const std::string text = folded(query);
  constexpr std::string_view kSpaces = " \t\r\n";
  for (std::size_t begin = text.find_first_not_of(kSpaces); begin != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
    words_.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSpaces, end);
  }
}

std::optional<TextMatch> TextQuery::find_in(std::string_view text) const {
  if (words_.empty()) return std::nullopt;
  const std::string haystack = folded(text);
  const bool all = std::all_of(words_.begin(), words_.end(), [&](const std::string& word) {
    return haystack.find(word) != std::string::npos;
  });
  if (!all) return std::nullopt;
  const std::size_t found = haystack.find(words_.front());
  const std::size_t begin = unfolded_offset(text, found);
  const std::size_t end = begin + unfolded_offset(text.substr(begin), words_.front().size());
  return excerpt_around(text, begin, end);
}

}  // namespace octavo::app
