// Tokenizers from vocabularies that are good, and texts that can be encoded: what is not fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/request.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

using Ids = std::vector<TokenId>;

inline std::unique_ptr<Tokenizer> make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *std::move(tokenizer) : nullptr;
}

inline Ids encode(const Tokenizer& tokenizer, std::string_view text, bool parse_special = false,
                  bool add_bos = false) {
  auto ids = tokenizer.encode(text, parse_special, add_bos);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *std::move(ids) : Ids();
}

// Of a list of {"role": "user", "content": "…"}.
inline std::vector<ChatMessage> to_messages(const nlohmann::json& json) {
  std::vector<ChatMessage> messages;
  for (const auto& message : json) {
    messages.push_back(
        {*parse_role(message["role"].get<std::string>()), message["content"].get<std::string>()});
  }
  return messages;
}

}  // namespace octavo::tokenizer
