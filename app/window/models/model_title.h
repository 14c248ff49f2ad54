// What a model is called in the window.
#pragma once

#include <string>
#include <string_view>

#include "engine/api/model_description.h"

namespace octavo::app {

// The file's name as words, without its extension, the number of its part and its quantisation, which stands
// beside it everywhere: "SmolLM2-135M-Instruct.Q4_1.gguf" is "SmolLM2 135M Instruct". People choose by it,
// and know it from where they got the file; the name inside is often that of a training run. That one is
// taken where the file's says nothing ("model.gguf", a checksum).
std::string model_title(std::string_view path, std::string_view name_in_file);
std::string model_title(const ModelDescription& model);

}  // namespace octavo::app
