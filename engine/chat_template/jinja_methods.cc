#include "engine/chat_template/jinja_methods.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"
#include "engine/chat_template/jinja_operators.h"
#include "engine/chat_template/jinja_text.h"

namespace octavo::tokenizer::jinja {
namespace {

using Method = Outcome (*)(const Value& self, const Arguments& arguments, Budget& budget);

struct NamedMethod {
  std::string_view name;
  Method call;
};

Outcome as_list(std::vector<MarkedText> parts, bool is_tuple = false) {
  std::vector<Value> items(std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  return make_list(std::move(items), is_tuple);
}

Result<void> expect_no_arguments(const Arguments& arguments) {
  if (arguments.positional.empty() && arguments.named.empty()) return {};
  return failure("the method takes no arguments");
}

template <MarkedText (*kMap)(const MarkedText&)>
Outcome map_self(const Value& self, const Arguments& arguments, Budget&) {
  OCTAVO_TRY_VOID(expect_no_arguments(arguments));
  return Value(kMap(*self.text()));
}

template <bool (*kTest)(std::string_view)>
Outcome test_text(const Value& self, const Arguments& arguments, Budget&) {
  OCTAVO_TRY_VOID(expect_no_arguments(arguments));
  return Value(kTest(self.string()));
}

template <Side kSide>
Outcome strip_text(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"chars"};
  OCTAVO_TRY(const Bound bound, bind_arguments("strip", arguments, kParameters));
  OCTAVO_TRY(const auto characters, bound.text(0, "chars"));
  if (characters)
    OCTAVO_TRY_VOID(budget.spend(self.text()->size() * characters->size() / Budget::kBytesPerOperation));
  return Value(strip(*self.text(), characters, kSide));
}

template <bool kFromRight>
Outcome split_text(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"sep", "maxsplit"};
  OCTAVO_TRY(const Bound bound, bind_arguments("split", arguments, kParameters));
  OCTAVO_TRY(const auto separator, bound.text(0, "sep"));
  OCTAVO_TRY(const std::int64_t most, bound.integer(1, "maxsplit", -1));
  if (separator && separator->empty()) return failure("the separator of split is empty");
  OCTAVO_TRY(std::vector<MarkedText> parts, split(*self.text(), separator, most, kFromRight, budget));
  return as_list(std::move(parts));
}

Outcome split_text_lines(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"keepends"};
  OCTAVO_TRY(const Bound bound, bind_arguments("splitlines", arguments, kParameters));
  OCTAVO_TRY(std::vector<MarkedText> lines, split_lines(*self.text(), bound.is_true(0), budget));
  return as_list(std::move(lines));
}

// Three parts: before, the separator, after.
template <bool kFromRight>
Outcome partition(const Value& self, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 1> kParameters = {"sep"};
  OCTAVO_TRY(const Bound bound, bind_arguments("partition", arguments, kParameters, 1));
  OCTAVO_TRY(const auto separator, bound.text(0, "sep"));
  if (!separator || separator->empty()) return failure("the separator of partition is empty");
  const MarkedText& text = *self.text();
  const std::size_t at = kFromRight ? text.text().rfind(*separator) : text.text().find(*separator);
  if (at == std::string::npos) {
    return kFromRight ? as_list({MarkedText(), MarkedText(), text}, true)
                      : as_list({text, MarkedText(), MarkedText()}, true);
  }
  const std::size_t end = at + separator->size();
  return as_list({text.slice(0, at), text.slice(at, end), text.slice(end, text.size())}, true);
}

Outcome replace_in_self(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"old", "new", "count"};
  OCTAVO_TRY(const Bound bound, bind_arguments("replace", arguments, kParameters, 2));
  if (!bound[0].is_text() || !bound[1].is_text()) return failure("replace takes strings");
  OCTAVO_TRY(const std::int64_t count, bound.integer(2, "count", -1));
  OCTAVO_TRY(MarkedText out, replace(*self.text(), bound[0].string(), *bound[1].text(), count, budget));
  return Value(std::move(out));
}

