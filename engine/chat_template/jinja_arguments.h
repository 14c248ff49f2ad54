// Arguments of a call, and how they meet parameter names, as in Python.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named = {};
};

// Values by parameter; nullopt where the call gave none.
class Bound {
 public:
  explicit Bound(std::vector<std::optional<Value>> values) : values_(std::move(values)) {}

  bool has(std::size_t i) const { return values_[i].has_value(); }
  const Value& operator[](std::size_t i) const { return *values_[i]; }  // REQUIRES: has(i)
  Value value_or(std::size_t i, Value fallback) const { return has(i) ? *values_[i] : std::move(fallback); }
  bool is_true(std::size_t i) const { return has(i) && jinja::is_true(*values_[i]); }

  // Of a parameter that must be what its name says when it is given; a missing or none text is nullopt.
  Result<std::optional<std::string>> text(std::size_t i, std::string_view parameter) const;
  Result<std::int64_t> integer(std::size_t i, std::string_view parameter, std::int64_t fallback) const;

 private:
  std::vector<std::optional<Value>> values_;
};

// `callee` is for messages. The first `num_required` parameters must be given.
Result<Bound> bind_arguments(std::string_view callee, const Arguments& arguments,
                             std::span<const std::string_view> parameters, std::size_t num_required = 0);

}  // namespace octavo::tokenizer::jinja
