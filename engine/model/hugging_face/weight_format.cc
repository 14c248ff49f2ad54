#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"
#include "engine/model/hugging_face/stored_weight.h"

namespace octavo::model {

Result<std::unique_ptr<WeightFormat>> find_weight_format(const nlohmann::json& config,
                                                         const std::filesystem::path& folder) {
  const auto found = config.find("quantization_config");
  if (found == config.end() || found->is_null()) return std::unique_ptr<WeightFormat>();
  const auto refused = [&](const std::string& finding) {
    return Error{ErrorCode::kUnsupported,
                 path_for_message(folder / "config.json") + ": quantization_config " + finding,
                 "quantization_config"};
  };
  if (!found->is_object()) return refused("is no object; download it again");
  const auto method = found->find("quant_method");
  if (method == found->end() || !method->is_string())
    return refused("does not say its quant_method; choose another model");
  return refused("has the quant_method \"" + escape_for_message(method->get_ref<const std::string&>()) +
                 "\", which is not read here; choose a model in F32, F16 or BF16, or a GGUF file");
}

}  // namespace octavo::model
