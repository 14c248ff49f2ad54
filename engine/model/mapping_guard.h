// The SIGBUS handler behind FileMapping (file_mapping.h) and its table of guarded ranges.
#pragma once

#include <cstddef>
#include <span>

namespace octavo::model {

// Guards a mapping from now on; installs the handler at the first call. -1: the table is full, the range is
// not guarded.
int guard_mapping(std::span<const std::byte> bytes);

// Call before unmapping. -1 is allowed.
void unguard_mapping(int guard);

// Whether a page of this range was missing and was replaced by zeros. -1: false.
bool guarded_mapping_is_damaged(int guard);

}  // namespace octavo::model
