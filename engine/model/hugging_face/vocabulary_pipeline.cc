#include "engine/model/hugging_face/vocabulary_pipeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text.h"

namespace octavo::model::vocabulary {
namespace {

using tokenizer::Metaspace;
using tokenizer::NormalizerStep;
using tokenizer::PreTokenizerStep;
using tokenizer::Split;
using tokenizer::SplitBehavior;
using tokenizer::TextPattern;
using tokenizer::TextPipeline;
using tokenizer::UnicodeForm;

constexpr std::size_t kMaxSteps = 64;  // of one kind
const std::string kPipelineFile = "tokenizer.json";

Error unknown(const std::string& what, const std::string& type) {
  return unsupported(kPipelineFile,
                     "has the " + what + " \"" + escape_for_message(type, 60) + "\", which is not supported");
}

Error malformed(const std::string& what) { return damaged(kPipelineFile, "has a malformed " + what); }

Result<std::string> type_of(const Json& step, const std::string& what) {
  std::optional<std::string> type = find_text(step, "type");
  if (!type) return malformed(what + " without a type");
  return *std::move(type);
}

Result<std::string> text_of(const Json& step, const char* key, const std::string& what) {
  std::optional<std::string> text = find_text(step, key);
  if (!text) return malformed(what);
  return *std::move(text);
}

// {"Regex": ...} or {"String": ...}
Result<TextPattern> read_pattern(const Json& step, const std::string& what) {
  const Json* const pattern = find(step, "pattern");
  if (pattern != nullptr && pattern->is_object() && pattern->size() == 1) {
    if (auto text = find_text(*pattern, "String"); text && !text->empty())
      return TextPattern{TextPattern::Kind::kText, *std::move(text)};
    if (auto expression = find_text(*pattern, "Regex"); expression && !expression->empty())
      return TextPattern{TextPattern::Kind::kExpression, *std::move(expression)};
  }
  return malformed(what + " without a pattern");
}

// Sentencepiece's rules stand in the file as base64.
Result<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return malformed("normalizer \"Precompiled\"");
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xffffffu;
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> num_bits & 0xffu)));
  }
  return bytes;
}

// Calls read(step) for `list` or, if it is a Sequence, for each of its `key`.
template <class Read>
Result<void> for_each_step(const Json& list, const char* key, const std::string& what, Read read) {
  OCTAVO_TRY(const std::string type, type_of(list, what));
  if (type != "Sequence") return read(list, type);
  const Json* const steps = find(list, key);
  if (steps == nullptr || !steps->is_array()) return malformed(what + " \"Sequence\"");
  for (const Json& step : *steps) OCTAVO_TRY_VOID(for_each_step(step, key, what, read));
  return {};
}

Result<NormalizerStep> read_normalizer(const Json& step, const std::string& type) {
  if (type == "NFC") return NormalizerStep(UnicodeForm::kNfc);
  if (type == "NFD") return NormalizerStep(UnicodeForm::kNfd);
  if (type == "NFKC") return NormalizerStep(UnicodeForm::kNfkc);
  if (type == "NFKD") return NormalizerStep(UnicodeForm::kNfkd);
  if (type == "Lowercase") return NormalizerStep(tokenizer::Lowercase{});
  if (type == "StripAccents") return NormalizerStep(tokenizer::StripAccents{});
  if (type == "Strip") {
    return NormalizerStep(
        tokenizer::StripSpaces{flag(step, "strip_left", true), flag(step, "strip_right", true)});
  }
  if (type == "Prepend") {
    OCTAVO_TRY(std::string text, text_of(step, "prepend", "normalizer \"Prepend\""));
    return NormalizerStep(tokenizer::Prepend{std::move(text)});
  }
  if (type == "Replace") {
    OCTAVO_TRY(TextPattern pattern, read_pattern(step, "normalizer \"Replace\""));
    OCTAVO_TRY(std::string text, text_of(step, "content", "normalizer \"Replace\""));
    return NormalizerStep(tokenizer::Replace{std::move(pattern), std::move(text)});
  }
  if (type == "Precompiled") {
    OCTAVO_TRY(const std::string text, text_of(step, "precompiled_charsmap", "normalizer \"Precompiled\""));
    OCTAVO_TRY(std::string bytes, decode_base64(text));
    return NormalizerStep(tokenizer::CharsmapRules{std::move(bytes)});
  }
  return unknown("normalizer", type);
}

