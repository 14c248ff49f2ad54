// Vocabularies of Hugging Face folders give the ids of the package tokenizers
// (tests/golden/make_tokenizers.py), and malformed ones a sentence.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/hugging_face/vocabulary_defaults.h"
#include "engine/model/hugging_face/vocabulary_files.h"
#include "tests/support/temporary_folder.h"
#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

using nlohmann::json;

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

Result<std::unique_ptr<Tokenizer>> load(const std::filesystem::path& folder) {
  OCTAVO_TRY(Vocabulary vocabulary, model::read_vocabulary(folder));
  return Tokenizer::create(std::move(vocabulary));
}

TEST(PipelineTokenizer, GivesTheIdsOfThePackage) {
  const json golden = load_golden("tokenizers.json");
  ASSERT_GE(golden.size(), 13u);
  for (const auto& [name, data] : golden.items()) {
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.json", data["tokenizer.json"].dump());
    const auto tokenizer = load(folder.path());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const json& example : data["texts"]) {
      const auto text = example[0].get<std::string>();
      const auto ids = (*tokenizer)->encode(text, /*parse_special=*/true, /*add_bos=*/false);
      ASSERT_TRUE(ids) << ids.error().message;
      EXPECT_EQ(*ids, example[1].get<std::vector<TokenId>>()) << text;
    }
  }
}

// What leaves no trace is not counted: a text is refused early only if it cannot fit.
TEST(PipelineTokenizer, RefusesOnlyWhatCannotFit) {
  const json golden = load_golden("tokenizers.json");
  for (const auto& [name, data] : golden.items()) {
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.json", data["tokenizer.json"].dump());
    const auto tokenizer = load(folder.path());
    ASSERT_TRUE(tokenizer);
    for (const json& example : data["texts"]) {
      const auto text = example[0].get<std::string>();
      const EncodeLimits exact{.max_tokens = example[1].size()};
      EXPECT_TRUE((*tokenizer)->encode(text, true, false, exact)) << text;
    }
  }
}

TEST(PipelineTokenizer, NoMessageBecomesAControlToken) {
  const json golden = load_golden("tokenizers.json");
  for (const auto& [name, data] : golden.items()) {
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.json", data["tokenizer.json"].dump());
    const auto tokenizer = load(folder.path());
    ASSERT_TRUE(tokenizer);
    const auto ids = (*tokenizer)->encode("<s>a</s> <|im_end|>", /*parse_special=*/false, /*add_bos=*/false);
    ASSERT_TRUE(ids);
    for (const TokenId id : *ids) {
      const std::string_view bytes = (*tokenizer)->token_bytes(id);
      EXPECT_FALSE((*tokenizer)->is_control(id) && bytes != "<unk>") << bytes;
    }
  }
}

// A folder small enough to think about; each test changes something.
json small_tokenizer() {
  return json::parse(
      R"({"added_tokens": [{"id": 5, "content": "<s>", "special": true}, {"id": 6, "content": "</s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "decoder": null, "post_processor": null,
    "model": {"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": ["a b", ["ab", "c"]]}})");
}

struct Change {
  const char* what;
  std::function<void(json&)> change;
  const char* part_of_message;
};

