#include "engine/chat_template/jinja_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/text.h"
#include "engine/chat_template/jinja_methods.h"
#include "engine/chat_template/jinja_text.h"

namespace octavo::tokenizer::jinja {
namespace {

Error out_of_range() { return failure("a number is out of range"); }

Error no_operation(const Value& left, const Value& right) {
  if (left.is_undefined()) return failure(left.undefined_reason());
  if (right.is_undefined()) return failure(right.undefined_reason());
  return failure("the operator does not take " + left.type_name() + " and " + right.type_name());
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double float_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Outcome power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return failure("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? std::int64_t{1} : base);
  if (base == -1) return Value(std::int64_t{exponent % 2 == 0 ? 1 : -1});
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return out_of_range();
  }
  return Value(result);
}

Outcome whole_arithmetic(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool divides = op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return failure("division by zero");
  const bool overflows = divides && b == -1 && a == std::numeric_limits<std::int64_t>::min();
  if (overflows) return out_of_range();
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Outcome(out_of_range()) : Value(result);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Outcome(out_of_range()) : Value(result);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Outcome(out_of_range()) : Value(result);
    case Operator::kDivide: return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide: return Value(floor_divide(a, b));
    case Operator::kModulo: return Value(a - floor_divide(a, b) * b);
    default: return power(a, b);
  }
}

Outcome float_arithmetic(Operator op, double a, double b) {
  const bool divides = op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return failure("division by zero");
  switch (op) {
    case Operator::kAdd: return Value(a + b);
    case Operator::kSubtract: return Value(a - b);
    case Operator::kMultiply: return Value(a * b);
    case Operator::kDivide: return Value(a / b);
    case Operator::kFloorDivide: return Value(std::floor(a / b));
    case Operator::kModulo: return Value(float_modulo(a, b));
    default: {
      const double result = std::pow(a, b);
      return std::isfinite(result) ? Outcome(Value(result)) : Outcome(out_of_range());
    }
  }
}

Outcome add_texts(const MarkedText& left, const MarkedText& right, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend_text(left.size() + right.size()));
  OCTAVO_TRY_VOID(budget.spend((left.cost() + right.cost()) / Budget::kBytesPerOperation));
  MarkedText sum = left;
  sum.append(right);
  return Value(std::move(sum));
}

Outcome add_lists(const List& left, const List& right, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend_items(left.items.size() + right.items.size()));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_list(std::move(items), left.is_tuple);
}

Outcome repeat_list(const List& list, std::int64_t times, Budget& budget) {
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times && !list.items.empty(); ++i) {
    OCTAVO_TRY_VOID(budget.spend_items(list.items.size()));
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_list(std::move(items), list.is_tuple);
}

Outcome multiply(const Value& value, std::int64_t times, Budget& budget) {
  if (value.is_list()) return repeat_list(*value.list(), times, budget);
  OCTAVO_TRY(MarkedText repeated, repeat(*value.text(), times, budget));
  return Value(std::move(repeated));
}

bool is_repeatable(const Value& value) { return value.is_text() || value.is_list(); }

