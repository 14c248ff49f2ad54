// The two ways in which an option is refused, as one-sentence errors whose subject is the option's name.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo {

// "top_p must be above 0 and at most 1, but it is 3"
inline Error option_out_of_range(std::string_view option, std::string_view rule, std::string_view given) {
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .message = std::string(option) + " must be " + std::string(rule) + ", but it is " + std::string(given),
      .subject = std::string(option)};
}

// A value that is valid but that this version cannot honour. `sentence` says what is missing and what to use
// instead.
inline Error option_not_built(std::string_view option, std::string_view sentence) {
  return Error{.code = ErrorCode::kUnsupported,
               .message = std::string(option) + ": " + std::string(sentence),
               .subject = std::string(option)};
}

// Without trailing zeros: "0.5", "3", "nan".
inline std::string option_number_text(double value) {
  std::string text = std::to_string(value);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace octavo
