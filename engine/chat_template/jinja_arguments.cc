#include "engine/chat_template/jinja_arguments.h"

#include <algorithm>

#include "engine/base/text.h"

namespace octavo::tokenizer::jinja {
namespace {

std::string in_quotes(std::string_view name) {
  std::string text = "'";
  text += escape_for_message(name, 60);
  text += '\'';
  return text;
}

}  // namespace

Result<std::optional<std::string>> Bound::text(std::size_t i, std::string_view parameter) const {
  if (!has(i) || values_[i]->is_none()) return std::optional<std::string>();
  if (values_[i]->is_text()) return std::optional(values_[i]->string());
  return failure(in_quotes(parameter) + " must be a string, not " + values_[i]->type_name());
}

Result<std::int64_t> Bound::integer(std::size_t i, std::string_view parameter, std::int64_t fallback) const {
  if (!has(i)) return fallback;
  if (values_[i]->is_whole()) return values_[i]->integer();
  return failure(in_quotes(parameter) + " must be an integer, not " + values_[i]->type_name());
}

Result<Bound> bind_arguments(std::string_view callee, const Arguments& arguments,
                             std::span<const std::string_view> parameters, std::size_t num_required) {
  const std::string name = in_quotes(callee);
  if (arguments.positional.size() > parameters.size()) {
    return failure(name + " takes at most " + std::to_string(parameters.size()) + " arguments");
  }
  std::vector<std::optional<Value>> values(parameters.size());
  std::copy(arguments.positional.begin(), arguments.positional.end(), values.begin());
  for (const auto& [parameter, value] : arguments.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), parameter);
    if (found == parameters.end()) {
      return failure(name + " has no parameter " + in_quotes(parameter));
    }
    std::optional<Value>& slot = values[static_cast<std::size_t>(found - parameters.begin())];
    if (slot) return failure(name + " got " + in_quotes(parameter) + " twice");
    slot = value;
  }
  for (std::size_t i = 0; i < num_required; ++i) {
    if (!values[i]) return failure(name + " needs the argument " + in_quotes(parameters[i]));
  }
  return Bound(std::move(values));
}

}  // namespace octavo::tokenizer::jinja
