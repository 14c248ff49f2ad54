// Comma-separated values (RFC 4180), as the window exports them. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace octavo::app {

// One field, quoted where it has to be.
std::string csv_field(std::string_view text);

}  // namespace octavo::app
