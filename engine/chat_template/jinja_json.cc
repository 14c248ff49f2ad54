#include "engine/chat_template/jinja_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace octavo::tokenizer::jinja {
namespace {

bool is_json_digit(char c) { return c >= '0' && c <= '9'; }

class JsonReader {
 public:
  // `source` is that of every text; in a list's items it goes down where `items_differ`.
  JsonReader(std::string_view text, std::int32_t source, bool items_differ, Budget& budget)
      : text_(text), source_(source), items_differ_(items_differ), budget_(budget) {}

  Outcome read() {
    OCTAVO_TRY(Value value, read_value(1));
    skip_space();
    if (at_ < text_.size()) return wrong("nothing more may follow");
    return value;
  }

 private:
  Error wrong(std::string_view what) const {
    return failure("at byte " + std::to_string(at_) + " " + std::string(what));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  bool is_next(char c) const { return at_ < text_.size() && text_[at_] == c; }

  bool take(char c) {
    if (!is_next(c)) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Outcome read_value(int depth);
  Outcome read_object(int depth);
  Outcome read_array(int depth);
  Outcome read_number();
  Result<std::string> read_string();
  Result<void> read_escape(std::string& out);
  Result<char32_t> read_four_digits();
  Value marked(const std::string& text) const {
    MarkedText value;
    value.append_text(text, source_);
    return Value(std::move(value));
  }

  std::string_view text_;
  std::int32_t source_;
  bool items_differ_;
  Budget& budget_;
  std::size_t at_ = 0;
};

Outcome JsonReader::read_value(int depth) {
  OCTAVO_TRY_VOID(budget_.spend_items(1));
  skip_space();
  if (at_ == text_.size()) return wrong("a value is missing");
  const char first = text_[at_];
  const bool is_nested = first == '{' || first == '[';
  if (is_nested && depth > kMaxJsonDepth)
    return wrong("it is nested more than " + std::to_string(kMaxJsonDepth) + " levels deep");
  if (first == '{') return read_object(depth);
  if (first == '[') return read_array(depth);
  if (first == '"') {
    OCTAVO_TRY(std::string text, read_string());
    return marked(text);
  }
  if (take_word("true")) return Value(true);
  if (take_word("false")) return Value(false);
  if (take_word("null")) return Value();
  return read_number();
}

Outcome JsonReader::read_object(int depth) {
  ++at_;
  std::vector<std::pair<Value, Value>> entries;
  std::map<std::string, std::size_t, std::less<>> places;
  skip_space();
  if (take('}')) return make_dict({});
  do {
    skip_space();
    if (!is_next('"')) return wrong("a name in quotation marks is missing");
    OCTAVO_TRY(std::string name, read_string());
    skip_space();
    if (!take(':')) return wrong("a colon is missing");
    OCTAVO_TRY(Value value, read_value(depth + 1));
    skip_space();
    const auto [place, is_new] = places.emplace(name, entries.size());
    if (is_new) {
      entries.emplace_back(marked(name), std::move(value));
    } else {
      entries[place->second].second = std::move(value);
    }
  } while (take(','));
  if (!take('}')) return wrong("a comma or the end of an object is missing");
  return make_dict(std::move(entries));
}

Outcome JsonReader::read_array(int depth) {
  ++at_;
  std::vector<Value> items;
  skip_space();
  if (take(']')) return make_list({});
  do {
    OCTAVO_TRY(Value item, read_value(depth + 1));
    items.push_back(std::move(item));
    if (items_differ_ && depth == 1) --source_;  // MarkedText::part_of the next
    skip_space();
  } while (take(','));
  if (!take(']')) return wrong("a comma or the end of a list is missing");
  return make_list(std::move(items));
}

Outcome JsonReader::read_number() {
  const std::size_t begin = at_;
  const auto take_digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_json_digit(text_[at_])) ++at_;
    return at_ > first;
  };
  take('-');
  const bool has_leading_zero = is_next('0');
  const std::size_t digits = at_;
  if (!take_digits()) return wrong("no value begins like this");
  if (has_leading_zero && at_ > digits + 1) return wrong("a number begins with 0");
  bool is_whole = true;
  if (take('.')) {
    is_whole = false;
    if (!take_digits()) return wrong("a digit is missing");
  }
  if (take('e') || take('E')) {
    is_whole = false;
    if (!take('+')) take('-');
    if (!take_digits()) return wrong("a digit is missing");
  }
  const char* const first = text_.data() + begin;
  const char* const last = text_.data() + at_;
  if (is_whole) {
    std::int64_t integer = 0;
    if (std::from_chars(first, last, integer).ec == std::errc()) return Value(integer);
  }
  double number = 0;
  const std::errc error = std::from_chars(first, last, number).ec;
  if (error == std::errc() && std::isfinite(number)) return Value(number);
  return wrong("a number is too large or too small");
}

Result<std::string> JsonReader::read_string() {
  ++at_;
  std::string out;
  while (at_ < text_.size()) {
    const std::size_t plain = std::min(text_.find_first_of("\"\\", at_), text_.size());
    for (; at_ < plain; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return wrong("a control character stands in a text");
      out += text_[at_];
    }
    if (take('"')) return out;
    if (take('\\')) OCTAVO_TRY_VOID(read_escape(out));
  }
  return wrong("the end of a text is missing");
}

Result<void> JsonReader::read_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ < text_.size() ? text_[at_] : '\0';
  if (const std::size_t known = kLetters.find(letter); known != std::string_view::npos) {
    ++at_;
    out += kMeanings[known];
    return {};
  }
  if (!take('u')) return wrong("an escape is unknown");
  OCTAVO_TRY(char32_t value, read_four_digits());
  if (value >= 0xd800 && value < 0xdc00) {
    if (!take_word("\\u")) return wrong("half of a character is missing");
    OCTAVO_TRY(const char32_t low, read_four_digits());
    if (low < 0xdc00 || low > 0xdfff) return wrong("half of a character is missing");
    value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
  } else if (value >= 0xdc00 && value <= 0xdfff) {
    return wrong("half of a character is missing");
  }
  append_utf8(out, value);
  return {};
}

Result<char32_t> JsonReader::read_four_digits() {
  std::uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, 16);
  if (digits.size() < 4 || parsed.ec != std::errc() || parsed.ptr != end)
    return wrong("four hexadecimal digits are missing");
  at_ += 4;
  return static_cast<char32_t>(value);
}

}  // namespace

namespace {

Outcome read_from_source(std::string_view text, std::int32_t source, bool items_differ, Budget& budget) {
  OCTAVO_TRY_VOID(budget.spend_text(text.size()));
  if (sanitise_utf8(text) != text) return failure("it is not valid UTF-8");
  return JsonReader(text, source, items_differ, budget).read();
}

}  // namespace

Outcome read_json(std::string_view text, Budget& budget) {
  return read_from_source(text, MarkedText::kChangedInput, /*items_differ=*/false, budget);
}

Outcome read_json_of(const MarkedText& text, Budget& budget) {
  const std::int32_t source = text.source_of_computed();
  return read_from_source(text.text(), source == MarkedText::kTemplate ? MarkedText::kChangedInput : source,
                          /*items_differ=*/false, budget);
}

Outcome read_json_list_of_inputs(std::string_view text, std::int32_t first_input, Budget& budget) {
  return read_from_source(text, MarkedText::part_of(first_input), /*items_differ=*/true, budget);
}

}  // namespace octavo::tokenizer::jinja
