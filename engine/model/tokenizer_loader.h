// A tokenizer straight from a model file, without its weights.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path);

}  // namespace octavo::model
