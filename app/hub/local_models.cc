#include "app/hub/local_models.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "app/files/file_descriptor.h"
#include "app/files/whole_file.h"
#include "app/hub/checksum.h"
#include "app/hub/hub_cache.h"
#include "app/hub/hub_values.h"
#include "app/hub/model_choice.h"
#include "app/json/json_text.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 6;
constexpr std::size_t kMostManifestBytes = std::size_t{1} << 20;
constexpr std::size_t kEndBytes = std::size_t{1} << 20;  // of each end, by which contents are told apart

// Files below a folder whose names `is_wanted`, also through links to files.
template <class Wanted>
void walk(const fs::path& folder, int depth, const Wanted& is_wanted, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (files.size() >= kMostLocalModels) return;
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      if (depth > 0) walk(entry->path(), depth - 1, is_wanted, files);
    } else if (entry->is_regular_file(ignored) && is_wanted(entry->path())) {
      files.push_back(entry->path());
    }
  }
}

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

// Split models as one, and what goes beside models left out: by the rules for a hub's files.
void add_gguf_files(const fs::path& folder, ModelOwner owner, std::vector<LocalModel>& models) {
  std::vector<fs::path> paths;
  walk(
      folder, kDeepest, [](const fs::path& path) { return path.extension() == ".gguf"; }, paths);
  std::vector<HubFile> files;
  for (const fs::path& path : paths)
    files.push_back({.path = path.lexically_relative(folder).string(), .bytes = size_of(path)});
  std::ranges::sort(files, {}, &HubFile::path);
  for (const GgufModel& model : gguf_models(files)) {
    if (!model.is_whole) continue;
    std::string name = model.path;
    if (owner == ModelOwner::kJan && name.ends_with("/model.gguf")) name.resize(name.size() - 11);
    models.push_back(
        {.path = folder / model.path, .name = sanitise_utf8(name), .owner = owner, .bytes = model.bytes});
  }
}

// models--ORG--NAME/snapshots/<commit>/FILE is ORG/NAME:FILE
void add_hugging_face(const fs::path& cache, std::vector<LocalModel>& models) {
  for (const std::string& repository : cached_repositories(cache)) {
    std::error_code error;
    for (fs::directory_iterator snapshot(repository_folder(cache, repository) / "snapshots", error), end;
         !error && snapshot != end; snapshot.increment(error)) {
      const std::size_t before = models.size();
      add_gguf_files(snapshot->path(), ModelOwner::kHuggingFace, models);
      for (std::size_t i = before; i < models.size(); ++i) models[i].name = repository + ":" + models[i].name;
    }
  }
}

// manifests/HOST/NAMESPACE/NAME/TAG names the blob of a model by its SHA-256.
void add_ollama(const fs::path& folder, std::vector<LocalModel>& models) {
  std::vector<fs::path> manifests;
  walk(
      folder / "manifests", kDeepest, [](const fs::path&) { return true; }, manifests);
  for (const fs::path& manifest : manifests) {
    std::string text;
    if (size_of(manifest) > static_cast<std::int64_t>(kMostManifestBytes) ||
        app::read_whole_file(manifest, text) != 0)
      continue;
    const auto json = app::parse_json(text, "it");
    if (!json || !json->is_object()) continue;
    const auto layers = json->find("layers");
    if (layers == json->end() || !layers->is_array()) continue;
    for (const app::Json& layer : *layers) {
      if (!layer.is_object()) continue;
      const auto type = layer.find("mediaType"), digest = layer.find("digest");
      if (type == layer.end() || digest == layer.end() || !type->is_string() || !digest->is_string())
        continue;
      if (type->get<std::string>() != "application/vnd.ollama.image.model") continue;
      std::string blob = digest->get<std::string>();
      if (!blob.starts_with("sha256:") || !is_hex(blob.substr(7), 64)) continue;
      blob[6] = '-';
      const fs::path path = folder / "blobs" / blob;
      std::error_code ignored;
      if (!fs::is_regular_file(path, ignored)) continue;
      const fs::path tag = manifest.filename(), name = manifest.parent_path().filename();
      const std::string space = manifest.parent_path().parent_path().filename().string();
      models.push_back({.path = path,
                        .name = sanitise_utf8((space == "library" ? "" : space + "/") + name.string() + ":" +
                                              tag.string()),
                        .owner = ModelOwner::kOllama,
                        .bytes = size_of(path)});
    }
  }
}

