// A tokenizer without a model: a few special tokens, letters, and single bytes of longer characters, so that
// characters and stop strings stretch over tokens all the time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::simulation {

class ToyTokenizer : public tokenizer::Tokenizer {
 public:
  static constexpr TokenId kEos = 0;
  static constexpr TokenId kFurtherEos = 1;
  static constexpr TokenId kBos = 2;
  static constexpr TokenId kSpecial = 3;
  static constexpr TokenId kNumSpecial = 4;

  static constexpr std::int32_t kVocabularySize = 24;

  std::int32_t vocabulary_size() const override { return kVocabularySize; }
  std::optional<TokenId> bos_token_id() const override { return kBos; }
  bool is_end_of_sequence(TokenId id) const override { return id == kEos || id == kFurtherEos; }
  bool has_chat_template() const override { return false; }
  std::string_view token_bytes(TokenId id) const override { return kPieces[static_cast<std::size_t>(id)]; }
  bool is_special(TokenId id) const override { return id < kNumSpecial; }
  bool is_control(TokenId id) const override { return id < kNumSpecial; }

  // Letters only, one token each; "<s>" is special when asked.
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                      const tokenizer::EncodeLimits& = {}) const override {
    std::vector<TokenId> ids;
    if (add_bos && !text.empty()) ids.push_back(kBos);
    while (!text.empty()) {
      const auto [id, length] = first_piece(text, parse_special);
      if (id < 0) return Error{ErrorCode::kInvalidArgument, "the toy tokenizer knows letters only"};
      ids.push_back(id);
      text.remove_prefix(length);
    }
    return ids;
  }

  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override {
    std::string text;
    for (const auto& span : spans) text += span.text;
    return encode(text, /*parse_special=*/false, /*add_bos=*/true);
  }

  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                                 const TemplateInputs&) const override {
    std::vector<tokenizer::PromptSpan> spans;
    for (const auto& message : messages) spans.push_back({message.content, true, -1});
    return spans;
  }

  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits& = {}) const override {
    auto spans = apply_chat_template(messages, inputs);
    return encode_spans(*spans);
  }

  std::string decode(std::span<const TokenId> ids, bool skip_special) const override {
    std::string bytes;
    for (const TokenId id : ids) {
      if (!skip_special || !is_control(id)) bytes += token_bytes(id);
    }
    return sanitise_utf8(bytes);
  }

 private:
  static constexpr std::array<std::string_view, kVocabularySize> kPieces = {
      "</s>", "<end>", "<bos>", "<s>",  "a",    "b",    "c",    "d",    "e",    "ab",   "ba",   "abc",
      "ca",   "dd",    " ",     "\xc3", "\xa9", "\xf0", "\x9f", "\x98", "\x80", "\xff", "\xe2", "\u20ac"};

  static std::pair<TokenId, std::size_t> first_piece(std::string_view text, bool parse_special) {
    if (parse_special && text.starts_with(kPieces[kSpecial])) return {kSpecial, kPieces[kSpecial].size()};
    for (TokenId id = kNumSpecial; id < static_cast<TokenId>(kPieces.size()); ++id) {
      if (text.front() == kPieces[static_cast<std::size_t>(id)].front()) return {id, 1};
    }
    return {-1, 0};
  }
};

}  // namespace octavo::simulation
