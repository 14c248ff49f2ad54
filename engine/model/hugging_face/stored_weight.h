// One weight of a Hugging Face folder as rows of a kernels::TensorType, whatever tensors of the files it is
// made of: a tensor of floats as it stands, or what a quantised checkpoint keeps of a linear layer (packed
// numbers, zeros, scales).
//
// Ownership: a weight looks into its files, which must outlive it. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_source.h"
#include "engine/model/safetensors_files.h"
#include "kernels/tensor.h"

namespace octavo::model {

class StoredWeight : public RowReader {
 public:
  StoredWeight(kernels::TensorType type, std::vector<std::int64_t> shape)
      : type_(type), shape_(std::move(shape)) {}

  kernels::TensorType type() const { return type_; }
  // Slowest first, as the weight's would be if it were a tensor of floats: {outputs, inputs} of a linear
  // layer. Rows are those of the last dimension; all others count them.
  const std::vector<std::int64_t>& shape() const { return shape_; }
  // Where all rows stand in the file; empty: read() makes them.
  virtual std::span<const std::byte> bytes() const { return {}; }

 private:
  kernels::TensorType type_;
  std::vector<std::int64_t> shape_;
};

struct OpenedWeight {
  std::unique_ptr<StoredWeight> weight;           // null: the files hold none of this name
  std::vector<const SafetensorsTensor*> tensors;  // those that it is made of
  bool is_plain = false;                          // one tensor of floats, in the layout that its model has
};

// How a quantised checkpoint keeps its linear layers: what its quantization_config says.
class WeightFormat {
 public:
  virtual ~WeightFormat() = default;

  // Of the layer `base` ("model.layers.0.self_attn.q_proj"), with outputs as rows. Without a weight where the
  // files hold nothing of this kind for it: a layer that was left as it is. Errors: what contradicts itself.
  virtual Result<OpenedWeight> open(const SafetensorsFiles& files, std::string_view base) const = 0;
};

// Null: the model is not quantised. `config` is that of config.json. Errors: kUnsupported for a kind that is
// not read, by its name.
Result<std::unique_ptr<WeightFormat>> find_weight_format(const nlohmann::json& config,
                                                         const std::filesystem::path& folder);

// A tensor "x.weight" or "x" of floats of any shape; else by the format, if there is one. Errors:
// kUnsupported for a tensor of another type.
Result<OpenedWeight> open_weight(const SafetensorsFiles& files, const WeightFormat* format,
                                 std::string_view name);

}  // namespace octavo::model