// Of its first and last megabyte; empty where they cannot be read.
std::string ends_of(const fs::path& path) {
  const app::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!file.ok() || ::fstat(file.get(), &status) != 0) return {};
  Checksum checksum(ChecksumKind::kSha256, 0);
  std::vector<std::byte> buffer(kEndBytes);
  const off_t last = std::max<off_t>(0, status.st_size - static_cast<off_t>(kEndBytes));
  for (const off_t at : {off_t{0}, last}) {
    const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), at);
    if (count < 0) return {};
    checksum.add(std::span(buffer).first(static_cast<std::size_t>(count)));
  }
  return checksum.finish();
}

// The first of each content stays.
std::vector<LocalModel> once_each(std::vector<LocalModel> models) {
  std::set<std::pair<dev_t, ino_t>> inodes;
  std::vector<LocalModel> different;
  for (LocalModel& model : models) {
    struct stat status = {};
    if (::stat(model.path.c_str(), &status) != 0 || !inodes.insert({status.st_dev, status.st_ino}).second)
      continue;
    different.push_back(std::move(model));
  }
  std::map<std::int64_t, int> of_this_size;
  for (const LocalModel& model : different) ++of_this_size[model.bytes];
  std::set<std::pair<std::int64_t, std::string>> contents;
  std::erase_if(different, [&](const LocalModel& model) {
    if (of_this_size[model.bytes] == 1) return false;
    const std::string ends = ends_of(model.path);
    return !ends.empty() && !contents.insert({model.bytes, ends}).second;
  });
  return different;
}

}  // namespace

const char* owner_name(ModelOwner owner) {
  switch (owner) {
    case ModelOwner::kOctavo: return "Octavo";
    case ModelOwner::kHuggingFace: return "Hugging Face";
    case ModelOwner::kLmStudio: return "LM Studio";
    case ModelOwner::kOllama: return "Ollama";
    case ModelOwner::kJan: return "Jan";
    case ModelOwner::kLlamaCpp: return "llama.cpp";
  }
  return "";
}

std::vector<ModelPlace> model_places() {
  const fs::path home = home_folder();
  std::vector<ModelPlace> places = {
      {ModelOwner::kOctavo, model::models_folder()},
      {ModelOwner::kHuggingFace, model::hugging_face_cache()},
      {ModelOwner::kLmStudio, home / ".lmstudio" / "models"},
      {ModelOwner::kLmStudio, cache_folder() / "lm-studio" / "models"},
      {ModelOwner::kOllama, home / ".ollama" / "models"},
      {ModelOwner::kOllama, "/usr/share/ollama/.ollama/models"},
      {ModelOwner::kJan, home / "jan" / "models"},
      {ModelOwner::kJan, data_folder() / "Jan" / "data" / "llamacpp" / "models"},
      {ModelOwner::kJan, data_folder() / "Jan" / "data" / "models"},
      {ModelOwner::kLlamaCpp, cache_folder() / "llama.cpp"},
  };
  if (const auto folder = environment_path("OLLAMA_MODELS")) places.push_back({ModelOwner::kOllama, *folder});
  if (const auto folder = environment_path("LLAMA_CACHE")) places.push_back({ModelOwner::kLlamaCpp, *folder});
  return places;
}

std::vector<LocalModel> find_local_models(const std::vector<ModelPlace>& places) {
  std::vector<LocalModel> models;
  for (const ModelPlace& place : places) {
    switch (place.owner) {
      case ModelOwner::kHuggingFace: add_hugging_face(place.folder, models); break;
      case ModelOwner::kOllama: add_ollama(place.folder, models); break;
      default: add_gguf_files(place.folder, place.owner, models);
    }
    if (models.size() > kMostLocalModels) models.resize(kMostLocalModels);
  }
  models = once_each(std::move(models));
  std::ranges::stable_sort(models, [](const LocalModel& a, const LocalModel& b) {
    return std::pair(a.owner, a.name) < std::pair(b.owner, b.name);
  });
  return models;
}

}  // namespace octavo::hub
