#include "engine/chat_template/jinja_filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"
#include "engine/chat_template/jinja_operators.h"
#include "engine/chat_template/jinja_predicates.h"
#include "engine/chat_template/jinja_text.h"

namespace octavo::tokenizer::jinja {
namespace {

using Filter = Outcome (*)(const Value& value, const Arguments& arguments, Budget& budget);

struct NamedFilter {
  std::string_view name;
  Filter apply;
};

// ---- texts

// Filters on texts take anything and print it first.
template <MarkedText (*kMap)(const MarkedText&)>
Outcome map_text(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const Text text, to_text(value, budget));
  OCTAVO_TRY_VOID(budget.spend_text(text->cost()));
  return Value(kMap(*text));
}

Outcome trim(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"chars"};
  OCTAVO_TRY(const Bound bound, bind_arguments("trim", arguments, kParameters));
  OCTAVO_TRY(const auto characters, bound.text(0, "chars"));
  OCTAVO_TRY(const Text text, to_text(value, budget));
  const std::size_t width = characters ? characters->size() : 1;
  OCTAVO_TRY_VOID(budget.spend(1 + text->cost() * width / Budget::kBytesPerOperation));
  return Value(strip(*text, characters, Side::kBoth));
}

Outcome replace_text(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"old", "new", "count"};
  OCTAVO_TRY(const Bound bound, bind_arguments("replace", arguments, kParameters, 2));
  OCTAVO_TRY(const Text text, to_text(value, budget));
  OCTAVO_TRY(const Text old, to_text(bound[0], budget));
  OCTAVO_TRY(const Text by, to_text(bound[1], budget));
  const bool counted = bound.has(2) && !bound[2].is_none();
  OCTAVO_TRY(const std::int64_t count, counted ? bound.integer(2, "count", -1) : Result<std::int64_t>(-1));
  OCTAVO_TRY(MarkedText out, replace(*text, old->text(), *by, count, budget));
  return Value(std::move(out));
}

Outcome indent_text(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"width", "first", "blank"};
  OCTAVO_TRY(const Bound bound, bind_arguments("indent", arguments, kParameters));
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (!value.is_text()) return failure("indent takes a string, not " + value.type_name());
  const Value width = bound.value_or(0, Value(std::int64_t{4}));
  MarkedText indentation;
  if (width.is_text()) {
    indentation = *width.text();
  } else {
    OCTAVO_TRY(const std::int64_t spaces, bound.integer(0, "width", 4));
    OCTAVO_TRY(indentation, repeat(MarkedText(" "), spaces, budget));
  }
  OCTAVO_TRY(MarkedText out, indent(*value.text(), indentation, bound.is_true(1), bound.is_true(2), budget));
  return Value(std::move(out));
}

Outcome center_text(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"width"};
  OCTAVO_TRY(const Bound bound, bind_arguments("center", arguments, kParameters));
  OCTAVO_TRY(const Text text, to_text(value, budget));
  OCTAVO_TRY(const std::int64_t width, bound.integer(0, "width", 80));
  OCTAVO_TRY(MarkedText out, pad(*text, width, MarkedText(" "), Side::kBoth, budget));
  return Value(std::move(out));
}

Outcome count_words(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const Text text, to_text(value, budget));
  OCTAVO_TRY_VOID(budget.spend_text(text->size()));
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text->size();) {
    const Character c = read_character(text->text(), i);
    const bool is_word =
        c.kind == CharacterClass::kLetter || c.kind == CharacterClass::kNumber || c.value == '_';
    count += is_word && !inside ? 1 : 0;
    inside = is_word;
    i += c.length;
  }
  return Value(count);
}

Outcome format_text(const Value& value, const Arguments& arguments, Budget& budget) {
  OCTAVO_TRY(const Text text, to_text(value, budget));
  OCTAVO_TRY(const Value values, make_list(arguments.positional, /*is_tuple=*/true));
  return apply_binary(Operator::kModulo, Value(text), values, budget);
}

