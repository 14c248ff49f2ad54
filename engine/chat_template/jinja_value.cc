#include "engine/chat_template/jinja_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "engine/base/text.h"

namespace octavo::tokenizer::jinja {
namespace {

// Writes str(), repr() or JSON of a value, and notes whether any of it came from input.
class Writer {
 public:
  explicit Writer(Budget& budget) : budget_(budget) {}

  Result<void> put(std::string_view text) {
    OCTAVO_TRY_VOID(budget_.spend(1 + text.size() / Budget::kBytesPerOperation));
    if (out_.size() + text.size() > Budget::kMaxTextBytes)
      return budget_.spend_text(out_.size() + text.size());
    out_.append_text(text, source_);
    return {};
  }

  Result<void> put_repr(const Value& value);
  Result<void> put_json(const Value& value, const JsonStyle& style, int level);

  // Input if any of it is: what stands between belongs to the value before it, or to the first.
  Text finish() && {
    if (first_source_ == MarkedText::kTemplate) return std::make_shared<const MarkedText>(std::move(out_));
    MarkedText all;
    all.append_text(std::string_view(out_.text()).substr(0, num_before_input_), first_source_);
    all.append(out_, num_before_input_, out_.size());
    return std::make_shared<const MarkedText>(std::move(all));
  }

 private:
  Result<void> put_list_repr(const List& list);
  Result<void> put_dict_repr(const Dict& dict);
  Result<void> put_quoted_repr(const MarkedText& text);
  Result<void> put_quoted_json(const MarkedText& text, const JsonStyle& style);
  Result<void> put_json_list(const List& list, const JsonStyle& style, int level);
  Result<void> put_json_dict(const Dict& dict, const JsonStyle& style, int level);
  Result<void> put_json_key(const Value& key, const JsonStyle& style);
  Result<void> put_line(const JsonStyle& style, int level);

  // What follows is of this text.
  void go_on_with(const MarkedText& text) {
    const std::int32_t source = text.source_of_computed();
    if (source == MarkedText::kTemplate) return;
    source_ = source;
    if (first_source_ != MarkedText::kTemplate) return;
    first_source_ = source;
    num_before_input_ = out_.size();
  }

  // The bracket in front of an object's first name is of that.
  void go_on_with_names_of(const Value& value) {
    if (!value.is_dict() || value.dict().entries.empty()) return;
    const Value& name = value.dict().entries.front().first;
    if (name.is_text()) go_on_with(*name.text());
  }

  Budget& budget_;
  MarkedText out_;
  std::int32_t source_ = MarkedText::kTemplate;
  std::int32_t first_source_ = MarkedText::kTemplate;
  std::size_t num_before_input_ = 0;  // bytes
};

std::string scalar_repr(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.integer() != 0 ? "True" : "False";
  if (value.is_integer()) return std::to_string(value.integer());
  if (value.is_float()) return float_repr(value.float_value());
  return std::string("<").append(value.type_name()).append(">");
}

Result<void> Writer::put_repr(const Value& value) {
  if (value.is_text()) return put_quoted_repr(*value.text());
  if (value.is_list()) return put_list_repr(*value.list());
  if (value.is_dict()) return put_dict_repr(value.dict());
  if (value.is_undefined()) return put("Undefined");
  return put(scalar_repr(value));
}

Result<void> Writer::put_list_repr(const List& list) {
  OCTAVO_TRY_VOID(put(list.is_tuple ? "(" : "["));
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) OCTAVO_TRY_VOID(put(", "));
    OCTAVO_TRY_VOID(put_repr(list.items[i]));
  }
  if (list.is_tuple) return put(list.items.size() == 1 ? ",)" : ")");
  return put("]");
}

Result<void> Writer::put_dict_repr(const Dict& dict) {
  OCTAVO_TRY_VOID(put("{"));
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) OCTAVO_TRY_VOID(put(", "));
    OCTAVO_TRY_VOID(put_repr(dict.entries[i].first));
    OCTAVO_TRY_VOID(put(": "));
    OCTAVO_TRY_VOID(put_repr(dict.entries[i].second));
  }
  return put("}");
}

