// The JSON files of a Hugging Face folder as values, read with limits that are checked before anything is
// kept: bytes, depth, and how many values. The long lists of a tokenizer.json, its vocabulary and its merges,
// become plain vectors while they are read; its other 10 MB would be a hundred as a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::model::vocabulary {

inline constexpr std::size_t kMaxFileBytes = std::size_t{128} << 20;
inline constexpr std::size_t kMaxConfigBytes = std::size_t{8}
                                               << 20;  // tokenizer_config.json lists added tokens
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxValues = std::size_t{1} << 20;  // but those of the lists
inline constexpr std::size_t kMaxMerges = std::size_t{1} << 22;

using Json = nlohmann::json;

// Of the vocabulary of tokenizer.json or vocab.json: {text: id}, or of Unigram [[text, score], ...].
struct TokenEntry {
  std::string text;
  std::int64_t id = -1;  // Unigram: the place
  double score = 0;
};

struct TokenLists {
  std::vector<TokenEntry> tokens;
  bool has_scores = false;         // tokens are Unigram's
  std::vector<std::string> parts;  // of merges, two each
};

// Of a file in the folder, which may be a link; nullopt: there is none. Error: it is no regular file, or
// larger.
Result<std::optional<std::string>> read_file(const std::filesystem::path& folder, const std::string& name,
                                             std::size_t max_bytes);

// An object; empty where there is no such file.
Result<Json> read_object(const std::filesystem::path& folder, const std::string& name);

// `lists`: filled with model.vocab and model.merges, which the object that is returned lacks.
Result<Json> parse_tokenizer(std::string_view text, TokenLists& lists);

// {text: id, ...}
Result<std::vector<TokenEntry>> parse_token_ids(std::string_view text, const std::string& name);

// "left right" a line, after an optional first line "#version...".
Result<std::vector<std::string>> parse_merge_lines(std::string_view text);

// ---- what is found in an object; nullptr: nothing there, or null
const Json* find(const Json& object, const char* key);
std::optional<std::string> find_text(const Json& object, const char* key);
bool flag(const Json& object, const char* key, bool otherwise);
// Whole numbers that an id can hold.
std::optional<std::int64_t> find_whole(const Json& object, const char* key);

Error damaged(const std::string& name, const std::string& what);
Error unsupported(const std::string& name, const std::string& what);

}  // namespace octavo::model::vocabulary
