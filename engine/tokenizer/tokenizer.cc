#include "engine/tokenizer/tokenizer.h"

#include <utility>

#include "engine/base/text.h"
#include "engine/tokenizer/bpe_tokenizer.h"

namespace octavo::tokenizer {

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.model == "gpt2") return BpeTokenizer::create(std::move(vocabulary));
  return Error{ErrorCode::kUnsupported,
               "tokenizer.ggml.model is \"" + escape_for_message(vocabulary.model) +
                   "\"; supported is \"gpt2\" (byte-level BPE): choose a model with that tokenizer",
               "tokenizer.ggml.model"};
}

}  // namespace octavo::tokenizer
