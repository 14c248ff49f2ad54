// The Hugging Face cache on this disk, laid out as huggingface_hub lays it out, so that other programs find
// what was downloaded here and the other way round:
//   models--ORG--NAME/blobs/<sha256>               content; it has this name only once it is whole and right
//   models--ORG--NAME/snapshots/<commit>/<path>    a relative link to a blob
//   models--ORG--NAME/refs/<revision>              the commit that a branch was at
//   .locks/models--ORG--NAME/<blob>.lock           held while a blob is written (flock)
// What has not come wholly stands beside the blobs as <blob>.octavo.incomplete, with <blob>.octavo.missing,
// which says what of it is still to come: huggingface_hub appends to files called <blob>.incomplete, which
// must have no holes.
//
// Pure functions of the disk; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/files/file_descriptor.h"
#include "app/hub/hub_values.h"
#include "engine/base/result.h"

namespace octavo::hub {

struct BlobPaths {
  std::filesystem::path blob, incomplete, missing, lock;
};

std::filesystem::path repository_folder(const std::filesystem::path& cache, std::string_view repository);
BlobPaths blob_paths(const std::filesystem::path& cache, std::string_view repository,
                     const std::string& blob_name);
// Where a file of a repository is found, whether it is there or not.
std::filesystem::path snapshot_path(const std::filesystem::path& cache, const HubRepository& repository,
                                    const HubFile& file);

// Whether all of it is here.
bool is_here(const std::filesystem::path& cache, const std::string& repository, const HubFile& file);

// The lock of a blob. A descriptor that is not ok: another process has it.
Result<app::FileDescriptor> try_lock(const BlobPaths& paths);

// The snapshot's links to blobs, and the branch's name for it; all blobs are here.
Result<void> link_snapshot(const std::filesystem::path& cache, const HubRepository& repository);

// The repositories that a cache holds: "org/name", sorted.
std::vector<std::string> cached_repositories(const std::filesystem::path& cache);

// What removing one would free, in bytes.
std::int64_t cached_bytes(const std::filesystem::path& cache, const std::string& repository);
// Of these, what has come of files that are not complete.
std::int64_t incomplete_bytes(const std::filesystem::path& cache, const std::string& repository);

// All of a repository, or with a file's path only that file: its links, and its blob unless another link
// needs it. What is being downloaded is left alone: an error.
Result<void> remove_cached(const std::filesystem::path& cache, const std::string& repository,
                           const std::string& file = {});

// What has come of files that are not complete, unless somebody downloads them just now.
void remove_incomplete(const std::filesystem::path& cache, const HubRepository& repository);

// What the system refused, as a sentence: "cannot write PATH: No space left on device".
Error disk_error(const char* what, const std::filesystem::path& path, int reason);

// Makes a rename or a new name in it durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace octavo::hub
