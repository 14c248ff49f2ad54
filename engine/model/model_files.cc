#include "engine/model/model_files.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "engine/base/ascii.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"
#include "engine/model/hugging_face/folder_source.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestFolder = 4;  // of a file in a repository

struct RepositoryName {
  std::string organisation, name;
};

// Letters, digits, '.', '_' and '-', and no name that a file system reads as a way upwards.
bool is_repository_part(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !part.empty() && part.size() <= 96 && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), allowed);
}

std::optional<RepositoryName> parse_repository(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view organisation = text.substr(0, slash), name = text.substr(slash + 1);
  if (!is_repository_part(organisation) || !is_repository_part(name)) return std::nullopt;
  return RepositoryName{std::string(organisation), std::string(name)};
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Later files of a split model are reached through its first.
bool is_later_shard(std::string_view name) {
  constexpr std::string_view kPattern = "-00001-of-00001.gguf";
  if (name.size() < kPattern.size()) return false;
  const std::string_view ending = name.substr(name.size() - kPattern.size());
  return ending[0] == '-' && ending.substr(6, 4) == "-of-" && ending.substr(1, 5) != "00001";
}

// The snapshots of a repository in the cache, the one that "main" points at first.
std::vector<fs::path> snapshots_of(const fs::path& repository) {
  std::vector<fs::path> snapshots;
  std::error_code error;
  for (fs::directory_iterator entry(repository / "snapshots", error), end; !error && entry != end;
       entry.increment(error)) {
    snapshots.push_back(entry->path());
  }
  std::sort(snapshots.begin(), snapshots.end());
  std::string main_commit;
  std::ifstream(repository / "refs" / "main") >> main_commit;
  std::stable_partition(snapshots.begin(), snapshots.end(),
                        [&](const fs::path& path) { return path.filename() == main_commit; });
  return snapshots;
}

// Folders that may hold the repository's models, in order of preference.
std::vector<fs::path> folders_of(const RepositoryName& repository) {
  std::vector<fs::path> folders = {models_folder() / repository.organisation / repository.name};
  const fs::path cached =
      hugging_face_cache() / ("models--" + repository.organisation + "--" + repository.name);
  for (const fs::path& snapshot : snapshots_of(cached)) folders.push_back(snapshot);
  return folders;
}

Error not_found(std::string_view name) {
  return {ErrorCode::kNotFound,
          "no file or model named \"" + escape_for_message(name) + "\" was found in " +
              path_for_message(models_folder()) + " or " + path_for_message(hugging_face_cache()) +
              "; download it there or give the path of a .gguf file or of a folder",
          "model"};
}

Error several(std::string_view name, const std::vector<fs::path>& models) {
  std::string list;
  for (const fs::path& model : models)
    list += (list.empty() ? "" : ", ") + escape_for_message(model.filename().string());
  return {ErrorCode::kInvalidArgument,
          "model \"" + escape_for_message(name) + "\" has several files in " +
              path_for_message(models.front().parent_path()) + " (" + list + "); give the path of one",
          "model"};
}

// Also those in folders below, as large models have them.
std::vector<fs::path> models_below(const fs::path& folder, int depth = kDeepestFolder) {
  std::vector<fs::path> models = models_in(folder);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; depth > 0 && !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
    const std::vector<fs::path> below = models_below(entry->path(), depth - 1);
    models.insert(models.end(), below.begin(), below.end());
  }
  return models;
}

// Those that `file` may mean: the one of that path or name, else all whose names hold it.
std::vector<fs::path> meant_by(const std::string& file, const fs::path& folder,
                               const std::vector<fs::path>& models) {
  std::vector<fs::path> holding;
  for (const fs::path& model : models) {
    if (model.lexically_relative(folder) == file || model.filename() == file) return {model};
    const std::string name = ascii_lower_case(model.lexically_relative(folder).string());
    if (name.find(ascii_lower_case(file)) != std::string::npos) holding.push_back(model);
  }
  return holding;
}

Result<fs::path> find_repository(const RepositoryName& repository, const std::string& file,
                                 std::string_view name) {
  for (const fs::path& folder : folders_of(repository)) {
    std::vector<fs::path> models = file.empty() ? models_in(folder) : models_below(folder);
    if (file.empty() && models.empty() && !is_model_folder(folder)) models = models_below(folder);
    if (!file.empty()) models = meant_by(file, folder, models);
    if (models.size() > 1) return several(name, models);
    if (models.size() == 1) return models.front();
    if (is_model_folder(folder)) return folder;
  }
  if (!file.empty()) return not_found(name);
  for (const std::string& file : {repository.name, repository.name + ".gguf"}) {
    for (const fs::path& folder : {models_folder() / repository.organisation, models_folder()}) {
      if (is_file(folder / file)) return folder / file;
    }
  }
  return not_found(name);
}

}  // namespace

fs::path hugging_face_cache() {
  if (const auto cache = environment_path("HF_HUB_CACHE")) return *cache;
  if (const auto home = environment_path("HF_HOME")) return *home / "hub";
  return cache_folder() / "huggingface" / "hub";
}

std::optional<ModelName> parse_model_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view repository = text.substr(0, colon);
  if (!parse_repository(repository)) return std::nullopt;
  if (colon == std::string_view::npos) return ModelName{std::string(repository)};
  const std::string_view file = text.substr(colon + 1);
  if (file.empty() || file.starts_with('/')) return std::nullopt;
  return ModelName{std::string(repository), std::string(file)};
}

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> models;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() == ".gguf" && is_file(path) && !is_later_shard(path.filename().string()))
      models.push_back(path);
  }
  std::sort(models.begin(), models.end());
  return models;
}

fs::path models_folder() { return data_folder() / "octavo" / "models"; }

fs::path default_model_path() { return models_folder() / kDefaultModel.file; }

Result<fs::path> find_model(std::string_view name) {
  if (name.empty()) {
    if (is_file(default_model_path())) return default_model_path();
    const auto kept = find_repository(*parse_repository(kDefaultModel.repository), kDefaultModel.file, {});
    if (kept) return kept;
    return Error{ErrorCode::kNotFound,
                 "the default model is missing: " + path_for_message(default_model_path()) +
                     "; download it with --download, or choose a model with --model",
                 "model"};
  }
  const fs::path path(name);
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;  // what it is, opening it will tell
  if (const auto model = parse_model_name(name))
    return find_repository(*parse_repository(model->repository), model->file, name);
  return Error{
      ErrorCode::kNotFound,
      path_for_message(path) + ": no such file; give the path of a .gguf file, of a folder, or org/name",
      "model"};
}

}  // namespace octavo::model
