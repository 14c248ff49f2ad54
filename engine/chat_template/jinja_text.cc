#include "engine/chat_template/jinja_text.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"

namespace octavo::tokenizer::jinja {
namespace {

struct Piece {
  std::size_t begin, end;
};

bool is_stripped(char32_t c, std::string_view bytes, const std::optional<std::string>& characters) {
  if (!characters) return is_python_space(c);
  for (std::size_t i = 0; i < characters->size();) {
    const std::size_t length = decode_utf8(*characters, i).length;
    if (std::string_view(*characters).substr(i, length) == bytes) return true;
    i += length;
  }
  return false;
}

// Start of the code point that ends at `end`.
std::size_t previous_start(std::string_view text, std::size_t begin, std::size_t end) {
  for (std::size_t length = std::min<std::size_t>(4, end - begin); length > 1; --length) {
    if (decode_utf8(text.substr(0, end), end - length).length == length) return end - length;
  }
  return end - 1;
}

std::vector<Piece> words(std::string_view text) {
  std::vector<Piece> found;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (is_python_space(c.value) == inside) {
      if (inside) found.push_back({begin, i});
      begin = i;
      inside = !inside;
    }
    i += c.length;
  }
  if (inside) found.push_back({begin, text.size()});
  return found;
}

std::vector<Piece> pieces_between(std::string_view text, std::string_view separator) {
  std::vector<Piece> found;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator, begin)) {
    found.push_back({begin, at});
    begin = at + separator.size();
  }
  found.push_back({begin, text.size()});
  return found;
}

// The pieces between occurrences as str.rsplit finds them: from the right, so that "aaa" splits at its last
// "aa".
std::vector<Piece> pieces_between_from_right(std::string_view text, std::string_view separator,
                                             std::int64_t most) {
  std::vector<Piece> found;
  std::size_t end = text.size();
  while (most != 0 && end >= separator.size()) {
    const std::size_t at = text.rfind(separator, end - separator.size());
    if (at == std::string_view::npos) break;
    found.push_back({at + separator.size(), end});
    end = at;
    --most;
  }
  found.push_back({0, end});
  std::reverse(found.begin(), found.end());
  return found;
}

// More than `most` splits: those at the far end stay together.
void keep_together(std::vector<Piece>& pieces, std::int64_t most, bool from_right) {
  if (most < 0 || pieces.size() <= static_cast<std::size_t>(most) + 1) return;
  const std::size_t surplus = pieces.size() - (static_cast<std::size_t>(most) + 1);
  const auto count = static_cast<std::ptrdiff_t>(surplus);
  if (from_right) {
    pieces[surplus].begin = pieces.front().begin;
    pieces.erase(pieces.begin(), pieces.begin() + count);
  } else {
    pieces[pieces.size() - 1 - surplus].end = pieces.back().end;
    pieces.erase(pieces.end() - count, pieces.end());
  }
}

// What remains after the last whole-word split keeps its trailing white space on the right, its leading on
// the left.
void widen_remainder(std::vector<Piece>& pieces, std::size_t size, bool was_cut, bool from_right) {
  if (!was_cut || pieces.empty()) return;
  if (from_right) {
    pieces.front().begin = 0;
  } else {
    pieces.back().end = size;
  }
}

bool ends_line(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || to_upper(c) != c || to_lower(c) != c; }

void append_upper(std::string& out, char32_t c) {
  if (c == 0xdf) {
    out += "SS";  // the one common letter whose capital is two
  } else {
    append_utf8(out, to_upper(c));
  }
}

void append_title(std::string& out, char32_t c) {
  if (c == 0xdf) {
    out += "Ss";
  } else {
    append_utf8(out, to_title(c));
  }
}

template <class Append>
MarkedText map_characters(const MarkedText& text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text.text(), i);
    if (c.valid) {
      append(out, c.value);
    } else {
      out.append(text.text(), i, c.length);
    }
    i += c.length;
  }
  return MarkedText::computed_from(text, std::move(out));
}

bool begins_word(char32_t previous) {
  return is_python_space(previous) || previous == '-' || previous == '(' || previous == '{' ||
         previous == '[' || previous == '<';
}

}  // namespace

