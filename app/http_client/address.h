// Addresses of the web as far as redirects and requests need them: where one leads, whom a key is for, text
// inside one.
//
// Pure; any thread. What a server wrote is never trusted: only http and https are addresses.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::http {

// Where `location` leads that a server at `url` has sent: absolute, without a part behind '#'. From https
// never to http.
Result<std::string> resolve_location(const std::string& url, std::string_view location);

// "https://host:443": scheme, host and port, in lower case. A key goes nowhere else. Empty: no address.
std::string origin_of(const std::string& url);

// The host alone, as a person reads it: without the port that its scheme has anyway.
std::string host_of(const std::string& url);

// Everything but letters, digits and "-._~" as %XX; `kept` stays as it is, such as the slashes of a path.
std::string percent_encoded(std::string_view text, std::string_view kept = {});

}  // namespace octavo::http
