#include "engine/model/model_source.h"

#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/gguf_file.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

template <class Source>
Result<std::unique_ptr<ModelSource>> in_heap(Result<Source> source) {
  if (!source) return std::move(source).error();
  return std::unique_ptr<ModelSource>(std::make_unique<Source>(*std::move(source)));
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_model_source(const fs::path& path) {
  return in_heap(GgufFile::open(path));
}

Result<std::vector<std::byte>> read_tensor(const ModelSource& source, const SourceTensor& tensor) {
  const RowReader* const reader = source.reader_of(tensor);
  if (reader == nullptr) {
    const std::span<const std::byte> bytes = source.bytes_of(tensor);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.num_bytes));
  OCTAVO_TRY_VOID(reader->read(0, tensor.num_elements / tensor.dimensions[0], bytes));
  return bytes;
}

}  // namespace octavo::model
