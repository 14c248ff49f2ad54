// Quantised checkpoints: engine/model/quantised as a WeightFormat.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "engine/base/text.h"
#include "engine/model/hugging_face/stored_weight.h"
#include "engine/model/json_file.h"
#include "engine/model/limits.h"
#include "engine/model/quantised/quantised_matrix.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

class QuantisedWeight final : public StoredWeight {
 public:
  explicit QuantisedWeight(std::unique_ptr<QuantisedMatrix> matrix)
      : StoredWeight(matrix->type(), shape_of(*matrix)), matrix_(std::move(matrix)) {}

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    return matrix_->read(first, count, out);
  }
  float scale_of(std::int64_t) const override { return matrix_->scale(); }
  std::span<const std::int32_t> column_order_of(std::int64_t) const override {
    return matrix_->column_order();
  }

 private:
  static std::vector<std::int64_t> shape_of(const QuantisedMatrix& matrix) {
    const std::int64_t stack_size = matrix.stack_size();
    if (stack_size == 1) return {matrix.rows(), matrix.columns()};
    return {stack_size, matrix.rows() / stack_size, matrix.columns()};
  }

  std::unique_ptr<QuantisedMatrix> matrix_;
};

class QuantisedFormat final : public WeightFormat {
 public:
  explicit QuantisedFormat(const QuantisationConfig& config) : config_(config) {}

  Result<OpenedWeight> open(const SafetensorsFiles& files, std::string_view base) const override {
    OpenedWeight opened;
    const std::string module(base);
    const FindTensor find = [&](std::string_view name) -> std::optional<StoredTensor> {
      const SafetensorsTensor* const tensor = files.find(name);
      if (tensor == nullptr) return std::nullopt;
      return StoredTensor{tensor->name, tensor->type, tensor->shape, files.bytes_of(*tensor)};
    };
    auto matrix = open_quantised_matrix(config_, module, find);
    if (!matrix) {
      Error error = std::move(matrix).error();
      error.message = path_for_message(files.folder()) + ": " + error.message;
      return error;
    }
    if (*matrix == nullptr) return opened;
    opened.weight = std::make_unique<QuantisedWeight>(*std::move(matrix));
    // The one that the weight is named after first.
    constexpr std::array kParts = {".qweight",
                                   ".weight_packed",
                                   ".weight",
                                   "_blocks",
                                   "_scales",
                                   ".qzeros",
                                   ".scales",
                                   ".g_idx",
                                   ".weight_scale",
                                   ".weight_shape",
                                   ".weight_zero_point",
                                   ".weight_g_idx",
                                   ".weight_scale_2",
                                   ".weight_scale_inv",
                                   ".weight_global_scale",
                                   ".input_scale",
                                   ".input_global_scale",
                                   ".input_zero_point",
                                   ".lookup_table",
                                   ".rows",
                                   ".cols",
                                   ".vals",
                                   ".startrows",
                                   ".full_rows",
                                   ".full_row_indices",
                                   ".k_scale",
                                   ".v_scale",
                                   ".output_scale"};
    for (const std::string_view part : kParts) {
      const SafetensorsTensor* const tensor = files.find(module + std::string(part));
      if (tensor != nullptr) opened.tensors.push_back(tensor);
    }
    // AutoGPTQ writes one beside every layer, also where the model has none.
    const SafetensorsTensor* const bias = files.find(module + ".bias");
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (bias != nullptr && std::ranges::all_of(files.bytes_of(*bias), is_zero))
      opened.tensors.push_back(bias);
    return opened;
  }

 private:
  const QuantisationConfig config_;
};

// Where the tools write it if not into config.json.
constexpr std::array kOwnFiles = {"quantize_config.json", "quant_config.json", "hf_quant_config.json"};

Result<std::unique_ptr<WeightFormat>> format_of(const nlohmann::json& config, const fs::path& file) {
  OCTAVO_TRY(const QuantisationConfig read, read_quantisation_config(config, path_for_message(file)));
  return std::unique_ptr<WeightFormat>(std::make_unique<QuantisedFormat>(read));
}

}  // namespace

Result<std::unique_ptr<WeightFormat>> find_weight_format(const nlohmann::json& config,
                                                         const fs::path& folder) {
  for (const char* const key : {"quantization_config", "compression_config"}) {
    const auto found = config.find(key);
    if (found != config.end() && !found->is_null()) return format_of(*found, folder / "config.json");
  }
  for (const char* const name : kOwnFiles) {
    std::error_code ignored;
    if (!fs::exists(folder / name, ignored)) continue;
    OCTAVO_TRY(const fs::path file, file_in_folder(folder, name));
    OCTAVO_TRY(const nlohmann::json whole, read_json_file(file, kMaxConfigBytes));
    return format_of(whole, file);
  }
  return std::unique_ptr<WeightFormat>();
}

}  // namespace octavo::model
