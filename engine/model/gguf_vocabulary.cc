#include "engine/model/gguf_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/answer_ends.h"

namespace octavo::model {
namespace {

using tokenizer::ByteLevel;
using tokenizer::Metaspace;
using tokenizer::PreTokenizerStep;
using tokenizer::Split;
using tokenizer::SplitBehavior;
using tokenizer::TextPattern;
using tokenizer::TextPipeline;
using tokenizer::Tokenizer;
using tokenizer::TokenKind;
using tokenizer::Vocabulary;

constexpr std::string_view kSpelledSpace = "\u2581";

Error unsupported(std::string_view what) {
  return {ErrorCode::kUnsupported,
          "this tokenizer " + std::string(what) +
              ", which no key of a GGUF file says: load the folder as it is, or with --quantization",
          "tokenizer"};
}

// ---- byte-level BPE: which name stands for these pre-tokenizers

// As read_pre_tokenizer writes them down: "N" is one number, "N+" a run of them, "P+" a run of punctuation.
std::string spelling_of(const Split& split) {
  const bool is_run = split.behavior == SplitBehavior::kContiguous;
  if (split.inverted || (!is_run && split.behavior != SplitBehavior::kIsolated)) return "?";
  switch (split.pattern.kind) {
    case TextPattern::Kind::kExpression: return split.pattern.source;
    case TextPattern::Kind::kNumber: return is_run ? "N+" : "N";
    case TextPattern::Kind::kPunctuation: return is_run ? "P+" : "P";
    case TextPattern::Kind::kText:
    case TextPattern::Kind::kSpace: break;
  }
  return "?";
}

constexpr std::string_view kWordsOfGpt2 = "gpt-2";  // those that ByteLevel has itself
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct NamedSplit {
  std::string_view name;
  bool ignores_merges;
  std::vector<std::string_view> steps;
};

// As published files write them; the name is the first that llama.cpp has for it.
const std::vector<NamedSplit>& named_splits() {
  static const std::vector<NamedSplit> kSplits = {
      {"gpt-2", false, {kWordsOfGpt2}},
      {"smollm", false, {"N", kWordsOfGpt2}},
      {"smollm", false, {R"(\p{N})", kWordsOfGpt2}},
      {"falcon", false, {"P+", kWordsOfGpt2, "[0-9][0-9][0-9]"}},
      {"llama-bpe", true, {kLlama3}},
      {"dbrx", false, {kLlama3}},
      {"qwen2",
       false,
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"qwen35",
       false,
       {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"gpt-4o",
       false,
       {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"tekken", true, {kTekken}},
      {"deepseek-v3",
       false,
       {R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
      {"deepseek-coder",
       false,
       {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "N"}},
  };
  return kSplits;
}

Result<void> settle_bytes(const TextPipeline& pipeline, Vocabulary& vocabulary) {
  for (const tokenizer::NormalizerStep& step : pipeline.normalizers) {
    const auto* const form = std::get_if<tokenizer::UnicodeForm>(&step);
    if (form == nullptr || *form != tokenizer::UnicodeForm::kNfc)
      return unsupported("changes texts before they are cut into bytes");
    vocabulary.notice = "the file does not say that texts are normalised (NFC)";
  }
  std::vector<std::string> steps;
  for (const PreTokenizerStep& step : pipeline.pre_tokenizers) {
    if (const auto* const split = std::get_if<Split>(&step)) {
      steps.push_back(spelling_of(*split));
    } else if (const auto* const bytes = std::get_if<ByteLevel>(&step)) {
      vocabulary.add_space_prefix = bytes->add_prefix_space;
      if (bytes->splits) steps.emplace_back(kWordsOfGpt2);
    } else {
      return unsupported("marks spaces in bytes");
    }
  }
  const auto has_steps = [&](const NamedSplit& named) { return std::ranges::equal(named.steps, steps); };
  const auto fits = [&](const NamedSplit& named) {
    return has_steps(named) && named.ignores_merges == pipeline.ignores_merges;
  };
  const auto found = std::ranges::find_if(named_splits(), fits);
  if (found == named_splits().end()) {
    return unsupported(
        std::ranges::any_of(named_splits(), has_steps)
            ? "takes whole words for tokens where others of its kind merge, or merges where they do"
            : "cuts texts in a way that has no name");
  }
  vocabulary.model = "gpt2";
  vocabulary.split_pattern = std::string(found->name);
  return {};
}

// ---- BPE over characters

bool replaces_spaces(const TextPattern& pattern, std::string_view by) {
  return pattern.kind == TextPattern::Kind::kText && pattern.source == " " && by == kSpelledSpace;
}

// Spaces are spelled U+2581, by a normalizer or a pre-tokenizer, perhaps with one in front.
Result<void> settle_characters(const TextPipeline& pipeline, Vocabulary& vocabulary) {
  bool spells_spaces = false;
  for (const tokenizer::NormalizerStep& step : pipeline.normalizers) {
    const auto* const prepend = std::get_if<tokenizer::Prepend>(&step);
    const auto* const replace = std::get_if<tokenizer::Replace>(&step);
    if (prepend != nullptr && prepend->text == kSpelledSpace) {
      vocabulary.add_space_prefix = true;
    } else if (replace != nullptr && replaces_spaces(replace->pattern, replace->text)) {
      spells_spaces = true;
    } else {
      return unsupported("changes texts before it marks their spaces");
    }
  }
  for (const PreTokenizerStep& step : pipeline.pre_tokenizers) {
    const auto* const metaspace = std::get_if<Metaspace>(&step);
    const auto* const split = std::get_if<Split>(&step);
    if (metaspace != nullptr && metaspace->spelled_space == kSpelledSpace) {
      spells_spaces = true;
      vocabulary.add_space_prefix = metaspace->prefix != Metaspace::Prefix::kNever;
    } else if (split == nullptr || !spells_spaces || split->pattern.source != " ") {
      return unsupported("cuts texts in a way that has no name");
    }
  }
  if (!spells_spaces) return unsupported("leaves spaces as they are");
  return {};
}

// The highest score merges first: what an earlier merge makes.
std::vector<float> scores_by_merges(const Vocabulary& vocabulary) {
  const auto lowest = -static_cast<float>(vocabulary.merged_tokens.size());
  std::vector<float> scores(vocabulary.tokens.size(), lowest);
  std::vector<bool> is_scored(scores.size(), false);
  for (std::size_t rank = 0; rank < vocabulary.merged_tokens.size(); ++rank) {
    const auto result = static_cast<std::size_t>(vocabulary.merged_tokens[rank].result);
    if (!is_scored[result]) scores[result] = -static_cast<float>(rank);
    is_scored[result] = true;
  }
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (!vocabulary.kinds.empty() && vocabulary.kinds[id] != TokenKind::kNormal) scores[id] = 0;
  }
  return scores;
}

std::vector<std::string> spelled_merges(const Vocabulary& vocabulary) {
  std::vector<std::string> merges;
  for (const tokenizer::MergedTokens& merge : vocabulary.merged_tokens) {
    merges.push_back(vocabulary.tokens[static_cast<std::size_t>(merge.left)] + " " +
                     vocabulary.tokens[static_cast<std::size_t>(merge.right)]);
  }
  return merges;
}

// ---- ends, unused tokens

// Two keys name further ends; those that readers know by their names need none. The order is kept.
Result<void> settle_ends(Vocabulary& vocabulary) {
  Vocabulary by_name;
  by_name.tokens = vocabulary.tokens;
  by_name.kinds = vocabulary.kinds;
  by_name.eos_token_id = vocabulary.eos_token_id;
  by_name.split_pattern = vocabulary.split_pattern;
  if (vocabulary.model == "gemma4") settle_turns(by_name);
  settle_messages(by_name);
  add_ends_of_turns(by_name);
  constexpr std::ptrdiff_t kKeys = 2;
  const auto is_named = [&](TokenId id) {
    return std::ranges::find(by_name.further_eos_token_ids, id) != by_name.further_eos_token_ids.end();
  };
  auto& ends = vocabulary.further_eos_token_ids;
  // Clang 14 cannot compile libstdc++'s std::ranges::stable_partition.
  const auto named =
      std::stable_partition(ends.begin(), ends.end(), [&](TokenId id) { return !is_named(id); });
  if (named - ends.begin() > kKeys) return unsupported("ends answers by more than three tokens");
  return {};
}

// An id without a text has one that no text becomes, as llama.cpp's converter writes it.
void name_unused(Vocabulary& vocabulary) {
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].empty()) vocabulary.tokens[id] = "[PAD" + std::to_string(id) + "]";
  }
}

// ---- the same ids

constexpr std::string_view kProbes[] = {
    "Hello, my name is Ada. What's yours?",
    " a  b   c    d\t\te\n\nf \r\n  g   ",
    "12345678901234567890 3.14159 1,000,000 v2.0.1 0x1F",
    "def f(x):\n    return {\"a\": [x**2 for _ in range(10)]}  # done\n",
    "It's they'll WE'RE I'D don't DON'T l'eau",
    "\u00dcber Stra\u00dfen, \u00e9t\u00e9, ma\u00f1ana, \u0141\u00f3d\u017a, \u0130stanbul",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0393\u03b5\u03b9\u03ac "
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f \uc548\ub155\ud558\uc138\uc694 "
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2713 \u20ac \u2014 \u201cquoted\u201d \u2026",
    "!!! ??? ... --- === ### *** <a href=\"x\">&nbsp;</a> C:\\x\\y $%^&*()_+",
    "CamelCase snake_case kebab-case SCREAMING_CASE mixedCASE42words",
    "\n\n\n   leading and trailing   \n",
    "https://example.org/a?b=c&d=%20e#f user@example.org",
};

Result<bool> gives_same_ids(const Tokenizer& given, const Tokenizer& made, std::string_view text,
                            bool parse_special) {
  OCTAVO_TRY(const std::vector<TokenId> expected, given.encode(text, parse_special, /*add_bos=*/true));
  OCTAVO_TRY(const std::vector<TokenId> found, made.encode(text, parse_special, /*add_bos=*/true));
  return expected == found;
}

Result<void> check_ids(const Vocabulary& given, Vocabulary& made) {
  OCTAVO_TRY(const std::unique_ptr<Tokenizer> given_tokenizer, Tokenizer::create(given));
  OCTAVO_TRY(const std::unique_ptr<Tokenizer> made_tokenizer, Tokenizer::create(made));
  for (const std::string_view probe : kProbes) {
    OCTAVO_TRY(const bool is_same, gives_same_ids(*given_tokenizer, *made_tokenizer, probe, false));
    if (!is_same)
      return unsupported("turns \"" + escape_for_message(probe.substr(0, 24)) + "\" into other tokens");
  }
  constexpr std::size_t kMostWords = 256;
  std::size_t num_words = 0;
  for (std::size_t id = 0; id < given.kinds.size() && num_words < kMostWords; ++id) {
    if (given.kinds[id] != TokenKind::kControl && given.kinds[id] != TokenKind::kUserDefined) continue;
    ++num_words;
    const std::string text = "one " + given.tokens[id] + " two" + given.tokens[id] + "three";
    OCTAVO_TRY(const bool is_same, gives_same_ids(*given_tokenizer, *made_tokenizer, text, true));
    if (is_same) continue;
    if (!made.notice.empty()) made.notice += "; ";
    made.notice +=
        "the file does not say what \"" + escape_for_message(given.tokens[id], 60) +
        "\" does to the white space beside it: texts around it may become other tokens than in the folder";
    break;
  }
  return {};
}

}  // namespace

Result<Vocabulary> gguf_vocabulary(const Vocabulary& vocabulary, std::string_view architecture) {
  Vocabulary made = vocabulary;
  made.pipeline.reset();
  made.merged_tokens.clear();
  made.added_token_rules.clear();
  made.log_probabilities.clear();
  if (vocabulary.pipeline) {
    if (vocabulary.model != "BPE") return unsupported("chooses tokens by their probabilities (Unigram)");
    const TextPipeline& pipeline = *vocabulary.pipeline;
    const bool has_bytes = std::ranges::any_of(pipeline.pre_tokenizers, [](const PreTokenizerStep& step) {
      return std::holds_alternative<ByteLevel>(step);
    });
    OCTAVO_TRY_VOID(has_bytes ? settle_bytes(pipeline, made) : settle_characters(pipeline, made));
    if (!has_bytes) made.model = architecture == "gemma4" ? "gemma4" : "llama";
    if (made.model == "llama") {
      made.scores = scores_by_merges(vocabulary);
    } else {
      made.merges = spelled_merges(vocabulary);
    }
  }
  name_unused(made);
  OCTAVO_TRY_VOID(settle_ends(made));
  OCTAVO_TRY_VOID(check_ids(vocabulary, made));
  return made;
}

}  // namespace octavo::model
