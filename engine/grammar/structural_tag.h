// A structural tag as the compiler takes it: the schemas, grammars and patterns in it are checked and written
// out as they are when they stand alone. vLLM's older form (structures and triggers) is translated.
//
// Any thread.
#pragma once

#include <string>

#include "engine/api/structured_output.h"
#include "engine/base/result.h"

namespace octavo {

Result<std::string> read_structural_tag(const StructuralTag& tag);

}  // namespace octavo