std::vector<std::size_t> code_point_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); i += decode_utf8(text, i).length) starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

std::int64_t code_point_count(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < text.size(); i += decode_utf8(text, i).length) ++count;
  return count;
}

MarkedText strip(const MarkedText& marked, const std::optional<std::string>& characters, Side side) {
  const std::string_view text = marked.text();
  std::size_t begin = 0, end = text.size();
  while (side != Side::kRight && begin < end) {
    const CodePoint c = decode_utf8(text, begin);
    if (!is_stripped(c.value, text.substr(begin, c.length), characters)) break;
    begin += c.length;
  }
  while (side != Side::kLeft && begin < end) {
    const std::size_t start = previous_start(text, begin, end);
    if (!is_stripped(decode_utf8(text, start).value, text.substr(start, end - start), characters)) break;
    end = start;
  }
  return marked.slice(begin, end);
}

Result<std::vector<MarkedText>> split(const MarkedText& marked, const std::optional<std::string>& separator,
                                      std::int64_t most, bool from_right, Budget& budget) {
  std::vector<Piece> pieces;
  if (!separator) {
    pieces = words(marked.text());
    const std::size_t before = pieces.size();
    keep_together(pieces, most, from_right);
    widen_remainder(pieces, marked.size(), pieces.size() < before, from_right);
  } else if (from_right) {
    pieces = pieces_between_from_right(marked.text(), *separator, most);
  } else {
    pieces = pieces_between(marked.text(), *separator);
    keep_together(pieces, most, from_right);
  }
  OCTAVO_TRY_VOID(budget.spend(pieces.size()));
  std::vector<MarkedText> parts;
  for (const Piece& piece : pieces) parts.push_back(marked.slice(piece.begin, piece.end));
  return parts;
}

Result<std::vector<MarkedText>> split_lines(const MarkedText& marked, bool keep_ends, Budget& budget) {
  const std::string_view text = marked.text();
  std::vector<MarkedText> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    std::size_t next = i + c.length;
    if (ends_line(c.value)) {
      if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      OCTAVO_TRY_VOID(budget.spend(1));
      lines.push_back(marked.slice(begin, keep_ends ? next : i));
      begin = next;
    }
    i = next;
  }
  if (begin < text.size()) lines.push_back(marked.slice(begin, text.size()));
  return lines;
}

Result<MarkedText> replace(const MarkedText& marked, const std::string& old, const MarkedText& by,
                           std::int64_t most, Budget& budget) {
  const std::string_view text = marked.text();
  MarkedText out;
  std::size_t done = 0, search = 0;
  while (most != 0) {
    const std::size_t at =
        old.empty() ? (search <= text.size() ? search : std::string_view::npos) : text.find(old, search);
    if (at == std::string_view::npos) break;
    OCTAVO_TRY_VOID(budget.spend(1 + by.cost() / Budget::kBytesPerOperation));
    out.append(marked, done, at);
    out.append(by);
    OCTAVO_TRY_VOID(out.size() > Budget::kMaxTextBytes ? budget.spend_text(out.size()) : Result<void>());
    done = at + old.size();
    // An empty `old` stands between any two characters.
    search = !old.empty() ? done : (at < text.size() ? at + decode_utf8(text, at).length : at + 1);
    --most;
  }
  out.append(marked, std::min(done, text.size()), text.size());
  OCTAVO_TRY_VOID(budget.spend_text(out.size()));
  return out;
}

Result<MarkedText> repeat(const MarkedText& text, std::int64_t times, Budget& budget) {
  MarkedText out;
  if (times <= 0 || text.empty()) return out;
  const auto count = static_cast<std::size_t>(times);
  if (count > Budget::kMaxTextBytes / text.size())
    return budget.spend_text(Budget::kMaxTextBytes + 1).error();
  OCTAVO_TRY_VOID(budget.spend_text(count * text.size()));
  OCTAVO_TRY_VOID(budget.spend(count));
  for (std::size_t i = 0; i < count; ++i) out.append(text);
  return out;
}

