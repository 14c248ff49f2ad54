// Text whose every byte remembers where it came from: from the template, from a message, or from input that
// was changed on the way. Concatenating, slicing, joining and replacing keep the marks exactly; what cannot
// be followed (changing case, say) marks the whole result as input when any part of the source was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::tokenizer {

class MarkedText {
 public:
  static constexpr std::int32_t kTemplate = -1;
  static constexpr std::int32_t kChangedInput = -2;

  // text[previous end, end): from the template, from changed input, or bytes [offset, ...) of message
  // `source`.
  struct Run {
    std::size_t end = 0;
    std::int32_t source = kTemplate;
    std::size_t offset = 0;

    bool is_input() const { return source != kTemplate; }
  };

  MarkedText() = default;
  MarkedText(std::string text) : text_(std::move(text)) {}  // NOLINT: template text converts freely
  MarkedText(std::string_view text) : text_(text) {}        // NOLINT
  MarkedText(const char* text) : text_(text) {}             // NOLINT

  // The content of message `index`, unchanged.
  static MarkedText message_content(std::string text, std::int32_t index);
  // `text` was computed from something: input if `from_input`.
  static MarkedText derived(std::string text, bool from_input);

  const std::string& text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  bool has_input() const;

  // Ascending; they cover the text and no two neighbours could be one.
  std::vector<Run> runs() const;

  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // Bytes [begin, end) of `other`, which must not be *this.
  void append(const MarkedText& other, std::size_t begin, std::size_t end);
  MarkedText slice(std::size_t begin, std::size_t end) const;

  // For budgets: what a copy costs.
  std::size_t cost() const { return text_.size() + runs_.size() * sizeof(Run); }

 private:
  void append_run(std::size_t length, std::int32_t source, std::size_t offset);

  std::string text_;
  std::vector<Run> runs_;  // empty: all of it is template text
};

}  // namespace octavo::tokenizer
