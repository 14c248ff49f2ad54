#include "engine/model/model_source.h"

#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/gguf_file.h"
#include "engine/model/hugging_face/folder_source.h"
#include "engine/model/model_files.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPlaces = 4'096;

template <class Source>
Result<std::unique_ptr<ModelSource>> in_heap(Result<Source> source) {
  if (!source) return std::move(source).error();
  return std::unique_ptr<ModelSource>(std::make_unique<Source>(*std::move(source)));
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_model_source(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return in_heap(GgufFile::open(path));
  if (is_model_folder(path)) return in_heap(FolderSource::open(path));
  const std::vector<fs::path> models = models_in(path);
  if (models.size() == 1) return in_heap(GgufFile::open(models.front()));
  return Error{
      ErrorCode::kNotFound,
      path_for_message(path) +
          (models.empty() ? " holds neither a config.json nor a .gguf file; give the folder of a model"
                          : " holds several .gguf files; give the path of one"),
      "model"};
}

std::vector<fs::path> places_of_model(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const auto files = files_of_model(path);
    return files ? *files : std::vector<fs::path>();
  }
  std::vector<fs::path> places = {path};
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (places.size() == kMaxPlaces) break;
    std::error_code broken;
    const fs::path target = fs::canonical(entry->path(), broken);
    if (!broken) places.push_back(target);
  }
  return places;
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
