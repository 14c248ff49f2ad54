#include "app/window/paper_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "app/window/sharegpt_lengths.h"
#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "engine/block/reservation.h"
#include "engine/scheduler/scheduler.h"

namespace octavo::app {
namespace {

// OPT-13B on one A100 of 40 GB has room for 15.7 K tokens (the paper's table 1), of up to 2,048 each.
constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kNumBlocks = 983;
constexpr std::int32_t kMaxModelLen = 2'048;
constexpr std::int32_t kUnlimited = 1 << 20;
constexpr std::int32_t kMostWaiting = 2;  // the head, and one behind it: nobody overtakes
constexpr std::int32_t kMeasuredSteps = 60'000;
constexpr std::int32_t kStepsBetweenReports = 500;
constexpr TokenId kPromptToken = 0, kDrawnToken = 1;

struct Contender {
  MemoryManager manager;
  const char* name;
  double paper_tokens_held, paper_batched_requests;  // as the paper states them
};
constexpr std::array<Contender, 4> kContenders = {{
    {MemoryManager::kPaged, "Paged", 96.3, 30.42},
    {MemoryManager::kOrcaOracle, "Orca (Oracle)", 38.2, 13.62},
    {MemoryManager::kOrcaPow2, "Orca (Pow2)", 26.8, 9.81},
    {MemoryManager::kOrcaMax, "Orca (Max)", 20.4, 7.00},
}};

template <std::size_t N>
double interpolate(const std::array<double, N>& quantiles, double probability) {
  const double place = probability * static_cast<double>(N - 1);
  const auto below = static_cast<std::size_t>(place);
  return quantiles[below] + (place - static_cast<double>(below)) * (quantiles[below + 1] - quantiles[below]);
}

struct Lengths {
  std::int32_t num_prompt_tokens = 1, num_output_tokens = 1;
};

// Uniform numbers in [0, 1) from one seed, and lengths from them.
class LengthStream {
 public:
  explicit LengthStream(std::uint64_t seed) : seed_(seed) {}

  Lengths draw() {
    while (true) {
      const auto bin = static_cast<std::size_t>(next() * static_cast<double>(kNumLengthBins));
      Lengths lengths;
      lengths.num_prompt_tokens = whole(interpolate(kShareGptLengths[bin].input_quantiles, next()));
      lengths.num_output_tokens = whole(interpolate(kShareGptLengths[bin].output_quantiles, next()));
      if (lengths.num_prompt_tokens + lengths.num_output_tokens < kMaxModelLen) return lengths;
    }
  }

 private:
  static std::int32_t whole(double length) {
    return std::max(1, static_cast<std::int32_t>(std::round(length)));
  }
  double next() { return uniform_at(seed_, 0, num_drawn_++); }

  const std::uint64_t seed_;
  std::uint64_t num_drawn_ = 0;
};

scheduler::SchedulerOptions options_of(MemoryManager manager) {
  scheduler::SchedulerOptions options{.block_size = kBlockSize,
                                      .num_blocks = kNumBlocks,
                                      .max_num_seqs = kUnlimited,
                                      .max_num_batched_tokens = kUnlimited,
                                      .max_model_len = kMaxModelLen,
                                      .enable_prefix_caching = false,
                                      .memory_manager = manager};
  options.reserve_block_per_sequence = false;  // the paper's rule of admission
  return options;
}

// Keeps the queue full and looks at the pool after each step's rows were computed.
class SaturatedPool {
 public:
  SaturatedPool(MemoryManager manager, std::uint64_t seed)
      : options_(options_of(manager)), scheduler_(options_), lengths_(seed) {}

  void step(bool is_measured) {
    fill_queue();
    const scheduler::SchedulerOutput plan = scheduler_.schedule();
    const ManagerMeans slots = slots_of(plan);
    const std::int32_t num_running = scheduler_.num_running();
    commit(plan);
    if (is_measured) observe(slots, num_running);
    for (const SequenceId sequence : ended_) scheduler_.finish(sequence);
    ended_.clear();
    scheduler_.take_events();
  }

  ManagerMeans means() const {
    const double each = num_observed_ == 0 ? 0.0 : 1.0 / static_cast<double>(num_observed_);
    return {sums_.input * each,    sums_.output * each,     sums_.reserved * each,
            sums_.internal * each, sums_.unreserved * each, sums_.batched_requests * each};
  }

 private:
  void fill_queue() {
    while (scheduler_.num_waiting() < kMostWaiting) {
      const Lengths lengths = lengths_.draw();
      const RequestId request_id{++last_request_};
      scheduler::NewRequest request{
          .request_id = request_id,
          .prompt_token_ids =
              std::vector<TokenId>(static_cast<std::size_t>(lengths.num_prompt_tokens), kPromptToken),
          .sampling = {.max_tokens = lengths.num_output_tokens, .ignore_eos = true}};
      const Result<void> added = scheduler_.add(std::move(request));
      OCTAVO_CHECK(added.has_value(), "%s", added.error().message.c_str());
      requests_[request_id] = lengths;
    }
  }

