#include "engine/model/tokenizer_loader.h"

#include <utility>

#include "engine/model/model_source.h"

namespace octavo::model {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path) {
  OCTAVO_TRY(const auto source, open_model_source(path));
  OCTAVO_TRY(tokenizer::Vocabulary vocabulary, source->read_vocabulary());
  return tokenizer::Tokenizer::create(std::move(vocabulary));
}

}  // namespace octavo::model