Outcome print_text(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(Text text, to_text(value, budget));
  return Value(std::move(text));
}

Outcome write_json(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 4> kParameters = {"ensure_ascii", "indent", "separators",
                                                                  "sort_keys"};
  OCTAVO_TRY(const Bound bound, bind_arguments("tojson", arguments, kParameters));
  JsonStyle style;
  style.ensure_ascii = bound.is_true(0);
  style.sort_keys = bound.is_true(3);
  if (bound.has(1) && !bound[1].is_none()) {
    style.is_indented = true;
    style.item_separator = ",";
    if (bound[1].is_text()) {
      style.indent = bound[1].string();
    } else {
      OCTAVO_TRY(const std::int64_t width, bound.integer(1, "indent", 0));
      if (width > 1000) return over_limit("tojson indents by more than 1,000 spaces");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (bound.has(2) && !bound[2].is_none()) {
    const bool is_pair = bound[2].is_list() && bound[2].items().size() == 2 &&
                         bound[2].items()[0].is_text() && bound[2].items()[1].is_text();
    if (!is_pair) return failure("'separators' must be two strings");
    style.item_separator = bound[2].items()[0].string();
    style.key_separator = bound[2].items()[1].string();
  }
  OCTAVO_TRY(Text json, to_json(value, style, budget));
  return Value(std::move(json));
}

// ---- numbers

std::string stripped(const std::string& text) {
  return strip(MarkedText(text), std::nullopt, Side::kBoth).text();
}

// Python's int(text, base): sign, underscores between digits, a prefix that fits the base.
std::optional<std::int64_t> parse_integer(const std::string& text, int base) {
  std::string digits = stripped(text);
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.erase(0, 1);
  const char prefix = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int prefix_base = prefix == 'x' ? 16 : (prefix == 'o' ? 8 : (prefix == 'b' ? 2 : 0));
  if (prefix_base != 0 && (base == prefix_base || base == 0)) {
    digits.erase(0, 2);
    base = prefix_base;
  }
  if (digits.starts_with('_') || digits.ends_with('_') || digits.find("__") != std::string::npos)
    return std::nullopt;
  std::erase(digits, '_');
  if (digits.starts_with('-') || digits.starts_with('+')) return std::nullopt;
  if (is_negative) digits.insert(0, "-");
  std::int64_t value = 0;
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base == 0 ? 10 : base);
  const bool is_whole = status == std::errc() && end == digits.data() + digits.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_float(const std::string& text) {
  std::string digits = stripped(text);
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_whole = !digits.empty() && status == std::errc() && end == digits.data() + digits.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> truncated(double value) {
  if (!(std::fabs(value) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> integer_of(const Value& value, int base) {
  if (value.is_whole()) return value.integer();
  if (value.is_float()) return truncated(value.float_value());
  if (!value.is_text()) return std::nullopt;
  if (const auto parsed = parse_integer(value.string(), base)) return parsed;
  const auto as_float = parse_float(value.string());
  return as_float ? truncated(*as_float) : std::nullopt;
}

Outcome to_integer(const Value& value, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 2> kParameters = {"default", "base"};
  OCTAVO_TRY(const Bound bound, bind_arguments("int", arguments, kParameters));
  OCTAVO_TRY(const std::int64_t base, bound.integer(1, "base", 10));
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (base != 0 && (base < 2 || base > 36)) return failure("the base of int must be 2 to 36");
  const std::optional<std::int64_t> number = integer_of(value, static_cast<int>(base));
  return number ? Value(*number) : bound.value_or(0, Value(std::int64_t{0}));
}

Outcome to_float(const Value& value, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 1> kParameters = {"default"};
  OCTAVO_TRY(const Bound bound, bind_arguments("float", arguments, kParameters));
  if (value.is_undefined()) return failure(value.undefined_reason());
  if (value.is_number()) return Value(value.number());
  const std::optional<double> number = value.is_text() ? parse_float(value.string()) : std::nullopt;
  return number ? Value(*number) : bound.value_or(0, Value(0.0));
}

Outcome absolute(const Value& value, const Arguments&, Budget&) {
  if (value.is_float()) return Value(std::fabs(value.float_value()));
  if (value.is_whole()) return value.integer() < 0 ? negative(value) : Outcome(Value(value.integer()));
  return failure("abs takes a number, not " + value.type_name());
}

// Python's round(): half to even, of the exact binary value. std::to_chars rounds exactly so.
double round_to(double value, std::int64_t precision) {
  std::array<char, 400> buffer{};
  const auto printed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::fixed, static_cast<int>(precision));
  double rounded = value;
  std::from_chars(buffer.data(), printed.ptr, rounded);
  return rounded;
}

Outcome round_number(const Value& value, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 2> kParameters = {"precision", "method"};
  OCTAVO_TRY(const Bound bound, bind_arguments("round", arguments, kParameters));
  OCTAVO_TRY(const std::int64_t precision, bound.integer(0, "precision", 0));
  OCTAVO_TRY(const auto method, bound.text(1, "method"));
  if (!value.is_number()) return failure("round takes a number, not " + value.type_name());
  if (precision < 0 || precision > 30) return failure("round takes a precision of 0 to 30");
  const std::string how = method.value_or("common");
  if (how == "common") {
    return value.is_whole() ? Value(value.integer()) : Value(round_to(value.float_value(), precision));
  }
  if (how != "ceil" && how != "floor") return failure("the method of round is common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.number() * scale;
  return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// ---- any value

Outcome default_value(const Value& value, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 2> kParameters = {"default_value", "boolean"};
  OCTAVO_TRY(const Bound bound, bind_arguments("default", arguments, kParameters));
  const bool replaced = value.is_undefined() || (bound.is_true(1) && !is_true(value));
  return replaced ? bound.value_or(0, Value("")) : value;
}

Outcome length(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const std::int64_t size, length_of(value, budget));
  return Value(size);
}

// ---- lists

// An attribute path such as "function.name" or "0", followed from `value`.
Outcome follow(const Value& value, const Value& path, Budget& budget) {
  if (!path.is_text()) return get_item(value, path, budget);
  Value current = value;
  OCTAVO_TRY(const std::vector<MarkedText> parts, split(*path.text(), ".", -1, /*from_right=*/false, budget));
  for (const MarkedText& part : parts) {
    const std::optional<std::int64_t> index =
        all_characters(part.text(), [](char32_t c) { return c >= '0' && c <= '9'; })
            ? parse_integer(part.text(), 10)
            : std::nullopt;
    OCTAVO_TRY(current, get_item(current, index ? Value(*index) : Value(part), budget));
  }
  return current;
}

Value ignoring_case(const Value& value) {
  return value.is_text() ? Value(to_lower_case(*value.text())) : value;
}

// What a list is ordered or compared by.
struct Key {
  std::optional<Value> attribute = {};
  bool case_sensitive = false;

  Outcome of(const Value& item, Budget& budget) const {
    OCTAVO_TRY_VOID(budget.spend(1));
    Value key = item;
    if (attribute) {
      OCTAVO_TRY(key, follow(item, *attribute, budget));
    }
    if (case_sensitive || !key.is_text()) return key;
    OCTAVO_TRY_VOID(budget.spend_text(key.text()->size()));
    return ignoring_case(key);
  }
};

Key make_key(const Bound& bound, std::size_t case_sensitive, std::size_t attribute) {
  Key key;
  if (bound.has(attribute) && !bound[attribute].is_none()) key.attribute = bound[attribute];
  key.case_sensitive = bound.is_true(case_sensitive);
  return key;
}

struct Keyed {
  Value key, item;
};

Result<std::vector<Keyed>> with_keys(const Value& value, const Key& key, Budget& budget) {
  OCTAVO_TRY(const auto list, iterate(value, budget));
  std::vector<Keyed> keyed;
  for (const Value& item : list->items) {
    OCTAVO_TRY(Value k, key.of(item, budget));
    keyed.push_back({std::move(k), item});
  }
  return keyed;
}

// Stable; an error of any comparison ends it.
Result<void> sort_keyed(std::vector<Keyed>& keyed, bool reverse, Budget& budget) {
  Result<void> status;
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (!status) return false;
    const Result<int> order = compare(a.key, b.key, budget);
    if (!order) {
      status = order.error();
      return false;
    }
    return reverse ? *order > 0 : *order < 0;
  });
  return status;
}

Outcome items_of(std::vector<Keyed> keyed) {
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return make_list(std::move(items));
}

Outcome sort_list(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"reverse", "case_sensitive", "attribute"};
  OCTAVO_TRY(const Bound bound, bind_arguments("sort", arguments, kParameters));
  OCTAVO_TRY(std::vector<Keyed> keyed, with_keys(value, make_key(bound, 1, 2), budget));
  OCTAVO_TRY_VOID(sort_keyed(keyed, bound.is_true(0), budget));
  return items_of(std::move(keyed));
}

Outcome sort_dict(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"case_sensitive", "by", "reverse"};
  OCTAVO_TRY(const Bound bound, bind_arguments("dictsort", arguments, kParameters));
  OCTAVO_TRY(const auto by, bound.text(1, "by"));
  if (!value.is_dict()) return failure("dictsort takes a dict, not " + value.type_name());
  if (by && *by != "key" && *by != "value") return failure("dictsort sorts by \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  const Key key{{}, bound.is_true(0)};
  for (const auto& [name, content] : value.dict().entries) {
    OCTAVO_TRY(Value k, key.of(by == "value" ? content : name, budget));
    OCTAVO_TRY(Value pair, make_list({name, content}, /*is_tuple=*/true));
    keyed.push_back({std::move(k), std::move(pair)});
  }
  OCTAVO_TRY_VOID(sort_keyed(keyed, bound.is_true(2), budget));
  return items_of(std::move(keyed));
}

Outcome unique_items(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"case_sensitive", "attribute"};
  OCTAVO_TRY(const Bound bound, bind_arguments("unique", arguments, kParameters));
  OCTAVO_TRY(std::vector<Keyed> keyed, with_keys(value, make_key(bound, 0, 1), budget));
  std::vector<Keyed> kept;
  for (Keyed& entry : keyed) {
    bool seen = false;
    for (std::size_t i = 0; i < kept.size() && !seen; ++i) {
      OCTAVO_TRY(seen, equals(kept[i].key, entry.key, budget));
    }
    if (!seen) kept.push_back(std::move(entry));
  }
  return items_of(std::move(kept));
}

template <bool kLargest>
Outcome extreme(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"case_sensitive", "attribute"};
  OCTAVO_TRY(const Bound bound, bind_arguments(kLargest ? "max" : "min", arguments, kParameters));
  OCTAVO_TRY(const std::vector<Keyed> keyed, with_keys(value, make_key(bound, 0, 1), budget));
  if (keyed.empty()) return Value::undefined("an empty list has no smallest or largest item");
  const Keyed* best = &keyed[0];
  for (const Keyed& entry : keyed) {
    OCTAVO_TRY(const int order, compare(entry.key, best->key, budget));
    if (kLargest ? order > 0 : order < 0) best = &entry;
  }
  return best->item;
}

Outcome sum_items(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"attribute", "start"};
  OCTAVO_TRY(const Bound bound, bind_arguments("sum", arguments, kParameters));
  Value sum = bound.value_or(1, Value(std::int64_t{0}));
  OCTAVO_TRY(const auto list, iterate(value, budget));
  for (const Value& item : list->items) {
    OCTAVO_TRY_VOID(budget.spend(1));
    Value term = item;
    if (bound.has(0) && !bound[0].is_none()) {
      OCTAVO_TRY(term, follow(item, bound[0], budget));
    }
    OCTAVO_TRY(sum, apply_binary(Operator::kAdd, sum, term, budget));
  }
  return sum;
}