  // Slots that the rows of a step will have used. Rows are all that runs, since nothing limits a step.
  ManagerMeans slots_of(const scheduler::SchedulerOutput& plan) const {
    ManagerMeans slots;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      const Lengths lengths = requests_.at(row.request_id);
      const std::int32_t num_used = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
      const std::int32_t num_at_end = lengths.num_prompt_tokens + lengths.num_output_tokens;
      slots.input += std::min(num_used, lengths.num_prompt_tokens);
      slots.output += std::max(0, num_used - lengths.num_prompt_tokens);
      if (options_.memory_manager == MemoryManager::kPaged) continue;
      slots.reserved += num_at_end - num_used;
      slots.internal += block::reservation_tokens(options_.memory_manager, lengths.num_prompt_tokens,
                                                  lengths.num_output_tokens, kMaxModelLen) -
                        num_at_end;
    }
    return slots;
  }

  void commit(const scheduler::SchedulerOutput& plan) {
    std::vector<scheduler::CommittedToken> tokens;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      for (const scheduler::SampleTarget& target : row.samples) {
        tokens.push_back({target.sequence_id, kDrawnToken});
        const auto num_generated = static_cast<std::int32_t>(target.output_token_ids.size()) + 1;
        if (num_generated < requests_.at(row.request_id).num_output_tokens) continue;
        ended_.push_back(target.sequence_id);
        ended_requests_.push_back(row.request_id);
      }
    }
    if (!plan.empty()) scheduler_.commit(plan, tokens);
    for (const RequestId request_id : ended_requests_) requests_.erase(request_id);
    ended_requests_.clear();
  }

  void observe(ManagerMeans slots, std::int32_t num_running) {
    constexpr double kPercent = 100.0 / (static_cast<double>(kNumBlocks) * kBlockSize);
    if (options_.memory_manager == MemoryManager::kPaged)
      slots.internal = scheduler_.figures().unfilled_slots;
    sums_.input += slots.input * kPercent;
    sums_.output += slots.output * kPercent;
    sums_.reserved += slots.reserved * kPercent;
    sums_.internal += slots.internal * kPercent;
    sums_.unreserved += 100.0 - (slots.input + slots.output + slots.reserved + slots.internal) * kPercent;
    sums_.batched_requests += num_running;
    ++num_observed_;
  }

  const scheduler::SchedulerOptions options_;
  scheduler::Scheduler scheduler_;
  LengthStream lengths_;
  std::map<RequestId, Lengths> requests_;  // waiting and running
  std::vector<SequenceId> ended_;          // in the step under way
  std::vector<RequestId> ended_requests_;
  std::uint64_t last_request_ = 0;
  ManagerMeans sums_;
  std::int64_t num_observed_ = 0;
};

}  // namespace

ManagerMeans measure_manager(MemoryManager manager, std::int32_t num_steps, std::uint64_t seed,
                             const std::function<bool(double done, const ManagerMeans& means)>& go_on) {
  SaturatedPool pool(manager, seed);
  const std::int32_t num_all = kPaperWarmUpSteps + num_steps;
  for (std::int32_t i = 0; i < num_all; ++i) {
    pool.step(i >= kPaperWarmUpSteps);
    if (i % kStepsBetweenReports != 0) continue;
    if (!go_on(static_cast<double>(i) / num_all, pool.means())) return pool.means();
  }
  go_on(1.0, pool.means());
  return pool.means();
}

PaperComparison::~PaperComparison() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void PaperComparison::start() {
  if (is_running_) return;
  if (thread_.joinable()) thread_.join();
  is_cancelled_ = false;
  is_running_ = true;
  {
    std::lock_guard lock(mutex_);
    progress_ = {};
  }
  thread_ = std::thread([this] { run(); });
}

void PaperComparison::cancel() { is_cancelled_ = true; }

void PaperComparison::run() {
  for (std::size_t i = 0; i < kContenders.size() && !is_cancelled_; ++i) {
    measure_manager(kContenders[i].manager, kMeasuredSteps, /*seed=*/1,
                    [&](double done, const ManagerMeans& means) {
                      std::lock_guard lock(mutex_);
                      progress_[i] = {done, means};
                      return !is_cancelled_.load();
                    });
  }
  is_running_ = false;
}

void PaperComparison::show(ui::PaperState& state) {
  std::lock_guard lock(mutex_);
  state.is_running = is_running_;
  state.rows.clear();
  state.is_done = true;
  for (std::size_t i = 0; i < kContenders.size(); ++i) {
    const auto& [done, means] = progress_[i];
    state.is_done &= done >= 1.0;
    state.rows.push_back({.name = kContenders[i].name,
                          .input = means.input,
                          .output = means.output,
                          .reserved = means.reserved,
                          .internal = means.internal,
                          .unreserved = means.unreserved,
                          .batched_requests = means.batched_requests,
                          .paper_tokens_held = kContenders[i].paper_tokens_held,
                          .paper_batched_requests = kContenders[i].paper_batched_requests,
                          .progress = done});
  }
}

}  // namespace octavo::app