Result<SplitBehavior> read_behavior(const Json& step, SplitBehavior otherwise) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {
      {{"Removed", SplitBehavior::kRemoved},
       {"Isolated", SplitBehavior::kIsolated},
       {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
       {"MergedWithNext", SplitBehavior::kMergedWithNext},
       {"Contiguous", SplitBehavior::kContiguous}}};
  const std::optional<std::string> name = find_text(step, "behavior");
  if (!name) return otherwise;
  const auto* const known =
      std::ranges::find(kBehaviors, *name, &std::pair<std::string_view, SplitBehavior>::first);
  if (known == kBehaviors.end()) return unknown("behavior of a split", *name);
  return known->second;
}

Result<PreTokenizerStep> read_metaspace(const Json& step) {
  Metaspace metaspace;
  metaspace.spelled_space = find_text(step, "replacement").value_or("\u2581");
  const std::string& spelled = metaspace.spelled_space;
  if (spelled.empty() || decode_utf8(spelled, 0).length != spelled.size())
    return malformed("pre-tokenizer \"Metaspace\": its replacement is not one character");
  metaspace.splits = flag(step, "split", true);
  const bool adds = flag(step, "add_prefix_space", true);  // of old files
  const std::string scheme = find_text(step, "prepend_scheme").value_or(adds ? "always" : "never");
  if (scheme == "always") {
    metaspace.prefix = Metaspace::Prefix::kAlways;
  } else if (scheme == "first") {
    metaspace.prefix = Metaspace::Prefix::kFirst;
  } else if (scheme == "never") {
    metaspace.prefix = Metaspace::Prefix::kNever;
  } else {
    return unknown("prepend_scheme", scheme);
  }
  return PreTokenizerStep(metaspace);
}

Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(const Json& step, const std::string& type) {
  using Kind = TextPattern::Kind;
  const auto split = [](TextPattern pattern, SplitBehavior behavior, bool inverted = false) {
    return std::vector<PreTokenizerStep>{Split{std::move(pattern), behavior, inverted}};
  };
  if (type == "ByteLevel") {
    return std::vector<PreTokenizerStep>{
        tokenizer::ByteLevel{flag(step, "add_prefix_space", true), flag(step, "use_regex", true)}};
  }
  if (type == "Metaspace") {
    OCTAVO_TRY(PreTokenizerStep metaspace, read_metaspace(step));
    return std::vector<PreTokenizerStep>{std::move(metaspace)};
  }
  if (type == "Split") {
    OCTAVO_TRY(TextPattern pattern, read_pattern(step, "pre-tokenizer \"Split\""));
    OCTAVO_TRY(const SplitBehavior behavior, read_behavior(step, SplitBehavior::kIsolated));
    return split(std::move(pattern), behavior, flag(step, "invert", false));
  }
  if (type == "Digits") {
    const bool is_each = flag(step, "individual_digits", false);
    return split({Kind::kNumber}, is_each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }
  if (type == "Punctuation") {
    OCTAVO_TRY(const SplitBehavior behavior, read_behavior(step, SplitBehavior::kIsolated));
    return split({Kind::kPunctuation}, behavior);
  }
  if (type == "WhitespaceSplit") return split({Kind::kSpace}, SplitBehavior::kRemoved);
  // \w+|[^\w\s]+ in Unicode's terms; what it matches stays.
  if (type == "Whitespace") {
    return split(
        {Kind::kExpression,
         R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)"},
        SplitBehavior::kRemoved, /*inverted=*/true);
  }
  if (type == "CharDelimiterSplit") {
    OCTAVO_TRY(std::string delimiter, text_of(step, "delimiter", "pre-tokenizer \"CharDelimiterSplit\""));
    return split({Kind::kText, std::move(delimiter)}, SplitBehavior::kRemoved);
  }
  return unknown("pre-tokenizer", type);
}

// Once a text is spelled byte by byte it can only be cut.
Result<void> check_order(const std::vector<PreTokenizerStep>& steps) {
  bool is_spelled = false;
  for (const PreTokenizerStep& step : steps) {
    if (is_spelled && !std::holds_alternative<Split>(step))
      return unsupported(kPipelineFile, "has a pre-tokenizer behind \"ByteLevel\" that changes text");
    is_spelled |= std::holds_alternative<tokenizer::ByteLevel>(step);
  }
  return {};
}

Result<void> read_decoder(const Json& step, const std::string& type, TextPipeline& pipeline) {
  if (type == "ByteLevel") {
    pipeline.decodes_bytes = true;
  } else if (type == "Metaspace") {
    pipeline.decoded_texts.emplace_back(find_text(step, "replacement").value_or("\u2581"), " ");
  } else if (type == "Replace") {
    OCTAVO_TRY(TextPattern pattern, read_pattern(step, "decoder \"Replace\""));
    OCTAVO_TRY(std::string text, text_of(step, "content", "decoder \"Replace\""));
    if (pattern.kind == TextPattern::Kind::kExpression)
      return unsupported(kPipelineFile, "has a decoder \"Replace\" with a regular expression");
    pipeline.decoded_texts.emplace_back(std::move(pattern.source), std::move(text));
  } else if (type != "ByteFallback" && type != "Fuse" && type != "Strip") {
    return unknown("decoder", type);
  }
  if (pipeline.decoded_texts.size() > kMaxSteps) return malformed("decoder with too many steps");
  return {};
}

}  // namespace

