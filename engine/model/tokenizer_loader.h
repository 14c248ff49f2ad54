// The tokenizer alone, without the weights: for commands that only need words and ids.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

Result<std::unique_ptr<tokenizer::Tokenizer>> load_tokenizer(const std::filesystem::path& path);

}  // namespace octavo::model
