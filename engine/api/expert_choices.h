// Which experts the tokens of one step chose, in a model with layers of experts. The engine gathers them only
// while somebody asks; who adds them up is the reader, on a thread of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace octavo {

struct ExpertChoices {
  // Tokens of one sequence, which stand together: those of a prompt, a generated one, and those of a draft.
  struct Rows {
    SequenceId sequence_id = {};
    RequestId request_id = {};
    std::int32_t num_rows = 0;
  };
  std::int64_t step = 0;
  std::int32_t num_experts = 0, num_used = 0;  // of a layer; that each of its tokens chooses
  std::vector<std::int32_t> layers = {};       // those that have experts, ascending
  std::vector<Rows> rows = {};
  std::vector<std::int32_t> chosen = {};  // [layers, rows, num_used], the best first
};

}  // namespace octavo
