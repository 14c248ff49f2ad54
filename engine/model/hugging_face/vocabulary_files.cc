#include "engine/model/hugging_face/vocabulary_files.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/answer_ends.h"
#include "engine/model/hugging_face/vocabulary_builder.h"
#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/model/hugging_face/vocabulary_pipeline.h"
#include "engine/model/hugging_face/vocabulary_sentencepiece.h"
#include "engine/model/hugging_face/vocabulary_templates.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

using tokenizer::TextPattern;
using tokenizer::TokenKind;
using tokenizer::Vocabulary;
using vocabulary::AddedToken;
using vocabulary::damaged;
using vocabulary::find;
using vocabulary::find_text;
using vocabulary::find_whole;
using vocabulary::flag;
using vocabulary::Json;
using vocabulary::unsupported;
using vocabulary::VocabularyBuilder;

const std::string kTokenizerFile = "tokenizer.json";
const std::string kConfigFile = "tokenizer_config.json";

// The small files; an empty object where there is none.
struct Configs {
  Json model, generation, tokenizer, special_tokens;
};

Result<Configs> read_configs(const std::filesystem::path& folder) {
  Configs configs;
  OCTAVO_TRY(configs.model, vocabulary::read_object(folder, "config.json"));
  OCTAVO_TRY(configs.generation, vocabulary::read_object(folder, "generation_config.json"));
  OCTAVO_TRY(configs.tokenizer, vocabulary::read_object(folder, kConfigFile));
  OCTAVO_TRY(configs.special_tokens, vocabulary::read_object(folder, "special_tokens_map.json"));
  return configs;
}

// Of a model that is more than text, the text's.
const Json& text_config(const Json& config) {
  for (const char* const key : {"text_config", "llm_config"}) {
    if (const Json* const text = find(config, key); text != nullptr && text->is_object()) return *text;
  }
  return config;
}

Result<std::optional<std::int64_t>> model_size(const Json& config) {
  std::optional<std::int64_t> size = find_whole(text_config(config), "vocab_size");
  if (!size) size = find_whole(config, "vocab_size");
  if (size && (*size < 1 || *size > kMaxVocabularySize)) {
    return damaged("config.json", "has a vocab_size of " + std::to_string(*size) + "; 1 to " +
                                      std::to_string(kMaxVocabularySize) + " are allowed");
  }
  return size;
}

std::string tokenizer_class(const Json& tokenizer_config) {
  std::string name = find_text(tokenizer_config, "tokenizer_class").value_or("");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

// ---- added tokens

AddedToken read_added_token(std::int64_t id, const Json& token) {
  return {.id = id,
          .text = find_text(token, "content").value_or(""),
          .is_special = flag(token, "special", false),
          .strips_left = flag(token, "lstrip", false),
          .strips_right = flag(token, "rstrip", false),
          .is_whole_word = flag(token, "single_word", false),
          .is_normalized = flag(token, "normalized", false)};
}

Result<void> add_tokens_of_tokenizer(const Json& tokenizer, VocabularyBuilder& builder) {
  const Json* const added = find(tokenizer, "added_tokens");
  if (added == nullptr) return {};
  if (!added->is_array()) return damaged(kTokenizerFile, "has added_tokens that are not a list");
  for (const Json& token : *added) {
    const std::optional<std::int64_t> id = find_whole(token, "id");
    if (!id || *id < 0 || *id >= kMaxVocabularySize)
      return damaged(kTokenizerFile, "has an added token without an id that can be");
    OCTAVO_TRY_VOID(builder.add(read_added_token(*id, token), kTokenizerFile));
  }
  return {};
}

std::optional<std::int64_t> parse_id(std::string_view digits) {
  constexpr std::size_t kMostDigits = 9;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::int64_t id = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    id = 10 * id + (digit - '0');
  }
  return id;
}

enum class Known { kStay, kChange };