// A text, or a tuple of texts of which one suffices; positions `start` and `end` as in Python.
template <bool kAtEnd>
Outcome has_affix(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 3> kParameters = {"prefix", "start", "end"};
  OCTAVO_TRY(const Bound bound,
             bind_arguments(kAtEnd ? "endswith" : "startswith", arguments, kParameters, 1));
  OCTAVO_TRY(const Value part,
             get_slice(self, bound.value_or(1, Value()), bound.value_or(2, Value()), Value(), budget));
  const std::vector<Value> single = {bound[0]};
  const std::vector<Value>& affixes = bound[0].is_list() ? bound[0].items() : single;
  for (const Value& affix : affixes) {
    if (affix.is_undefined()) return failure(affix.undefined_reason());
    if (!affix.is_text()) return failure("startswith and endswith take strings, not " + affix.type_name());
    if (kAtEnd ? part.string().ends_with(affix.string()) : part.string().starts_with(affix.string()))
      return Value(true);
  }
  return Value(false);
}

template <bool kFromRight, bool kMustFind>
Outcome find_text(const Value& self, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 1> kParameters = {"sub"};
  OCTAVO_TRY(const Bound bound, bind_arguments("find", arguments, kParameters, 1));
  OCTAVO_TRY(const auto part, bound.text(0, "sub"));
  const std::string& text = self.string();
  const std::size_t at = kFromRight ? text.rfind(part.value_or("")) : text.find(part.value_or(""));
  if (at != std::string::npos) return Value(code_point_count(std::string_view(text).substr(0, at)));
  return kMustFind ? Outcome(failure("the substring was not found")) : Value(std::int64_t{-1});
}

Outcome count_text(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"sub"};
  OCTAVO_TRY(const Bound bound, bind_arguments("count", arguments, kParameters, 1));
  OCTAVO_TRY(const auto part, bound.text(0, "sub"));
  OCTAVO_TRY_VOID(budget.spend(1 + self.text()->size() / Budget::kBytesPerOperation));
  return Value(count_occurrences(self.string(), part.value_or("")));
}

Outcome join_texts(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"iterable"};
  OCTAVO_TRY(const Bound bound, bind_arguments("join", arguments, kParameters, 1));
  OCTAVO_TRY(const auto list, iterate(bound[0], budget));
  std::vector<Text> parts;
  for (const Value& item : list->items) {
    if (!item.is_text()) return failure("join takes strings, not " + item.type_name());
    parts.push_back(item.text());
  }
  OCTAVO_TRY(MarkedText joined, join(*self.text(), parts, budget));
  return Value(std::move(joined));
}

template <bool kSuffix>
Outcome remove_affix(const Value& self, const Arguments& arguments, Budget&) {
  static constexpr std::array<std::string_view, 1> kParameters = {"affix"};
  OCTAVO_TRY(const Bound bound, bind_arguments("removeprefix", arguments, kParameters, 1));
  OCTAVO_TRY(const auto affix, bound.text(0, "affix"));
  const std::size_t size = affix.value_or("").size();
  const MarkedText& text = *self.text();
  if (kSuffix && text.text().ends_with(affix.value_or(""))) return Value(text.slice(0, text.size() - size));
  if (!kSuffix && text.text().starts_with(affix.value_or(""))) return Value(text.slice(size, text.size()));
  return self;
}

template <Side kSide>
Outcome pad_text(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"width", "fillchar"};
  OCTAVO_TRY(const Bound bound, bind_arguments("center", arguments, kParameters, 1));
  OCTAVO_TRY(const std::int64_t width, bound.integer(0, "width", 0));
  const Value fill = bound.value_or(1, Value(" "));
  if (!fill.is_text() || code_point_count(fill.string()) != 1)
    return failure("the fill character must be a single character");
  OCTAVO_TRY(MarkedText padded, pad(*self.text(), width, *fill.text(), kSide, budget));
  return Value(std::move(padded));
}

