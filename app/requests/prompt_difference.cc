#include "app/requests/prompt_difference.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::size_t num_equal_tokens(std::span<const TokenId> left, std::span<const TokenId> right) {
  const std::size_t length = std::min(left.size(), right.size());
  const auto end = left.begin() + static_cast<std::ptrdiff_t>(length);
  return static_cast<std::size_t>(std::mismatch(left.begin(), end, right.begin()).first - left.begin());
}

// ---- text

constexpr std::size_t kMostBytesOfToken = 200;  // of a vocabulary that a file made up

void append_readable(std::string& text, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = decode_utf8(bytes, i).length;
    const std::string_view character = bytes.substr(i, length);
    text += character == "\n" || character == "\t" ? std::string(character) : escape_for_message(character);
    i += length;
  }
}

std::string bytes_of(const tokenizer::Tokenizer& tokenizer, TokenId token_id) {
  const bool exists = token_id >= 0 && token_id < tokenizer.vocabulary_size();
  return exists ? std::string(tokenizer.token_bytes(token_id).substr(0, kMostBytesOfToken))
                : "<token " + std::to_string(token_id) + ">";
}

// Bytes first, then characters: most tokens that hold a part of a character stand beside the rest of it.
std::string readable_text(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens,
                          std::size_t begin, std::size_t end) {
  std::string bytes;
  for (std::size_t i = begin; i < std::min(end, tokens.size()); ++i) bytes += bytes_of(tokenizer, tokens[i]);
  std::string text;
  append_readable(text, bytes);
  return text;
}

// ---- runs

// Where in `theirs` stretches of kLeastSameRun tokens begin, by a hash of them.
class StretchPlaces {
 public:
  StretchPlaces(const PromptWithAnswer& tokens, std::size_t begin) {
    hash_stretches(tokens, begin, [&](std::size_t position, std::uint64_t hash) {
      places_.push_back({hash, position});
    });
    std::sort(places_.begin(), places_.end());
  }

  // The first that does not lie before `least`, else the first of all.
  std::optional<std::size_t> find(std::uint64_t hash, std::size_t least) const {
    const auto next = std::lower_bound(places_.begin(), places_.end(), std::pair(hash, least));
    if (next != places_.end() && next->first == hash) return next->second;
    const auto first = std::lower_bound(places_.begin(), places_.end(), std::pair(hash, std::size_t{0}));
    if (first != places_.end() && first->first == hash) return first->second;
    return std::nullopt;
  }

  // Calls `tell` with the place and the hash of every stretch from `begin` on.
  template <class Tell>
  static void hash_stretches(const PromptWithAnswer& tokens, std::size_t begin, Tell tell) {
    constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15u;
    std::uint64_t leaving_weight = 1;
    for (std::size_t i = 0; i < kLeastSameRun; ++i) leaving_weight *= kBase;
    const auto digit = [&](std::size_t i) {
      return std::uint64_t{static_cast<std::uint32_t>(tokens[i])} + 1;
    };
    std::uint64_t hash = 0;
    for (std::size_t i = begin; i < tokens.size(); ++i) {
      hash = hash * kBase + digit(i);
      if (i >= begin + kLeastSameRun) hash -= leaving_weight * digit(i - kLeastSameRun);
      if (i + 1 >= begin + kLeastSameRun) tell(i + 1 - kLeastSameRun, hash);
    }
  }

 private:
  std::vector<std::pair<std::uint64_t, std::size_t>> places_;  // ascending
};

// ---- kinds of text; only of ASCII, whatever the locale

bool is_word_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word_char(char c) { return is_word_digit(c) || is_word_letter(c); }
bool is_stamp_char(char c) {
  return is_word_char(c) || std::string_view(":-/.+").find(c) != std::string_view::npos;
}

// Reaches to both sides of `position` as far as `belongs` holds.
template <class Belongs>
std::string_view stretch_around(std::string_view text, std::size_t position, Belongs belongs) {
  std::size_t begin = std::min(position, text.size()), end = begin;
  while (begin > 0 && belongs(text[begin - 1])) --begin;
  while (end < text.size() && belongs(text[end])) ++end;
  return text.substr(begin, end - begin);
}

