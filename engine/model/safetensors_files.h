// The safetensors files of one folder, seen as one list of tensors: model.safetensors; or the shards that
// model.safetensors.index.json names; or the folder's only file of that kind.
//
// What the folder says is untrusted: a shard is a plain name in the folder, and links lead to files in it, or
// to the blobs of the same repository where the folder is a snapshot in a Hugging Face cache.
//
// Ownership: owns the open files and their mappings; spans live as long as this object, also when it is
// moved. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/file_mapping.h"
#include "engine/model/safetensors_header.h"

namespace octavo::model {

class SafetensorsFiles {
 public:
  // Errors: kNotFound; kIo; kDamagedFile for files that contradict themselves, one another or the index, and
  // for paths that leave the folder; kUnsupported where the weights are there in another format only, by name
  // and with the reason.
  static Result<SafetensorsFiles> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t file_bytes() const;  // of all files
  std::size_t num_files() const { return files_.size(); }

  // Of all files, in their order.
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  const SafetensorsTensor* find(std::string_view name) const;  // nullptr: none
  // Whether there is a tensor whose name starts so.
  bool holds(std::string_view prefix) const;
  // In the mapping. REQUIRES: a tensor of this object
  std::span<const std::byte> bytes_of(const SafetensorsTensor& tensor) const;

  // As FileMapping's, of each file.
  Result<void> verify_unchanged() const;

 private:
  explicit SafetensorsFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Result<void> add_file(const std::string& name);
  Result<void> add_sharded();
  Result<void> index_tensors();

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<FileMapping>> files_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_, sorted by name
};

// The file of that name in a folder, held against leaving it: see above. Errors: kNotFound, kDamagedFile.
Result<std::filesystem::path> file_in_folder(const std::filesystem::path& folder, std::string_view name);

}  // namespace octavo::model