std::string hex_escape(const char* prefix, char32_t value, int digits) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%0*x", digits, static_cast<unsigned>(value));
  return prefix + std::string(buffer.data());
}

std::string repr_of_character(const CodePoint& c, std::string_view bytes, char quote) {
  switch (c.value) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\\': return "\\\\";
    default: break;
  }
  if (c.value == static_cast<unsigned char>(quote)) return std::string("\\") + quote;
  if (c.value < 0x20 || (c.value >= 0x7f && c.value <= 0xa0) || c.value == 0xad)
    return hex_escape("\\x", c.value, 2);
  return std::string(bytes);
}

Result<void> Writer::put_quoted_repr(const MarkedText& marked) {
  go_on_with(marked);
  const std::string& text = marked.text();
  const bool double_quoted = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = double_quoted ? '"' : '\'';
  OCTAVO_TRY_VOID(budget_.spend_text(text.size()));
  std::string quoted(1, quote);
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    quoted += repr_of_character(c, std::string_view(text).substr(i, c.length), quote);
    i += c.length;
  }
  return put(quoted + quote);
}

std::string json_of_character(const CodePoint& c, std::string_view bytes, bool ensure_ascii) {
  switch (c.value) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: break;
  }
  if (c.value < 0x20) return hex_escape("\\u", c.value, 4);
  if (!ensure_ascii || c.value < 0x7f) return std::string(bytes);
  if (c.value < 0x10000) return hex_escape("\\u", c.value, 4);
  const char32_t high = 0xd800 + ((c.value - 0x10000) >> 10);
  const char32_t low = 0xdc00 + ((c.value - 0x10000) & 0x3ff);
  return hex_escape("\\u", high, 4) + hex_escape("\\u", low, 4);
}

Result<void> Writer::put_quoted_json(const MarkedText& marked, const JsonStyle& style) {
  go_on_with(marked);
  const std::string& text = marked.text();
  OCTAVO_TRY_VOID(budget_.spend_text(text.size()));
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    quoted += json_of_character(c, std::string_view(text).substr(i, c.length), style.ensure_ascii);
    i += c.length;
  }
  return put(quoted + "\"");
}

std::string json_scalar(const Value& value) {
  if (value.is_none()) return "null";
  if (value.is_bool()) return value.integer() != 0 ? "true" : "false";
  if (value.is_integer()) return std::to_string(value.integer());
  const double number = value.float_value();
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return float_repr(number);
}

Result<void> Writer::put_json(const Value& value, const JsonStyle& style, int level) {
  if (value.is_text()) return put_quoted_json(*value.text(), style);
  if (value.is_list()) return put_json_list(*value.list(), style, level);
  if (value.is_dict()) return put_json_dict(value.dict(), style, level);
  if (value.is_none() || value.is_number()) return put(json_scalar(value));
  return failure("an object of type " + value.type_name() + " cannot be written as JSON");
}

Result<void> Writer::put_line(const JsonStyle& style, int level) {
  if (!style.is_indented) return {};
  OCTAVO_TRY_VOID(put("\n"));
  for (int i = 0; i < level; ++i) OCTAVO_TRY_VOID(put(style.indent));
  return {};
}

Result<void> Writer::put_json_list(const List& list, const JsonStyle& style, int level) {
  if (list.items.empty()) return put("[]");
  OCTAVO_TRY_VOID(put("["));
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) OCTAVO_TRY_VOID(put(style.item_separator));
    OCTAVO_TRY_VOID(put_line(style, level + 1));
    go_on_with_names_of(list.items[i]);
    OCTAVO_TRY_VOID(put_json(list.items[i], style, level + 1));
  }
  OCTAVO_TRY_VOID(put_line(style, level));
  return put("]");
}

Result<void> Writer::put_json_key(const Value& key, const JsonStyle& style) {
  if (key.is_text()) return put_quoted_json(*key.text(), style);
  if (key.is_none() || key.is_number()) return put(std::string("\"").append(json_scalar(key)).append("\""));
  return failure("keys of type " + key.type_name() + " cannot be written as JSON");
}

