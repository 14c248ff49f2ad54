// What a model file holds, counted: for `octavo inspect`, for the window and for EngineDescription.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/model_description.h"
#include "engine/model/model_config.h"
#include "engine/model/model_source.h"
#include "engine/model/shapes.h"

namespace octavo::model {

struct TypeCount {
  std::string_view type;  // "Q4_1"
  std::int64_t num_tensors = 0;
  std::uint64_t num_elements = 0;
  std::uint64_t num_bytes = 0;
};

// Of all tensors; the type with most elements first.
std::vector<TypeCount> count_types(const ModelSource& file);

// Elements of all tensors but rope_freqs.weight and rope_factors_*.weight, which are tables and not learnt.
std::uint64_t count_parameters(const ModelSource& file);

// Of these, what a token meets in the layers: neither the embedding nor the output head, and of experts as
// many as it uses. REQUIRES: config was read from this file.
std::uint64_t count_layer_parameters(const ModelSource& file, const ModelConfig& config);

// "135M", "1.7B"; of a model with experts their number times what a row meets with one of them: "8x7B". As
// llama.cpp's converter writes general.size_label.
std::string size_label(const ModelSource& file, const ModelConfig& config);

KvShape kv_shape(const ModelConfig& config);

// "32 heads and 8 KV heads of 128"; where layers differ, of each kind how many there are. With latent
// attention "20 heads and one latent key of 576 for all, 512 of them its value".
std::string heads_text(const ModelDescription& description);

// REQUIRES: config was read from this file.
ModelDescription describe_model(const ModelSource& file, const ModelConfig& config);

}  // namespace octavo::model
