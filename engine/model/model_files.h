// Where models are looked for when an option names none, or names one as "org/name". Nothing is downloaded.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::model {

// $XDG_DATA_HOME/octavo/models or ~/.local/share/octavo/models.
std::filesystem::path models_folder();

// The file that set-up puts there: SmolLM2-135M-Instruct.Q4_1.gguf.
std::filesystem::path default_model_path();

// The model files directly in a folder, sorted by name; of a split model the first file.
// Empty when there is no such folder.
std::vector<std::filesystem::path> models_in(const std::filesystem::path& folder);

// Empty: the default model. A path, of a file or of a folder: itself. "org/name" that is no path: searched in
// models_folder() and in the Hugging Face cache, a .gguf file first, then a folder with a config.json. An
// error says what was looked for, and where.
Result<std::filesystem::path> find_model(std::string_view name);

}  // namespace octavo::model