Outcome join_items(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"d", "attribute"};
  OCTAVO_TRY(const Bound bound, bind_arguments("join", arguments, kParameters));
  OCTAVO_TRY(const Text separator, to_text(bound.value_or(0, Value("")), budget));
  OCTAVO_TRY(const auto list, iterate(value, budget));
  std::vector<Text> parts;
  for (const Value& item : list->items) {
    Value part = item;
    if (bound.has(1) && !bound[1].is_none()) {
      OCTAVO_TRY(part, follow(item, bound[1], budget));
    }
    OCTAVO_TRY(Text text, to_text(part, budget));
    parts.push_back(std::move(text));
  }
  OCTAVO_TRY(MarkedText joined, join(*separator, parts, budget));
  return Value(std::move(joined));
}

Outcome first_item(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const auto list, iterate(value, budget));
  return list->items.empty() ? Value::undefined("an empty list has no first item") : list->items.front();
}

Outcome last_item(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const auto list, iterate(value, budget));
  return list->items.empty() ? Value::undefined("an empty list has no last item") : list->items.back();
}

Outcome as_list(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const auto list, iterate(value, budget));
  OCTAVO_TRY_VOID(budget.spend(list->items.size()));
  return make_list(list->items);
}

Outcome reverse_value(const Value& value, const Arguments&, Budget& budget) {
  OCTAVO_TRY(const auto list, iterate(value, budget));
  OCTAVO_TRY_VOID(budget.spend(list->items.size()));
  std::vector<Value> items(list->items.rbegin(), list->items.rend());
  if (!value.is_text()) return make_list(std::move(items));
  std::vector<Text> parts;
  for (const Value& item : items) parts.push_back(item.text());
  OCTAVO_TRY(MarkedText reversed, join(MarkedText(), parts, budget));
  return Value(std::move(reversed));
}

