#include "engine/experiments/experiment.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <thread>

#include "engine/base/text.h"
#include "engine/experiments/experiment_parts.h"

namespace octavo::paper {
namespace {

constexpr double kNear = 0.15;
constexpr std::int32_t kNoLimit = 1 << 20;

// Figures by their numbers, what is none behind them.
int place_of(const std::string& name) {
  const std::size_t digits = name.find_first_of("0123456789");
  return digits == std::string::npos ? std::numeric_limits<int>::max() : std::atoi(name.c_str() + digits);
}

const std::vector<KnownExperiment>& known_experiments() {
  static const std::vector<KnownExperiment> known = [] {
    std::vector<KnownExperiment> all;
    for (auto* const list : {memory_experiments, rate_experiments, ablation_experiments}) {
      for (KnownExperiment& one : list()) all.push_back(std::move(one));
    }
    std::ranges::stable_sort(all, {}, [](const KnownExperiment& one) { return place_of(one.info.name); });
    return all;
  }();
  return known;
}

// Takes parts until none is left or somebody says stop.
class PartRunner {
 public:
  PartRunner(ExperimentRun& run, const WatchExperiment& watch)
      : run_(run), watch_(watch), is_done_(run.num_parts(), false) {}

  bool run(std::int32_t num_threads) {
    std::vector<std::thread> threads;
    const auto most = static_cast<std::int32_t>(run_.num_parts());
    for (std::int32_t i = 1; i < std::min(num_threads, most); ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    return !is_stopped_;
  }

 private:
  void work() {
    for (std::size_t part = next_++; part < is_done_.size() && keeps_going(); part = next_++) {
      run_.run_part(part, [this] { return keeps_going(); });
      const std::lock_guard lock(mutex_);
      if (is_stopped_) return;
      is_done_[part] = true;
      ++num_done_;
      so_far_ = run_.report(is_done_);
    }
    keeps_going();
  }

  bool keeps_going() {
    if (is_stopped_ || !watch_) return !is_stopped_;
    const std::lock_guard lock(mutex_);
    const double done = static_cast<double>(num_done_) / static_cast<double>(is_done_.size());
    if (!is_stopped_ && !watch_(done, so_far_)) is_stopped_ = true;
    return !is_stopped_;
  }

  ExperimentRun& run_;
  const WatchExperiment& watch_;
  std::mutex mutex_;
  std::vector<bool> is_done_;  // guarded by mutex_, as all below but the atomic ones
  std::size_t num_done_ = 0;
  ExperimentReport so_far_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace

std::span<const ExperimentInfo> experiments() {
  static const std::vector<ExperimentInfo> infos = [] {
    std::vector<ExperimentInfo> all;
    for (const KnownExperiment& one : known_experiments()) all.push_back(one.info);
    return all;
  }();
  return infos;
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInRange: return "in range";
    case Verdict::kNear: return "within 15 %";
    case Verdict::kOutside: return "outside";
    case Verdict::kUncompared: break;
  }
  return "not in the paper";
}

Verdict ComparedFigure::verdict() const {
  if (!paper_least) return Verdict::kUncompared;
  const double least = *paper_least, most = paper_most.value_or(least);
  if (ours >= least && ours <= most) return Verdict::kInRange;
  return ours >= least * (1.0 - kNear) && ours <= most * (1.0 + kNear) ? Verdict::kNear : Verdict::kOutside;
}

Result<ExperimentReport> run_experiment(const std::string& name, const ExperimentOptions& options,
                                        const WatchExperiment& watch) {
  const auto& known = known_experiments();
  const auto found = std::ranges::find(known, name, [](const KnownExperiment& one) { return one.info.name; });
  if (found == known.end()) {
    std::string names;
    for (const KnownExperiment& one : known) names += (names.empty() ? "" : ", ") + one.info.name;
    return Error{
        .code = ErrorCode::kNotFound,
        .message = "there is no experiment '" + escape_for_message(name) + "'; choose one of " + names};
  }
  const std::unique_ptr<ExperimentRun> run = found->start(options);
  if (!PartRunner(*run, watch).run(options.num_threads))
    return Error{.code = ErrorCode::kCancelled, .message = "the experiment was cancelled"};
  ExperimentReport report = run->report(std::vector<bool>(run->num_parts(), true));
  report.name = name;
  return report;
}

// ---- systems

scheduler::SchedulerOptions papers_policy(MemoryManager manager, std::int32_t num_slots,
                                          std::int32_t block_size) {
  scheduler::SchedulerOptions options{.block_size = block_size,
                                      .num_blocks = num_slots / block_size,
                                      .max_num_seqs = kNoLimit,
                                      .max_num_batched_tokens = 2'560,
                                      .max_model_len = kMaxModelLen,
                                      .enable_prefix_caching = false,
                                      .memory_manager = manager,
                                      .admission_reserve = AdmissionReserve::kOnePercent};
  if (manager == MemoryManager::kPaged) options.num_host_blocks = options.num_blocks;
  return options;
}

scheduler::SchedulerOptions our_policy(std::int32_t num_slots, std::int32_t block_size) {
  return {.block_size = block_size,
          .num_blocks = num_slots / block_size,
          .max_num_seqs = kNoLimit,
          .max_num_batched_tokens = 512,
          .target_step_us = 100'000,
          .max_model_len = kMaxModelLen,
          .enable_prefix_caching = false,
          .num_host_blocks = num_slots / block_size};
}

ServingSetup serving_setup(const Machine& machine, const ModelShape& model,
                           const scheduler::SchedulerOptions& policy, const RequestSource& requests,
                           const ExperimentOptions& options) {
  ServingSetup setup{.engine = {.options = policy},
                     .platform = {machine, model, kPaperCosts, policy.block_size},
                     .requests = &requests,
                     .seed = options.seed};
  setup.seconds *= options.time_share;
  return setup;
}

ServingSetup static_setup(const Machine& machine, const ModelShape& model, std::int32_t num_slots,
                          std::int32_t num_in_batch, const EngineCosts& costs, const RequestSource& requests,
                          const ExperimentOptions& options) {
  scheduler::SchedulerOptions policy = papers_policy(MemoryManager::kOrcaOracle, num_slots);
  policy.batching_policy = num_in_batch > 1 ? BatchingPolicy::kStatic : BatchingPolicy::kOneAtATime;
  policy.max_num_seqs = num_in_batch;
  policy.max_num_batched_tokens = kNoLimit;
  ServingSetup setup = serving_setup(machine, model, policy, requests, options);
  setup.platform.costs = costs;
  setup.pads_batches = true;
  return setup;
}

const LengthSource& alpaca_lengths() {
  static const AlpacaLengths lengths;
  return lengths;
}

const RequestSource& sharegpt_requests() {
  static const SingleRequests requests(sharegpt_lengths());
  return requests;
}

const RequestSource& alpaca_requests() {
  static const SingleRequests requests(alpaca_lengths());
  return requests;
}

ComparedFigure compared(std::string name, std::string unit, double ours, std::optional<double> least,
                        std::optional<double> most, std::string source) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .ours = ours,
          .paper_least = least,
          .paper_most = most,
          .paper_source = std::move(source)};
}

}  // namespace octavo::paper
