// Tokens to a tree: Jinja's grammar as chat templates use it. Not supported, each with a sentence that says
// so: include, import, extends, block, call blocks, autoescape, recursive loops, star arguments.
#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "engine/chat_template/jinja_syntax.h"

namespace octavo::tokenizer::jinja {

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 128;          // brackets in brackets, blocks in blocks
inline constexpr int kMaxExpressionDepth = 400;  // a chain such as a + b + c is as deep as it is long

Result<Block> parse_template(std::string_view source);

}  // namespace octavo::tokenizer::jinja
