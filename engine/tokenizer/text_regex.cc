#include "engine/tokenizer/text_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

constexpr std::uint32_t kMaxSteps = 1'000'000;  // of one match, from one place in the text
constexpr std::uint32_t kMaxHeapKib = 64 * 1024;

Error not_supported(std::string_view source, const std::string& why) {
  return {ErrorCode::kUnsupported, "tokenizer.json has the regular expression \"" +
                                       escape_for_message(source, 100) + "\", which " + why +
                                       ": choose another model"};
}

// Where the class that begins at `begin`, a bracket, ends: one past its closing bracket; npos: nowhere.
std::size_t end_of_class(std::string_view source, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i < source.size(); ++i) {
    if (source[i] == '\\') {
      ++i;
    } else if (source[i] == '[') {
      const bool is_named = depth > 0 && source.substr(i).starts_with("[:");
      const std::size_t end = is_named ? source.find(":]", i) : std::string_view::npos;
      if (end != std::string_view::npos) {
        i = end + 1;
      } else {
        ++depth;
      }
    } else if (source[i] == ']' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// Whether a class holds another one, or an operation on classes. `inside`: without its outer brackets.
bool holds_class(std::string_view inside) {
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\') {
      ++i;
    } else if (inside[i] == '[' && inside.substr(i).starts_with("[:")) {
      const std::size_t end = inside.find(":]", i);
      if (end == std::string_view::npos) return true;
      i = end + 1;
    } else if (inside[i] == '[' || inside.substr(i).starts_with("&&")) {
      return true;
    }
  }
  return false;
}

// [X&&[^Y]] as (?:(?![Y])[X]): PCRE2 has no operations on classes. nullopt: anything else that holds classes.
std::optional<std::string> without_intersection(std::string_view whole) {
  const std::string_view inside = whole.substr(1, whole.size() - 2);
  const std::size_t at = inside.find("&&[^");
  if (at == std::string_view::npos || !inside.ends_with(']')) return std::nullopt;
  const std::string_view kept = inside.substr(0, at);
  const std::string_view left_out = inside.substr(at + 4, inside.size() - at - 5);
  if (kept.empty() || kept.starts_with('^') || left_out.empty() || holds_class(kept) || holds_class(left_out))
    return std::nullopt;
  std::string text = "(?:(?![";
  return text.append(left_out).append("])[").append(kept).append("])");
}

// Oniguruma's \uXXXX is PCRE2's \x{XXXX}.
void append_escaped_pair(std::string_view source, std::size_t& i, std::string& out) {
  const std::string_view digits = source.substr(i).size() >= 6 ? source.substr(i + 2, 4) : "";
  const bool is_number = source[i + 1] == 'u' && digits.size() == 4 &&
                         digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (is_number) {
    out.append("\\x{").append(digits).append("}");
    i += 6;
  } else {
    out.append(source.substr(i, 2));
    i += 2;
  }
}

void append_with_escapes(std::string_view source, std::string& out) {
  for (std::size_t i = 0; i < source.size();) {
    if (source[i] == '\\' && i + 1 < source.size()) {
      append_escaped_pair(source, i, out);
    } else {
      out.push_back(source[i++]);
    }
  }
}

// What only Oniguruma understands, in PCRE2's words.
Result<std::string> as_pcre2_has_it(std::string_view source) {
  if (source.starts_with("(*")) return not_supported(source, "begins with an option");
  std::string rewritten;
  for (std::size_t i = 0; i < source.size();) {
    if (source[i] == '\\' && i + 1 < source.size()) {
      if (source[i + 1] == 'h' || source[i + 1] == 'H')
        return not_supported(source, "has \\h, of which two meanings are in use");
      append_escaped_pair(source, i, rewritten);
      continue;
    }
    if (source[i] != '[') {
      rewritten.push_back(source[i++]);
      continue;
    }
    const std::size_t end = end_of_class(source, i);
    if (end == std::string_view::npos) return not_supported(source, "has a class without an end");
    std::string_view whole = source.substr(i, end - i);
    std::string without;
    if (holds_class(whole.substr(1, whole.size() - 2))) {
      std::optional<std::string> found = without_intersection(whole);
      if (!found) return not_supported(source, "has a class within a class");
      without = *std::move(found);
      whole = without;
    }
    append_with_escapes(whole, rewritten);
    i = end;
  }
  return rewritten;
}

}  // namespace

struct TextRegex::Compiled {
  std::string source;
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;

  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

Result<TextRegex> TextRegex::compile(std::string_view source) {
  if (source.empty() || source.size() > kMaxSourceBytes)
    return not_supported(source, "has " + std::to_string(source.size()) + " bytes; 1 to " +
                                     std::to_string(kMaxSourceBytes) + " are supported");
  OCTAVO_TRY(const std::string rewritten, as_pcre2_has_it(source));
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  auto compiled = std::make_shared<Compiled>();
  compiled->source = std::string(source);
  compiled->limits = pcre2_match_context_create(nullptr);
  if (!context || compiled->limits == nullptr) return Error{ErrorCode::kOutOfMemory, "there is no memory"};
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 50);
  pcre2_set_match_limit(compiled->limits, kMaxSteps);
  pcre2_set_heap_limit(compiled->limits, kMaxHeapKib);
  int problem = 0;
  PCRE2_SIZE offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &problem,
                                 &offset, context.get());
  if (compiled->code == nullptr) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(problem, text.data(), text.size());
    return not_supported(
        source, "cannot be read (" + escape_for_message(reinterpret_cast<const char*>(text.data())) + ")");
  }
  return TextRegex(std::move(compiled));
}

Result<void> TextRegex::find_all(std::string_view text, std::vector<Match>& matches) const {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  if (!data) return Error{ErrorCode::kOutOfMemory, "there is no memory"};
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t last_end = std::string_view::npos;
  for (std::size_t from = 0; from <= text.size();) {
    const int found = pcre2_match(compiled_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(),
                                  compiled_->limits);
    if (found == PCRE2_ERROR_NOMATCH) return {};
    if (found < 0) return not_supported(compiled_->source, "takes too long on this text");
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
    const Match match{ends[0], ends[1]};
    // \K and lookbehind could turn it around.
    if (match.begin < from || match.end < match.begin)
      return not_supported(compiled_->source, "matches backwards");
    const bool is_empty = match.begin == match.end;
    if (!is_empty || match.end != last_end) matches.push_back(match);
    last_end = match.end;
    from = match.end;
    if (is_empty) from += from < text.size() ? decode_utf8(text, from).length : 1;
  }
  return {};
}

}  // namespace octavo::tokenizer
