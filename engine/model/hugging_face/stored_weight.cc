#include "engine/model/hugging_face/stored_weight.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/base/text.h"
#include "engine/model/file_mapping.h"

namespace octavo::model {
namespace {

std::optional<kernels::TensorType> float_type(SafetensorsType type) {
  switch (type) {
    case SafetensorsType::kF32: return kernels::TensorType::kF32;
    case SafetensorsType::kF16: return kernels::TensorType::kF16;
    case SafetensorsType::kBF16: return kernels::TensorType::kBF16;
    default: return std::nullopt;
  }
}

// Floats as they stand in the file. Whoever reads says by the size of the result how long a row is.
class PlainWeight final : public StoredWeight {
 public:
  PlainWeight(kernels::TensorType type, const SafetensorsTensor& tensor, std::span<const std::byte> bytes)
      : StoredWeight(type, tensor.shape), bytes_(bytes) {}

  std::span<const std::byte> bytes() const override { return bytes_; }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    const std::size_t row_bytes = out.size() / static_cast<std::size_t>(count);
    const auto rows = bytes_.subspan(static_cast<std::size_t>(first) * row_bytes, out.size());
    std::ranges::copy(rows, out.begin());
    release_pages(rows);
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Result<OpenedWeight> open_weight(const SafetensorsFiles& files, const WeightFormat* format,
                                 std::string_view name) {
  constexpr std::string_view kSuffix = ".weight";
  const SafetensorsTensor* const tensor = files.find(name);
  const auto type = tensor == nullptr ? std::nullopt : float_type(tensor->type);
  if (type) {
    OpenedWeight opened;
    opened.weight = std::make_unique<PlainWeight>(*type, *tensor, files.bytes_of(*tensor));
    opened.tensors = {tensor};
    opened.is_plain = true;
    return opened;
  }
  if (format != nullptr) {
    const std::string_view base =
        name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size()) : name;
    OCTAVO_TRY(OpenedWeight opened, format->open(files, base));
    if (opened.weight != nullptr) return opened;
  }
  if (tensor == nullptr) return OpenedWeight();
  return Error{ErrorCode::kUnsupported,
               path_for_message(files.folder()) + ": tensor \"" + escape_for_message(name) + "\" has type " +
                   escape_for_message(tensor->type_name) +
                   ", which is not read here; choose a model in F32, F16 or BF16",
               std::string(name)};
}

}  // namespace octavo::model
