#include "engine/model/safetensors_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/json_file.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingleFile = "model.safetensors", kIndexFile = "model.safetensors.index.json",
                           kEnding = ".safetensors";

std::string name_in_quotes(std::string_view text) { return "\"" + escape_for_message(text) + "\""; }

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found && !ignored;
}

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Files of weights in other formats: what they are called, and why they are not read.
struct OtherFormat {
  std::string_view ending, reason;
};
constexpr std::string_view kPickle =
    "is a Python pickle, which can run code when it is opened, so it is not read; choose a model with "
    "safetensors files, or convert it with safetensors";
constexpr OtherFormat kOtherFormats[] = {
    {".bin", kPickle},
    {".pth", kPickle},
    {".pt", kPickle},
    {".ckpt", kPickle},
    {".pkl", kPickle},
    {".h5",
     "holds the weights in TensorFlow's format, which is not read; choose a model with safetensors files"},
    {".msgpack",
     "holds the weights in Flax's format, which is not read; choose a model with safetensors files"},
    {".onnx", "holds the weights in ONNX, which is not read; choose a model with safetensors files"},
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

Error no_weights(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const OtherFormat& format : kOtherFormats) {
      if (!name.ends_with(format.ending)) continue;
      return {ErrorCode::kUnsupported, path_for_message(folder / name) + " " + std::string(format.reason),
              name};
    }
  }
  return {ErrorCode::kNotFound, path_for_message(folder) +
                                    " holds no file of weights: model.safetensors is missing; download the "
                                    "whole repository"};
}

// The name of the only file of weights that has no usual name, as older quantised models have it.
Result<std::string> only_file(const fs::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [](const std::string& name) { return name.ends_with(kEnding); });
  if (found.size() == 1) return found.front();
  if (found.empty()) return no_weights(folder, names);
  return Error{ErrorCode::kDamagedFile, path_for_message(folder) + " holds " + std::to_string(found.size()) +
                                            " safetensors files and no " + std::string(kIndexFile) +
                                            ", which says how they belong together; download it again"};
}

using ShardOf = std::map<std::string, std::string, std::less<>>;  // of each tensor

Result<ShardOf> read_index(const fs::path& folder) {
  OCTAVO_TRY(const fs::path path, file_in_folder(folder, kIndexFile));
  OCTAVO_TRY(const nlohmann::json index, read_json_file(path, kMaxSafetensorsHeaderBytes));
  const auto damaged = [&](const std::string& finding) {
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(folder / kIndexFile) + ": " + finding + "; download it again"};
  };
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) return damaged("weight_map is missing or no object");
  if (map->empty()) return damaged("weight_map is empty");
  if (map->size() > kMaxStoredTensors) return damaged("weight_map names more tensors than any model has");
  ShardOf shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return damaged("weight_map has no file name for " + name_in_quotes(tensor));
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_name(name) || !name.ends_with(kEnding)) {
      return damaged("weight_map has " + name_in_quotes(name) + " for " + name_in_quotes(tensor) +
                     ", which is not the name of a safetensors file in the folder");
    }
    shards.emplace(tensor, name);
  }
  return shards;
}

}  // namespace

Result<fs::path> file_in_folder(const fs::path& folder, std::string_view name) {
  const fs::path path = folder / name;
  const auto damaged = [&](const std::string& finding) {
    return Error{ErrorCode::kDamagedFile, path_for_message(path) + finding + "; download it again"};
  };
  if (!is_plain_name(name)) return damaged(" is not the name of a file in the folder");
  if (!is_there(path)) {
    return Error{ErrorCode::kNotFound, path_for_message(path) + " is missing; download the whole repository"};
  }
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  if (error == std::errc::too_many_symbolic_link_levels) return damaged(" is a link that leads to itself");
  if (error) return damaged(" is a link to something that is missing");
  const fs::path home = fs::canonical(folder, error);
  if (error) return damaged(" is in a folder that cannot be read");
  const fs::path repository = home.parent_path().parent_path();  // of models--org--name/snapshots/commit
  const bool is_snapshot = home.parent_path().filename() == "snapshots";
  if (is_within(target, home) || (is_snapshot && is_within(target, repository / "blobs"))) return target;
  return damaged(" is a link that leaves the model's folder");
}

