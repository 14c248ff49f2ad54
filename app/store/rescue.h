// What is done with a damaged database: it is kept as it is under another name, every row that can be read
// goes into a new file, what could not be read is looked up in the newest good backup, and the new file takes
// the place. Whatever interrupts this, the next start finds either the damaged file or the new one, and goes
// on.
//
// Rows are read in the order of their numbers from both ends; where a page cannot be read, the gap is
// searched by halves, so that only what lies on damaged pages is missing. A file whose first page is gone,
// and with it every name, gets the first page of an empty database: the tables of one schema always begin at
// the same pages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/store/schema.h"
#include "app/store/store_files.h"
#include "engine/base/result.h"

namespace octavo::app {

struct RescueReport {
  std::filesystem::path kept_as;                 // the damaged file
  std::int64_t num_chats = 0, num_messages = 0;  // in the new file
  bool complete = false;                         // no row was missing
  std::optional<std::int64_t> backup_ms;         // the time of the backup that filled gaps

  // One sentence for the window.
  std::string sentence() const;
};

// REQUIRES: nobody has the database open, and the caller holds the lock.
Result<RescueReport> rescue(const StorePaths& paths, const Schema& schema);

// Whether a rescue was begun and not ended.
bool rescue_is_pending(const StorePaths& paths);

}  // namespace octavo::app