Outcome zero_fill(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"width"};
  OCTAVO_TRY(const Bound bound, bind_arguments("zfill", arguments, kParameters, 1));
  OCTAVO_TRY(const std::int64_t width, bound.integer(0, "width", 0));
  const MarkedText& text = *self.text();
  const std::size_t sign = !text.empty() && (text.text()[0] == '-' || text.text()[0] == '+') ? 1 : 0;
  OCTAVO_TRY(MarkedText digits, pad(text.slice(sign, text.size()), width - static_cast<std::int64_t>(sign),
                                    "0", Side::kRight, budget));
  MarkedText out = text.slice(0, sign);
  out.append(digits);
  return Value(std::move(out));
}

// The value of one field of str.format: "" is the next argument, a number that argument, a name a named one.
Outcome format_field(std::string_view field, const Arguments& arguments, std::size_t& num_used) {
  const bool is_number = all_characters(field, [](char32_t c) { return c >= '0' && c <= '9'; });
  if (field.empty() || is_number) {
    std::size_t index = num_used;
    if (is_number) std::from_chars(field.data(), field.data() + field.size(), index);
    num_used += is_number ? 0 : 1;
    if (index < arguments.positional.size()) return arguments.positional[index];
    return failure("format needs more values");
  }
  for (const auto& [name, value] : arguments.named) {
    if (name == field) return value;
  }
  return failure("format has no value '" + escape_for_message(field, 60) +
                 "'; attributes and widths are not supported");
}

Outcome format_braces(const Value& self, const Arguments& arguments, Budget& budget) {
  const MarkedText& format = *self.text();
  const std::string_view text = format.text();
  MarkedText out;
  std::size_t done = 0, num_used = 0;
  for (std::size_t at = text.find_first_of("{}"); at != std::string_view::npos;
       at = text.find_first_of("{}", done)) {
    out.append(format, done, at);
    if (text.substr(at, 2) == "{{" || text.substr(at, 2) == "}}") {
      out.append(format, at, at + 1);
      done = at + 2;
      continue;
    }
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) return failure("format has a single brace");
    OCTAVO_TRY(const Value value, format_field(text.substr(at + 1, end - at - 1), arguments, num_used));
    OCTAVO_TRY(const Text part, to_text(value, budget));
    OCTAVO_TRY_VOID(budget.spend_text(out.size() + part->size()));
    out.append(*part);
    done = end + 1;
  }
  out.append(format, done, text.size());
  return Value(std::move(out));
}

bool is_letter_character(char32_t c) { return classify(c) == CharacterClass::kLetter; }
bool is_alphanumeric_character(char32_t c) {
  return is_letter_character(c) || classify(c) == CharacterClass::kNumber;
}
bool is_digit_character(char32_t c) { return c >= '0' && c <= '9'; }
bool is_alpha(std::string_view text) { return all_characters(text, is_letter_character); }
bool is_alphanumeric(std::string_view text) { return all_characters(text, is_alphanumeric_character); }
bool is_digits(std::string_view text) { return all_characters(text, is_digit_character); }
bool is_space(std::string_view text) { return all_characters(text, is_python_space); }

constexpr NamedMethod kTextMethods[] = {
    {"strip", strip_text<Side::kBoth>},
    {"lstrip", strip_text<Side::kLeft>},
    {"rstrip", strip_text<Side::kRight>},
    {"split", split_text<false>},
    {"rsplit", split_text<true>},
    {"splitlines", split_text_lines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"replace", replace_in_self},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"find", find_text<false, false>},
    {"rfind", find_text<true, false>},
    {"index", find_text<false, true>},
    {"rindex", find_text<true, true>},
    {"count", count_text},
    {"join", join_texts},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"ljust", pad_text<Side::kLeft>},
    {"rjust", pad_text<Side::kRight>},
    {"center", pad_text<Side::kBoth>},
    {"zfill", zero_fill},
    {"upper", map_self<to_upper_case>},
    {"lower", map_self<to_lower_case>},
    {"casefold", map_self<to_lower_case>},
    {"title", map_self<to_title_case>},
    {"capitalize", map_self<capitalize>},
    {"swapcase", map_self<swap_case>},
    {"format", format_braces},
    {"isupper", test_text<is_upper_case>},
    {"islower", test_text<is_lower_case>},
    {"isalpha", test_text<is_alpha>},
    {"isalnum", test_text<is_alphanumeric>},
    {"isdigit", test_text<is_digits>},
    {"isdecimal", test_text<is_digits>},
    {"isnumeric", test_text<is_digits>},
    {"isspace", test_text<is_space>},
};

