// What is wrong with a vocabulary, as one sentence that names the key and says what to do.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo::tokenizer {

// `what` follows the key: "has 3 entries for 5 tokens".
inline Error damaged_vocabulary(std::string_view key, const std::string& what) {
  return {ErrorCode::kDamagedFile, std::string(key) + " " + what + ": the file is damaged, download it again",
          std::string(key)};
}
inline Error unsupported_vocabulary(std::string_view key, const std::string& what) {
  return {ErrorCode::kUnsupported, std::string(key) + " " + what + ": choose another model",
          std::string(key)};
}

}  // namespace octavo::tokenizer
