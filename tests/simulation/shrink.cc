#include "tests/simulation/shrink.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace octavo::simulation {
namespace {

// A problem without its numbers, so that another one is not taken for it.
std::string kind_of(const Report& report) {
  std::string kind = report.problem.value_or("");
  std::erase_if(kind, [](char letter) { return letter >= '0' && letter <= '9'; });
  return kind;
}

class Shrinker {
 public:
  Shrinker(const Script& script, const TryScript& attempt, std::int32_t most_tries)
      : attempt_(attempt), most_tries_(most_tries) {
    best_.script = script;
    best_.report = attempt(script);
    kind_ = kind_of(best_.report);
  }

  Shrunk run() {
    for (bool better = true; better && tries_left();) better = leave_out() | make_plainer();
    return std::move(best_);
  }

 private:
  bool tries_left() const { return best_.num_tries < most_tries_; }

  bool keep_if_it_fails(Script&& script) {
    ++best_.num_tries;
    Report report = attempt_(script);
    if (!report.problem || kind_of(report) != kind_) return false;
    best_.script = std::move(script);
    best_.report = std::move(report);
    return true;
  }

  // Runs of operations, long ones first.
  bool leave_out() {
    bool better = false;
    for (std::size_t length = best_.script.operations.size(); length > 0; length /= 2) {
      for (std::size_t first = 0; first < best_.script.operations.size() && tries_left();) {
        const bool kept = keep_if_it_fails(without(first, length));
        better |= kept;
        if (!kept) first += length;
      }
    }
    return better;
  }

  Script without(std::size_t first, std::size_t length) const {
    Script script = best_.script;
    const auto begin = script.operations.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = script.operations.begin() +
                     static_cast<std::ptrdiff_t>(std::min(first + length, script.operations.size()));
    script.operations.erase(begin, end);
    return script;
  }

  // The same way again as long as it helps: half of a half.
  bool make_plainer() {
    bool better = false;
    for (std::size_t way = 0; way < num_simplifications(best_.script) && tries_left();) {
      auto plainer = simplified(best_.script, way);
      const bool kept = plainer && keep_if_it_fails(*std::move(plainer));
      better |= kept;
      if (!kept) ++way;
    }
    return better;
  }

  const TryScript& attempt_;
  const std::int32_t most_tries_;
  Shrunk best_;
  std::string kind_;
};

}  // namespace

Shrunk shrink(const Script& script, const TryScript& attempt, std::int32_t most_tries) {
  return Shrinker(script, attempt, most_tries).run();
}

}  // namespace octavo::simulation
