#include "tests/simulation/problem.h"

#include <utility>

namespace octavo::simulation {

void Problem::note(std::string sentence) {
  if (!first_) first_ = std::move(sentence);
}

void Problem::note(RequestId request_id, const std::string& sentence) {
  note("request " + std::to_string(request_id.value) + ": " + sentence);
}

}  // namespace octavo::simulation
