#include "engine/model/layer_numbers.h"

#include <algorithm>
#include <utility>

namespace octavo::model {

bool LayerNumbers::lacks_any() const { return std::ranges::find(is_without, true) != is_without.end(); }

Result<std::optional<LayerNumbers>> find_layer_numbers(const GgufHeader& header, const std::string& key,
                                                       std::int32_t num_layers) {
  LayerNumbers numbers;
  if (!header.find_array_length(key)) {  // a key of another type
    OCTAVO_TRY(numbers.number, header.get<std::int32_t>(key));
    return std::optional(std::move(numbers));
  }
  OCTAVO_TRY(const auto list, header.find<std::vector<std::int32_t>>(key));
  if (!list) return std::optional<LayerNumbers>();
  if (std::cmp_not_equal(list->size(), num_layers)) {
    return header.error_about(key, ErrorCode::kDamagedFile,
                              "holds " + std::to_string(list->size()) + " entries for " +
                                  std::to_string(num_layers) + " layers; convert the model again");
  }
  for (const std::int32_t number : *list) {
    numbers.is_without.push_back(number == 0);
    if (number == 0 || number == numbers.number) continue;
    if (numbers.number != 0) {
      return header.error_about(key, ErrorCode::kUnsupported,
                                "holds " + std::to_string(numbers.number) + " and " + std::to_string(number) +
                                    "; layers that differ so are not supported: choose another model");
    }
    numbers.number = number;
  }
  return std::optional(std::move(numbers));
}

}  // namespace octavo::model
