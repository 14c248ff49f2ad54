#include "engine/tokenizer/split_pattern.h"

#include <string>

#include "engine/base/text.h"
#include "engine/tokenizer/unicode_classes.h"

namespace octavo::tokenizer {
namespace {

struct NamedPattern {
  std::string_view name;
  SplitPattern pattern;
};

// Names that llama.cpp's converter writes for tokenizers with exactly these expressions.
constexpr NamedPattern kNamedPatterns[] = {
    {"", SplitPattern::kGpt2},         {"default", SplitPattern::kGpt2},
    {"gpt-2", SplitPattern::kGpt2},    {"gpt2", SplitPattern::kGpt2},
    {"smollm", SplitPattern::kSmolLm}, {"llama-bpe", SplitPattern::kLlama3},
    {"llama3", SplitPattern::kLlama3}, {"llama-v3", SplitPattern::kLlama3},
    {"qwen2", SplitPattern::kQwen2},   {"deepseek-r1-qwen", SplitPattern::kQwen2},
};

bool is_line_break(char32_t c) { return c == '\n' || c == '\r'; }

// (?i) also lets U+017F stand for s, by Unicode's simple case folding.
char32_t fold_case(char32_t c) { return c == 0x17f ? U's' : (c >= 'A' && c <= 'Z' ? c + 32 : c); }

// Length of 's 't 're 've 'm 'll 'd at the start, or 0.
std::size_t contraction_length(std::string_view text, bool ignore_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto letter = [&](const Character& c) { return ignore_case ? fold_case(c.value) : c.value; };
  const Character first = read_character(text, 1);
  const char32_t a = letter(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1 + first.length;
  if ((a != 'r' && a != 'v' && a != 'l') || text.size() < 1 + first.length + 1) return 0;
  const Character second = read_character(text, 1 + first.length);
  const char32_t wanted = a == 'l' ? U'l' : U'e';
  return letter(second) == wanted ? 1 + first.length + second.length : 0;
}

std::size_t end_of_run(std::string_view text, std::size_t offset, CharacterClass kind) {
  while (offset < text.size()) {
    const Character c = read_character(text, offset);
    if (c.kind != kind) break;
    offset += c.length;
  }
  return offset;
}

std::size_t end_of_line_breaks(std::string_view text, std::size_t offset) {
  while (offset < text.size() && is_line_break(static_cast<unsigned char>(text[offset]))) ++offset;
  return offset;
}

struct SpaceRun {
  std::size_t end = 0;
  std::size_t last_length = 0;        // of its last character
  std::size_t end_of_line_break = 0;  // after its last line break, 0: it has none
};

SpaceRun scan_spaces(std::string_view text) {
  SpaceRun run;
  while (run.end < text.size()) {
    const Character c = read_character(text, run.end);
    if (c.kind != CharacterClass::kSpace) break;
    run.end += c.length;
    run.last_length = c.length;
    if (is_line_break(c.value)) run.end_of_line_break = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : all of the run at the end of the text; else all but its last character, which the next
// piece may take.
std::size_t spaces_length(const SpaceRun& run, bool at_end) {
  return at_end || run.end == run.last_length ? run.end : run.end - run.last_length;
}

std::size_t gpt2_length(std::string_view text, bool numbers_stand_alone) {
  if (const std::size_t length = contraction_length(text, /*ignore_case=*/false)) return length;
  const Character first = read_character(text, 0);
  const bool alone = numbers_stand_alone && first.kind == CharacterClass::kNumber;
  if (alone) return first.length;

  const std::size_t start = first.value == ' ' ? 1 : 0;
  if (start < text.size()) {
    const CharacterClass kind = read_character(text, start).kind;
    const bool cut_off = numbers_stand_alone && kind == CharacterClass::kNumber;
    if (kind != CharacterClass::kSpace && !cut_off) return end_of_run(text, start, kind);
  }
  const SpaceRun run = scan_spaces(text);
  const bool at_number = numbers_stand_alone && run.end < text.size() &&
                         read_character(text, run.end).kind == CharacterClass::kNumber;
  return spaces_length(run, run.end == text.size() || at_number);
}

// [^\r\n\p{L}\p{N}]?\p{L}+ , or 0.
std::size_t word_length(std::string_view text, const Character& first) {
  if (first.kind == CharacterClass::kLetter) return end_of_run(text, 0, CharacterClass::kLetter);
  if (first.kind == CharacterClass::kNumber || is_line_break(first.value)) return 0;
  const std::size_t end = end_of_run(text, first.length, CharacterClass::kLetter);
  return end > first.length ? end : 0;
}

std::size_t number_length(std::string_view text, int most_digits) {
  std::size_t end = 0;
  for (int i = 0; i < most_digits && end < text.size(); ++i) {
    const Character c = read_character(text, end);
    if (c.kind != CharacterClass::kNumber) break;
    end += c.length;
  }
  return end;
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or 0.
std::size_t symbols_length(std::string_view text) {
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  const std::size_t end = end_of_run(text, start, CharacterClass::kOther);
  return end > start ? end_of_line_breaks(text, end) : 0;
}

std::size_t llama3_length(std::string_view text, int most_digits) {
  if (const std::size_t length = contraction_length(text, /*ignore_case=*/true)) return length;
  const Character first = read_character(text, 0);
  if (const std::size_t length = word_length(text, first)) return length;
  if (const std::size_t length = number_length(text, most_digits)) return length;
  if (const std::size_t length = symbols_length(text)) return length;
  const SpaceRun run = scan_spaces(text);
  if (run.end_of_line_break > 0) return run.end_of_line_break;  // \s*[\r\n]+
  return spaces_length(run, run.end == text.size());
}

std::string known_names() {
  std::string names;
  for (const NamedPattern& known : kNamedPatterns) {
    if (known.name.empty()) continue;
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

}  // namespace

Result<SplitPattern> find_split_pattern(std::string_view name) {
  for (const NamedPattern& known : kNamedPatterns) {
    if (known.name == name) return known.pattern;
  }
  return Error{ErrorCode::kUnsupported,
               "tokenizer.ggml.pre is \"" + escape_for_message(name) + "\"; known split patterns are " +
                   known_names() + ": choose a model with one of these",
               "tokenizer.ggml.pre"};
}

std::size_t piece_length(SplitPattern pattern, std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(offset);
  switch (pattern) {
    case SplitPattern::kGpt2: return gpt2_length(rest, /*numbers_stand_alone=*/false);
    case SplitPattern::kSmolLm: return gpt2_length(rest, /*numbers_stand_alone=*/true);
    case SplitPattern::kLlama3: return llama3_length(rest, /*most_digits=*/3);
    case SplitPattern::kQwen2: return llama3_length(rest, /*most_digits=*/1);
  }
  return rest.size();
}

}  // namespace octavo::tokenizer
