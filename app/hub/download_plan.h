// What of a file is still to come, and who fetches which part of it; when to try again, and how fast it goes.
// Policy only: no clock, thread, socket or file; times are arguments. Deterministic.
//
// Invariants: the missing ranges and those in work are inside the file, do not overlap, and are all that has
// not been received.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "app/hub/hub_client.h"

namespace octavo::hub {

class DownloadPlan {
 public:
  // All of it is missing. REQUIRES: size >= 0
  explicit DownloadPlan(std::int64_t size);
  // As text() wrote it; nullopt: of another size, or nothing that it could have written.
  static std::optional<DownloadPlan> parse(std::string_view text, std::int64_t size);

  // What is missing, also what is in work: a line each. Written to the disk, it tells where to go on.
  std::string text() const;

  // The first missing bytes that nobody fetches, at most so many; in work from now on. nullopt: there are
  // none. `worker` has nothing in work.
  std::optional<ByteRange> take(int worker, std::int64_t most_bytes);
  // What a worker has in work; empty once all of it came.
  ByteRange in_work(int worker) const;
  // The next bytes of it. REQUIRES: no more than are left of it
  void receive(int worker, std::int64_t bytes);
  // What it has left is anybody's.
  void give_back(int worker);

  std::int64_t size() const { return size_; }
  std::int64_t received() const;
  bool is_complete() const { return received() == size_; }

 private:
  void add_missing(ByteRange range);
  std::map<std::int64_t, std::int64_t> all_missing() const;

  std::int64_t size_;
  std::map<std::int64_t, std::int64_t> missing_;  // begin to end
  std::map<int, ByteRange> in_work_;
};

// How often, and after how long, something is tried again. Bytes that came make all attempts fresh.
class Retries {
 public:
  static constexpr int kMostFailures = 8;
  // How long to wait after one more failure; what the server asked for counts if it is longer. nullopt: no
  // more.
  std::optional<std::chrono::milliseconds> after_failure(std::optional<std::chrono::milliseconds> asked);
  void after_progress() { num_failures_ = 0; }
  int num_failures() const { return num_failures_; }

 private:
  int num_failures_ = 0;
};

// Bytes a second over the last seconds.
class SpeedMeter {
 public:
  void note(std::int64_t now_us, std::int64_t total_bytes);
  // 0: not known yet, or nothing comes.
  double bytes_per_s(std::int64_t now_us) const;

 private:
  struct Sample {
    std::int64_t at_us;
    std::int64_t bytes;
  };
  std::deque<Sample> samples_;
};

}  // namespace octavo::hub