bool is_number_word(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_word_digit);
}

// Whether `text` somewhere has the shape: 0 stands for a digit, anything else for itself.
bool has_shape(std::string_view text, std::string_view shape) {
  for (std::size_t begin = 0; begin + shape.size() <= text.size(); ++begin) {
    const std::string_view part = text.substr(begin, shape.size());
    const bool fits = std::equal(part.begin(), part.end(), shape.begin(), [](char c, char wanted) {
      return wanted == '0' ? is_word_digit(c) : c == wanted;
    });
    if (fits) return true;
  }
  return false;
}

bool looks_like_stamp(std::string_view stretch) {
  static constexpr std::array<std::string_view, 7> kShapes = {"0:00",    "0000-00", "0000/0", "0000.00.",
                                                              "00.0000", "0/0000",  "0-0000"};
  return std::any_of(kShapes.begin(), kShapes.end(),
                     [&](std::string_view shape) { return has_shape(stretch, shape); });
}

// "March", "Mar", and only with a capital: "may" is a word.
bool names_calendar(std::string_view word, std::span<const std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return word == name || word == name.substr(0, 3); });
}
constexpr std::array<std::string_view, 12> kMonthNames = {"January",   "February", "March",    "April",
                                                          "May",       "June",     "July",     "August",
                                                          "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDayNames = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                       "Friday", "Saturday", "Sunday"};

// The words beside the one around `position`, with at most two characters between.
std::array<std::string_view, 2> words_beside(std::string_view text, std::size_t position) {
  const std::string_view word = stretch_around(text, position, is_word_char);
  const auto begin = static_cast<std::size_t>(word.data() - text.data());
  std::array<std::string_view, 2> beside;
  for (std::size_t gap = 1; gap <= 2; ++gap) {
    if (beside[0].empty() && begin >= gap)
      beside[0] = stretch_around(text.substr(0, begin - gap + 1), begin - gap, is_word_char);
    const std::size_t next = begin + word.size() + gap;
    if (beside[1].empty() && next < text.size() && is_word_char(text[next]))
      beside[1] = stretch_around(text, next, is_word_char);
  }
  return beside;
}

bool looks_like_time(std::string_view text, std::size_t position) {
  const std::string_view word = stretch_around(text, position, is_word_char);
  if (word.empty()) return false;
  const bool has_digit = std::any_of(word.begin(), word.end(), is_word_digit);
  if (has_digit && looks_like_stamp(stretch_around(text, position, is_stamp_char))) return true;
  const bool counts_seconds =
      is_number_word(word) && word[0] == '1' && (word.size() == 10 || word.size() == 13);
  if (counts_seconds) return true;
  const auto beside = words_beside(text, position);
  const auto either = [&](auto holds) { return holds(beside[0]) || holds(beside[1]); };
  if (has_digit && word.size() <= 4)  // "24th November", "November 24, 2026"
    return either([](std::string_view name) { return names_calendar(name, kMonthNames); });
  if (std::find(kDayNames.begin(), kDayNames.end(), word) != kDayNames.end()) return true;
  return (names_calendar(word, kMonthNames) || names_calendar(word, kDayNames)) && either(is_number_word);
}

// "10", "step10": digits at the end of the same label, if any.
bool is_numbered_alike(std::string_view mine, std::string_view theirs) {
  const auto label_of = [](std::string_view word) {
    while (!word.empty() && is_word_digit(word.back())) word.remove_suffix(1);
    return word;
  };
  const std::string_view label = label_of(mine);
  return label.size() < mine.size() && label == label_of(theirs) && label.size() < theirs.size() &&
         std::all_of(label.begin(), label.end(), is_word_letter);
}

bool looks_like_checksum(std::string_view mine, std::string_view theirs) {
  const auto is_mixed = [](std::string_view word) {
    return std::any_of(word.begin(), word.end(), is_word_digit) &&
           std::any_of(word.begin(), word.end(), is_word_letter);
  };
  return mine.size() >= 5 && mine.size() == theirs.size() && (is_mixed(mine) || is_mixed(theirs));
}

}  // namespace

