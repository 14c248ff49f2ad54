// Where answers to one question part: runs of tokens that some of them have in common, and at each place
// where they part what else could have stood there. Pure.
//
// A run ends where its answers part, or where one of them ends. What no answer took stands beside the runs as
// runs without answers: the likeliest alternatives that the engine returned at that place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ui/compare_state.h"

namespace octavo::ui {

struct DivergenceRun {
  std::int32_t parent = -1;        // index of a run; -1: this is the first one, which follows the prompt
  std::size_t first = 0, end = 0;  // tokens of its answers; alike where they begin apart
  std::vector<std::size_t> columns = {};  // indexes of the answers that have it, ascending; none: not taken
  std::size_t column = 0;                 // whose token at `first` is meant: what else stood there is known
  TokenId token_id = -1;                  // the first; -1: an empty run
  double logprob = 0;                     // of the first token
  std::string text = {};
  std::int32_t num_ended = 0;  // of its answers, those that have no token after it
};

struct DivergenceTree {
  std::vector<DivergenceRun> runs;  // a parent stands before its children, siblings most answers first
  std::size_t num_columns = 0;
};

// Of each place where answers part, at most `most_untaken` alternatives that nobody took.
DivergenceTree divergence_tree(const std::vector<ComparedColumn>& columns, std::size_t most_untaken);

struct DivergencePlace {
  std::int32_t depth = 0;  // runs before it
  float row = 0;           // a parent stands in the middle of its children
};

struct DivergenceLayout {
  std::vector<DivergencePlace> places;  // one for each run
  std::int32_t num_depths = 0;
  std::int32_t num_rows = 0;
};

DivergenceLayout lay_out_divergence(const DivergenceTree& tree);

}  // namespace octavo::ui