Result<void> Writer::put_json_dict(const Dict& dict, const JsonStyle& style, int level) {
  if (dict.entries.empty()) return put("{}");
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (style.sort_keys) {
    OCTAVO_TRY_VOID(budget_.spend(entries.size()));
    const bool sortable =
        std::all_of(entries.begin(), entries.end(), [](auto* e) { return e->first.is_text(); });
    if (!sortable) return failure("only string keys can be sorted");
    std::sort(entries.begin(), entries.end(),
              [](auto* a, auto* b) { return a->first.string() < b->first.string(); });
  }
  OCTAVO_TRY_VOID(put("{"));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) OCTAVO_TRY_VOID(put(style.item_separator));
    OCTAVO_TRY_VOID(put_line(style, level + 1));
    OCTAVO_TRY_VOID(put_json_key(entries[i]->first, style));
    OCTAVO_TRY_VOID(put(style.key_separator));
    OCTAVO_TRY_VOID(put_json(entries[i]->second, style, level + 1));
  }
  OCTAVO_TRY_VOID(put_line(style, level));
  return put("}");
}

Result<bool> lists_equal(const List& a, const List& b, Budget& budget) {
  if (a.is_tuple != b.is_tuple || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    OCTAVO_TRY(const bool equal, equals(a.items[i], b.items[i], budget));
    if (!equal) return false;
  }
  return true;
}

Result<bool> dicts_equal(const Dict& a, const Dict& b, Budget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    OCTAVO_TRY(const Value* other, find_entry(b, key, budget));
    if (other == nullptr) return false;
    OCTAVO_TRY(const bool equal, equals(value, *other, budget));
    if (!equal) return false;
  }
  return true;
}

int sign_of_difference(double a, double b) { return a < b ? -1 : (a > b ? 1 : 0); }

Result<int> compare_lists(const List& a, const List& b, Budget& budget) {
  for (std::size_t i = 0; i < a.items.size() && i < b.items.size(); ++i) {
    OCTAVO_TRY(const bool equal, equals(a.items[i], b.items[i], budget));
    if (!equal) return compare(a.items[i], b.items[i], budget);
  }
  return a.items.size() < b.items.size() ? -1 : (a.items.size() > b.items.size() ? 1 : 0);
}

Result<std::shared_ptr<const List>> characters(const MarkedText& text, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend(text.size()));
  auto list = std::make_shared<List>();
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = decode_utf8(text.text(), i).length;
    list->items.emplace_back(text.slice(i, i + length));
    i += length;
  }
  return std::shared_ptr<const List>(std::move(list));
}

std::shared_ptr<const List> keys(const Dict& dict) {
  auto list = std::make_shared<List>();
  for (const auto& entry : dict.entries) {
    list->items.push_back(entry.first);
    list->depth = std::max(list->depth, entry.first.depth() + 1);
  }
  return list;
}

}  // namespace

Value Value::undefined(std::string reason) {
  Value value;
  value.storage_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

int Value::depth() const {
  if (is_list()) return list()->depth;
  if (is_dict()) return dict().depth;
  if (is_loop()) return loop()->items->depth;
  return is_callable() && callable().self ? callable().self->depth() : 0;
}

bool Value::is_same_as(const Value& other) const {
  if (storage_.index() != other.storage_.index()) return false;
  if (is_none()) return true;
  if (is_whole()) return integer() == other.integer();
  if (is_text()) return string() == other.string();
  if (is_list()) return list() == other.list();
  if (is_dict()) return &dict() == &other.dict();
  if (is_namespace()) return name_space() == other.name_space();
  return false;
}

std::string Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (is_bool()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_text()) return "str";
  if (is_list()) return list()->is_tuple ? "tuple" : "list";
  if (is_dict()) return "dict";
  if (is_namespace()) return "Namespace";
  return is_loop() ? "LoopContext" : "function";
}

