// Letters of ASCII, whatever the locale; all other bytes stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

inline std::string ascii_lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace octavo
