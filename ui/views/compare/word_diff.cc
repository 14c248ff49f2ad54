#include "ui/views/compare/word_diff.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "engine/base/text.h"

namespace octavo::ui {
namespace {

constexpr char32_t kFirstWithoutSpaces = 0x2e80;  // CJK and what follows

struct Word {
  std::uint32_t begin = 0, end = 0;  // with the white space behind it
  std::uint32_t letters_end = 0;
};

bool is_space(char32_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool is_letter(char32_t c) {
  const bool ascii_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return ascii_letter || c == '_' || c == '\'' || (c >= 0x80 && c < kFirstWithoutSpaces);
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::size_t at = 0;
  const auto take_while = [&](auto is_wanted) {
    while (at < text.size()) {
      const CodePoint point = decode_utf8(text, at);
      if (!is_wanted(point.value)) break;
      at += point.length;
    }
  };
  while (at < text.size()) {
    Word word{.begin = static_cast<std::uint32_t>(at)};
    const CodePoint first = decode_utf8(text, at);
    if (is_letter(first.value)) {
      take_while(is_letter);
    } else if (!is_space(first.value)) {
      at += first.length;
    }
    word.letters_end = static_cast<std::uint32_t>(at);
    take_while(is_space);
    word.end = static_cast<std::uint32_t>(at);
    words.push_back(word);
  }
  return words;
}

using Numbers = std::span<const std::uint32_t>;

// Equal words get equal numbers.
class Numbering {
 public:
  std::vector<std::uint32_t> number(std::string_view text, const std::vector<Word>& words) {
    std::vector<std::uint32_t> result;
    for (const Word& word : words) {
      const auto letters = text.substr(word.begin, word.letters_end - word.begin);
      result.push_back(known_.try_emplace(letters, static_cast<std::uint32_t>(known_.size())).first->second);
    }
    return result;
  }

 private:
  std::unordered_map<std::string_view, std::uint32_t> known_;
};

// A run of equal words in the middle of some shortest script: a[x, u) = b[y, v).
struct MiddleSnake {
  std::ptrdiff_t x = 0, y = 0, u = 0, v = 0;
};

// One direction of the search: how far each diagonal k = x - y is reached with d edits.
class Reach {
 public:
  Reach(std::ptrdiff_t n, std::ptrdiff_t m) : n_(n), m_(m), far_(static_cast<std::size_t>(n + m + 3), 0) {}

  std::ptrdiff_t lowest(std::ptrdiff_t d) const { return -(d - 2 * std::max<std::ptrdiff_t>(0, d - m_)); }
  std::ptrdiff_t highest(std::ptrdiff_t d) const { return d - 2 * std::max<std::ptrdiff_t>(0, d - n_); }
  std::ptrdiff_t start(std::ptrdiff_t d, std::ptrdiff_t k) const {
    const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
    return down ? at(k + 1) : at(k - 1) + 1;
  }
  std::ptrdiff_t at(std::ptrdiff_t k) const { return far_[static_cast<std::size_t>(k + m_ + 1)]; }
  void set(std::ptrdiff_t k, std::ptrdiff_t x) { far_[static_cast<std::size_t>(k + m_ + 1)] = x; }

 private:
  std::ptrdiff_t n_, m_;
  std::vector<std::ptrdiff_t> far_;
};

// REQUIRES: neither is empty
MiddleSnake middle_snake(Numbers a, Numbers b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t delta = n - m;
  const bool odd = (delta & 1) != 0;
  Reach forward(n, m), backward(n, m);
  const auto same_forward = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)];
  };
  const auto same_backward = [&](std::ptrdiff_t x, std::ptrdiff_t y) {
    return a[static_cast<std::size_t>(n - 1 - x)] == b[static_cast<std::size_t>(m - 1 - y)];
  };
  for (std::ptrdiff_t d = 0;; ++d) {
    for (std::ptrdiff_t k = forward.lowest(d); k <= forward.highest(d); k += 2) {
      const std::ptrdiff_t x = forward.start(d, k), y = x - k;
      std::ptrdiff_t u = x, v = y;
      while (u < n && v < m && same_forward(u, v)) ++u, ++v;
      forward.set(k, u);
      const std::ptrdiff_t opposite = delta - k;
      if (odd && std::abs(opposite) <= d - 1 && u + backward.at(opposite) >= n) return {x, y, u, v};
    }
    for (std::ptrdiff_t k = backward.lowest(d); k <= backward.highest(d); k += 2) {
      const std::ptrdiff_t x = backward.start(d, k), y = x - k;
      std::ptrdiff_t u = x, v = y;
      while (u < n && v < m && same_backward(u, v)) ++u, ++v;
      backward.set(k, u);
      const std::ptrdiff_t opposite = delta - k;
      if (!odd && std::abs(opposite) <= d && u + forward.at(opposite) >= n)
        return {n - u, m - v, n - x, m - y};
    }
  }
}

// Marks the words of a that go and those of b that come, from these offsets on.
void mark_changes(Numbers a, Numbers b, std::size_t offset_a, std::size_t offset_b,
                  std::vector<bool>& removed, std::vector<bool>& inserted) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a = a.subspan(1), b = b.subspan(1);
    ++offset_a, ++offset_b;
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a = a.first(a.size() - 1), b = b.first(b.size() - 1);
  }
  if (a.empty() || b.empty()) {
    for (std::size_t i = 0; i < a.size(); ++i) removed[offset_a + i] = true;
    for (std::size_t i = 0; i < b.size(); ++i) inserted[offset_b + i] = true;
    return;
  }
  const MiddleSnake snake = middle_snake(a, b);
  const auto x = static_cast<std::size_t>(snake.x), y = static_cast<std::size_t>(snake.y);
  const auto u = static_cast<std::size_t>(snake.u), v = static_cast<std::size_t>(snake.v);
  mark_changes(a.first(x), b.first(y), offset_a, offset_b, removed, inserted);
  mark_changes(a.subspan(u), b.subspan(v), offset_a + u, offset_b + v, removed, inserted);
}

void add_word(WordDiff& diff, DiffKind kind, const Word& word) {
  if (!diff.segments.empty() && diff.segments.back().kind == kind && diff.segments.back().end == word.begin) {
    diff.segments.back().end = word.end;
  } else {
    diff.segments.push_back({kind, word.begin, word.end});
  }
}

}  // namespace

WordDiff diff_words(std::string_view reference, std::string_view other) {
  const std::vector<Word> words_a = words_of(reference), words_b = words_of(other);
  Numbering numbering;
  const auto a = numbering.number(reference, words_a), b = numbering.number(other, words_b);
  std::vector<bool> removed(a.size(), false), inserted(b.size(), false);
  mark_changes(a, b, 0, 0, removed, inserted);
  WordDiff diff;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    for (; i < a.size() && removed[i]; ++i, ++diff.num_removed)
      add_word(diff, DiffKind::kRemoved, words_a[i]);
    for (; j < b.size() && inserted[j]; ++j, ++diff.num_inserted)
      add_word(diff, DiffKind::kInserted, words_b[j]);
    if (i < a.size() && j < b.size() && !removed[i] && !inserted[j]) {
      add_word(diff, DiffKind::kEqual, words_b[j]);
      ++i, ++j;
    }
  }
  return diff;
}

}  // namespace octavo::ui