std::optional<Value> find_loop_attribute(const Loop& loop, std::string_view name) {
  const std::vector<Value>& items = loop.items->items;
  const auto index = static_cast<std::int64_t>(loop.index), size = static_cast<std::int64_t>(items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth")
    return Value(std::int64_t{1});  // deeper only in recursive loops, which are not supported
  if (name == "depth0") return Value(std::int64_t{0});
  if (name == "previtem")
    return index > 0 ? items[loop.index - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < size ? items[loop.index + 1] : Value::undefined("there is no next item");
  return std::nullopt;
}

// Attributes in Python's sense: methods, and the fields of loops and namespaces.
std::optional<Value> find_attribute(const Value& value, std::string_view name) {
  if (name.starts_with('_')) return std::nullopt;
  if (value.is_namespace()) {
    for (const auto& [attribute, content] : value.name_space()->attributes) {
      if (attribute == name) return content;
    }
    return std::nullopt;
  }
  if (value.is_loop()) {
    if (std::optional<Value> attribute = find_loop_attribute(*value.loop(), name)) return attribute;
  }
  if (!has_method(value, name)) return std::nullopt;
  auto method = std::make_shared<Callable>();
  method->kind = Callable::Kind::kMethod;
  method->name = std::string(name);
  method->self = std::make_shared<const Value>(value);
  return Value(std::shared_ptr<const Callable>(std::move(method)));
}

Value missing(const Value& value, const std::string& what) {
  return Value::undefined("a " + value.type_name() + " has no " + what);
}

// Python's rule for negative positions; nullopt when outside.
std::optional<std::size_t> position(std::int64_t index, std::int64_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<std::size_t>(index);
}

// The entry of a container, or nullopt when there is none.
Result<std::optional<Value>> find_item(const Value& value, const Value& key, Budget& budget) {
  if (value.is_dict()) {
    OCTAVO_TRY(const Value* entry, find_entry(value.dict(), key, budget));
    return entry != nullptr ? std::optional(*entry) : std::nullopt;
  }
  if (!key.is_whole()) return std::optional<Value>();
  if (value.is_list()) {
    const auto at = position(key.integer(), static_cast<std::int64_t>(value.items().size()));
    return at ? std::optional(value.items()[*at]) : std::nullopt;
  }
  if (!value.is_text()) return std::optional<Value>();
  OCTAVO_TRY_VOID(budget.spend(1 + value.text()->size() / Budget::kBytesPerOperation));
  const std::vector<std::size_t> starts = code_point_starts(value.string());
  const auto at = position(key.integer(), static_cast<std::int64_t>(starts.size()) - 1);
  if (!at) return std::optional<Value>();
  return std::optional(Value(value.text()->slice(starts[*at], starts[*at + 1])));
}

// Python's slice.indices().
struct SliceRange {
  std::int64_t start, stop, step;
};

Result<std::optional<std::int64_t>> slice_bound(const Value& value) {
  if (value.is_none()) return std::optional<std::int64_t>();
  if (value.is_whole()) return std::optional(value.integer());
  if (value.is_undefined()) return failure(value.undefined_reason());
  return failure("a slice takes integers, not " + value.type_name());
}

std::int64_t clamp_bound(std::int64_t bound, std::int64_t size, std::int64_t lowest, std::int64_t highest) {
  if (bound < 0) return std::max(bound + size, lowest);
  return std::min(bound, highest);
}

Result<SliceRange> slice_range(const Value& start, const Value& stop, const Value& step, std::int64_t size) {
  OCTAVO_TRY(const auto given_step, slice_bound(step));
  OCTAVO_TRY(const auto given_start, slice_bound(start));
  OCTAVO_TRY(const auto given_stop, slice_bound(stop));
  const std::int64_t by = given_step.value_or(1);
  if (by == 0) return failure("the step of a slice cannot be 0");
  const std::int64_t lowest = by < 0 ? -1 : 0, highest = by < 0 ? size - 1 : size;
  SliceRange range{by < 0 ? highest : lowest, by < 0 ? lowest : highest, by};
  if (given_start) range.start = clamp_bound(*given_start, size, lowest, highest);
  if (given_stop) range.stop = clamp_bound(*given_stop, size, lowest, highest);
  return range;
}

template <class Visit>
void visit_slice(const SliceRange& range, Visit visit) {
  const bool up = range.step > 0;
  for (std::int64_t i = range.start; up ? i < range.stop : i > range.stop;) {
    visit(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, range.step, &i)) return;
  }
}

Outcome slice_text(const MarkedText& text, const Value& start, const Value& stop, const Value& step,
                   Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend(1 + text.cost() / Budget::kBytesPerOperation));
  const std::vector<std::size_t> starts = code_point_starts(text.text());
  OCTAVO_TRY(const SliceRange range,
             slice_range(start, stop, step, static_cast<std::int64_t>(starts.size()) - 1));
  if (range.step == 1) {
    if (range.start >= range.stop) return Value("");
    return Value(text.slice(starts[static_cast<std::size_t>(range.start)],
                            starts[static_cast<std::size_t>(range.stop)]));
  }
  OCTAVO_TRY_VOID(budget.spend(text.size() / 4));
  MarkedText out;
  visit_slice(range, [&](std::size_t i) { out.append(text, starts[i], starts[i + 1]); });
  return Value(std::move(out));
}

}  // namespace