Outcome dict_items(const Value& value, const Arguments&, Budget& budget) {
  if (value.is_undefined()) return make_list({});
  if (!value.is_dict()) return failure("items takes a dict, not " + value.type_name());
  OCTAVO_TRY_VOID(budget.spend(value.dict().entries.size()));
  std::vector<Value> items;
  for (const auto& [key, content] : value.dict().entries) {
    OCTAVO_TRY(Value pair, make_list({key, content}, /*is_tuple=*/true));
    items.push_back(std::move(pair));
  }
  return make_list(std::move(items));
}

// The arguments of a call without the first `count` positional ones.
Arguments without_first(const Arguments& arguments, std::size_t count) {
  return {{arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end()},
          arguments.named};
}

Outcome map_attribute(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"attribute", "default"};
  OCTAVO_TRY(const Bound bound, bind_arguments("map", arguments, kParameters, 1));
  OCTAVO_TRY(const auto list, iterate(value, budget));
  std::vector<Value> mapped;
  for (const Value& item : list->items) {
    OCTAVO_TRY(Value part, follow(item, bound[0], budget));
    const bool replaced = part.is_undefined() && bound.has(1);
    mapped.push_back(replaced ? bound[1] : std::move(part));
  }
  return make_list(std::move(mapped));
}

