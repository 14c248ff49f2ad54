// SQLite's layer of files with faults: a disk that is full, writes and syncs that fail, and power that goes.
// Files are the system's own; faults come where they are asked for.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

struct sqlite3_vfs;

namespace octavo::testing {

class FaultVfs {
 public:
  static constexpr const char* kName = "octavo-faults";

  // Registered once, without faults.
  static FaultVfs& instance();

  void reset();

  // ---- faults
  std::int64_t bytes_left = std::numeric_limits<std::int64_t>::max();  // then the disk is full
  // Then every write, sync and truncation fails
  std::int64_t calls_left = std::numeric_limits<std::int64_t>::max();
  bool syncs_fail = false;
  bool reads_fail = false;
  bool syncs_lie = false;  // they succeed, and what they should have kept is still lost with the power

  // ---- power
  // From now on remembers what was not synced.
  void remember_unsynced();
  // What was not synced is lost, kept or torn, by chance, each write for itself, in whatever order. Every
  // file must be closed, and later writes must not have happened: `power_is_gone` makes them fail.
  void cut_power(std::mt19937_64& random);
  bool power_is_gone = false;

  std::int64_t num_calls = 0;  // writes, syncs and truncations

 private:
  friend struct FaultFile;
  struct Unsynced {
    std::int64_t offset = 0;
    std::vector<char> before;  // shorter than `length` where the file ended
    std::int64_t length = 0;
    std::int64_t file_size = 0;
  };

  // Whether a changing call may go on.
  bool allows(std::int64_t num_bytes);

  bool remembers_ = false;
  std::map<std::string, std::vector<Unsynced>> unsynced_;
};

}  // namespace octavo::testing