Result<SafetensorsFiles> SafetensorsFiles::open(const fs::path& folder) {
  SafetensorsFiles model(folder);
  if (is_there(folder / kSingleFile)) {
    OCTAVO_TRY_VOID(model.add_file(std::string(kSingleFile)));
  } else if (is_there(folder / kIndexFile)) {
    OCTAVO_TRY_VOID(model.add_sharded());
  } else {
    OCTAVO_TRY(const std::string name, only_file(folder));
    OCTAVO_TRY_VOID(model.add_file(name));
  }
  OCTAVO_TRY_VOID(model.index_tensors());
  OCTAVO_TRY_VOID(model.verify_unchanged());
  return model;
}

Result<void> SafetensorsFiles::add_file(const std::string& name) {
  OCTAVO_TRY(const fs::path path, file_in_folder(folder_, name));
  OCTAVO_TRY(auto file, FileMapping::open(path));
  OCTAVO_TRY(SafetensorsHeader header, SafetensorsHeader::parse(*file, (folder_ / name).string()));
  if (tensors_.size() + header.tensors.size() > kMaxStoredTensors) {
    return Error{ErrorCode::kUnsupported,
                 path_for_message(folder_) + " holds more tensors than any model; choose another model"};
  }
  for (SafetensorsTensor& tensor : header.tensors) {
    tensor.shard = static_cast<std::uint32_t>(files_.size());
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(std::move(file));
  return {};
}

Result<void> SafetensorsFiles::add_sharded() {
  OCTAVO_TRY(const ShardOf shards, read_index(folder_));
  std::set<std::string> names;
  for (const auto& [tensor, file] : shards) names.insert(file);
  if (names.size() > kMaxShards) {
    return Error{ErrorCode::kDamagedFile, path_for_message(folder_ / kIndexFile) + ": weight_map names " +
                                              std::to_string(names.size()) + " files; at most " +
                                              std::to_string(kMaxShards) + " are allowed: download it again"};
  }
  std::map<std::string_view, std::string> found;  // the file of each tensor
  for (const std::string& name : names) OCTAVO_TRY_VOID(add_file(name));
  const std::vector<std::string> file_names(names.begin(), names.end());
  for (const SafetensorsTensor& tensor : tensors_) found.emplace(tensor.name, file_names[tensor.shard]);
  for (const auto& [tensor, file] : shards) {
    const auto place = found.find(tensor);
    if (place != found.end() && place->second == file) continue;
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(folder_ / file) + ": tensor " + name_in_quotes(tensor) +
                     (place == found.end() ? " is missing" : " is in " + escape_for_message(place->second)) +
                     ", but the index says it is here; download the repository again",
                 tensor};
  }
  return {};
}

Result<void> SafetensorsFiles::index_tensors() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name = [&](std::uint32_t index) -> const std::string& { return tensors_[index].name; };
  std::ranges::sort(by_name_, [&](auto a, auto b) { return std::tie(name(a), a) < std::tie(name(b), b); });
  const auto twice = std::ranges::adjacent_find(by_name_, [&](auto a, auto b) { return name(a) == name(b); });
  if (twice == by_name_.end()) return {};
  return Error{ErrorCode::kDamagedFile,
               path_for_message(folder_) + ": the tensor " + name_in_quotes(name(*twice)) +
                   " is in two files; the files do not belong together: download the repository again",
               name(*twice)};
}

std::uint64_t SafetensorsFiles::file_bytes() const {
  std::uint64_t total = 0;  // of files that exist: cannot wrap
  for (const auto& file : files_) total += file->size();
  return total;
}

const SafetensorsTensor* SafetensorsFiles::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

bool SafetensorsFiles::holds(std::string_view prefix) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), prefix,
      [&](std::uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name.starts_with(prefix);
}

std::span<const std::byte> SafetensorsFiles::bytes_of(const SafetensorsTensor& tensor) const {
  return files_[tensor.shard]->bytes().subspan(static_cast<std::size_t>(tensor.byte_offset),
                                               static_cast<std::size_t>(tensor.num_bytes));
}

Result<void> SafetensorsFiles::verify_unchanged() const {
  for (const auto& file : files_) OCTAVO_TRY_VOID(file->verify_unchanged());
  return {};
}

}  // namespace octavo::model
