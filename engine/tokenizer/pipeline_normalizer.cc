#include "engine/tokenizer/pipeline_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <memory>

#include "engine/base/overloaded.h"
#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"

namespace octavo::tokenizer {
namespace {

Error too_long() {
  return {ErrorCode::kTooLong, "the prompt has more than " +
                                   std::to_string(PipelineNormalizer::kMaxNormalizedBytes) +
                                   " bytes once the model's normalisation rules are applied: shorten it"};
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

int options_of(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::kNfc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case UnicodeForm::kNfd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case UnicodeForm::kNfkc: return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case UnicodeForm::kNfkd: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

// The library takes 4 bytes for each character of what it makes.
Result<void> append_form(std::string_view text, UnicodeForm form, std::string& out) {
  const auto options = static_cast<utf8proc_option_t>(options_of(form));
  const auto bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  const utf8proc_ssize_t characters = utf8proc_decompose(bytes, size, nullptr, 0, options);
  if (characters < 0 || static_cast<std::size_t>(characters) > PipelineNormalizer::kMaxNormalizedBytes / 4)
    return too_long();
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(bytes, size, &made, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(made, std::free);
  if (length < 0) return too_long();
  out.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(length));
  return {};
}

// No character of ASCII is changed, or joined with what stands before it: so what lies between is short.
Result<std::string> normalize_form(std::string text, UnicodeForm form) {
  auto begin = std::ranges::find_if_not(text, is_ascii);
  if (begin == text.end()) return text;
  std::string out;
  auto done = text.begin();
  while (begin != text.end()) {
    const auto start = begin == done ? begin : begin - 1;  // the character that it may join
    const auto end = std::find_if(begin, text.end(), is_ascii);
    out.append(done, start);
    OCTAVO_TRY_VOID(append_form(std::string_view(start, end), form, out));
    if (out.size() > PipelineNormalizer::kMaxNormalizedBytes) return too_long();
    done = end;
    begin = std::find_if_not(end, text.end(), is_ascii);
  }
  out.append(done, text.end());
  return out;
}

std::string to_lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    // The only character whose small letter is two in every language.
    if (c.value == 0x130) {
      out += "i\u0307";
    } else {
      append_utf8(out, to_lower(c.value));
    }
    i += c.length;
  }
  return out;
}

bool is_accent(char32_t c) { return categorise(c) == Category::kM; }

std::string without_accents(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!is_accent(c.value)) out += text.substr(i, c.length);
    i += c.length;
  }
  return out;
}

std::string_view stripped(std::string_view text, const StripSpaces& ends) {
  while (ends.left && !text.empty()) {
    const Character c = read_character(text, 0);
    if (c.kind != CharacterClass::kSpace) break;
    text.remove_prefix(c.length);
  }
  while (ends.right && !text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && continues_utf8(text[last])) --last;
    if (read_character(text, last).kind != CharacterClass::kSpace) break;
    text = text.substr(0, last);
  }
  return text;
}

Result<std::string> replace_matches(std::string_view text, const std::vector<Match>& matches,
                                    std::string_view replacement) {
  std::string out;
  std::size_t begin = 0;
  for (const Match& match : matches) {
    out.append(text.substr(begin, match.begin - begin)).append(replacement);
    if (out.size() > PipelineNormalizer::kMaxNormalizedBytes) return too_long();
    begin = match.end;
  }
  out.append(text.substr(begin));
  return out;
}

Result<std::string> replace_text(std::string text, const Replace& step) {
  const std::string& wanted = step.pattern.source;
  std::vector<Match> matches;
  for (std::size_t at = text.find(wanted); at != std::string::npos;
       at = text.find(wanted, at + wanted.size()))
    matches.push_back({at, at + wanted.size()});
  if (matches.empty()) return text;
  return replace_matches(text, matches, step.text);
}

// Bytes of the user-perceived character at the start of `text`, as far as `kMost`; what is longer is cut.
std::size_t grapheme_length(std::string_view text) {
  constexpr std::size_t kMost = 6;
  CodePoint last = decode_utf8(text, 0);
  std::size_t length = last.length;
  utf8proc_int32_t state = 0;
  while (length < text.size() && length < kMost) {
    const CodePoint next = decode_utf8(text, length);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    length += next.length;
    last = next;
  }
  return length;
}

