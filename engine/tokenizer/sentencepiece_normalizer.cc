#include "engine/tokenizer/sentencepiece_normalizer.h"

#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/sentencepiece_space.h"

namespace octavo::tokenizer {
SentencePieceNormalizer::SentencePieceNormalizer(Charsmap rules, SpecialTokens user_defined,
                                                 bool remove_extra_whitespaces)
    : rules_(std::move(rules)),
      user_defined_(std::move(user_defined)),
      remove_extra_whitespaces_(remove_extra_whitespaces) {}

Result<std::string> SentencePieceNormalizer::normalize(std::string_view text, bool add_prefix) const {
  std::string out;
  if (remove_extra_whitespaces_) text = without_leading_spaces(text);
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 2);
  if (add_prefix) out += kSpelledSpace;
  bool after_space = remove_extra_whitespaces_;
  while (!text.empty()) {
    Step step = next(text);
    while (after_space && step.becomes.starts_with(' ')) step.becomes.remove_prefix(1);
    append_spelled(out, step.becomes);
    if (!step.becomes.empty()) after_space = remove_extra_whitespaces_ && step.becomes.ends_with(' ');
    text.remove_prefix(step.length);
    if (out.size() > kMaxNormalizedBytes) {
      return Error{ErrorCode::kTooLong,
                   "the prompt has more than " + std::to_string(kMaxNormalizedBytes) +
                       " bytes once the model's normalisation rules are applied: shorten it"};
    }
  }
  while (remove_extra_whitespaces_ && out.ends_with(kSpelledSpace))
    out.resize(out.size() - kSpelledSpace.size());
  return out;
}

std::string_view SentencePieceNormalizer::without_leading_spaces(std::string_view text) const {
  while (!text.empty()) {
    const Step step = next(text);
    if (step.becomes != " ") break;
    text.remove_prefix(step.length);
  }
  return text;
}

SentencePieceNormalizer::Step SentencePieceNormalizer::next(std::string_view text) const {
  if (const std::size_t length = user_defined_.longest_at_start(text))
    return {text.substr(0, length), length};
  if (const auto rule = rules_.longest(text)) return {rule->replacement, rule->length};
  const CodePoint c = decode_utf8(text, 0);
  // One U+FFFD for each byte, where the rest of the program has one for several.
  return c.valid ? Step{text.substr(0, c.length), c.length} : Step{"\ufffd", 1};
}

}  // namespace octavo::tokenizer