Outcome list_count(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"value"};
  OCTAVO_TRY(const Bound bound, bind_arguments("count", arguments, kParameters, 1));
  std::int64_t count = 0;
  for (const Value& item : self.items()) {
    OCTAVO_TRY(const bool equal, equals(item, bound[0], budget));
    count += equal ? 1 : 0;
  }
  return Value(count);
}

Outcome list_index(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 1> kParameters = {"value"};
  OCTAVO_TRY(const Bound bound, bind_arguments("index", arguments, kParameters, 1));
  for (std::size_t i = 0; i < self.items().size(); ++i) {
    OCTAVO_TRY(const bool equal, equals(self.items()[i], bound[0], budget));
    if (equal) return Value(static_cast<std::int64_t>(i));
  }
  return failure("the value is not in the list");
}

Outcome list_copy(const Value& self, const Arguments& arguments, Budget&) {
  OCTAVO_TRY_VOID(expect_no_arguments(arguments));
  return self;
}

constexpr NamedMethod kListMethods[] = {{"count", list_count}, {"index", list_index}, {"copy", list_copy}};

enum class DictPart { kKeys, kValues, kItems };

template <DictPart kPart>
Outcome dict_part(const Value& self, const Arguments& arguments, Budget& budget) {
  OCTAVO_TRY_VOID(expect_no_arguments(arguments));
  OCTAVO_TRY_VOID(budget.spend(self.dict().entries.size()));
  std::vector<Value> parts;
  for (const auto& [key, value] : self.dict().entries) {
    if (kPart == DictPart::kItems) {
      OCTAVO_TRY(Value pair, make_list({key, value}, /*is_tuple=*/true));
      parts.push_back(std::move(pair));
    } else {
      parts.push_back(kPart == DictPart::kKeys ? key : value);
    }
  }
  return make_list(std::move(parts));
}

Outcome dict_get(const Value& self, const Arguments& arguments, Budget& budget) {
  static constexpr std::array<std::string_view, 2> kParameters = {"key", "default"};
  OCTAVO_TRY(const Bound bound, bind_arguments("get", arguments, kParameters, 1));
  OCTAVO_TRY(const Value* entry, find_entry(self.dict(), bound[0], budget));
  return entry != nullptr ? *entry : bound.value_or(1, Value());
}

constexpr NamedMethod kDictMethods[] = {{"keys", dict_part<DictPart::kKeys>},
                                        {"values", dict_part<DictPart::kValues>},
                                        {"items", dict_part<DictPart::kItems>},
                                        {"get", dict_get},
                                        {"copy", list_copy}};

Outcome loop_cycle(const Value& self, const Arguments& arguments, Budget&) {
  if (arguments.positional.empty()) return failure("loop.cycle needs something to cycle through");
  return arguments.positional[self.loop()->index % arguments.positional.size()];
}

Outcome loop_changed(const Value& self, const Arguments& arguments, Budget& budget) {
  Loop& loop = *self.loop();
  OCTAVO_TRY(const Value now, make_list(arguments.positional));
  if (loop.last_changed) {
    OCTAVO_TRY(const bool same, equals(Value(loop.last_changed), now, budget));
    if (same) return Value(false);
  }
  loop.last_changed = now.list();
  return Value(true);
}

constexpr NamedMethod kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

