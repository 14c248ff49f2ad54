// Runs a parsed template. A rendering ends within Budget's limits whatever the template says; it reads
// nothing but the variables and the date that it is given. Any thread; a Template is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/chat_template/jinja_syntax.h"

namespace octavo::tokenizer::jinja {

inline constexpr int kMaxCallDepth = 64;  // macros in macros
// Expressions and statements inside each other, over all calls
inline constexpr int kMaxEvaluationDepth = 1000;
inline constexpr std::int64_t kMaxRange = 100'000;

class Template {
 public:
  using Variables = std::vector<std::pair<std::string, Value>>;

  static Result<Template> parse(std::string_view source);

  // `now`: seconds since 1970, UTC, for strftime_now. Errors are sentences with the line.
  Result<MarkedText> render(const Variables& variables, std::int64_t now) const;

 private:
  explicit Template(Block block) : block_(std::move(block)) {}

  Block block_;
};

}  // namespace octavo::tokenizer::jinja
