// The first thing that went wrong in a life. Sentences are built only where something did.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "engine/base/ids.h"

namespace octavo::simulation {

class Problem {
 public:
  void note(std::string sentence) {
    if (!first_) first_ = std::move(sentence);
  }
  void note(RequestId request_id, const std::string& sentence) {
    note("request " + std::to_string(request_id.value) + ": " + sentence);
  }
  bool exists() const { return first_.has_value(); }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
};

}  // namespace octavo::simulation
