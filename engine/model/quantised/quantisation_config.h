// What a checkpoint says about how its weights were quantised: `quantization_config` of config.json, or the
// whole of quantize_config.json, hf_quant_config.json or quant_config.json, as the tools that wrote them do:
// AutoGPTQ and GPTQModel, AutoAWQ, SqueezeLLM, compressed-tensors, ModelOpt, DeepSeek, gpt-oss.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::model {

enum class QuantisationMethod : std::uint8_t {
  kGptq,
  kAwq,
  kSqueezeLlm,
  kCompressedTensors,
  kFloat8,    // numbers of e4m3: quant_method fp8, fbgemm_fp8
  kModelOpt,  // FP8 or NVFP4
  kMxfp4,     // of gpt-oss: experts only
};

struct QuantisationConfig {
  QuantisationMethod method = QuantisationMethod::kGptq;
  std::int32_t bits = 0;         // 0: the tensors say
  std::int64_t group_size = 0;   // columns; -1: the whole row; 0: the tensors say
  bool is_symmetric = false;     // GPTQ: every zero point is in the middle
  std::int32_t zero_offset = 0;  // of stored zero points: GPTQ's first format keeps them less one
  std::int64_t block_rows = 0, block_columns = 0;  // of kFloat8; 0: the tensors say
};

// Errors: kUnsupported for methods that nothing here reads, by name; kDamagedFile for values that cannot be.
// `file_name` is for messages.
Result<QuantisationConfig> read_quantisation_config(const nlohmann::json& config, std::string_view file_name);

}  // namespace octavo::model