Outcome map_items(const Value& value, const Arguments& arguments, Budget& budget) {
  if (!is_true(value)) return make_list({});  // of none and undefined too
  if (arguments.positional.empty()) return map_attribute(value, arguments, budget);
  if (!arguments.positional[0].is_text()) return failure("map takes the name of a filter");
  const Arguments rest = without_first(arguments, 1);
  OCTAVO_TRY(const auto list, iterate(value, budget));
  std::vector<Value> mapped;
  for (const Value& item : list->items) {
    OCTAVO_TRY_VOID(budget.spend(1));
    OCTAVO_TRY(Value result, apply_filter(arguments.positional[0].string(), item, rest, budget));
    mapped.push_back(std::move(result));
  }
  return make_list(std::move(mapped));
}

// select, reject: by a test of the item, or its truth; selectattr, rejectattr: of one of its attributes.
template <bool kKeep, bool kByAttribute>
Outcome choose_items(const Value& value, const Arguments& arguments, Budget& budget) {
  if (!is_true(value)) return make_list({});  // of none and undefined too
  const std::size_t skipped = kByAttribute ? 1 : 0;
  if (arguments.positional.size() < skipped) return failure("selectattr and rejectattr need an attribute");
  const bool has_test = arguments.positional.size() > skipped;
  if (has_test && !arguments.positional[skipped].is_text()) return failure("a test is given by its name");
  const Arguments rest = has_test ? without_first(arguments, skipped + 1) : Arguments{};
  OCTAVO_TRY(const auto list, iterate(value, budget));
  std::vector<Value> chosen;
  for (const Value& item : list->items) {
    OCTAVO_TRY_VOID(budget.spend(1));
    Value subject = item;
    if (kByAttribute) {
      OCTAVO_TRY(subject, follow(item, arguments.positional[0], budget));
    }
    bool holds = is_true(subject);
    if (has_test) {
      OCTAVO_TRY(holds, apply_predicate(arguments.positional[skipped].string(), subject, rest, budget));
    }
    if (holds == kKeep) chosen.push_back(item);
  }
  return make_list(std::move(chosen));
}

