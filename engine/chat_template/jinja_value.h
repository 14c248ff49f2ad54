// Values of the template language, with Python's meaning. Immutable and shared, but for namespaces and loops,
// which templates may change. Texts carry their origin (marked_text.h). One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/chat_template/jinja_budget.h"
#include "engine/chat_template/marked_text.h"

namespace octavo::tokenizer::jinja {

class Value;
struct Statement;  // jinja_syntax.h
class Scope;       // jinja_interpreter.cc

using Text = std::shared_ptr<const MarkedText>;

// Prints as nothing, iterates as nothing, is false; anything else done with it fails with `reason`.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;  // 1 + deepest item
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion, keys distinct
  int depth = 1;
};

// namespace(): the one thing that assignments inside loops can reach. Owned by the interpreter, which empties
// it at the end, because namespaces may name each other.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

// The variable `loop`.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  // Arguments of the last call of changed(); emptied when the loop ends
  std::shared_ptr<const List> last_changed = {};
};

// Something that can be called: a global function, a method of a value, or a macro.
struct Callable {
  enum class Kind { kFunction, kMethod, kMacro };
  Kind kind = Kind::kFunction;
  std::string name;
  std::shared_ptr<const Value> self = {};  // of a method
  const Statement* macro = nullptr;
  Scope* closure = nullptr;  // where the macro was defined; lives as long as the rendering
};

class Value {
 public:
  using None = std::monostate;
  using Storage = std::variant<None, Undefined, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<Loop>,
                               std::shared_ptr<const Callable>>;

  Value() = default;                               // none
  Value(bool value) : storage_(value) {}           // NOLINT: implicit on purpose
  Value(std::int64_t value) : storage_(value) {}   // NOLINT
  Value(double value) : storage_(value) {}         // NOLINT
  Value(Text text) : storage_(std::move(text)) {}  // NOLINT
  Value(MarkedText text) : storage_(std::make_shared<const MarkedText>(std::move(text))) {}  // NOLINT
  Value(std::string_view text) : Value(MarkedText(text)) {}                                  // NOLINT
  Value(const char* text) : Value(MarkedText(text)) {}                                       // NOLINT
  Value(std::shared_ptr<Namespace> space) : storage_(std::move(space)) {}                    // NOLINT
  Value(std::shared_ptr<Loop> loop) : storage_(std::move(loop)) {}                           // NOLINT
  Value(std::shared_ptr<const Callable> callable) : storage_(std::move(callable)) {}         // NOLINT
  Value(std::shared_ptr<const List> list) : storage_(std::move(list)) {}                     // NOLINT
  Value(std::shared_ptr<const Dict> dict) : storage_(std::move(dict)) {}                     // NOLINT

  static Value undefined(std::string reason);

  bool is_none() const { return std::holds_alternative<None>(storage_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(storage_); }
  bool is_bool() const { return std::holds_alternative<bool>(storage_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(storage_); }  // not bool
  bool is_float() const { return std::holds_alternative<double>(storage_); }
  bool is_number() const { return is_bool() || is_integer() || is_float(); }
  bool is_text() const { return std::holds_alternative<Text>(storage_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const List>>(storage_); }  // or tuple
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const Dict>>(storage_); }
  bool is_namespace() const { return std::holds_alternative<std::shared_ptr<Namespace>>(storage_); }
  bool is_loop() const { return std::holds_alternative<std::shared_ptr<Loop>>(storage_); }
  bool is_callable() const { return std::holds_alternative<std::shared_ptr<const Callable>>(storage_); }

  // REQUIRES: the matching is_...()
  const std::string& undefined_reason() const { return *std::get<Undefined>(storage_).reason; }
  const Text& text() const { return std::get<Text>(storage_); }
  const std::string& string() const { return text()->text(); }
  const std::shared_ptr<const List>& list() const { return std::get<std::shared_ptr<const List>>(storage_); }
  const std::vector<Value>& items() const { return list()->items; }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(storage_); }
  const std::shared_ptr<Namespace>& name_space() const {
    return std::get<std::shared_ptr<Namespace>>(storage_);
  }
  const std::shared_ptr<Loop>& loop() const { return std::get<std::shared_ptr<Loop>>(storage_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(storage_); }
  double float_value() const { return std::get<double>(storage_); }

  // Of a bool or an integer.
  std::int64_t integer() const {
    return is_bool() ? (std::get<bool>(storage_) ? 1 : 0) : std::get<std::int64_t>(storage_);
  }
  // Of any number.
  double number() const { return is_float() ? float_value() : static_cast<double>(integer()); }
  bool is_whole() const { return is_bool() || is_integer(); }

  int depth() const;                          // of nested containers; 0: none
  bool is_same_as(const Value& other) const;  // Python's `is`
  std::string type_name() const;              // "str", "NoneType", ...

 private:
  Storage storage_;
};

using Outcome = Result<Value>;

// Containers refuse to nest deeper than Budget::kMaxValueDepth, so that printing and freeing them stays
// shallow.
Outcome make_list(std::vector<Value> items, bool is_tuple = false);
Outcome make_dict(std::vector<std::pair<Value, Value>> entries);  // keys already distinct

bool is_true(const Value& value);

// Python's ==. Texts compare by characters only.
Result<bool> equals(const Value& a, const Value& b, Budget& budget);
// Python's ordering: negative, 0, positive; an error for types that have none.
Result<int> compare(const Value& a, const Value& b, Budget& budget);

// The entry of `key`, or nullptr.
Result<const Value*> find_entry(const Dict& dict, const Value& key, Budget& budget);

// What a for loop runs over: items, characters, keys, nothing for undefined.
Result<std::shared_ptr<const List>> iterate(const Value& value, Budget& budget);

// Python's str() and repr().
Result<Text> to_text(const Value& value, Budget& budget);
Result<Text> to_repr(const Value& value, Budget& budget);

struct JsonStyle {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::string indent = {};  // of one level
  bool is_indented = false;
  bool ensure_ascii = false;
  bool sort_keys = false;
};
// Python's json.dumps.
Result<Text> to_json(const Value& value, const JsonStyle& style, Budget& budget);

// repr() of a float: the shortest digits that read back as the same number.
std::string float_repr(double value);

}  // namespace octavo::tokenizer::jinja
