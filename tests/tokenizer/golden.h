// Golden data, and tokenizers to hold against it.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/model_files.h"
#include "engine/model/tokenizer_loader.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/paths.h"

namespace octavo::tokenizer {

inline nlohmann::json load_golden(const std::string& name) {
  std::ifstream file(test::source_folder() / "tests/golden" / name);
  return nlohmann::json::parse(file);
}

inline std::string read_golden_text(const std::string& name) {
  std::ifstream file(test::source_folder() / "tests/golden" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The default model's tokenizer, loaded once; nullptr when set-up has not fetched the model.
inline const Tokenizer* default_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = []() -> std::unique_ptr<Tokenizer> {
    auto loaded = model::load_tokenizer(model::default_model_path());
    return loaded ? *std::move(loaded) : nullptr;
  }();
  return tokenizer.get();
}

}  // namespace octavo::tokenizer
