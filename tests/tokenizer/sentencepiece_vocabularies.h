// The vocabularies of tests/golden/sentencepiece.json, and texts that JSON cannot hold.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

inline Vocabulary sentencepiece_vocabulary(const nlohmann::json& entry) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = entry["tokens"].get<std::vector<std::string>>();
  vocabulary.scores = entry["scores"].get<std::vector<float>>();
  for (const auto& kind : entry["token_type"])
    vocabulary.kinds.push_back(static_cast<TokenKind>(kind.get<int>()));
  vocabulary.add_space_prefix = entry["add_space_prefix"].get<bool>();
  vocabulary.remove_extra_whitespaces = entry["remove_extra_whitespaces"].get<bool>();
  for (const auto& byte : entry["precompiled_charsmap"]) {
    vocabulary.precompiled_charsmap.push_back(static_cast<char>(byte.get<unsigned char>()));
  }
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  vocabulary.add_bos_token = true;
  return vocabulary;
}

// `short_texts`: of the golden file.
inline std::string text_of_entry(const nlohmann::json& entry, const nlohmann::json& short_texts) {
  if (entry.is_string()) return entry.get<std::string>();
  std::string text;
  if (entry.contains("joined")) {
    std::string once;
    for (const auto& part : short_texts) {
      if (&part != &short_texts.front()) once += entry["joined"].get<std::string>();
      once += part.get<std::string>();
    }
    for (int i = entry["times"].get<int>(); i > 0; --i) text += once;
    return text;
  }
  if (entry.contains("hex")) {
    const auto hex = entry["hex"].get<std::string>();
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      text.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    return text;
  }
  for (int i = entry["times"].get<int>(); i > 0; --i) text += entry["repeat"].get<std::string>();
  return text;
}

}  // namespace octavo::tokenizer
