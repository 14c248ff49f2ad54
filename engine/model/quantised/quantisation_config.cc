#include "engine/model/quantised/quantisation_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/base/text.h"

namespace octavo::model {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostGroupSize = 1 << 20;

class Reader {
 public:
  Reader(const Json& config, std::string_view file_name) : config_(config), file_name_(file_name) {}

  Error error(ErrorCode code, std::string_view key, std::string_view sentence) const {
    return {code,
            escape_for_message(file_name_) + ": quantization_config" +
                (key.empty() ? "" : "." + std::string(key)) + " " + std::string(sentence),
            std::string(key)};
  }

  // Empty: missing or null.
  Result<std::string> text(std::string_view key) const {
    const Json* const value = find(key);
    if (value == nullptr) return std::string();
    if (!value->is_string()) return error(ErrorCode::kDamagedFile, key, "is no text");
    return value->get<std::string>();
  }

  Result<bool> flag(std::string_view key, bool otherwise) const {
    const Json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) return error(ErrorCode::kDamagedFile, key, "is neither true nor false");
    return value->get<bool>();
  }

  Result<std::optional<std::int64_t>> number(std::string_view key) const {
    const Json* const value = find(key);
    if (value == nullptr) return std::optional<std::int64_t>();
    if (!value->is_number_integer() || (value->is_number_unsigned() && *value > kMostGroupSize) ||
        *value < -kMostGroupSize) {
      return error(ErrorCode::kDamagedFile, key, "is no whole number of a plausible size");
    }
    return std::optional(value->get<std::int64_t>());
  }

