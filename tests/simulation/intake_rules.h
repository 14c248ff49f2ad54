// What the intake makes of a request beside its prompt: how long its blocks are worth keeping, and which of
// them are a system message, which is encoded once for all chats that take turns with it. Tokens show nothing
// of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/command.h"
#include "tests/simulation/counts.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

class IntakeRules {
 public:
  // All three outlive this object.
  IntakeRules(const Script& script, Problem& problem, Counts& counts)
      : has_states_(script.options.num_states > 0), problem_(problem), counts_(counts) {}

  // Whether it is refused rightly is answers.h's question.
  void check(const ScriptedRequest& asked, const PreparedRequest& prepared,
             std::int64_t num_encoded_system_messages);

 private:
  void count(const ScriptedRequest& asked);
  void use_system_message(const std::string& content);

  const bool has_states_;
  Problem& problem_;
  Counts& counts_;
  std::vector<std::string> system_messages_;  // that are remembered; the last used comes last
  std::int64_t num_to_encode_ = 0;
};

}  // namespace octavo::simulation