Result<MarkedText> join(const MarkedText& separator, const std::vector<Text>& parts, Budget& budget) {
  MarkedText out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t size = out.size() + separator.size() + parts[i]->size();
    OCTAVO_TRY_VOID(budget.spend(1 + (separator.cost() + parts[i]->cost()) / Budget::kBytesPerOperation));
    if (size > Budget::kMaxTextBytes) return budget.spend_text(size).error();
    if (i > 0) out.append(separator);
    out.append(*parts[i]);
  }
  return out;
}

Result<MarkedText> indent(const MarkedText& text, const MarkedText& indentation, bool first, bool blank,
                          Budget& budget) {
  MarkedText with_end = text;
  with_end.append(MarkedText("\n"));
  OCTAVO_TRY(const std::vector<MarkedText> lines, split_lines(with_end, /*keep_ends=*/false, budget));
  MarkedText out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool indented = i == 0 ? first : (blank || !lines[i].empty());
    const std::size_t size = out.size() + lines[i].size() + indentation.size() + 1;
    OCTAVO_TRY_VOID(budget.spend(1 + (lines[i].cost() + indentation.cost()) / Budget::kBytesPerOperation));
    if (size > Budget::kMaxTextBytes) return budget.spend_text(size).error();
    if (i > 0) out.append(MarkedText("\n"));
    if (indented) out.append(indentation);
    out.append(lines[i]);
  }
  return out;
}

Result<MarkedText> pad(const MarkedText& text, std::int64_t width, const MarkedText& fill, Side side,
                       Budget& budget) {
  const std::int64_t missing = width - code_point_count(text.text());
  if (missing <= 0) return text;
  // Python's center puts the odd space on the left when the width is odd.
  const std::int64_t half = missing / 2 + (missing & width & 1);
  const std::int64_t left = side == Side::kLeft ? 0 : (side == Side::kRight ? missing : half);
  OCTAVO_TRY(MarkedText out, repeat(fill, left, budget));
  OCTAVO_TRY(const MarkedText right, repeat(fill, missing - left, budget));
  out.append(text);
  out.append(right);
  return out;
}

MarkedText to_upper_case(const MarkedText& text) { return map_characters(text, append_upper); }

MarkedText to_lower_case(const MarkedText& text) {
  return map_characters(text, [](std::string& out, char32_t c) { append_utf8(out, to_lower(c)); });
}

MarkedText capitalize(const MarkedText& text) {
  return map_characters(text, [first = true](std::string& out, char32_t c) mutable {
    if (first) {
      append_title(out, c);
    } else {
      append_utf8(out, to_lower(c));
    }
    first = false;
  });
}

MarkedText swap_case(const MarkedText& text) {
  return map_characters(text, [](std::string& out, char32_t c) {
    if (is_upper(c)) {
      append_utf8(out, to_lower(c));
    } else {
      append_upper(out, c);
    }
  });
}

MarkedText to_title_case(const MarkedText& text) {
  return map_characters(text, [after_letter = false](std::string& out, char32_t c) mutable {
    if (after_letter) {
      append_utf8(out, to_lower(c));
    } else {
      append_title(out, c);
    }
    after_letter = is_cased(c);
  });
}

MarkedText title_words(const MarkedText& text) {
  return map_characters(text, [previous = U' '](std::string& out, char32_t c) mutable {
    if (begins_word(previous)) {
      append_upper(out, c);
    } else {
      append_utf8(out, to_lower(c));
    }
    previous = c;
  });
}

MarkedText escape_html(const MarkedText& text) {
  return map_characters(text, [](std::string& out, char32_t c) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: append_utf8(out, c);
    }
  });
}

bool all_characters(std::string_view text, CharacterPredicate predicate) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!predicate(c.value)) return false;
    i += c.length;
  }
  return !text.empty();
}

bool is_upper_case(std::string_view text) {
  bool any = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (is_lower(c.value)) return false;
    any = any || is_upper(c.value);
    i += c.length;
  }
  return any;
}

bool is_lower_case(std::string_view text) {
  bool any = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (is_upper(c.value)) return false;
    any = any || is_lower(c.value);
    i += c.length;
  }
  return any;
}

std::int64_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return code_point_count(text) + 1;
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace octavo::tokenizer::jinja
