// The toy vocabulary as a model file would bring it, behind the product's own prompt code: its chat template
// is rendered, special tokens are found in the template's text alone, and answers keep their token ids. Every
// byte of text is one token. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/tokenizer/prompt_tokenizer.h"

namespace octavo::simulation {

class ToyChatTokenizer final : public tokenizer::PromptTokenizer {
 public:
  ToyChatTokenizer();

 private:
  Result<void> encode_around(std::string_view text, std::span<const tokenizer::SettledTokens> settled,
                             const std::stop_token& stop, std::vector<TokenId>& out) const override;
  Result<std::size_t> count_bytes_around(std::string_view text,
                                         std::span<const tokenizer::SettledTokens> settled) const override;
};

}  // namespace octavo::simulation