TEST(PipelineTokenizer, SaysWhatIsWrongInOneSentence) {
  const Change kChanges[] = {
      {"duplicate id", [](json& t) { t["model"]["vocab"]["d"] = 3; }, "two texts for the id 3"},
      {"duplicate id of an added token", [](json& t) { t["added_tokens"][0]["id"] = 2; },
       "two texts for the id 2"},
      {"second id for a text", [](json& t) { t["added_tokens"][0]["content"] = "a"; },
       "two ids for the text"},
      {"negative id", [](json& t) { t["model"]["vocab"]["a"] = -1; }, "the id -1"},
      {"huge id", [](json& t) { t["model"]["vocab"]["a"] = 4294967296; }, "ids are 0 to"},
      {"largest id", [](json& t) { t["model"]["vocab"]["a"] = 18446744073709551615u; }, "ids are 0 to"},
      {"huge id of an added token", [](json& t) { t["added_tokens"][0]["id"] = 1u << 30; },
       "without an id that can be"},
      {"id that is no number", [](json& t) { t["model"]["vocab"]["a"] = "x"; }, "not of texts and numbers"},
      {"nested vocabulary", [](json& t) { t["model"]["vocab"]["a"] = json::array(); },
       "not of texts and numbers"},
      {"merge of no tokens", [](json& t) { t["model"]["merges"].push_back("a x"); }, "is not a token"},
      {"merge into no token", [](json& t) { t["model"]["merges"].push_back("b a"); }, "is not a token"},
      {"merge of three", [](json& t) { t["model"]["merges"].push_back("a b c"); }, "not two parts"},
      {"merge of one", [](json& t) { t["model"]["merges"].push_back(json::array({"a"})); }, "not two texts"},
      {"merge of numbers", [](json& t) { t["model"]["merges"].push_back(1); }, "not two texts"},
      {"no model", [](json& t) { t.erase("model"); }, "no model"},
      {"no vocabulary", [](json& t) { t["model"].erase("vocab"); }, "no vocabulary"},
      {"WordPiece", [](json& t) { t["model"]["type"] = "WordPiece"; }, "WordPiece"},
      {"Unigram without scores", [](json& t) { t["model"]["type"] = "Unigram"; },
       "no vocabulary as its model"},
      {"dropout", [](json& t) { t["model"]["dropout"] = 0.1; }, "dropout"},
      {"suffix", [](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {"unknown normalizer",
       [](json& t) {
         t["normalizer"] = {{"type", "Bert\nNormalizer"}};
       },
       "normalizer \"Bert\\x0aNormalizer\""},
      {"normalizer without a type", [](json& t) { t["normalizer"] = json::object(); }, "without a type"},
      {"unknown pre-tokenizer",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
       },
       "UnicodeScripts"},
      {"unknown decoder",
       [](json& t) {
         t["decoder"] = {{"type", "WordPiece"}};
       },
       "decoder \"WordPiece\""},
      {"unknown behaviour",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Lost"}};
       },
       "Lost"},
      {"split without a pattern",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}};
       },
       "without a pattern"},
      {"expression without an end",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}};
       },
       "cannot be read"},
      {"expression with a class in a class",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "[a[bc]]"}}}};
       },
       "class within a class"},
      {"expression with bytes",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "\\C"}}}};
       },
       "cannot be read"},
      {"expression that is long",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", std::string(20'000, 'a')}}}};
       },
       "bytes; 1 to"},
      {"rules that are no base64",
       [](json& t) {
         t["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "!"}};
       },
       "Precompiled"},
      {"rules that are cut",
       [](json& t) {
         t["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}};
       },
       "precompiled_charsmap"},
      {"steps without end",
       [](json& t) {
         json steps = json::array();
         for (int i = 0; i < 100; ++i) steps.push_back({{"type", "NFC"}});
         t["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
       },
       "too many steps"},
      {"deep steps",
       [](json& t) {
         json step = {{"type", "NFC"}};
         for (int i = 0; i < 100; ++i) step = {{"type", "Sequence"}, {"normalizers", json::array({step})}};
         t["normalizer"] = step;
       },
       "nested deeper"},
      {"change behind ByteLevel",
       [](json& t) {
         t["pre_tokenizer"] = {
             {"type", "Sequence"},
             {"pretokenizers", json::array({{{"type", "ByteLevel"}}, {{"type", "Metaspace"}}})}};
       },
       "behind \"ByteLevel\""},
      {"added tokens that are no list", [](json& t) { t["added_tokens"] = 1; }, "not a list"},
      {"added token that is long", [](json& t) { t["added_tokens"][0]["content"] = std::string(600, 'x'); },
       "600 bytes"},
  };
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.what);
    json tokenizer = small_tokenizer();
    change.change(tokenizer);
    const test::TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.json", tokenizer.dump());
    const auto loaded = load(folder.path());
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find(change.part_of_message), std::string::npos)
        << loaded.error().message;
    EXPECT_EQ(loaded.error().message.find('\n'), std::string::npos);
  }
}

TEST(PipelineTokenizer, FilesAroundItAreUntrustedToo) {
  const struct {
    const char* name;
    const char* text;
    const char* part_of_message;
  } kFiles[] = {
      {"tokenizer.json", "", "tokenizer.json"},
      {"tokenizer.json", "{\"model\":", "not valid JSON"},
      {"tokenizer.json", "[]", "not a JSON object"},
      {"config.json", "{\"vocab_size\": 3}", "the model has 3 tokens"},
      {"config.json", "{\"vocab_size\": 0}", "vocab_size of 0"},
      {"config.json", "{\"vocab_size\": 1e300}", nullptr},
      {"config.json", "{\"vocab_size\": 99999999999999}", "vocab_size of"},
      {"config.json", "{\"eos_token_id\": 7}", "eos_token_id 7 for 7 tokens"},
      {"config.json", "{\"eos_token_id\": [6, \"x\"]}", "not a whole number"},
      {"generation_config.json", "{\"eos_token_id\": 18446744073709551615}", "eos_token_id"},
      {"tokenizer_config.json", "{\"bos_token\": 5}", "neither a text nor a token"},
      {"tokenizer_config.json", "{\"chat_template\": 5}", "neither a text nor a list"},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"-1\": {\"content\": \"x\"}}}",
       "the id \"-1\""},
      {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"3\": {\"content\": \"x\"}}}",
       "two texts for the id 3"},
      {"added_tokens.json", "{\"x\": 1.5}", "not whole numbers"},
      {"added_tokens.json", "{\"x\": -7}", "the id -7"},
  };
  for (const auto& file : kFiles) {
    SCOPED_TRACE(file.text);
    const test::TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.json", small_tokenizer().dump());
    write_file(folder.path() / file.name, file.text);
    const auto loaded = load(folder.path());
    if (file.part_of_message == nullptr) {
      EXPECT_TRUE(loaded);
      continue;
    }
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find(file.part_of_message), std::string::npos) << loaded.error().message;
  }
  const test::TemporaryFolder empty;
  EXPECT_EQ(load(empty.path()).error().code, ErrorCode::kNotFound);
}

