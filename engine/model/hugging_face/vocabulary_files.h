// The vocabulary of a Hugging Face folder, from whichever of these files it has: tokenizer.json (BPE and
// Unigram with their pipelines), else tokenizer.model (sentencepiece), else vocab.json and merges.txt
// (GPT-2's form). Beside them tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// chat_template.jinja or chat_template.json, and what config.json and generation_config.json say of tokens
// that end an answer.
//
// The files are untrusted: sizes are checked before anything is allocated by them, and what is wrong is one
// sentence with the file's name.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

// As many tokens as config.json's vocab_size says, where it says it: ids without a text are unused tokens,
// and added tokens beyond it, which have no row in the model's matrices, are left out.
//
// A folder without a chat template gets Vicuna's or Llama 2's where its own name or that of its repository
// (models--lmsys--vicuna-7b-v1.3, as the cache of the hub writes it) says that it is one of these; the
// vocabulary's `notice` then says so.
//
// Errors: kNotFound when there is no vocabulary, kDamagedFile for what contradicts itself, kUnsupported for
// what nothing here can do, by its name in the file.
Result<tokenizer::Vocabulary> read_vocabulary(const std::filesystem::path& folder);

// Tokens with a meaning that the engine has no use for, and that other programs look for in a file.
struct UnusedMeanings {
  std::optional<TokenId> unknown, padding;
};
// By tokenizer_config.json or special_tokens_map.json, else config.json. `vocabulary` is the folder's.
Result<UnusedMeanings> read_unused_meanings(const std::filesystem::path& folder,
                                            const tokenizer::Vocabulary& vocabulary);

}  // namespace octavo::model
