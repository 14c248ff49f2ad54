#include "app/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>

#include "app/files/whole_file.h"
#include "engine/base/text.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--", kIncomplete = ".octavo.incomplete";

std::string folder_name(std::string_view repository) {
  std::string name(kPrefix);
  for (const char c : repository) name += c == '/' ? std::string("--") : std::string(1, c);
  return name;
}

// Empty: a folder of something else.
std::string repository_of(const std::string& folder) {
  if (!folder.starts_with(kPrefix)) return {};
  std::string name = folder.substr(kPrefix.size());
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return is_repository_name(name) ? name : std::string();
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return disk_error("cannot make the folder", folder, error.value());
  return {};
}

// Over whatever is there, at once.
Result<void> link_to(const fs::path& target, const fs::path& link) {
  OCTAVO_TRY_VOID(make_folder(link.parent_path()));
  const fs::path staged = link.string() + "." + std::to_string(::gettid()) + ".part";
  std::error_code error;
  fs::remove(staged, error);
  fs::create_symlink(target, staged, error);
  if (!error) fs::rename(staged, link, error);
  if (error) return disk_error("cannot make the link", link, error.value());
  return {};
}

// Every link below a repository's snapshots, with the name of its blob.
struct Link {
  fs::path path;
  std::string file;  // in the repository
  std::string blob;
};
std::vector<Link> links_of(const fs::path& repository) {
  std::vector<Link> links;
  std::error_code error;
  for (fs::directory_iterator snapshot(repository / "snapshots", error), end; !error && snapshot != end;
       snapshot.increment(error)) {
    std::error_code below_error;
    for (fs::recursive_directory_iterator entry(snapshot->path(), below_error), last;
         !below_error && entry != last; entry.increment(below_error)) {
      std::error_code ignored;
      if (!entry->is_symlink(ignored)) continue;
      links.push_back({entry->path(), entry->path().lexically_relative(snapshot->path()).string(),
                       fs::read_symlink(entry->path(), ignored).filename().string()});
    }
  }
  return links;
}

// A file with holes takes less than it is long.
std::int64_t bytes_taken(const fs::path& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return 0;
  constexpr std::int64_t kBlockBytes = 512;  // of st_blocks, whatever the file system has
  return path.string().ends_with(kIncomplete)
             ? std::min<std::int64_t>(found.st_size, found.st_blocks * kBlockBytes)
             : std::int64_t{found.st_size};
}

// Of those whose names end so.
std::int64_t sum_of_blobs(const fs::path& cache, const std::string& repository, std::string_view ending) {
  std::int64_t sum = 0;
  std::error_code error;
  const fs::path blobs = repository_folder(cache, repository) / "blobs";
  for (fs::directory_iterator entry(blobs, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().string().ends_with(ending)) sum += bytes_taken(entry->path());
  }
  return sum;
}

}  // namespace

Error disk_error(const char* what, const fs::path& path, int reason) {
  return {reason == ENOSPC || reason == EDQUOT ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
          std::string(what) + " " + path_for_message(path) + ": " + std::strerror(reason)};
}

fs::path repository_folder(const fs::path& cache, std::string_view repository) {
  return cache / folder_name(repository);
}

BlobPaths blob_paths(const fs::path& cache, std::string_view repository, const std::string& blob_name) {
  const fs::path blobs = repository_folder(cache, repository) / "blobs";
  return {.blob = blobs / blob_name,
          .incomplete = blobs / (blob_name + std::string(kIncomplete)),
          .missing = blobs / (blob_name + ".octavo.missing"),
          .lock = cache / ".locks" / folder_name(repository) / (blob_name + ".lock")};
}

fs::path snapshot_path(const fs::path& cache, const HubRepository& repository, const HubFile& file) {
  return repository_folder(cache, repository.name) / "snapshots" / repository.commit / file.path;
}

bool is_here(const fs::path& cache, const std::string& repository, const HubFile& file) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(blob_paths(cache, repository, file.blob_name()).blob, error);
  return !error && bytes == static_cast<std::uintmax_t>(file.bytes);
}

