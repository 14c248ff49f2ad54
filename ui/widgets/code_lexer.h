// Splits a line of source code into what a reader tells apart at a glance: comments, strings, numbers,
// keywords, types and calls. One lexer for every language; a table says what differs. It never fails: text
// that is no valid program gets plainer colours.
//
// Linear in the line. What continues over line breaks (a block comment, a long string) is handed from line to
// line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::ui {

enum class CodeKind : std::uint8_t {
  kPlain,
  kComment,
  kString,
  kNumber,
  kKeyword,
  kType,  // and keys, attributes, variables of a shell
  kFunction,
  kAdded,  // of a diff
  kRemoved
};

// Bytes [begin, end) of the line.
struct CodeToken {
  std::uint32_t begin = 0, end = 0;
  CodeKind kind = CodeKind::kPlain;
  bool operator==(const CodeToken&) const = default;
};

struct CodeSyntax;  // one language's row of the table

// What a line begins in.
struct CodeState {
  enum class Inside : std::uint8_t { kNothing, kComment, kLongString, kTag };
  Inside inside = Inside::kNothing;
  std::uint8_t which = 0;  // of the language's long strings
  bool operator==(const CodeState&) const = default;
};

// By the name behind a fence, whatever its case: "cpp", "TypeScript", "sh". nullptr for a language that is
// not known.
const CodeSyntax* find_syntax(std::string_view name);

// How the language is called for readers: "C++".
std::string_view syntax_title(const CodeSyntax& syntax);

// Appends the tokens of `line` that are not plain, in order, and leaves in `state` what the next line begins
// in.
void lex_line(const CodeSyntax& syntax, std::string_view line, CodeState& state,
              std::vector<CodeToken>& tokens);

}  // namespace octavo::ui
