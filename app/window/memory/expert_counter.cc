#include "app/window/memory/expert_counter.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

namespace octavo::app {

// ---- the book

void ExpertBook::add(const ExpertChoices& choices, const std::vector<ChatId>& chats) {
  const bool is_same =
      choices.layers == layers_ && choices.num_experts == num_experts_ && choices.num_used == num_used_;
  if (!is_same) clear();
  layers_ = choices.layers;
  num_experts_ = choices.num_experts;
  num_used_ = choices.num_used;
  std::size_t row = 0;
  for (std::size_t i = 0; i < choices.rows.size(); ++i) {
    const std::int32_t num_rows = choices.rows[i].num_rows;
    count(choices, row, num_rows, counts_[ChatId{}]);
    if (chats[i] != ChatId{}) count(choices, row, num_rows, counts_[chats[i]]);
    row += static_cast<std::size_t>(num_rows);
  }
}

void ExpertBook::clear() { counts_.clear(); }

void ExpertBook::count(const ExpertChoices& choices, std::size_t first_row, std::int32_t num_rows,
                       ExpertCounts& counts) {
  const auto num_experts = static_cast<std::size_t>(num_experts_);
  const auto num_used = static_cast<std::size_t>(num_used_);
  const std::size_t rows_of_step = choices.chosen.size() / (layers_.size() * num_used);
  counts.counts.resize(layers_.size() * num_experts);
  counts.num_tokens += num_rows;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::size_t begin = (layer * rows_of_step + first_row) * num_used;
    const std::size_t end = begin + static_cast<std::size_t>(num_rows) * num_used;
    for (std::size_t i = begin; i < end; ++i)
      ++counts.counts[layer * num_experts + static_cast<std::size_t>(choices.chosen[i])];
  }
}

std::int32_t num_experts_for_half(std::vector<std::uint32_t> counts) {
  std::ranges::sort(counts, std::greater<>());
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::uint64_t sum = 0;
  std::int32_t num_experts = 0;
  while (2 * sum < total) sum += counts[static_cast<std::size_t>(num_experts++)];
  return num_experts;
}

ui::ExpertHeat ExpertBook::heat_of(ChatId chat) const {
  ui::ExpertHeat heat{.chat = chat, .num_experts = num_experts_, .num_used = num_used_, .layers = layers_};
  for (const auto& [id, counts] : counts_) {
    if (id != ChatId{}) heat.chats.push_back(id);
  }
  const auto found = counts_.find(chat);
  if (found == counts_.end()) return heat;
  heat.num_tokens = found->second.num_tokens;
  heat.counts = found->second.counts;
  heat.most = *std::ranges::max_element(heat.counts);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const auto begin = heat.counts.begin() + static_cast<std::ptrdiff_t>(layer) * num_experts_;
    heat.num_for_half.push_back(num_experts_for_half({begin, begin + num_experts_}));
  }
  return heat;
}

// ---- the thread

void ExpertCounter::add(std::vector<ExpertChoices> steps, const ChatOf& chat_of) {
  if (steps.empty()) return;
  Job job{.steps = std::move(steps)};
  for (const ExpertChoices& step : job.steps) {
    std::vector<ChatId>& chats = job.chats.emplace_back();
    for (const ExpertChoices::Rows& rows : step.rows)
      chats.push_back(chat_of ? chat_of(rows.request_id).value_or(ChatId{}) : ChatId{});
  }
  give(std::move(job));
}

void ExpertCounter::choose(ChatId chat) {
  chosen_ = chat;
  if (thread_ != nullptr) give({});
}

void ExpertCounter::restart() {
  if (thread_ != nullptr) give({.restarts = true});
}

void ExpertCounter::give(Job job) {
  job.chosen = chosen_;
  if (thread_ == nullptr) {
    const auto perform = [book = ExpertBook()](Job work) mutable {
      if (work.restarts) book.clear();
      for (std::size_t i = 0; i < work.steps.size(); ++i) book.add(work.steps[i], work.chats[i]);
      return std::optional<Heat>(std::make_shared<const ui::ExpertHeat>(book.heat_of(work.chosen)));
    };
    // The window looks at each of its ticks while something is under way.
    thread_ = std::make_unique<JobThread<Job, Heat>>(
        perform, [] {}, JobsLeft::kDropped);
  }
  ++num_given_;
  thread_->give(std::move(job));
}

std::shared_ptr<const ui::ExpertHeat> ExpertCounter::take() {
  if (!is_busy()) return nullptr;
  std::vector<Heat> outcomes = thread_->take_outcomes();
  num_taken_ += outcomes.size();
  return outcomes.empty() ? nullptr : std::move(outcomes.back());
}

}  // namespace octavo::app
