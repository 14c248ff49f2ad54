// Text whose every byte remembers where it came from: from the template, from a message, or from input that
// was changed on the way. Concatenating, slicing, joining and replacing keep the marks exactly; what cannot
// be followed (changing case, say) marks the whole result as input when any part of the source was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::tokenizer {

class MarkedText {
 public:
  static constexpr std::int32_t kTemplate = -1;
  static constexpr std::int32_t kChangedInput = -2;  // of which it is not known whose it was
  // Input number n, with or without changes: of a message that was changed, of a tool, of a call. Numbers of
  // messages are their indexes.
  static constexpr std::int32_t part_of(std::int32_t input) { return kChangedInput - 1 - input; }
  // The number again; none for the template and for what it is not known of.
  static constexpr std::optional<std::int32_t> input_of(std::int32_t source) {
    if (source >= 0) return source;
    return source < kChangedInput ? std::optional(kChangedInput - 1 - source) : std::nullopt;
  }

  // text[previous end, end): from the template, from input that was changed, or bytes [offset, ...) of
  // message `source`.
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
  // `text` came from outside, as input number `input`.
  static MarkedText of_input(std::string text, std::int32_t input);
  // `text` was computed from `whole`: input if any of that was, then of whom the first of it was.
  static MarkedText computed_from(const MarkedText& whole, std::string text);

  const std::string& text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  bool has_input() const;
  // Of what is computed from this: kTemplate, kChangedInput or a part of the first input in it.
  std::int32_t source_of_computed() const;

  // Ascending; they cover the text and no two neighbours could be one.
  std::vector<Run> runs() const;

  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // Bytes [begin, end) of `other`, which must not be *this.
  void append(const MarkedText& other, std::size_t begin, std::size_t end);
  MarkedText slice(std::size_t begin, std::size_t end) const;
  // `source` is no message's index: what is appended has no offset in one.
  void append_text(std::string_view text, std::int32_t source);

  // For budgets: what a copy costs.
  std::size_t cost() const { return text_.size() + runs_.size() * sizeof(Run); }

 private:
  void append_run(std::size_t length, std::int32_t source, std::size_t offset);

  std::string text_;
  std::vector<Run> runs_;  // empty: all of it is template text
};

}  // namespace octavo::tokenizer
