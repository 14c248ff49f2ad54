// Template source to tokens, by the rules of Jinja 3.1 with the settings that Hugging Face uses for chat
// templates: trim_blocks and lstrip_blocks are on, a single trailing line break is dropped, line breaks are
// normalised to \n.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::tokenizer::jinja {

enum class TokenType : std::uint8_t {
  kData,  // template text, white space control applied
  kOutputBegin,
  kOutputEnd,
  kStatementBegin,
  kStatementEnd,
  kName,
  kString,  // text: unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;
  int line = 1;
};

// The last token is kEnd. Errors are sentences with the line.
Result<std::vector<Token>> tokenize_template(std::string_view source);

// Of an unacceptable template.
Error syntax_error(int line, const std::string& what);

}  // namespace octavo::tokenizer::jinja
