#include "engine/model/tokenizer_loader.h"

#include <utility>

#include "engine/model/gguf_file.h"
#include "engine/model/vocabulary_reader.h"

namespace octavo::model {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path) {
  OCTAVO_TRY(const GgufFile file, GgufFile::open(path));
  OCTAVO_TRY(tokenizer::Vocabulary vocabulary, read_vocabulary(file));
  return tokenizer::Tokenizer::create(std::move(vocabulary));
}

}  // namespace octavo::model