// {"32000": {"content": ...}} of tokenizer_config.json, and {text: id} of added_tokens.json.
Result<void> add_tokens_of_configs(const std::filesystem::path& folder, const Configs& configs, Known known,
                                   VocabularyBuilder& builder) {
  const Json* const decoder = find(configs.tokenizer, "added_tokens_decoder");
  if (decoder != nullptr && decoder->is_object()) {
    for (const auto& [digits, token] : decoder->items()) {
      const std::optional<std::int64_t> id = parse_id(digits);
      if (!id)
        return damaged(kConfigFile,
                       "has an added token with the id \"" + escape_for_message(digits, 40) + "\"");
      const AddedToken added = read_added_token(*id, token);
      OCTAVO_TRY_VOID(known == Known::kChange ? builder.add(added, kConfigFile)
                                              : builder.add_missing(added, kConfigFile));
    }
  }
  OCTAVO_TRY(const Json others, vocabulary::read_object(folder, "added_tokens.json"));
  for (const auto& [text, id] : others.items()) {
    if (!id.is_number_integer()) return damaged("added_tokens.json", "has ids that are not whole numbers");
    const AddedToken added{.id = find_whole(others, text.c_str()).value_or(-1), .text = text};
    OCTAVO_TRY_VOID(builder.add_missing(added, "added_tokens.json"));
  }
  return {};
}

// ---- the three forms of a vocabulary

// A character without a token becomes the tokens of its bytes where all of these exist.
void settle_byte_tokens(VocabularyBuilder& builder) {
  Vocabulary& vocabulary = builder.vocabulary();
  if (!vocabulary.pipeline->byte_fallback) return;
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<TokenId> ids;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string text = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    if (const std::optional<TokenId> id = builder.find(text)) ids.push_back(*id);
  }
  for (const TokenId id : ids) vocabulary.kinds[static_cast<std::size_t>(id)] = TokenKind::kByte;
}

Result<void> check_model(const Json& model, const std::string& type) {
  if (type != "BPE" && type != "Unigram") {
    return unsupported(kTokenizerFile, "has a model of type \"" + escape_for_message(type, 40) +
                                           "\"; BPE and Unigram are supported");
  }
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!find_text(model, key).value_or("").empty())
      return unsupported(kTokenizerFile,
                         std::string("has a model with \"") + key + "\", which is not supported");
  }
  const Json* const dropout = find(model, "dropout");
  if (dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0))
    return unsupported(kTokenizerFile, "has a model with \"dropout\", which is not supported");
  return {};
}

// Files from before types were written have a BPE with merges.
std::string type_of_model(const Json& model, const vocabulary::TokenLists& lists) {
  if (auto type = find_text(model, "type")) return *std::move(type);
  return lists.has_scores ? "Unigram" : "BPE";
}

Result<void> read_tokenizer_file(std::string_view text, VocabularyBuilder& builder, Json& tokenizer) {
  vocabulary::TokenLists lists;
  OCTAVO_TRY(tokenizer, vocabulary::parse_tokenizer(text, lists));
  const Json* const model = find(tokenizer, "model");
  if (model == nullptr || !model->is_object()) return damaged(kTokenizerFile, "has no model");
  Vocabulary& vocabulary = builder.vocabulary();
  vocabulary.model = type_of_model(*model, lists);
  OCTAVO_TRY_VOID(check_model(*model, vocabulary.model));
  if (lists.tokens.empty() || lists.has_scores != (vocabulary.model == "Unigram"))
    return damaged(kTokenizerFile, "has no vocabulary as its model needs one");
  OCTAVO_TRY(vocabulary.pipeline, vocabulary::read_pipeline(tokenizer));
  vocabulary.pipeline->byte_fallback = flag(*model, "byte_fallback", false);
  vocabulary.pipeline->fuses_unknown = flag(*model, "fuse_unk", false);
  vocabulary.pipeline->ignores_merges = flag(*model, "ignore_merges", false);
  if (lists.has_scores) {
    for (const vocabulary::TokenEntry& token : lists.tokens)
      vocabulary.log_probabilities.push_back(token.score);
  }
  OCTAVO_TRY_VOID(builder.add_tokens(std::move(lists.tokens), kTokenizerFile));
  OCTAVO_TRY_VOID(builder.add_merges(lists.parts, kTokenizerFile));
  settle_byte_tokens(builder);
  OCTAVO_TRY_VOID(add_tokens_of_tokenizer(tokenizer, builder));
  if (const auto unknown = find_text(*model, "unk_token")) {
    vocabulary.unknown_token_id = builder.find(*unknown);
  } else if (const auto id = find_whole(*model, "unk_id")) {
    if (*id < 0 || static_cast<std::size_t>(*id) >= vocabulary.tokens.size())
      return damaged(kTokenizerFile, "has the unk_id " + std::to_string(*id) + " for " +
                                         std::to_string(vocabulary.tokens.size()) + " tokens");
    vocabulary.unknown_token_id = static_cast<TokenId>(*id);
  }
  const bool has_bytes = std::ranges::find(vocabulary.kinds, TokenKind::kByte) != vocabulary.kinds.end();
  if (lists.has_scores && !vocabulary.unknown_token_id && !has_bytes)
    return damaged(kTokenizerFile, "has neither an unknown token nor byte tokens");
  return {};
}

