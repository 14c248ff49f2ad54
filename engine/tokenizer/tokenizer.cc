#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/bpe_tokenizer.h"
#include "engine/tokenizer/character_bpe_tokenizer.h"
#include "engine/tokenizer/pipeline_tokenizer.h"
#include "engine/tokenizer/sentencepiece_tokenizer.h"
#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

bool has_merges(const Vocabulary& vocabulary) {
  return vocabulary.model == "gpt2" || vocabulary.model == "gemma4";
}

// Where merges stand in a list, nobody needs scores. Where they stand, they must be numbers that can be
// sorted.
Result<void> check_scores(const Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  if (vocabulary.scores.empty() && has_merges(vocabulary)) return {};
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    return damaged_vocabulary(kKey, "has " + std::to_string(vocabulary.scores.size()) + " entries for " +
                                        std::to_string(vocabulary.tokens.size()) + " tokens");
  }
  const bool finite =
      std::ranges::all_of(vocabulary.scores, [](float score) { return std::isfinite(score); });
  if (finite) return {};
  return damaged_vocabulary(kKey, "has entries that are not finite");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.pipeline) return PipelineTokenizer::create(std::move(vocabulary));
  if (vocabulary.model != "llama" && !has_merges(vocabulary)) {
    return Error{
        ErrorCode::kUnsupported,
        "tokenizer.ggml.model is \"" + escape_for_message(vocabulary.model) +
            "\"; supported are \"gpt2\" (byte-level BPE), \"llama\" (sentencepiece) and \"gemma4\" (BPE "
            "over characters): choose a model with one of these tokenizers",
        "tokenizer.ggml.model"};
  }
  OCTAVO_TRY_VOID(check_scores(vocabulary));
  if (vocabulary.model == "gpt2") return BpeTokenizer::create(std::move(vocabulary));
  if (vocabulary.model == "gemma4") return CharacterBpeTokenizer::create(std::move(vocabulary));
  return SentencePieceTokenizer::create(std::move(vocabulary));
}

}  // namespace octavo::tokenizer
