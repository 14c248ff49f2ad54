#include "ui/views/compare/divergence_tree.h"

#include <algorithm>
#include <utility>

#include "ui/compare_state.h"

namespace octavo::ui {
namespace {

using Indexes = std::vector<std::size_t>;

class TreeMaker {
 public:
  TreeMaker(const std::vector<ComparedColumn>& columns, std::size_t most_untaken)
      : columns_(columns), most_untaken_(most_untaken) {}

  DivergenceTree make() {
    Indexes all(columns_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (!all.empty()) add_run(std::move(all), /*first=*/0, /*parent=*/-1);
    tree_.num_columns = columns_.size();
    return std::move(tree_);
  }

 private:
  bool has_token(std::size_t column, std::size_t at) const { return at < columns_[column].tokens.size(); }
  const ComparedToken& token(std::size_t column, std::size_t at) const { return columns_[column].tokens[at]; }

  // The run of these answers, and all behind it. No answer is longer than a few thousand tokens, and each
  // branch splits the answers: it is never deeper than there are answers.
  void add_run(Indexes members, std::size_t first, std::int32_t parent) {
    std::size_t end = first;
    while (all_alike(members, end)) ++end;
    DivergenceRun run{.parent = parent, .first = first, .end = end, .column = members.front()};
    const ComparedColumn& shown = columns_[members.front()];
    if (end > first) {
      run.token_id = shown.tokens[first].token_id;
      run.logprob = static_cast<double>(shown.tokens[first].logprob);
      run.text =
          shown.text.substr(shown.tokens[first].begin, shown.tokens[end - 1].end - shown.tokens[first].begin);
    }
    for (const std::size_t member : members) run.num_ended += has_token(member, end) ? 0 : 1;
    run.columns = members;
    const auto index = static_cast<std::int32_t>(tree_.runs.size());
    tree_.runs.push_back(std::move(run));
    for (Indexes& group : groups_at(members, end)) add_run(std::move(group), end, index);
    add_untaken(members, end, index);
  }

  bool all_alike(const Indexes& members, std::size_t at) const {
    return std::all_of(members.begin(), members.end(), [&](std::size_t member) {
      return has_token(member, at) && token(member, at).token_id == token(members.front(), at).token_id;
    });
  }

  // Those that go on, by the token with which they do; most answers first.
  std::vector<Indexes> groups_at(const Indexes& members, std::size_t at) const {
    std::vector<Indexes> groups;
    for (const std::size_t member : members) {
      if (!has_token(member, at)) continue;
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const Indexes& group) {
        return token(group.front(), at).token_id == token(member, at).token_id;
      });
      if (same == groups.end()) {
        groups.push_back({member});
      } else {
        same->push_back(member);
      }
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Indexes& a, const Indexes& b) { return a.size() > b.size(); });
    return groups;
  }

  void add_untaken(const Indexes& members, std::size_t at, std::int32_t parent) {
    const auto going_on = std::find_if(members.begin(), members.end(),
                                       [&](std::size_t member) { return has_token(member, at); });
    if (going_on == members.end()) return;
    std::size_t added = 0;
    for (const TokenAlternative& alternative : token(*going_on, at).alternatives) {
      const bool taken = std::any_of(members.begin(), members.end(), [&](std::size_t member) {
        return has_token(member, at) && token(member, at).token_id == alternative.token_id;
      });
      if (taken || alternative.ends_text) continue;
      if (added++ == most_untaken_) return;
      tree_.runs.push_back({.parent = parent,
                            .first = at,
                            .end = at + 1,
                            .column = *going_on,
                            .token_id = alternative.token_id,
                            .logprob = static_cast<double>(alternative.logprob),
                            .text = alternative.text});
    }
  }

  const std::vector<ComparedColumn>& columns_;
  const std::size_t most_untaken_;
  DivergenceTree tree_;
};

}  // namespace

DivergenceTree divergence_tree(const std::vector<ComparedColumn>& columns, std::size_t most_untaken) {
  return TreeMaker(columns, most_untaken).make();
}

DivergenceLayout lay_out_divergence(const DivergenceTree& tree) {
  DivergenceLayout layout;
  layout.places.resize(tree.runs.size());
  std::vector<std::vector<std::size_t>> children(tree.runs.size());
  for (std::size_t i = 0; i < tree.runs.size(); ++i) {
    if (tree.runs[i].parent < 0) continue;
    const auto parent = static_cast<std::size_t>(tree.runs[i].parent);
    children[parent].push_back(i);
    layout.places[i].depth = layout.places[parent].depth + 1;
  }
  // Parents stand before their children and a branch is written to its end before the next: leaves come in
  // the order of their rows.
  for (std::size_t i = 0; i < tree.runs.size(); ++i) {
    layout.num_depths = std::max(layout.num_depths, layout.places[i].depth + 1);
    if (children[i].empty()) layout.places[i].row = static_cast<float>(layout.num_rows++);
  }
  for (std::size_t i = tree.runs.size(); i-- > 0;) {
    if (children[i].empty()) continue;
    layout.places[i].row =
        (layout.places[children[i].front()].row + layout.places[children[i].back()].row) * 0.5f;
  }
  return layout;
}

}  // namespace octavo::ui