// vocab.json and merges.txt: byte-level BPE, whose pre-tokenizer follows from the class.
Result<void> read_two_files(std::string_view tokens, std::string_view merges, const Configs& configs,
                            VocabularyBuilder& builder) {
  constexpr std::array<std::string_view, 8> kAsGpt2 = {"",
                                                       "GPT2Tokenizer",
                                                       "RobertaTokenizer",
                                                       "BartTokenizer",
                                                       "CodeGenTokenizer",
                                                       "GPTNeoXTokenizer",
                                                       "PreTrainedTokenizer",
                                                       "TokenizersBackend"};
  const std::string name = tokenizer_class(configs.tokenizer);
  const bool is_qwen = name == "Qwen2Tokenizer";
  if (!is_qwen && std::ranges::find(kAsGpt2, name) == kAsGpt2.end()) {
    return unsupported(kConfigFile, "has the tokenizer_class \"" + escape_for_message(name, 60) +
                                        "\", which is not supported without a tokenizer.json");
  }
  tokenizer::TextPipeline pipeline;
  pipeline.decodes_bytes = true;
  if (is_qwen) {
    constexpr std::string_view kQwen2 =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    pipeline.normalizers.emplace_back(tokenizer::UnicodeForm::kNfc);
    pipeline.pre_tokenizers.emplace_back(
        tokenizer::Split{{TextPattern::Kind::kExpression, std::string(kQwen2)}});
  }
  pipeline.pre_tokenizers.emplace_back(
      tokenizer::ByteLevel{flag(configs.tokenizer, "add_prefix_space", false), /*splits=*/!is_qwen});
  builder.vocabulary().model = "BPE";
  builder.vocabulary().pipeline = std::move(pipeline);
  OCTAVO_TRY(std::vector<vocabulary::TokenEntry> entries, vocabulary::parse_token_ids(tokens, "vocab.json"));
  OCTAVO_TRY_VOID(builder.add_tokens(std::move(entries), "vocab.json"));
  OCTAVO_TRY(const std::vector<std::string> parts, vocabulary::parse_merge_lines(merges));
  return builder.add_merges(parts, "merges.txt");
}

// ---- tokens with a meaning

// "<s>", or {"content": "<s>", ...}. The first file that has the name decides, also by null.
Result<std::optional<std::string>> find_special(const Configs& configs, const char* name, bool& is_said) {
  for (const Json* const file : {&configs.tokenizer, &configs.special_tokens}) {
    if (!file->contains(name)) continue;
    is_said = true;
    const Json& value = (*file)[name];
    if (value.is_null()) return std::optional<std::string>();
    if (value.is_string()) return std::optional<std::string>(value.get<std::string>());
    if (auto text = find_text(value, "content")) return std::optional<std::string>(*std::move(text));
    return damaged(kConfigFile, std::string("has a ") + name + " that is neither a text nor a token");
  }
  return std::optional<std::string>();
}

