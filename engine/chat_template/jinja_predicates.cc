#include "engine/chat_template/jinja_predicates.h"

#include <algorithm>
#include <iterator>

#include "engine/base/text.h"
#include "engine/chat_template/jinja_operators.h"
#include "engine/chat_template/jinja_text.h"

namespace octavo::tokenizer::jinja {
namespace {

using Predicate = bool (*)(const Value& value);

struct NamedPredicate {
  std::string_view name;
  Predicate holds;
};

bool is_iterable(const Value& v) {
  return v.is_list() || v.is_text() || v.is_dict() || v.is_undefined() || v.is_loop();
}

constexpr NamedPredicate kPredicates[] = {
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
    {"none", [](const Value& v) { return v.is_none(); }},
    {"boolean", [](const Value& v) { return v.is_bool(); }},
    {"true", [](const Value& v) { return v.is_bool() && v.integer() != 0; }},
    {"false", [](const Value& v) { return v.is_bool() && v.integer() == 0; }},
    {"integer", [](const Value& v) { return v.is_integer(); }},
    {"float", [](const Value& v) { return v.is_float(); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"string", [](const Value& v) { return v.is_text(); }},
    {"mapping", [](const Value& v) { return v.is_dict(); }},
    {"sequence", [](const Value& v) { return v.is_list() || v.is_text() || v.is_dict(); }},
    {"iterable", is_iterable},
    {"callable", [](const Value& v) { return v.is_callable(); }},
    {"escaped", [](const Value&) { return false; }},
    {"lower", [](const Value& v) { return v.is_text() && is_lower_case(v.string()); }},
    {"upper", [](const Value& v) { return v.is_text() && is_upper_case(v.string()); }},
};

struct NamedComparison {
  std::string_view name;
  Operator op;
};

constexpr NamedComparison kComparisons[] = {
    {"eq", Operator::kEqual},      {"equalto", Operator::kEqual},   {"==", Operator::kEqual},
    {"ne", Operator::kNotEqual},   {"!=", Operator::kNotEqual},     {"lt", Operator::kLess},
    {"lessthan", Operator::kLess}, {"<", Operator::kLess},          {"le", Operator::kLessEqual},
    {"<=", Operator::kLessEqual},  {"gt", Operator::kGreater},      {"greaterthan", Operator::kGreater},
    {">", Operator::kGreater},     {"ge", Operator::kGreaterEqual}, {">=", Operator::kGreaterEqual},
    {"in", Operator::kIn},
};

template <class Entry, std::size_t kSize>
const Entry* find_named(const Entry (&entries)[kSize], std::string_view name) {
  const auto found =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.name == name; });
  return found == std::end(entries) ? nullptr : found;
}

Result<bool> is_divisible(const Value& value, const Value& by, Budget& budget) {
  OCTAVO_TRY(const Value remainder, apply_binary(Operator::kModulo, value, by, budget));
  return equals(remainder, Value(std::int64_t{0}), budget);
}

Result<bool> is_odd(const Value& value, Budget& budget) {
  OCTAVO_TRY(const Value remainder, apply_binary(Operator::kModulo, value, Value(std::int64_t{2}), budget));
  return equals(remainder, Value(std::int64_t{1}), budget);
}

}  // namespace

Result<bool> apply_predicate(std::string_view name, const Value& value, const Arguments& arguments,
                             Budget& budget) {
  const std::vector<Value>& others = arguments.positional;
  if (!arguments.named.empty()) return failure("tests take no named arguments");
  if (const NamedPredicate* predicate = find_named(kPredicates, name)) {
    if (!others.empty()) return failure("the test '" + std::string(name) + "' takes no arguments");
    return predicate->holds(value);
  }
  if (name == "odd" && others.empty()) return is_odd(value, budget);
  if (name == "even" && others.empty()) return is_divisible(value, Value(std::int64_t{2}), budget);
  if (others.size() == 1) {
    if (const NamedComparison* comparison = find_named(kComparisons, name)) {
      return apply_comparison(comparison->op, value, others[0], budget);
    }
    if (name == "divisibleby") return is_divisible(value, others[0], budget);
    if (name == "sameas") return value.is_same_as(others[0]);
  }
  return failure("the test '" + escape_for_message(name, 60) + "' with " + std::to_string(others.size()) +
                 " arguments is not supported");
}

}  // namespace octavo::tokenizer::jinja