Outcome apply_binary(Operator op, const Value& left, const Value& right, Budget& budget) {
  if (left.is_whole() && right.is_whole()) return whole_arithmetic(op, left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return float_arithmetic(op, left.number(), right.number());
  if (op == Operator::kAdd) {
    if (left.is_text() && right.is_text()) return add_texts(*left.text(), *right.text(), budget);
    const bool lists = left.is_list() && right.is_list() && left.list()->is_tuple == right.list()->is_tuple;
    if (lists) return add_lists(*left.list(), *right.list(), budget);
  }
  if (op == Operator::kMultiply) {
    if (is_repeatable(left) && right.is_whole()) return multiply(left, right.integer(), budget);
    if (is_repeatable(right) && left.is_whole()) return multiply(right, left.integer(), budget);
  }
  if (op == Operator::kModulo && left.is_text()) return format_percent(*left.text(), right, budget);
  return no_operation(left, right);
}

Result<bool> apply_comparison(Operator op, const Value& left, const Value& right, Budget& budget) {
  switch (op) {
    case Operator::kEqual: return equals(left, right, budget);
    case Operator::kNotEqual: {
      OCTAVO_TRY(const bool equal, equals(left, right, budget));
      return !equal;
    }
    case Operator::kIn: return contains(right, left, budget);
    case Operator::kNotIn: {
      OCTAVO_TRY(const bool inside, contains(right, left, budget));
      return !inside;
    }
    default: break;
  }
  const bool unordered =
      left.is_number() && right.is_number() && (std::isnan(left.number()) || std::isnan(right.number()));
  if (unordered) return false;
  OCTAVO_TRY(const int order, compare(left, right, budget));
  switch (op) {
    case Operator::kLess: return order < 0;
    case Operator::kLessEqual: return order <= 0;
    case Operator::kGreater: return order > 0;
    default: return order >= 0;
  }
}

Outcome negative(const Value& value) {
  if (value.is_float()) return Value(-value.float_value());
  if (value.is_whole()) return whole_arithmetic(Operator::kSubtract, 0, value.integer());
  return no_operation(value, Value());
}

Outcome positive(const Value& value) {
  if (value.is_float()) return value;
  if (value.is_whole()) return Value(value.integer());
  return no_operation(value, Value());
}

Result<bool> contains(const Value& container, const Value& item, Budget& budget) {
  if (container.is_text()) {
    if (item.is_undefined()) return failure(item.undefined_reason());
    if (!item.is_text()) return failure("'in' a string needs a string on the left, not " + item.type_name());
    OCTAVO_TRY_VOID(budget.spend(1 + container.text()->size() / Budget::kBytesPerOperation));
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dict()) {
    OCTAVO_TRY(const Value* entry, find_entry(container.dict(), item, budget));
    return entry != nullptr;
  }
  OCTAVO_TRY(const std::shared_ptr<const List> list, iterate(container, budget));
  for (const Value& candidate : list->items) {
    OCTAVO_TRY(const bool equal, equals(candidate, item, budget));
    if (equal) return true;
  }
  return false;
}

Result<std::int64_t> length_of(const Value& value, Budget& budget) {
  if (value.is_undefined()) return std::int64_t{0};
  if (value.is_list()) return static_cast<std::int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<std::int64_t>(value.dict().entries.size());
  if (value.is_loop()) return static_cast<std::int64_t>(value.loop()->items->items.size());
  if (!value.is_text()) return failure("a value of type " + value.type_name() + " has no length");
  OCTAVO_TRY_VOID(budget.spend(1 + value.text()->size() / Budget::kBytesPerOperation));
  return code_point_count(value.string());
}

Outcome get_attribute(const Value& value, std::string_view name, Budget& budget) {
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (std::optional<Value> attribute = find_attribute(value, name)) return *std::move(attribute);
  if (value.is_dict() && !is_mutator(value, name)) {
    OCTAVO_TRY(std::optional<Value> entry, find_item(value, Value(name), budget));
    if (entry) return *std::move(entry);
  }
  return missing(value, "attribute '" + escape_for_message(name, 60) + "'");
}

Outcome get_item(const Value& value, const Value& key, Budget& budget) {
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (key.is_undefined()) return missing(value, "undefined entry");
  const bool hashable = !key.is_dict() && !(key.is_list() && !key.list()->is_tuple);
  if (hashable) {
    OCTAVO_TRY(std::optional<Value> entry, find_item(value, key, budget));
    if (entry) return *std::move(entry);
  }
  if (key.is_text()) {
    if (std::optional<Value> attribute = find_attribute(value, key.string())) return *std::move(attribute);
  }
  OCTAVO_TRY(const Text name, to_repr(key, budget));
  return missing(value, "entry " + escape_for_message(name->text(), 60));
}

Outcome get_slice(const Value& value, const Value& start, const Value& stop, const Value& step,
                  Budget& budget) {
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (value.is_text()) return slice_text(*value.text(), start, stop, step, budget);
  if (!value.is_list()) return missing(value, "slices");
  const std::vector<Value>& items = value.items();
  OCTAVO_TRY_VOID(budget.spend(items.size()));
  OCTAVO_TRY(const SliceRange range, slice_range(start, stop, step, static_cast<std::int64_t>(items.size())));
  std::vector<Value> part;
  visit_slice(range, [&](std::size_t i) { part.push_back(items[i]); });
  return make_list(std::move(part), value.list()->is_tuple);
}

}  // namespace octavo::tokenizer::jinja
