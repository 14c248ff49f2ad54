#include "engine/model/quantised/quantised_matrix.h"

#include "engine/model/quantised/float_blocks.h"
#include "engine/model/quantised/integer_groups.h"
#include "engine/model/quantised/value_tables.h"

namespace octavo::model {
namespace {

using Opened = Result<std::unique_ptr<QuantisedMatrix>>;

bool is_of(const std::optional<StoredTensor>& tensor, SafetensorsType type) {
  return tensor && tensor->type == type;
}

// What the tensors are: the formats name each tensor by what it is.
Opened open_compressed(const QuantisationConfig& config, const std::string& module, const FindTensor& find) {
  const std::optional<StoredTensor> packed = find(module + ".weight_packed"),
                                    plain = find(module + ".weight");
  if (is_of(packed, SafetensorsType::kU8)) {
    return find(module + ".weight_global_scale") ? open_nvfp4(module, find) : open_mxfp4(module, find);
  }
  if (packed) return open_packed_integers(module, find);
  if (is_of(plain, SafetensorsType::kI8)) return open_plain_integers(module, find);
  if (is_of(plain, SafetensorsType::kF8_E4M3)) return open_float8(config, module, find);
  return std::unique_ptr<QuantisedMatrix>();
}

Opened open_model_opt(const QuantisationConfig& config, const std::string& module, const FindTensor& find) {
  const std::optional<StoredTensor> plain = find(module + ".weight");
  if (is_of(plain, SafetensorsType::kU8)) return open_nvfp4(module, find);
  if (is_of(plain, SafetensorsType::kF8_E4M3)) return open_float8(config, module, find);
  return std::unique_ptr<QuantisedMatrix>();
}

}  // namespace

Opened open_quantised_matrix(const QuantisationConfig& config, const std::string& module,
                             const FindTensor& find) {
  const bool has_words = find(module + ".qweight").has_value();
  switch (config.method) {
    case QuantisationMethod::kGptq:
      if (has_words) return open_gptq(config, module, find);
      break;
    case QuantisationMethod::kAwq:
      if (has_words) return open_awq(config, module, find);
      break;
    case QuantisationMethod::kSqueezeLlm:
      if (has_words) return open_value_tables(config, module, find);
      break;
    case QuantisationMethod::kCompressedTensors: return open_compressed(config, module, find);
    case QuantisationMethod::kFloat8:
      if (is_of(find(module + ".weight"), SafetensorsType::kF8_E4M3))
        return open_float8(config, module, find);
      break;
    case QuantisationMethod::kModelOpt: return open_model_opt(config, module, find);
    case QuantisationMethod::kMxfp4: return open_mxfp4_experts(module, find);
  }
  return std::unique_ptr<QuantisedMatrix>();
}

}  // namespace octavo::model