std::span<const NamedMethod> methods_of(const Value& self) {
  if (self.is_text()) return kTextMethods;
  if (self.is_list()) return kListMethods;
  if (self.is_dict()) return kDictMethods;
  if (self.is_loop()) return kLoopMethods;
  return {};
}

const NamedMethod* find_method(const Value& self, std::string_view name) {
  const std::span<const NamedMethod> methods = methods_of(self);
  const auto found =
      std::find_if(methods.begin(), methods.end(), [&](const NamedMethod& m) { return m.name == name; });
  return found == methods.end() ? nullptr : &*found;
}

// One conversion of a %-format, after the '%'.
struct Conversion {
  std::size_t end = 0;  // offset after it
  char kind = '\0';
  int precision = -1;
};

Result<Conversion> read_conversion(std::string_view format, std::size_t offset) {
  Conversion conversion;
  std::size_t i = offset;
  if (i < format.size() && format[i] == '.') {
    conversion.precision = 0;
    for (++i; i < format.size() && format[i] >= '0' && format[i] <= '9' && conversion.precision < 100; ++i) {
      conversion.precision = conversion.precision * 10 + (format[i] - '0');
    }
  }
  if (i >= format.size() || std::string_view("srdif%").find(format[i]) == std::string_view::npos) {
    return failure("a % format may hold %s, %r, %d, %i, %f and %% only");
  }
  conversion.kind = format[i];
  conversion.end = i + 1;
  return conversion;
}

Result<MarkedText> convert(const Conversion& conversion, const Value& value, Budget& budget) {
  if (conversion.kind == 's' || conversion.kind == 'r') {
    OCTAVO_TRY(const Text text, conversion.kind == 's' ? to_text(value, budget) : to_repr(value, budget));
    return *text;
  }
  if (!value.is_number()) return failure("%d and %f take numbers, not " + value.type_name());
  std::array<char, 512> buffer{};
  if (conversion.kind == 'f') {
    std::snprintf(buffer.data(), buffer.size(), "%.*f",
                  conversion.precision < 0 ? 6 : std::min(conversion.precision, 100), value.number());
    return MarkedText(buffer.data());
  }
  if (value.is_whole()) return MarkedText(std::to_string(value.integer()));
  std::snprintf(buffer.data(), buffer.size(), "%.0f", std::trunc(value.float_value()));
  return MarkedText(buffer.data());
}

}  // namespace

bool has_method(const Value& self, std::string_view name) { return find_method(self, name) != nullptr; }

bool is_mutator(const Value& self, std::string_view name) {
  static constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};
  return self.is_dict() &&
         std::find(std::begin(kDictMutators), std::end(kDictMutators), name) != std::end(kDictMutators);
}

Outcome call_method(const Value& self, std::string_view name, const Arguments& arguments, Budget& budget) {
  if (self.is_text()) OCTAVO_TRY_VOID(budget.spend(1 + self.text()->cost() / Budget::kBytesPerOperation));
  return find_method(self, name)->call(self, arguments, budget);
}

Outcome format_percent(const MarkedText& format, const Value& values, Budget& budget) {
  const bool is_tuple = values.is_list() && values.list()->is_tuple;
  const std::vector<Value> arguments = is_tuple ? values.items() : std::vector<Value>{values};
  const std::string_view text = format.text();
  MarkedText out;
  std::size_t done = 0, used = 0;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', done)) {
    out.append(format, done, at);
    OCTAVO_TRY(const Conversion conversion, read_conversion(text, at + 1));
    if (conversion.kind == '%') {
      out.append(MarkedText("%"));
    } else {
      if (used == arguments.size()) return failure("a % format needs more values");
      OCTAVO_TRY(const MarkedText converted, convert(conversion, arguments[used++], budget));
      OCTAVO_TRY_VOID(budget.spend_text(out.size() + converted.size()));
      out.append(converted);
    }
    done = conversion.end;
  }
  if (used < arguments.size() && !values.is_dict()) return failure("a % format has values left over");
  out.append(format, done, text.size());
  return Value(std::move(out));
}

}  // namespace octavo::tokenizer::jinja