// A number, or a list of numbers. Ids without a token are left out where the file speaks of another part of a
// model; a negative number means none.
Result<std::vector<TokenId>> ids_in(const Json& config, const char* key, const std::string& file,
                                    std::size_t num_tokens) {
  std::vector<TokenId> ids;
  const Json* const value = find(config, key);
  if (value == nullptr) return ids;
  constexpr std::size_t kMost = 256;
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > kMost) return damaged(file, std::string("has too many numbers in ") + key);
  for (const Json& number : list) {
    const std::optional<std::int64_t> id = find_whole(Json{{"id", number}}, "id");
    if (!id) return damaged(file, std::string("has a ") + key + " that is not a whole number");
    if (*id < 0) continue;
    if (static_cast<std::uint64_t>(*id) >= num_tokens) {
      return damaged(file, std::string("has the ") + key + " " + std::to_string(*id) + " for " +
                               std::to_string(num_tokens) + " tokens");
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

Result<void> read_begin(const Configs& configs, VocabularyBuilder& builder) {
  Vocabulary& vocabulary = builder.vocabulary();
  bool is_said = false;
  OCTAVO_TRY(const std::optional<std::string> text, find_special(configs, "bos_token", is_said));
  if (is_said) {
    vocabulary.bos_token_id = text ? builder.find(*text) : std::nullopt;
    return {};
  }
  if (vocabulary.bos_token_id) return {};
  const std::pair<const Json*, const char*> kFiles[] = {{&configs.generation, "generation_config.json"},
                                                        {&text_config(configs.model), "config.json"}};
  for (const auto& [config, file] : kFiles) {
    OCTAVO_TRY(const std::vector<TokenId> ids,
               ids_in(*config, "bos_token_id", file, vocabulary.tokens.size()));
    if (ids.empty()) continue;
    vocabulary.bos_token_id = ids.front();
    return {};
  }
  return {};
}

Result<void> read_ends(const Configs& configs, VocabularyBuilder& builder) {
  Vocabulary& vocabulary = builder.vocabulary();
  bool is_said = false;
  OCTAVO_TRY(const std::optional<std::string> text, find_special(configs, "eos_token", is_said));
  std::vector<TokenId> ends;
  const auto add = [&](TokenId id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  if (text && builder.find(*text)) {
    add(*builder.find(*text));
  } else if (!is_said && vocabulary.eos_token_id) {
    add(*vocabulary.eos_token_id);
  }
  const std::pair<const Json*, const char*> kFiles[] = {{&configs.generation, "generation_config.json"},
                                                        {&configs.model, "config.json"},
                                                        {&text_config(configs.model), "config.json"}};
  for (const auto& [config, file] : kFiles) {
    OCTAVO_TRY(const std::vector<TokenId> ids,
               ids_in(*config, "eos_token_id", file, vocabulary.tokens.size()));
    std::ranges::for_each(ids, add);
  }
  if (ends.empty()) return {};
  vocabulary.eos_token_id = ends.front();
  vocabulary.further_eos_token_ids.assign(ends.begin() + 1, ends.end());
  return {};
}

// The token that a post-processor puts in front of every text.
std::optional<std::string> first_of_template(const Json& processor) {
  const std::string type = find_text(processor, "type").value_or("");
  if (type == "Sequence") {
    const Json* const processors = find(processor, "processors");
    if (processors == nullptr || !processors->is_array()) return std::nullopt;
    for (const Json& part : *processors) {
      if (find_text(part, "type") == "Sequence") continue;  // none within another
      if (auto first = first_of_template(part)) return first;
    }
    return std::nullopt;
  }
  const Json* const single = type == "TemplateProcessing" ? find(processor, "single") : nullptr;
  if (single == nullptr || !single->is_array() || single->empty()) return std::nullopt;
  const Json* const special = find(single->front(), "SpecialToken");
  return special == nullptr ? std::nullopt : find_text(*special, "id");
}

// Classes of tokenizers with a switch of their own come before the file's post-processor, as in the library.
Result<void> read_adds_bos(const Configs& configs, const Json& tokenizer, VocabularyBuilder& builder) {
  constexpr std::array<std::string_view, 4> kWithSwitch = {"LlamaTokenizer", "CodeLlamaTokenizer",
                                                           "GemmaTokenizer", "GemmaTokenizerBase"};
  Vocabulary& vocabulary = builder.vocabulary();
  const std::string name = tokenizer_class(configs.tokenizer);
  const bool has_switch = std::ranges::find(kWithSwitch, name) != kWithSwitch.end();
  const Json* const processor = find(tokenizer, "post_processor");
  const std::optional<std::string> first = processor ? first_of_template(*processor) : std::nullopt;
  if (!has_switch && first && builder.find(*first)) {
    vocabulary.bos_token_id = builder.find(*first);
    vocabulary.add_bos_token = true;
    return {};
  }
  const bool otherwise = has_switch || vocabulary.model == "llama";
  vocabulary.add_bos_token = flag(configs.tokenizer, "add_bos_token", otherwise);
  return {};
}

Result<void> settle_meanings(const Configs& configs, const Json& tokenizer, VocabularyBuilder& builder) {
  OCTAVO_TRY_VOID(read_begin(configs, builder));
  OCTAVO_TRY_VOID(read_ends(configs, builder));
  OCTAVO_TRY_VOID(read_adds_bos(configs, tokenizer, builder));
  Vocabulary& vocabulary = builder.vocabulary();
  if (find_text(configs.model, "model_type").value_or("").starts_with("gemma4")) settle_turns(vocabulary);
  settle_messages(vocabulary);
  add_ends_of_turns(vocabulary);
  return {};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const std::filesystem::path& folder) {
  OCTAVO_TRY(const Configs configs, read_configs(folder));
  OCTAVO_TRY(const std::optional<std::int64_t> size, model_size(configs.model));
  OCTAVO_TRY(const auto tokenizer_text,
             vocabulary::read_file(folder, kTokenizerFile, vocabulary::kMaxFileBytes));
  Json tokenizer;
  VocabularyBuilder builder({}, size);
  if (tokenizer_text) {
    OCTAVO_TRY_VOID(read_tokenizer_file(*tokenizer_text, builder, tokenizer));
    OCTAVO_TRY_VOID(add_tokens_of_configs(folder, configs, Known::kStay, builder));
  } else {
    OCTAVO_TRY(const auto pieces,
               vocabulary::read_file(folder, "tokenizer.model", vocabulary::kMaxFileBytes));
    if (pieces) {
      OCTAVO_TRY(Vocabulary read, vocabulary::read_sentencepiece(*pieces));
      builder = VocabularyBuilder(std::move(read), size);
    } else {
      OCTAVO_TRY(const auto tokens, vocabulary::read_file(folder, "vocab.json", vocabulary::kMaxFileBytes));
      OCTAVO_TRY(const auto merges, vocabulary::read_file(folder, "merges.txt", vocabulary::kMaxFileBytes));
      if (!tokens || !merges) {
        return Error{
            ErrorCode::kNotFound,
            path_for_message(folder) +
                " has no vocabulary (tokenizer.json, tokenizer.model, or vocab.json and merges.txt): "
                "download the whole folder"};
      }
      OCTAVO_TRY_VOID(read_two_files(*tokens, *merges, configs, builder));
    }
    OCTAVO_TRY_VOID(add_tokens_of_configs(folder, configs, Known::kChange, builder));
  }
  OCTAVO_TRY_VOID(settle_meanings(configs, tokenizer, builder));
  OCTAVO_TRY_VOID(vocabulary::read_chat_template(folder, configs.tokenizer, builder.vocabulary()));
  return std::move(builder).finish();
}

Result<UnusedMeanings> read_unused_meanings(const std::filesystem::path& folder,
                                            const Vocabulary& vocabulary) {
  OCTAVO_TRY(const Configs configs, read_configs(folder));
  const auto meaning = [&](const char* name, const char* key) -> Result<std::optional<TokenId>> {
    bool is_said = false;
    OCTAVO_TRY(const std::optional<std::string> text, find_special(configs, name, is_said));
    const auto found = text ? std::ranges::find(vocabulary.tokens, *text) : vocabulary.tokens.end();
    if (found != vocabulary.tokens.end())
      return std::optional(static_cast<TokenId>(found - vocabulary.tokens.begin()));
    const std::optional<std::int64_t> id = find_whole(text_config(configs.model), key);
    const bool is_token = id && *id >= 0 && *id < std::ssize(vocabulary.tokens);
    return is_token ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
  };
  UnusedMeanings meanings;
  OCTAVO_TRY(meanings.unknown, meaning("unk_token", "unk_token_id"));
  OCTAVO_TRY(meanings.padding, meaning("pad_token", "pad_token_id"));
  return meanings;
}

}  // namespace octavo::model
