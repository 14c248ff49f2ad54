// A regular expression of a tokenizer.json, by PCRE2: for those that nobody here scans by hand
// (known_patterns in split_pattern.h). They are written for Oniguruma; what the two read differently is
// rewritten (\uXXXX, a class that leaves out another, `$` in front of every line feed) or refused. The only
// file that sees the library.
//
// Expressions are untrusted: they are short, and a match that takes more than a million steps from one place
// is an error. Immutable; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/split_scanners.h"

namespace octavo::tokenizer {

class TextRegex {
 public:
  static constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 10;

  // kUnsupported, with the reason.
  static Result<TextRegex> compile(std::string_view source);

  // Appends all matches, ascending, empty ones included, but none right behind the one before it that is
  // empty. REQUIRES: text is valid UTF-8.  Error: kUnsupported, a match took too long
  Result<void> find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Compiled;
  explicit TextRegex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace octavo::tokenizer