// As the library that tokenizers use: a user-perceived character of less than six bytes becomes what the
// shortest rule that it begins with says, all of it; else each character on its own.
Result<std::string> apply_charsmap(std::string_view text, const Charsmap& rules) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    constexpr std::size_t kMostBytes = 5;
    const std::size_t length = grapheme_length(text);
    const auto whole = length <= kMostBytes ? rules.shortest(text.substr(0, length)) : std::nullopt;
    const std::size_t taken = whole ? length : decode_utf8(text, 0).length;
    const auto rule = whole ? whole : rules.shortest(text.substr(0, taken));
    out += rule ? rule->replacement : text.substr(0, taken);
    if (out.size() > PipelineNormalizer::kMaxNormalizedBytes) return too_long();
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace

Result<PipelineNormalizer> PipelineNormalizer::create(const std::vector<NormalizerStep>& steps) {
  PipelineNormalizer normalizer;
  for (const NormalizerStep& step : steps) {
    if (const auto* const replace = std::get_if<Replace>(&step);
        replace && replace->pattern.kind == TextPattern::Kind::kExpression) {
      OCTAVO_TRY(TextRegex expression, TextRegex::compile(replace->pattern.source));
      normalizer.steps_.emplace_back(ReplaceMatches{std::move(expression), replace->text});
    } else if (const auto* const rules = std::get_if<CharsmapRules>(&step)) {
      if (rules->bytes.empty()) continue;
      OCTAVO_TRY(Charsmap charsmap, Charsmap::parse(rules->bytes));
      normalizer.steps_.emplace_back(std::move(charsmap));
    } else {
      std::visit(
          [&](const auto& other) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(other)>, CharsmapRules>)
              normalizer.steps_.emplace_back(other);
          },
          step);
    }
  }
  return normalizer;
}

Result<PipelineNormalizer::Normalized> PipelineNormalizer::normalize(std::string_view text) const {
  Normalized normalized{std::string(text)};
  for (const Step& step : steps_) {
    OCTAVO_TRY_VOID(apply(step, normalized));
    if (normalized.text.size() > kMaxNormalizedBytes) return too_long();
  }
  return normalized;
}

Result<void> PipelineNormalizer::apply(const Step& step, Normalized& normalized) {
  std::string& text = normalized.text;
  const auto set = [&](Result<std::string> made) -> Result<void> {
    OCTAVO_TRY(text, std::move(made));
    return {};
  };
  return std::visit(
      Overloaded{
          [&](UnicodeForm form) { return set(normalize_form(std::move(text), form)); },
          [&](const Lowercase&) { return set(to_lowercase(text)); },
          [&](const StripAccents&) {
            normalized.keeps_start &= text.empty() || !is_accent(decode_utf8(text, 0).value);
            return set(without_accents(text));
          },
          [&](const StripSpaces& ends) {
            const std::string_view kept = stripped(text, ends);
            normalized.keeps_start &= kept.data() == text.data();
            return set(std::string(kept));
          },
          [&](const Prepend& prefix) { return set(text.empty() ? std::string() : prefix.text + text); },
          [&](const Replace& replace) {
            normalized.keeps_start &= !replace.text.empty() || !text.starts_with(replace.pattern.source);
            return set(replace_text(std::move(text), replace));
          },
          [&](const ReplaceMatches& replace) -> Result<void> {
            std::vector<Match> matches;
            OCTAVO_TRY_VOID(replace.expression.find_all(text, matches));
            const bool is_at_start = !matches.empty() && matches[0].begin == 0 && matches[0].end > 0;
            normalized.keeps_start &= !replace.text.empty() || !is_at_start;
            return set(replace_matches(text, matches, replace.text));
          },
          [&](const Charsmap& rules) {
            const auto first = text.empty() ? std::nullopt : rules.shortest(text);
            normalized.keeps_start &= !first || !first->replacement.empty();
            return set(apply_charsmap(text, rules));
          }},
      step);
}

}  // namespace octavo::tokenizer