Result<app::FileDescriptor> try_lock(const BlobPaths& paths) {
  OCTAVO_TRY_VOID(make_folder(paths.lock.parent_path()));
  app::FileDescriptor lock(::open(paths.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.ok()) return disk_error("cannot open", paths.lock, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return disk_error("cannot lock", paths.lock, errno);
  return app::FileDescriptor();
}

Result<void> link_snapshot(const fs::path& cache, const HubRepository& repository) {
  const fs::path folder = repository_folder(cache, repository.name);
  for (const HubFile& file : repository.files) {
    const fs::path link = snapshot_path(cache, repository, file);
    const fs::path blob = blob_paths(cache, repository.name, file.blob_name()).blob;
    OCTAVO_TRY_VOID(link_to(blob.lexically_relative(link.parent_path()), link));
    sync_folder(link.parent_path());
  }
  if (repository.revision == repository.commit || !is_safe_path(repository.revision)) return {};
  const fs::path reference = folder / "refs" / repository.revision;
  if (const int reason = app::write_whole_file(reference, repository.commit); reason != 0)
    return disk_error("cannot write", reference, reason);
  return {};
}

std::vector<std::string> cached_repositories(const fs::path& cache) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(cache, error), end; !error && entry != end; entry.increment(error)) {
    if (std::string name = repository_of(entry->path().filename().string()); !name.empty())
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::int64_t cached_bytes(const fs::path& cache, const std::string& repository) {
  return sum_of_blobs(cache, repository, "");
}

std::int64_t incomplete_bytes(const fs::path& cache, const std::string& repository) {
  return sum_of_blobs(cache, repository, kIncomplete);
}

Result<void> remove_cached(const fs::path& cache, const std::string& repository, const std::string& file) {
  const fs::path folder = repository_folder(cache, repository);
  std::error_code error;
  if (!is_repository_name(repository) || !fs::is_directory(folder, error))
    return Error{ErrorCode::kNotFound,
                 "'" + escape_for_message(repository) + "' is not in " + path_for_message(cache)};
  std::set<std::string> blobs;
  if (file.empty()) {
    for (fs::directory_iterator entry(folder / "blobs", error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      blobs.insert(name.substr(0, name.find('.')));
    }
  } else {
    for (const Link& link : links_of(folder))
      if (link.file == file) blobs.insert(link.blob);
    if (blobs.empty())
      return Error{ErrorCode::kNotFound,
                   "'" + escape_for_message(file) + "' is not in " + path_for_message(folder)};
  }
  std::vector<app::FileDescriptor> locks;
  for (const std::string& blob : blobs) {
    OCTAVO_TRY(app::FileDescriptor lock, try_lock(blob_paths(cache, repository, blob)));
    if (!lock.ok())
      return Error{ErrorCode::kUnsupported,
                   "'" + escape_for_message(repository) + "' is being downloaded; stop that first"};
    locks.push_back(std::move(lock));
  }
  if (file.empty()) {
    fs::remove_all(folder, error);
    if (error) return disk_error("cannot remove", folder, error.value());
    return {};
  }
  for (const Link& link : links_of(folder)) {
    if (link.file == file) {
      fs::remove(link.path, error);
      if (error) return disk_error("cannot remove", link.path, error.value());
    } else {
      blobs.erase(link.blob);  // another one needs it
    }
  }
  for (const std::string& blob : blobs) {
    const BlobPaths paths = blob_paths(cache, repository, blob);
    for (const fs::path& path : {paths.blob, paths.incomplete, paths.missing}) fs::remove(path, error);
  }
  return {};
}

void remove_incomplete(const fs::path& cache, const HubRepository& repository) {
  for (const HubFile& file : repository.files) {
    const BlobPaths paths = blob_paths(cache, repository.name, file.blob_name());
    const auto lock = try_lock(paths);
    if (!lock || !lock->ok()) continue;
    std::error_code ignored;
    fs::remove(paths.missing, ignored);
    fs::remove(paths.incomplete, ignored);
  }
}

void sync_folder(const fs::path& folder) {
  const app::FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.ok()) ::fsync(descriptor.get());
}

}  // namespace octavo::hub
