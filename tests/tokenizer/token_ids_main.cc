// octavo_token_ids FOLDER: for each line of standard input, a JSON text, one line: the ids that the
// vocabulary of a Hugging Face folder gives for it, special tokens in it included, as a JSON list.
// tests/long/tokenizer_ids.py holds them against the package tokenizers.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/hugging_face/vocabulary_files.h"
#include "engine/tokenizer/tokenizer.h"

int main(int count, char** arguments) {
  using namespace octavo;
  if (count != 2) {
    std::cerr << "usage: octavo_token_ids FOLDER < TEXTS\n";
    return 2;
  }
  auto vocabulary = model::read_vocabulary(arguments[1]);
  if (!vocabulary) {
    std::cerr << vocabulary.error().message << '\n';
    return 1;
  }
  const auto tokenizer = tokenizer::Tokenizer::create(*std::move(vocabulary));
  if (!tokenizer) {
    std::cerr << tokenizer.error().message << '\n';
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).get<std::string>();
    const auto ids = (*tokenizer)->encode(text, /*parse_special=*/true, /*add_bos=*/false);
    if (!ids) {
      std::cerr << ids.error().message << '\n';
      return 1;
    }
    std::cout << nlohmann::json(*ids).dump() << '\n';
  }
  return 0;
}
