#include "engine/model/model_tensors.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"
#include "kernels/dequantize.h"

namespace octavo::model {
namespace {

using kernels::MatrixSource;

std::string shape_text(std::span<const std::int64_t> dimensions) {
  std::string text;
  for (const std::int64_t dimension : dimensions)
    text += (text.empty() ? "" : " x ") + std::to_string(dimension);
  return text;
}

class TensorFinder {
 public:
  TensorFinder(const GgufFile& file, const ModelConfig& config) : file_(file), config_(config) {}

  Result<ModelTensors> find() const {
    ModelTensors model;
    const std::int64_t width = config_.embedding_length;
    OCTAVO_TRY(model.token_embedding, matrix("token_embd.weight", config_.vocabulary_size, width));
    model.layers.reserve(static_cast<std::size_t>(config_.num_layers));
    for (std::int32_t i = 0; i < config_.num_layers; ++i) {
      OCTAVO_TRY(auto layer, find_layer("blk." + std::to_string(i) + "."));
      model.layers.push_back(std::move(layer));
    }
    OCTAVO_TRY(model.output_norm, vector("output_norm.weight", width));
    OCTAVO_TRY_VOID(find_output(model));
    OCTAVO_TRY_VOID(find_rope(model));
    return model;
  }

 private:
  Result<LayerTensors> find_layer(const std::string& prefix) const {
    const std::int64_t width = config_.embedding_length;
    const std::int64_t hidden = config_.feed_forward_length;
    const std::int64_t query = std::int64_t{config_.num_heads} * config_.head_dim;
    const std::int64_t key = std::int64_t{config_.num_kv_heads} * config_.head_dim;
    LayerTensors layer;
    OCTAVO_TRY(layer.attention_norm, vector(prefix + "attn_norm.weight", width));
    OCTAVO_TRY(layer.query, projection(prefix + "attn_q", query, width));
    OCTAVO_TRY(layer.key, projection(prefix + "attn_k", key, width));
    OCTAVO_TRY(layer.value, projection(prefix + "attn_v", key, width));
    OCTAVO_TRY(layer.attention_output, projection(prefix + "attn_output", width, query));
    OCTAVO_TRY(layer.feed_forward_norm, vector(prefix + "ffn_norm.weight", width));
    OCTAVO_TRY(layer.gate, projection(prefix + "ffn_gate", hidden, width));
    OCTAVO_TRY(layer.up, projection(prefix + "ffn_up", hidden, width));
    OCTAVO_TRY(layer.down, projection(prefix + "ffn_down", width, hidden));
    return layer;
  }

  Result<void> find_output(ModelTensors& model) const {
    model.output_is_tied = file_.find_tensor("output.weight") == nullptr;
    if (model.output_is_tied) {
      model.output.weight = model.token_embedding;
    } else {
      OCTAVO_TRY(model.output.weight,
                 matrix("output.weight", config_.vocabulary_size, config_.embedding_length));
    }
    OCTAVO_TRY(model.output.bias, optional_vector("output.bias", config_.vocabulary_size));
    return {};
  }

  Result<void> find_rope(ModelTensors& model) const {
    constexpr std::string_view kName = "rope_freqs.weight";
    OCTAVO_TRY(const std::vector<float> divisors, optional_vector(kName, config_.rope.rotary_dim / 2));
    for (const float divisor : divisors) {
      if (divisor < kMinFactor || divisor > kMaxFactor) {
        return damaged(kName, "holds " + std::to_string(divisor) + ", by which no frequency can be divided");
      }
    }
    model.rope = rope_frequencies(config_.rope, divisors);
    return {};
  }

  Result<Projection> projection(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    Projection found;
    OCTAVO_TRY(found.weight, matrix(name + ".weight", rows, columns));
    OCTAVO_TRY(found.bias, optional_vector(name + ".bias", rows));
    return found;
  }

  Result<MatrixSource> matrix(std::string_view name, std::int64_t rows, std::int64_t columns) const {
    OCTAVO_TRY(const GgufTensor* tensor, required(name));
    const std::int64_t shape[] = {columns, rows};
    OCTAVO_TRY(const kernels::TensorType type, check(*tensor, shape));
    return MatrixSource{type, rows, columns, file_.bytes_of(*tensor)};
  }

  Result<std::vector<float>> vector(std::string_view name, std::int64_t size) const {
    OCTAVO_TRY(const GgufTensor* tensor, required(name));
    return expand(*tensor, size);
  }

  Result<std::vector<float>> optional_vector(std::string_view name, std::int64_t size) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return std::vector<float>();
    return expand(*tensor, size);
  }

  Result<std::vector<float>> expand(const GgufTensor& tensor, std::int64_t size) const {
    const std::int64_t shape[] = {size};
    OCTAVO_TRY(const kernels::TensorType type, check(tensor, shape));
    std::vector<float> values(static_cast<std::size_t>(size));
    kernels::dequantize(type, file_.bytes_of(tensor).data(), size, values.data());
    for (const float value : values) {
      if (!std::isfinite(value)) return damaged(tensor.name, "holds numbers that are not finite");
    }
    return values;
  }

  Result<const GgufTensor*> required(std::string_view name) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return damaged(name, "is missing");
    return tensor;
  }

  // `shape` fastest first; further dimensions must be 1.
  Result<kernels::TensorType> check(const GgufTensor& tensor, std::span<const std::int64_t> shape) const {
    bool same = true;
    for (std::size_t i = 0; i < tensor.dimensions.size(); ++i) {
      same = same && tensor.dimensions[i] == (i < shape.size() ? shape[i] : 1);
    }
    if (!same) {
      const auto found = std::span(tensor.dimensions).first(tensor.num_dimensions);
      return damaged(tensor.name,
                     "has the shape " + shape_text(found) + " where the metadata says " + shape_text(shape));
    }
    const auto type = tensor.type();
    if (type) return *type;
    Error error =
        error_about(tensor.name, ErrorCode::kUnsupported,
                    "has type " + std::string(tensor.type_name) +
                        "; supported are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K: "
                        "choose another quantisation");
    return error;
  }

  Error error_about(std::string_view name, ErrorCode code, const std::string& sentence) const {
    return {code,
            escape_for_message(file_.path().string(), 1000) + ": tensor \"" + escape_for_message(name) +
                "\" " + sentence,
            std::string(name)};
  }
  Error damaged(std::string_view name, const std::string& sentence) const {
    Error error = error_about(name, ErrorCode::kDamagedFile, sentence + "; get the file again");
    if (const GgufTensor* tensor = file_.find_tensor(name)) error.byte_offset = tensor->byte_offset;
    return error;
  }

  const GgufFile& file_;
  const ModelConfig& config_;
};

}  // namespace

Result<ModelTensors> find_model_tensors(const GgufFile& file, const ModelConfig& config) {
  return TensorFinder(file, config).find();
}

}  // namespace octavo::model
