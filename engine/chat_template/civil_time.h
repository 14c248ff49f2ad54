// Dates for templates: strftime in UTC with English names, whatever the locale of the process is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::tokenizer {

// %a %A %b %B %d %-d %e %H %-H %I %-I %j %m %-m %M %p %S %y %Y %F %T %%; anything else is an error that names
// it.
//   seconds  since 1970, UTC
Result<std::string> format_time(std::string_view format, std::int64_t seconds);

}  // namespace octavo::tokenizer