Result<TextPipeline> read_pipeline(const Json& tokenizer) {
  TextPipeline pipeline;
  if (const Json* const normalizer = find(tokenizer, "normalizer")) {
    const auto add = [&](const Json& step, const std::string& type) -> Result<void> {
      OCTAVO_TRY(NormalizerStep read, read_normalizer(step, type));
      pipeline.normalizers.push_back(std::move(read));
      return pipeline.normalizers.size() <= kMaxSteps ? Result<void>()
                                                      : malformed("normalizer with too many steps");
    };
    OCTAVO_TRY_VOID(for_each_step(*normalizer, "normalizers", "normalizer", add));
  }
  if (const Json* const pre_tokenizer = find(tokenizer, "pre_tokenizer")) {
    const auto add = [&](const Json& step, const std::string& type) -> Result<void> {
      OCTAVO_TRY(const std::vector<PreTokenizerStep> read, read_pre_tokenizer(step, type));
      pipeline.pre_tokenizers.insert(pipeline.pre_tokenizers.end(), read.begin(), read.end());
      return pipeline.pre_tokenizers.size() <= kMaxSteps ? Result<void>()
                                                         : malformed("pre-tokenizer with too many steps");
    };
    OCTAVO_TRY_VOID(for_each_step(*pre_tokenizer, "pretokenizers", "pre-tokenizer", add));
  }
  OCTAVO_TRY_VOID(check_order(pipeline.pre_tokenizers));
  if (const Json* const decoder = find(tokenizer, "decoder")) {
    const auto add = [&](const Json& step, const std::string& type) {
      return read_decoder(step, type, pipeline);
    };
    OCTAVO_TRY_VOID(for_each_step(*decoder, "decoders", "decoder", add));
  }
  return pipeline;
}

}  // namespace octavo::model::vocabulary