  // nullptr: missing or null.
  const Json* find(std::string_view key) const {
    if (!config_.is_object()) return nullptr;
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  const Json& config_;
  std::string_view file_name_;
};

Result<std::int64_t> read_group_size(const Reader& reader, std::string_view key) {
  OCTAVO_TRY(const std::optional<std::int64_t> size, reader.number(key));
  if (!size) return reader.error(ErrorCode::kDamagedFile, key, "is missing");
  if (*size != -1 && *size < 1) {
    return reader.error(ErrorCode::kDamagedFile, key,
                        "is " + std::to_string(*size) + "; it is a number of columns, or -1 for all of them");
  }
  return *size;
}

Result<std::int32_t> read_bits(const Reader& reader, std::string_view key,
                               std::initializer_list<int> allowed) {
  OCTAVO_TRY(const std::optional<std::int64_t> bits, reader.number(key));
  if (!bits) return reader.error(ErrorCode::kDamagedFile, key, "is missing");
  std::string list;
  for (const int number : allowed) {
    if (*bits == number) return static_cast<std::int32_t>(number);
    list += (list.empty() ? "" : ", ") + std::to_string(number);
  }
  return reader.error(ErrorCode::kUnsupported, key,
                      "is " + std::to_string(*bits) + "; what is read is " + list +
                          ": choose another quantisation of the model");
}

Result<QuantisationConfig> read_gptq(const Reader& reader) {
  QuantisationConfig config{.method = QuantisationMethod::kGptq};
  OCTAVO_TRY(config.bits, read_bits(reader, "bits", {2, 3, 4, 8}));
  OCTAVO_TRY(config.group_size, read_group_size(reader, "group_size"));
  OCTAVO_TRY(config.is_symmetric, reader.flag("sym", false));
  OCTAVO_TRY(std::string format, reader.text("checkpoint_format"));
  if (format.empty()) {
    OCTAVO_TRY(format, reader.text("format"));
  }
  OCTAVO_TRY(const std::string packing, reader.text("packing_format"));  // AutoRound
  if (format.empty() && packing.find("auto_gptq") == std::string::npos) format = packing;
  if (format.empty() || format == "gptq") {
    config.zero_offset = 1;
  } else if (format != "gptq_v2") {
    return reader.error(ErrorCode::kUnsupported, "checkpoint_format",
                        "is " + escape_for_message(format) +
                            "; what is read is gptq and gptq_v2: choose another quantisation of the model");
  }
  return config;
}

Result<QuantisationConfig> read_awq(const Reader& reader) {
  QuantisationConfig config{.method = QuantisationMethod::kAwq};
  const bool has_old_names = reader.find("bits") == nullptr && reader.find("w_bit") != nullptr;
  OCTAVO_TRY(config.bits, read_bits(reader, has_old_names ? "w_bit" : "bits", {4}));
  OCTAVO_TRY(config.group_size, read_group_size(reader, has_old_names ? "q_group_size" : "group_size"));
  OCTAVO_TRY(std::string version, reader.text("version"));
  for (char& letter : version)
    letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
  if (!version.empty() && version != "gemm") {
    return reader.error(ErrorCode::kUnsupported, "version",
                        "is " + escape_for_message(version) +
                            "; what is read is gemm: choose another quantisation of the model");
  }
  return config;
}

Result<QuantisationConfig> read_float8(const Reader& reader) {
  QuantisationConfig config{.method = QuantisationMethod::kFloat8};
  OCTAVO_TRY(const std::string format, reader.text("fmt"));
  if (!format.empty() && format != "e4m3") {
    return reader.error(ErrorCode::kUnsupported, "fmt",
                        "is " + escape_for_message(format) + "; what is read is e4m3");
  }
  const Json* const block = reader.find("weight_block_size");
  if (block == nullptr) return config;
  const bool is_pair = block->is_array() && block->size() == 2 && (*block)[0].is_number_unsigned() &&
                       (*block)[1].is_number_unsigned();
  if (!is_pair || (*block)[0] == 0 || (*block)[1] == 0 || (*block)[0] > kMostGroupSize ||
      (*block)[1] > kMostGroupSize) {
    return reader.error(ErrorCode::kDamagedFile, "weight_block_size",
                        "is no pair of rows and columns, such as [128, 128]");
  }
  config.block_rows = (*block)[0].get<std::int64_t>();
  config.block_columns = (*block)[1].get<std::int64_t>();
  return config;
}

Result<QuantisationConfig> read_compressed_tensors(const Reader& reader) {
  OCTAVO_TRY(const std::string format, reader.text("format"));
  constexpr std::array kRead = {
      "pack-quantized",       "int-quantized",   "float-quantized", "nvfp4-pack-quantized",
      "mxfp4-pack-quantized", "naive-quantized", "mixed-precision", "dense"};
  bool is_read = format.empty();
  std::string list;
  for (const std::string_view name : kRead) {
    is_read |= format == name;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (!is_read) {
    return reader.error(ErrorCode::kUnsupported, "format",
                        "is " + escape_for_message(format) + "; what is read is " + list +
                            ": choose another quantisation of the model");
  }
  return QuantisationConfig{.method = QuantisationMethod::kCompressedTensors};
}

Result<QuantisationConfig> read_model_opt(const Reader& reader) {
  OCTAVO_TRY(std::string algorithm, reader.text("quant_algo"));
  if (const Json* const inner = reader.find("quantization"); inner != nullptr && inner->is_object()) {
    const auto found = inner->find("quant_algo");
    if (found != inner->end() && found->is_string()) algorithm = found->get<std::string>();
  }
  if (algorithm == "FP8" || algorithm == "NVFP4" || algorithm == "MIXED_PRECISION")
    return QuantisationConfig{.method = QuantisationMethod::kModelOpt};
  return reader.error(ErrorCode::kUnsupported, "quant_algo",
                      "is " + escape_for_message(algorithm) +
                          "; what is read is FP8 and NVFP4: choose another quantisation of the model");
}

Result<QuantisationConfig> read_squeeze_llm(const Reader& reader, std::string_view bits) {
  QuantisationConfig config{.method = QuantisationMethod::kSqueezeLlm, .group_size = -1};
  OCTAVO_TRY(config.bits, read_bits(reader, bits, {3, 4}));
  return config;
}

}  // namespace

Result<QuantisationConfig> read_quantisation_config(const Json& config, std::string_view file_name) {
  const Reader reader(config, file_name);
  if (!config.is_object()) return reader.error(ErrorCode::kDamagedFile, "", "is no list of names and values");
  OCTAVO_TRY(std::string method, reader.text("quant_method"));
  if (method.empty()) {  // files of their own, older than the key
    if (reader.find("wbits") != nullptr) return read_squeeze_llm(reader, "wbits");
    if (reader.find("w_bit") != nullptr) return read_awq(reader);
    if (reader.find("quantization") != nullptr || reader.find("quant_algo") != nullptr)
      return read_model_opt(reader);
    if (reader.find("bits") != nullptr) return read_gptq(reader);
    if (reader.find("load_in_4bit") != nullptr || reader.find("load_in_8bit") != nullptr)
      method = "bitsandbytes";
  }
  if (method == "gptq" || method == "gptqmodel") return read_gptq(reader);
  if (method == "auto-round" || method == "intel/auto-round") {
    OCTAVO_TRY(const std::string packing, reader.text("packing_format"));
    return packing.find("awq") != std::string::npos ? read_awq(reader) : read_gptq(reader);
  }
  if (method == "awq") return read_awq(reader);
  if (method == "squeezellm")
    return read_squeeze_llm(reader, reader.find("bits") != nullptr ? "bits" : "wbits");
  if (method == "compressed-tensors" || method == "compressed_tensors")
    return read_compressed_tensors(reader);
  if (method == "fp8" || method == "fbgemm_fp8") return read_float8(reader);
  if (method == "modelopt" || method == "modelopt_fp4") return read_model_opt(reader);
  if (method == "mxfp4") return QuantisationConfig{.method = QuantisationMethod::kMxfp4};
  if (method.empty()) return reader.error(ErrorCode::kDamagedFile, "quant_method", "is missing");
  return reader.error(ErrorCode::kUnsupported, "quant_method",
                      "is " + escape_for_message(method) +
                          ", which is not read: choose a GGUF file, or a folder with GPTQ, AWQ, "
                          "compressed-tensors, FP8, MXFP4 or 16-bit weights");
}

}  // namespace octavo::model