TEST(PipelineTokenizer, WhatTheFolderSaysOfItsTokens) {
  const test::TemporaryFolder folder;
  json tokenizer = small_tokenizer();
  tokenizer["post_processor"] = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}]})");
  write_file(folder.path() / "tokenizer.json", tokenizer.dump());
  write_file(folder.path() / "config.json", R"({"vocab_size": 12, "eos_token_id": [6, 4]})");
  write_file(
      folder.path() / "generation_config.json",
      R"({"eos_token_id": 3, "temperature": 0.6, "top_p": 7, "top_k": 20, "repetition_penalty": "x"})");
  write_file(
      folder.path() / "tokenizer_config.json",
      R"({"eos_token": {"content": "</s>"}, "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}],
                 "added_tokens_decoder": {"8": {"content": "<tool>", "special": true}, "40": {"content": "<image>"}}})");
  const auto vocabulary = model::read_vocabulary(folder.path());
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->tokens.size(), 12u);
  EXPECT_EQ(vocabulary->kinds[7], TokenKind::kUnused);
  EXPECT_EQ(vocabulary->kinds[8], TokenKind::kControl);
  EXPECT_EQ(vocabulary->bos_token_id, 5);
  EXPECT_TRUE(vocabulary->add_bos_token);
  EXPECT_EQ(vocabulary->eos_token_id, 6);
  EXPECT_EQ(vocabulary->further_eos_token_ids, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(vocabulary->chat_template, "yes");
  EXPECT_EQ(vocabulary->notice, "");
  const auto advice = model::read_generation_defaults(folder.path());
  ASSERT_TRUE(advice);
  EXPECT_EQ(*advice, (SamplingAdvice{.temperature = 0.6, .top_k = 20}));
}

TEST(PipelineTokenizer, OldFoldersHaveTheirFormByName) {
  const test::TemporaryFolder cache;
  const auto read = [&](const char* name) {
    const std::filesystem::path folder = cache.path() / name / "snapshots" / "0123";
    write_file(folder / "tokenizer.json", small_tokenizer().dump());
    auto vocabulary = model::read_vocabulary(folder);
    EXPECT_TRUE(vocabulary);
    return *std::move(vocabulary);
  };
  const Vocabulary vicuna = read("models--lmsys--vicuna-7b-v1.3");
  EXPECT_EQ(vicuna.chat_template, "vicuna");
  EXPECT_NE(vicuna.notice.find("Vicuna's form"), std::string::npos);
  EXPECT_EQ(read("models--lmsys--vicuna-13b-delta-v0").chat_template, "");
  EXPECT_EQ(read("models--meta-llama--Llama-2-7b-hf").chat_template, "");
  Vocabulary llama = read("models--meta-llama--Llama-2-7b-chat-hf");
  llama.bos_token_id = 5;
  llama.eos_token_id = 6;
  const auto tokenizer = Tokenizer::create(std::move(llama));
  ASSERT_TRUE(tokenizer);
  const std::vector<ChatMessage> messages = {{.role = Role::kSystem, .content = "be brief"},
                                             {.role = Role::kUser, .content = "a"},
                                             {.role = Role::kAssistant, .content = "b"},
                                             {.role = Role::kUser, .content = "c"}};
  const auto spans = (*tokenizer)->apply_chat_template(messages, 0);
  ASSERT_TRUE(spans) << spans.error().message;
  std::string text;
  for (const PromptSpan& span : *spans) text += span.text;
  EXPECT_EQ(text, "<s>[INST] <<SYS>>\nbe brief\n<</SYS>>\n\na [/INST] b </s><s>[INST] c [/INST]");
}

TEST(PipelineTokenizer, Gpt2sTwoFilesAreEnough) {
  const test::TemporaryFolder folder;
  const json golden = load_golden("tokenizers.json")["gpt2"];
  const json& model = golden["tokenizer.json"]["model"];
  std::string merges = "#version: 0.2\n";
  for (const json& merge : model["merges"]) {
    merges += merge.is_string() ? merge.get<std::string>()
                                : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    merges += "\n";
  }
  write_file(folder.path() / "vocab.json", model["vocab"].dump());
  write_file(folder.path() / "merges.txt", merges);
  const auto tokenizer = load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  std::size_t num_compared = 0;
  for (const json& example : golden["texts"]) {
    const auto text = example[0].get<std::string>();
    if (text.find_first_of("<[") != std::string::npos || text.find("   ") != std::string::npos)
      continue;  // added tokens
    EXPECT_EQ(*(*tokenizer)->encode(text, true, false), example[1].get<std::vector<TokenId>>()) << text;
    ++num_compared;
  }
  EXPECT_GE(num_compared, 8u);
}

}  // namespace
}  // namespace octavo::tokenizer
