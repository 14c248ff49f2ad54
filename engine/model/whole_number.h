// A hyperparameter that is a whole number, with the range that is plausible for it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "engine/model/metadata.h"

namespace octavo::model {

struct WholeRange {
  std::int64_t least = 0, most = 0;
};

// A missing key counts as 0, as in the programs that the files are for. kDamagedFile: out of range, or no
// whole number. REQUIRES: 0 <= least, most fits 32 bits.
Result<std::int32_t> read_whole(const Metadata& header, const std::string& key, const WholeRange& range);

}  // namespace octavo::model
