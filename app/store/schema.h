// The tables of the store and how older ones become them. A version is a number in the file; step n of
// `Schema` makes version n of version n - 1, version 1 of nothing. All steps that are due run in one
// transaction: whatever interrupts them, the file is as it was or as it will be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/store/database.h"
#include "engine/base/result.h"

namespace octavo::app {

// Bytes 68 to 71 of the file (PRAGMA application_id).
inline constexpr std::string_view kApplicationMark = "OCTV";

struct Schema {
  std::vector<std::string> steps;  // SQL
  int version() const { return static_cast<int>(steps.size()); }
};

const Schema& store_schema();

enum class SchemaAge {
  kEmpty,    // a new file
  kCurrent,  // exactly our tables, and nothing beside them
  kOlder,
  kNewer,
  kForeign,  // somebody else's file, or one that was tampered with
};

Result<SchemaAge> schema_age(Database& database, const Schema& schema);

// Brings an empty or older file to the newest version, or leaves it untouched.
Result<void> migrate(Database& database, const Schema& schema);

}  // namespace octavo::app