std::size_t common_prefix_len(std::span<const TokenId> mine, const PromptWithAnswer& theirs) {
  const std::size_t in_prompt = num_equal_tokens(mine, theirs.prompt);
  if (in_prompt < theirs.prompt.size()) return in_prompt;
  return in_prompt + num_equal_tokens(mine.subspan(in_prompt), theirs.answer);
}

std::optional<NearestPrompt> nearest_prompt(std::span<const TokenId> mine,
                                            std::span<const EarlierPrompt> earlier) {
  std::optional<NearestPrompt> nearest;
  for (std::size_t index = 0; index < earlier.size(); ++index) {
    const std::size_t num_common = common_prefix_len(mine, earlier[index].tokens);
    if (num_common == 0 || (nearest && num_common < nearest->num_common)) continue;
    const bool loses_tie = nearest && num_common == nearest->num_common &&
                           earlier[nearest->index].is_of_same_client && !earlier[index].is_of_same_client;
    if (!loses_tie) nearest = {index, num_common};
  }
  return nearest;
}

TextAround text_around(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens,
                       std::size_t position) {
  const std::size_t begin = position - std::min(position, kNumTokensAround);
  return {.before = readable_text(tokenizer, tokens, begin, position),
          .token = readable_text(tokenizer, tokens, position, position + 1),
          .after = readable_text(tokenizer, tokens, position + 1, position + 1 + kNumTokensAround)};
}

TokenisedText tokenised_text(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens) {
  TokenisedText tokenised;
  tokenised.ends.reserve(tokens.size());
  std::string bytes;  // that are not in the text yet
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    bytes += bytes_of(tokenizer, tokens[i]);
    const bool is_last = i + 1 == tokens.size();
    const std::size_t whole = bytes.size() - (is_last ? 0 : incomplete_utf8_suffix(bytes));
    append_readable(tokenised.text, std::string_view(bytes).substr(0, whole));
    bytes.erase(0, whole);
    tokenised.ends.push_back(static_cast<std::uint32_t>(tokenised.text.size()));
  }
  return tokenised;
}

std::vector<SameRun> same_runs(std::span<const TokenId> mine, const PromptWithAnswer& theirs,
                               std::size_t begin) {
  std::vector<SameRun> runs;
  if (begin + kLeastSameRun > std::min(mine.size(), theirs.size())) return runs;
  const StretchPlaces places(theirs, begin);
  std::size_t mine_end = begin, theirs_end = begin;  // of the run before
  StretchPlaces::hash_stretches({.prompt = mine}, begin, [&](std::size_t position, std::uint64_t hash) {
    if (position < mine_end) return;
    const auto place = places.find(hash, theirs_end);
    if (!place) return;
    std::size_t length = 0;
    while (position + length < mine.size() && *place + length < theirs.size() &&
           mine[position + length] == theirs[*place + length])
      ++length;
    if (length < kLeastSameRun) return;  // other tokens of the same hash
    runs.push_back({.mine = position, .theirs = *place, .length = length});
    mine_end = position + length;
    theirs_end = *place + length;
  });
  return runs;
}

bool is_reordered(std::span<const SameRun> runs) {
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].theirs < runs[i - 1].theirs) return true;
  return false;
}

ChangeKind change_kind(const TextAround& mine, const TextAround& theirs) {
  const std::string my_text = mine.before + mine.token + mine.after;
  const std::string their_text = theirs.before + theirs.token + theirs.after;
  const auto differs = std::mismatch(my_text.begin(), my_text.end(), their_text.begin(), their_text.end());
  const auto position = static_cast<std::size_t>(differs.first - my_text.begin());
  const std::string_view my_word = stretch_around(my_text, position, is_word_char);
  const std::string_view their_word = stretch_around(their_text, position, is_word_char);
  if (my_word.empty() || their_word.empty() || my_word == their_word) return ChangeKind::kText;
  if (looks_like_time(my_text, position) && looks_like_time(their_text, position)) return ChangeKind::kTime;
  if (is_numbered_alike(my_word, their_word)) return ChangeKind::kNumber;
  return looks_like_checksum(my_word, their_word) ? ChangeKind::kChecksum : ChangeKind::kText;
}

}  // namespace octavo::app
