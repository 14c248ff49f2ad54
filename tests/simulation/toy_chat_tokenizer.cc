#include "tests/simulation/toy_chat_tokenizer.h"

#include <string>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

using tokenizer::SettledTokens;

constexpr std::string_view kTemplate =
    "{{ bos_token }}{% for message in messages %}<s>"
    "{% if message.role == 'system' %}a{% elif message.role == 'user' %}b{% else %}c{% endif %}"
    "{{ message.content }}<end>{% endfor %}{% if add_generation_prompt %}<s>c{% endif %}";

constexpr TokenId kUnknownByte = 21;

tokenizer::Vocabulary toy_vocabulary() {
  const ToyTokenizer toy;
  tokenizer::Vocabulary vocabulary;
  for (TokenId id = 0; id < toy.vocabulary_size(); ++id) {
    vocabulary.tokens.emplace_back(toy.token_bytes(id));
    vocabulary.kinds.push_back(toy.is_control(id) ? tokenizer::TokenKind::kControl
                                                  : tokenizer::TokenKind::kNormal);
  }
  vocabulary.bos_token_id = ToyTokenizer::kBos;
  vocabulary.eos_token_id = ToyTokenizer::kEos;
  vocabulary.further_eos_token_ids = {ToyTokenizer::kFurtherEos};
  vocabulary.chat_template = kTemplate;
  return vocabulary;
}

tokenizer::TokenTexts texts_of(const tokenizer::Vocabulary& vocabulary) {
  tokenizer::TokenTexts texts;
  for (const std::string& token : vocabulary.tokens) texts.add(token);
  return texts;
}

tokenizer::SpecialTokens specials_of(const tokenizer::Vocabulary& vocabulary) {
  const auto is_special = [](tokenizer::TokenKind kind, std::string_view) {
    return kind == tokenizer::TokenKind::kControl;
  };
  return *tokenizer::SpecialTokens::collect(vocabulary, is_special);
}

TokenId token_of(char byte) {
  const ToyTokenizer toy;
  for (TokenId id = ToyTokenizer::kNumSpecial; id < toy.vocabulary_size(); ++id) {
    if (toy.token_bytes(id) == std::string_view(&byte, 1)) return id;
  }
  return kUnknownByte;
}

}  // namespace

ToyChatTokenizer::ToyChatTokenizer()
    : PromptTokenizer(toy_vocabulary(), texts_of(toy_vocabulary()), specials_of(toy_vocabulary())) {}

Result<void> ToyChatTokenizer::encode_around(std::string_view text, std::span<const SettledTokens> settled,
                                             const std::stop_token&, std::vector<TokenId>& out) const {
  std::size_t begin = 0;
  for (const SettledTokens& stretch : settled) {
    for (const char byte : text.substr(begin, stretch.begin - begin)) out.push_back(token_of(byte));
    out.insert(out.end(), stretch.token_ids.begin(), stretch.token_ids.end());
    begin = stretch.end;
  }
  for (const char byte : text.substr(begin)) out.push_back(token_of(byte));
  return {};
}

Result<std::size_t> ToyChatTokenizer::count_bytes_around(std::string_view text,
                                                         std::span<const SettledTokens> settled) const {
  std::size_t num_bytes = text.size();
  for (const SettledTokens& stretch : settled) num_bytes -= stretch.end - stretch.begin;
  return num_bytes;
}

}  // namespace octavo::simulation
