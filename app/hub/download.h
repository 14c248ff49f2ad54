// Fetches files of a repository into the Hugging Face cache: in ranges over several connections, again after
// failures, from where it stopped after a pause or kill -9, and under its name only once its SHA-256 is the
// hub's. Whatever ends it early leaves nothing that looks complete.
//
// Thread: the caller's, which it blocks; on_progress is called on it about ten times a second. Memory: what
// comes is written as it comes, so that a slow disk slows the connections down; a megabyte is read at a time
// to verify.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "app/hub/hub_place.h"
#include "app/hub/hub_values.h"
#include "engine/base/clock.h"
#include "engine/base/result.h"

namespace octavo::hub {

enum class DownloadStage {
  kWaiting,  // another process downloads the same file
  kReceiving,
  kRetrying,   // after a failure, which `trouble` tells
  kVerifying,  // all of it is here, and is read once more
};

struct DownloadProgress {
  DownloadStage stage = DownloadStage::kReceiving;
  std::string file;                         // in the repository
  std::int64_t received = 0, total = 0;     // bytes of all files
  double bytes_per_s = 0;                   // 0: not known
  std::optional<double> seconds_left = {};  // nullopt: not known
  std::string trouble = {};                 // one sentence; may be empty
};

enum class DownloadWish {
  kGoOn,
  kPause,   // what has come stays, for another call
  kCancel,  // what has come of this file is removed
};

struct DownloadOptions {
  std::function<DownloadWish(const DownloadProgress&)> on_progress = {};
  int num_connections = 4;  // of a file of at least parallel_bytes
  std::int64_t parallel_bytes = std::int64_t{64} << 20;
  std::int64_t range_bytes = std::int64_t{32} << 20;  // of one request
  std::chrono::milliseconds idle_time{30'000};        // without a byte, before a request is sent again
  std::function<std::int64_t(const std::filesystem::path&)> free_bytes = {};  // none: the disk's
};

// All files of `repository`, which holds those that are wanted. The path of the first one in the cache.
// Errors: kCancelled when on_progress wished so; kOutOfMemory when the disk has no room; one sentence each.
Result<std::filesystem::path> download(const HubPlace& place, const HubRepository& repository,
                                       const Clock& clock, const DownloadOptions& options = {});

}  // namespace octavo::hub
