// The first thing that went wrong in a life. Sentences are built only where something did.
#pragma once

#include <optional>
#include <string>

#include "engine/base/ids.h"

namespace octavo::simulation {

class Problem {
 public:
  void note(std::string sentence);
  void note(RequestId request_id, const std::string& sentence);
  bool exists() const { return first_.has_value(); }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
};

}  // namespace octavo::simulation
