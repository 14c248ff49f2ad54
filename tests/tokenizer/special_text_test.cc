// No text of a message becomes a special token: every vocabulary here, every template, every role.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/paths.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/sentencepiece_vocabularies.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo::tokenizer {
namespace {

// What templates write between messages.
constexpr const char* kTurnTokens[] = {"<|im_start|>",
                                       "<|im_end|>",
                                       "<|start_header_id|>",
                                       "<|end_header_id|>",
                                       "<|eot_id|>",
                                       "<start_of_turn>",
                                       "<end_of_turn>",
                                       "<|user|>",
                                       "<|assistant|>",
                                       "<|system|>",
                                       "<|end|>",
                                       "[INST]",
                                       "[/INST]",
                                       "<|im_sep|>",
                                       "<\uff5cUser\uff5c>",
                                       "<\uff5cAssistant\uff5c>",
                                       "<think>",
                                       "</think>",
                                       "<\uff5cbegin\u2581of\u2581sentence\uff5c>"};

void add_turn_tokens(Vocabulary& vocabulary) {
  vocabulary.kinds.resize(vocabulary.tokens.size(), TokenKind::kNormal);
  for (const char* text : kTurnTokens) {
    const auto found = std::ranges::find(vocabulary.tokens, text);
    const TokenKind kind =
        std::string_view(text).ends_with("think>") ? TokenKind::kUserDefined : TokenKind::kControl;
    if (found != vocabulary.tokens.end()) continue;
    vocabulary.tokens.emplace_back(text);
    vocabulary.kinds.push_back(kind);
    if (!vocabulary.scores.empty()) vocabulary.scores.push_back(-1000);
  }
}

struct NamedVocabulary {
  std::string name;
  Vocabulary vocabulary;
};

std::vector<NamedVocabulary> all_vocabularies() {
  std::vector<NamedVocabulary> all;
  const nlohmann::json golden = load_golden("sentencepiece.json");
  for (const auto& [name, entry] : golden["vocabularies"].items()) {
    all.push_back({name, sentencepiece_vocabulary(entry)});
  }
  for (const char* pattern : {"gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken",
                              "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon"}) {
    Vocabulary vocabulary = byte_vocabulary();
    vocabulary.split_pattern = pattern;
    all.push_back({pattern, vocabulary});
  }
  for (NamedVocabulary& named : all) add_turn_tokens(named.vocabulary);
  return all;
}

// Tokens whose text steers the model. User-defined words and runs of spaces are text; so is sentencepiece's
// unknown token.
bool steers(const Vocabulary& vocabulary, TokenId id) {
  const auto index = static_cast<std::size_t>(id);
  const TokenKind kind = vocabulary.kinds[index];
  if (kind == TokenKind::kControl) return true;
  return kind == TokenKind::kUserDefined && is_marker(vocabulary.tokens[index]);
}

std::vector<std::string> templates() {
  std::vector<std::string> sources = {"", "vicuna"};
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_folder() / "tests/golden/templates")) {
    const std::string name = entry.path().filename().string();
    if (name != "macros.jinja") sources.push_back(read_golden_text("templates/" + name));  // prints lengths
  }
  return sources;
}

std::vector<ChatMessage> chat_with(Role role, const std::string& content) {
  if (role == Role::kUser) return {{Role::kUser, content}};
  if (role == Role::kSystem) return {{Role::kSystem, content}, {Role::kUser, "x"}};
  if (role == Role::kAssistant) return {{Role::kUser, "x"}, {Role::kAssistant, content}, {Role::kUser, "x"}};
  return {{Role::kUser, "x"}, {Role::kAssistant, "x"}, {Role::kTool, content}};
}

class SpecialText : public testing::Test {
 protected:
  // Special ids of the prompt, or nothing when the template rejects the chat.
  std::optional<std::vector<TokenId>> special_ids(const Tokenizer& tokenizer, const Vocabulary& vocabulary,
                                                  Role role, const std::string& content) {
    const auto ids = tokenizer.encode_chat(chat_with(role, content), 0);
    if (!ids) return std::nullopt;
    std::vector<TokenId> special;
    for (const TokenId id : *ids) {
      if (steers(vocabulary, id)) special.push_back(id);
    }
    return special;
  }

  void try_every_text(const Tokenizer& tokenizer, const Vocabulary& vocabulary, const std::string& name) {
    for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool}) {
      const auto expected = special_ids(tokenizer, vocabulary, role, "x");
      if (!expected) continue;
      for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        const std::string& text = vocabulary.tokens[id];
        if (text.empty() || !steers(vocabulary, static_cast<TokenId>(id))) continue;
        // Qwen and DeepSeek drop what an answer says before </think>.
        if (role == Role::kAssistant && text == "</think>") continue;
        for (const std::string& content :
             {text, "a" + text + text + " b", text.substr(1), text.substr(0, text.size() - 1)}) {
          EXPECT_EQ(special_ids(tokenizer, vocabulary, role, content), expected) << name << ": " << content;
          ++num_tried_;
        }
      }
    }
  }

  int num_tried_ = 0;
};

TEST_F(SpecialText, NoneBecomesASpecialTokenInAnyRoleOfAnyTemplate) {
  const std::vector<std::string> sources = templates();
  ASSERT_GT(sources.size(), 12u);
  for (auto& [name, vocabulary] : all_vocabularies()) {
    for (const std::string& source : sources) {
      vocabulary.chat_template = source;
      const auto tokenizer = Tokenizer::create(vocabulary);
      ASSERT_TRUE(tokenizer) << name << ": " << tokenizer.error().message;
      try_every_text(**tokenizer, vocabulary, name);
    }
  }
  EXPECT_GT(num_tried_, 20'000);
}

TEST_F(SpecialText, NoneBecomesASpecialTokenInARawPrompt) {
  for (const auto& [name, vocabulary] : all_vocabularies()) {
    const auto tokenizer = Tokenizer::create(vocabulary);
    ASSERT_TRUE(tokenizer);
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (!steers(vocabulary, static_cast<TokenId>(id))) continue;
      for (const std::string& text :
           {vocabulary.tokens[id], " " + vocabulary.tokens[id] + vocabulary.tokens[id]}) {
        const auto ids = (*tokenizer)->encode(text, /*parse_special=*/false, /*add_bos=*/false);
        ASSERT_TRUE(ids);
        for (const TokenId found : *ids) EXPECT_FALSE(steers(vocabulary, found)) << name << ": " << text;
        ++num_tried_;
      }
    }
  }
  EXPECT_GT(num_tried_, 300);
}

// A merge, a whole word, or one end of a text called normal: ways in which a file could make a special token
// of text.
TEST_F(SpecialText, AFileCannotMakeTextSpecialByItsMerges) {
  for (const char* pattern : {"gpt-2", "llama-bpe"}) {
    Vocabulary vocabulary = byte_vocabulary();
    vocabulary.split_pattern = pattern;
    vocabulary.tokens.insert(vocabulary.tokens.end(), {"ab", "cd", "ef"});
    vocabulary.kinds.insert(vocabulary.kinds.end(),
                            {TokenKind::kControl, TokenKind::kNormal, TokenKind::kNormal});
    vocabulary.merges = {"a b", "c d", "e f"};
    vocabulary.further_eos_token_ids = {260};  // "cd"
    const auto tokenizer = Tokenizer::create(vocabulary);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    EXPECT_EQ(*(*tokenizer)->encode("abcdef", false, false), (std::vector<TokenId>{'a', 'b', 'c', 'd', 261}));
    EXPECT_TRUE((*tokenizer)->is_control(260));
  }
}

}  // namespace
}  // namespace octavo::tokenizer
