// The bytes that each token stands for, one after another in one piece of memory. Immutable once it is
// filled.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"

namespace octavo::tokenizer {

class TokenTexts {
 public:
  // The text of the next id.
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }

  // REQUIRES: 0 <= id < number of texts
  std::string_view at(TokenId id) const {
    const auto index = static_cast<std::size_t>(id);
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;  // of each text in bytes_
};

}  // namespace octavo::tokenizer