Outcome make_list(std::vector<Value> items, bool is_tuple) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) list->depth = std::max(list->depth, item.depth() + 1);
  if (list->depth > Budget::kMaxValueDepth)
    return over_limit("the template nests lists more than 100 levels deep");
  list->items = std::move(items);
  list->is_tuple = is_tuple;
  return Value(std::shared_ptr<const List>(std::move(list)));
}

Outcome make_dict(std::vector<std::pair<Value, Value>> entries) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : entries)
    dict->depth = std::max({dict->depth, key.depth() + 1, value.depth() + 1});
  if (dict->depth > Budget::kMaxValueDepth)
    return over_limit("the template nests dicts more than 100 levels deep");
  dict->entries = std::move(entries);
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

bool is_true(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (value.is_number()) return value.number() != 0;
  if (value.is_text()) return !value.text()->empty();
  if (value.is_list()) return !value.items().empty();
  if (value.is_dict()) return !value.dict().entries.empty();
  return true;
}

Result<bool> equals(const Value& a, const Value& b, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend(1));
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.is_undefined() && b.is_undefined()) return true;
  if (a.is_text() && b.is_text()) {
    OCTAVO_TRY_VOID(budget.spend(std::min(a.text()->size(), b.text()->size()) / Budget::kBytesPerOperation));
    return a.string() == b.string();
  }
  if (a.is_list() && b.is_list()) return lists_equal(*a.list(), *b.list(), budget);
  if (a.is_dict() && b.is_dict()) return dicts_equal(a.dict(), b.dict(), budget);
  return a.is_same_as(b);
}

Result<int> compare(const Value& a, const Value& b, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend(1));
  if (a.is_whole() && b.is_whole())
    return a.integer() < b.integer() ? -1 : (a.integer() > b.integer() ? 1 : 0);
  if (a.is_number() && b.is_number()) return sign_of_difference(a.number(), b.number());
  if (a.is_text() && b.is_text()) {
    OCTAVO_TRY_VOID(budget.spend(std::min(a.text()->size(), b.text()->size()) / Budget::kBytesPerOperation));
    const int order = a.string().compare(b.string());  // bytes of UTF-8 sort as code points do
    return order < 0 ? -1 : (order > 0 ? 1 : 0);
  }
  if (a.is_list() && b.is_list() && a.list()->is_tuple == b.list()->is_tuple) {
    return compare_lists(*a.list(), *b.list(), budget);
  }
  if (a.is_undefined()) return failure(a.undefined_reason());
  if (b.is_undefined()) return failure(b.undefined_reason());
  return failure("values of types " + a.type_name() + " and " + b.type_name() + " cannot be compared");
}

Result<const Value*> find_entry(const Dict& dict, const Value& key, Budget& budget) {
  if (key.is_dict() || (key.is_list() && !key.list()->is_tuple)) {
    return failure("a " + key.type_name() + " cannot be a key");
  }
  for (const auto& [candidate, value] : dict.entries) {
    OCTAVO_TRY(const bool equal, equals(candidate, key, budget));
    if (equal) return &value;
  }
  return static_cast<const Value*>(nullptr);
}

Result<std::shared_ptr<const List>> iterate(const Value& value, Budget& budget) {
  if (value.is_list()) return value.list();
  if (value.is_undefined()) return std::make_shared<const List>();
  if (value.is_text()) return characters(*value.text(), budget);
  if (value.is_dict()) {
    OCTAVO_TRY_VOID(budget.spend(value.dict().entries.size()));
    return keys(value.dict());
  }
  return failure("a value of type " + value.type_name() + " is not iterable");
}

Result<Text> to_text(const Value& value, Budget& budget) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return std::make_shared<const MarkedText>();
  return to_repr(value, budget);
}

Result<Text> to_repr(const Value& value, Budget& budget) {
  Writer writer(budget);
  OCTAVO_TRY_VOID(writer.put_repr(value));
  return std::move(writer).finish();
}

Result<Text> to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  Writer writer(budget);
  OCTAVO_TRY_VOID(writer.put_json(value, style, 0));
  return std::move(writer).finish();
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  const auto fixed_end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string fixed(buffer.data(), fixed_end.ptr);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

}  // namespace octavo::tokenizer::jinja
