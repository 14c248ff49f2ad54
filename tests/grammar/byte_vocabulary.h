// A vocabulary of all bytes and some longer pieces, as small as one can be in which any text can be written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace octavo::testing {

class ByteVocabulary : public tokenizer::Tokenizer {
 public:
  static constexpr TokenId kEnd = 0, kControl = 1, kFirstByte = 2;

  ByteVocabulary() {
    texts_ = {"<end>", "<|mark|>"};
    for (int byte = 0; byte < 256; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
    for (const char* const piece :
         {"{\"", "\": ", "\", \"", "true", "false", "null", "\"}", "], ", "[", "abc", "12", "  ", "\n\n",
          "\xc3\xa9", "\\u", "name", "<tool_call>", "\", ", "}}"})
      texts_.emplace_back(piece);
  }

  TokenId byte(char c) const { return kFirstByte + static_cast<unsigned char>(c); }

  std::int32_t vocabulary_size() const override { return static_cast<std::int32_t>(texts_.size()); }
  std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
  bool is_end_of_sequence(TokenId id) const override { return id == kEnd; }
  bool has_chat_template() const override { return false; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool, bool,
                                      const tokenizer::EncodeLimits&) const override {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(byte(c));
    return ids;
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan>) const override {
    return std::vector<TokenId>();
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage>,
                                                                 const TemplateInputs&) const override {
    return std::vector<tokenizer::PromptSpan>();
  }
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage>, const TemplateInputs&,
                                           const tokenizer::EncodeLimits&) const override {
    return std::vector<TokenId>();
  }
  std::string_view token_bytes(TokenId id) const override { return texts_[static_cast<std::size_t>(id)]; }
  bool is_special(TokenId id) const override { return id == kEnd || id == kControl; }
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (!skip_special || !is_special(id)) text += token_bytes(id);
    }
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

}  // namespace octavo::testing
