#include "ui/views/compare/beam_tree_layout.h"

#include <algorithm>
#include <cmath>

#include "ui/compare_state.h"

namespace octavo::ui {
namespace {

std::size_t index(std::int32_t node) { return static_cast<std::size_t>(node); }

// Nodes from which one of `leaves` descends, themselves included.
std::vector<bool> ancestors(const BeamTree& tree, const std::vector<std::int32_t>& leaves) {
  std::vector<bool> marked(tree.nodes.size(), false);
  for (std::int32_t node : leaves) {
    for (; node >= 0 && !marked[index(node)]; node = tree.nodes[index(node)].parent)
      marked[index(node)] = true;
  }
  return marked;
}

std::vector<std::int32_t> count_children(const BeamTree& tree) {
  std::vector<std::int32_t> counts(tree.nodes.size(), 0);
  for (const BeamTreeNode& node : tree.nodes) {
    if (node.parent >= 0) ++counts[index(node.parent)];
  }
  return counts;
}

std::vector<BeamRun> make_runs(const BeamTree& tree) {
  const auto num_children = count_children(tree);
  std::vector<BeamRun> runs;
  std::vector<std::int32_t> run_of(tree.nodes.size(), -1);
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const BeamTreeNode& node = tree.nodes[i];
    const std::int32_t parent_run = node.parent >= 0 ? run_of[index(node.parent)] : -1;
    const bool continues = node.parent >= 0 && num_children[index(node.parent)] == 1;
    if (!continues) {
      run_of[i] = static_cast<std::int32_t>(runs.size());
      runs.push_back(
          {.first_node = static_cast<std::int32_t>(i), .parent = parent_run, .first_step = node.step});
    } else {
      run_of[i] = parent_run;
    }
    BeamRun& run = runs[index(run_of[i])];
    run.last_node = static_cast<std::int32_t>(i);
    run.last_step = node.step;
    run.text += node.text;
  }
  return runs;
}

void choose_states(const BeamTree& tree, std::vector<BeamRun>& runs) {
  const auto live = ancestors(tree, tree.live), answers = ancestors(tree, tree.final);
  for (BeamRun& run : runs) {
    const std::size_t last = index(run.last_node);
    if (answers[last]) {
      run.state = BeamRunState::kAnswer;
    } else if (live[last]) {
      run.state = BeamRunState::kLive;
    } else if (tree.nodes[last].rank < 0) {
      run.state = BeamRunState::kEnded;
    }
  }
}

// The free row nearest to `wanted`, the upper of two; a new one below when none is free.
std::int32_t take_row(std::vector<std::int32_t>& taken_until, const BeamRun& run, std::int32_t wanted) {
  const auto count = static_cast<std::int32_t>(taken_until.size());
  std::int32_t best = count;
  for (std::int32_t row = 0; row < count; ++row) {
    const bool is_free = taken_until[index(row)] < run.first_step;
    if (is_free && (best == count || std::abs(row - wanted) < std::abs(best - wanted))) best = row;
  }
  if (best == count) taken_until.push_back(-1);
  taken_until[index(best)] = run.last_step;
  return best;
}

// Hypotheses that ended beside beams that went on stand below all beams.
void choose_rows(const BeamTree& tree, BeamTreeLayout& layout) {
  std::vector<std::int32_t> beams(index(std::max(1, tree.width)), -1), ends;
  const auto is_end = [&](const BeamRun& run) { return tree.nodes[index(run.first_node)].rank < 0; };
  for (BeamRun& run : layout.runs) {
    run.row =
        is_end(run) ? take_row(ends, run, 0) : take_row(beams, run, tree.nodes[index(run.first_node)].rank);
  }
  for (BeamRun& run : layout.runs) {
    if (is_end(run)) run.row += static_cast<std::int32_t>(beams.size());
  }
  layout.num_rows = static_cast<std::int32_t>(beams.size() + ends.size());
}

// Each step is as wide as the widest of its tokens, so that the text of a run fits between its ends.
void place_steps(const BeamTree& tree, const BeamTreeSpacing& spacing, BeamTreeLayout& layout) {
  std::vector<float> widths(index(tree.num_steps), spacing.least_step);
  for (const BeamTreeNode& node : tree.nodes) {
    float& width = widths[index(node.step)];
    width = std::max(width, spacing.measure(node.text));
  }
  std::vector<float> padding(widths.size(), 0.0f);
  for (const BeamRun& run : layout.runs) {
    const float wanted = run.state == BeamRunState::kDead ? spacing.dead_padding : spacing.run_padding;
    padding[index(run.last_step)] = std::max(padding[index(run.last_step)], wanted);
  }
  layout.step_left.assign(1, 0.0f);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    layout.step_left.push_back(layout.step_left.back() + widths[i] + padding[i]);
  }
}

}  // namespace

BeamTreeLayout lay_out_beam_tree(const BeamTree& tree, const BeamTreeSpacing& spacing) {
  BeamTreeLayout layout;
  layout.runs = make_runs(tree);
  choose_states(tree, layout.runs);
  choose_rows(tree, layout);
  place_steps(tree, spacing, layout);
  return layout;
}

std::vector<std::int32_t> beam_path(const BeamTree& tree, std::int32_t node) {
  std::vector<std::int32_t> path;
  for (; node >= 0; node = tree.nodes[index(node)].parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

double length_penalised(const BeamTree& tree, std::int32_t node) {
  const BeamTreeNode& shown = tree.nodes[index(node)];
  return shown.cumulative_logprob / std::pow(static_cast<double>(shown.step + 1), tree.length_penalty);
}

}  // namespace octavo::ui
