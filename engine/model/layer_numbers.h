// Hyperparameters that a file gives as one number for all layers, or as a list with a number for each. In a
// list, 0 says that a layer has nothing of the kind; the others must be equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/gguf_header.h"

namespace octavo::model {

struct LayerNumbers {
  std::int32_t number = 0;            // of the layers that have one
  std::vector<bool> is_without = {};  // [layers of the file]; empty: all have it

  bool lacks_any() const;
};

// nullopt: the key is missing. kDamagedFile: neither a whole number nor a list of `num_layers` of them.
// kUnsupported: layers differ in more than whether they have any.
Result<std::optional<LayerNumbers>> find_layer_numbers(const GgufHeader& header, const std::string& key,
                                                       std::int32_t num_layers);

}  // namespace octavo::model
