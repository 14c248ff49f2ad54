// Where the runs of a beam tree stand: x is the step, y the rank. A run is a chain of tokens without a
// branch.
//
// A run keeps one row from its first token to its last: the free one nearest to the rank with which it was
// born. No two runs stand in one row at one step. Hypotheses that ended beside beams that went on stand in
// rows of their own below. What was placed does not change its row among its kind as the search continues.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/compare_state.h"

namespace octavo::ui {

enum class BeamRunState {
  kLive,    // a beam of the newest step descends from it
  kAnswer,  // an answer does; after the search
  kEnded,   // a hypothesis ended here and no answer comes of it, or not yet
  kDead,    // nothing came of it
};

struct BeamRun {
  std::int32_t first_node = 0, last_node = 0;
  std::int32_t parent = -1;  // index of a run; -1: the prompt
  std::int32_t first_step = 0, last_step = 0;
  std::int32_t row = 0;
  BeamRunState state = BeamRunState::kDead;
  std::string text = {};
};

struct BeamTreeLayout {
  std::vector<BeamRun> runs;     // a parent stands before its children
  std::vector<float> step_left;  // left edge of each step, and the right edge of the last
  std::int32_t num_rows = 0;
};

struct BeamTreeSpacing {
  float least_step = 0;    // no step is narrower
  float run_padding = 0;   // added to the last step of a run: its frame, its figure, and the gap to the next
  float dead_padding = 0;  // the same where only dead runs end
  std::function<float(std::string_view)> measure;
};

BeamTreeLayout lay_out_beam_tree(const BeamTree& tree, const BeamTreeSpacing& spacing);

// From the first token to this node.
std::vector<std::int32_t> beam_path(const BeamTree& tree, std::int32_t node);

// As the engine ranks: cumulative log-probability / tokens ^ length penalty.
double length_penalised(const BeamTree& tree, std::int32_t node);

}  // namespace octavo::ui
