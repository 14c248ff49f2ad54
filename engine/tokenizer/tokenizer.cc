#include "engine/tokenizer/tokenizer.h"

#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/bpe_tokenizer.h"
#include "engine/tokenizer/sentencepiece_tokenizer.h"

namespace octavo::tokenizer {

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.model == "gpt2") return BpeTokenizer::create(std::move(vocabulary));
  if (vocabulary.model == "llama") return SentencePieceTokenizer::create(std::move(vocabulary));
  return Error{ErrorCode::kUnsupported,
               "tokenizer.ggml.model is \"" + escape_for_message(vocabulary.model) +
                   "\"; supported are \"gpt2\" (byte-level BPE) and \"llama\" (sentencepiece): choose a "
                   "model with one of "
                   "these tokenizers",
               "tokenizer.ggml.model"};
}

}  // namespace octavo::tokenizer