Outcome batch_items(const Value& value, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"linecount", "fill_with"};
  OCTAVO_TRY(const Bound bound, bind_arguments("batch", arguments, kParameters, 1));
  OCTAVO_TRY(const std::int64_t size, bound.integer(0, "linecount", 1));
  if (size < 1 || size > 100'000) return failure("batch takes 1 to 100,000 items");
  OCTAVO_TRY(const auto list, iterate(value, budget));
  OCTAVO_TRY_VOID(budget.spend(list->items.size() + static_cast<std::size_t>(size)));
  std::vector<Value> batches, batch;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    batch.push_back(list->items[i]);
    const bool is_last = i + 1 == list->items.size();
    if (is_last && bound.has(1) && !bound[1].is_none())
      batch.resize(static_cast<std::size_t>(size), bound[1]);
    if (is_last || batch.size() == static_cast<std::size_t>(size)) {
      OCTAVO_TRY(Value full, make_list(std::exchange(batch, {})));
      batches.push_back(std::move(full));
    }
  }
  return make_list(std::move(batches));
}

constexpr NamedFilter kFilters[] = {
    {"abs", absolute},
    {"batch", batch_items},
    {"capitalize", map_text<capitalize>},
    {"center", center_text},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", sort_dict},
    {"e", map_text<escape_html>},
    {"escape", map_text<escape_html>},
    {"first", first_item},
    {"float", to_float},
    {"format", format_text},
    {"indent", indent_text},
    {"int", to_integer},
    {"items", dict_items},
    {"join", join_items},
    {"last", last_item},
    {"length", length},
    {"list", as_list},
    {"lower", map_text<to_lower_case>},
    {"map", map_items},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", choose_items<false, false>},
    {"rejectattr", choose_items<false, true>},
    {"replace", replace_text},
    {"reverse", reverse_value},
    {"round", round_number},
    {"safe", print_text},
    {"select", choose_items<true, false>},
    {"selectattr", choose_items<true, true>},
    {"sort", sort_list},
    {"string", print_text},
    {"sum", sum_items},
    {"title", map_text<title_words>},
    {"tojson", write_json},
    {"trim", trim},
    {"unique", unique_items},
    {"upper", map_text<to_upper_case>},
    {"wordcount", count_words},
};

}  // namespace

Outcome apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  const auto filter = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [&](const NamedFilter& f) { return f.name == name; });
  if (filter != std::end(kFilters)) return filter->apply(value, arguments, budget);
  return failure("the filter '" + escape_for_message(name, 60) + "' is not supported");
}

}  // namespace octavo::tokenizer::jinja
