// Memory managers at equal bytes: what their slots hold, what latency they give by the rate of arrivals; and
// a plain loop in their place.
#include <algorithm>
#include <array>

#include "engine/base/format.h"
#include "engine/experiments/experiment_parts.h"
#include "engine/experiments/real/real_parts.h"

namespace octavo::paper {
namespace {

constexpr const char* kThisMachine = "this machine, the whole engine";
constexpr double kSaturatedSeconds = 4.0;
// Some 40 requests fit into the pool. Its use is told of the steps in which others wait: there must be many.
constexpr double kRequestsForMemory = 120.0;

// All requests are there at once.
RealCase saturated_case(const Desk& desk, const char* name, std::int32_t num_requests, MemoryManager manager,
                        BatchingPolicy policy = BatchingPolicy::kIteration) {
  return {name, [desk, num_requests, manager, policy](std::int32_t round) {
            MeasuredRun run{.engine = desk.engine, .requests = saturating(desk, num_requests, round)};
            run.engine.memory_manager = manager;
            run.engine.batching_policy = policy;
            return run;
          }};
}

// ---- figures 2 and 13

RealStudy start_real_memory(const Desk& desk) {
  RealStudy study;
  const auto num_requests = std::max(2, static_cast<std::int32_t>(kRequestsForMemory * desk.time_share));
  for (const DeskManager& manager : kDeskManagers)
    study.cases.push_back(saturated_case(desk, manager.name, num_requests, manager.manager));
  // What the paged engine's slots hold where no block is partly filled and one kept free is a single slot.
  Desk fine = desk;
  fine.engine.block_size = 1;
  fine.engine.num_kv_blocks = kDeskSlots;
  study.cases.push_back(saturated_case(fine, "paged, blocks of 1", num_requests, MemoryManager::kPaged));
  study.report = [](const RealResults& results) {
    ExperimentReport report;
    ExperimentPlot held{"Slots that hold tokens", "memory manager", "% of all slots"};
    ExperimentPlot batched{"Requests that run together", "memory manager", "requests"};
    held.lines = {{"ours", {}}, {"paper, figure 2", {}, /*is_papers=*/true}};
    batched.lines = {{"ours", {}}, {"paper, figure 13a", {}, /*is_papers=*/true}};
    for (std::size_t i = 0; i < std::size(kDeskManagers); ++i) {
      const DeskManager& manager = kDeskManagers[i];
      const double x = static_cast<double>(i);
      held.x_names.push_back(manager.name);
      batched.x_names.push_back(manager.name);
      held.lines[1].points.push_back({x, manager.papers_tokens_held});
      batched.lines[1].points.push_back({x, manager.papers_batched});
      if (results[i].empty()) continue;
      const std::string name = manager.name;
      const double tokens_held = median_of(results[i], &RunFigures::tokens_held);
      const double requests = median_of(results[i], &RunFigures::batched_requests);
      held.lines[0].points.push_back({x, tokens_held});
      batched.lines[0].points.push_back({x, requests});
      report.figures.push_back(
          compared(name + ": tokens held", "%", tokens_held, manager.papers_tokens_held, {}, "figure 2"));
      report.figures.push_back(
          compared(name + ": batched", "requests", requests, manager.papers_batched, {}, "figure 13a"));
      report.figures.push_back(compared(name + ": ends", "requests/s",
                                        median_of(results[i], &RunFigures::requests_per_s), {}, {}, ""));
    }
    if (!results.back().empty())
      report.figures.push_back(compared("paged, blocks of 1: tokens held", "%",
                                        median_of(results.back(), &RunFigures::tokens_held), 96.3, {},
                                        "figure 2"));
    report.plots = {std::move(held), std::move(batched)};
    report.notes.push_back(
        "Requests are short here, so that parts of blocks weigh more than in the paper: what they cost is "
        "the difference to blocks of one token. Each run begins with an empty pool, and the steps that "
        "fill it count.");
    return report;
  };
  return study;
}

// ---- figure 12

constexpr std::array kRateShares = {0.5, 0.9, 1.3, 1.8};  // of what the paged engine ends when saturated
constexpr double kArrivalSeconds = 5.0;
constexpr double kKneeRatio = 4.0;  // of the paged engine's latency at the lowest rate

// Where the curve crosses `knee`, by straight lines between its points; its last rate where it never does.
double rate_at(const std::vector<PlotPoint>& curve, double knee) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].y < knee) continue;
    if (i == 0) return curve[0].x * knee / curve[0].y;
    const double share = (knee - curve[i - 1].y) / (curve[i].y - curve[i - 1].y);
    return curve[i - 1].x + share * (curve[i].x - curve[i - 1].x);
  }
  return curve.empty() ? 0.0 : curve.back().x;
}

RealStudy start_real_serving(const Desk& desk) {
  RealStudy study;
  std::vector<double> rates;
  for (const double share : kRateShares) {
    const double rate = share * desk.requests_per_s;
    rates.push_back(rate);
    for (const DeskManager& manager : kDeskManagers) {
      study.cases.push_back({manager.name, [desk, manager, rate](std::int32_t round) {
                               MeasuredRun run{
                                   .engine = desk.engine,
                                   .requests = arriving(desk, rate, kArrivalSeconds * desk.time_share, round),
                                   .rate = rate,
                                   .is_cut = true};
                               run.engine.memory_manager = manager.manager;
                               return run;
                             }});
    }
  }
  study.report = [rates](const RealResults& results) {
    constexpr std::size_t kNumManagers = std::size(kDeskManagers);
    ExperimentReport report;
    ExperimentPlot latency{"Normalised latency", "request rate (requests/s)", "normalised latency (s/token)"};
    ExperimentPlot batched{"Requests that run together", "request rate (requests/s)", "requests"};
    for (std::size_t m = 0; m < kNumManagers; ++m) {
      PlotLine slow{kDeskManagers[m].name, {}}, many{kDeskManagers[m].name, {}};
      for (std::size_t r = 0; r < rates.size(); ++r) {
        const auto& rounds = results[r * kNumManagers + m];
        if (rounds.empty()) continue;
        slow.points.push_back({rates[r], median_of(rounds, &RunFigures::normalised_latency)});
        many.points.push_back({rates[r], median_of(rounds, &RunFigures::batched_requests)});
      }
      latency.lines.push_back(std::move(slow));
      batched.lines.push_back(std::move(many));
    }
    if (all_done(results)) {
      const double knee = kKneeRatio * latency.lines[0].points.front().y;
      std::array<double, kNumManagers> sustained = {};
      for (std::size_t m = 0; m < kNumManagers; ++m) sustained[m] = rate_at(latency.lines[m].points, knee);
      using Range = std::pair<std::optional<double>, std::optional<double>>;
      const std::array<Range, kNumManagers> papers = {Range{}, Range{1.7, 2.7}, Range{}, Range{2.7, 8.0}};
      for (std::size_t m = 0; m < kNumManagers; ++m) {
        const std::string name = kDeskManagers[m].name;
        if (m > 0)
          report.figures.push_back(compared("paged over " + name, "x", ratio(sustained[0], sustained[m]),
                                            papers[m].first, papers[m].second,
                                            papers[m].first ? "section 6.2, on A100s" : ""));
        report.figures.push_back(compared(name + " sustains", "requests/s", sustained[m], {}, {}, ""));
        report.figures.push_back(compared(name + ": latency at the highest rate", "ms/token",
                                          1e3 * latency.lines[m].points.back().y, {}, {}, ""));
      }
      report.notes.push_back("Sustained: up to where latency is " + fixed_text(kKneeRatio, 0) +
                             " times that of the paged engine at the lowest rate (" +
                             fixed_text(1e3 * knee, 0) +
                             " ms/token), or the highest rate where it never is.");
    }
    report.plots = {std::move(latency), std::move(batched)};
    report.notes.push_back(
        "What a larger batch is worth differs: an A100 reads the weights once for 30 requests, while a "
        "processor soon computes as long as it reads (real-loop measures it). So the same room for more "
        "requests buys less here.");
    return report;
  };
  return study;
}

// ---- a plain loop

constexpr std::array kBatchSizes = {1, 2, 4, 8, 16, 32};

RealStudy start_real_loop(const Desk& desk) {
  RealStudy study;
  struct System {
    const char* name;
    MemoryManager manager;
    BatchingPolicy policy;
  };
  static constexpr std::array kSystems = {
      System{"paged", MemoryManager::kPaged, BatchingPolicy::kIteration},
      System{"static batches, longest length reserved", MemoryManager::kOrcaMax, BatchingPolicy::kStatic},
      System{"one request at a time", MemoryManager::kOrcaMax, BatchingPolicy::kOneAtATime}};
  const std::int32_t num_requests = desk.num_requests(kSaturatedSeconds);
  for (const System& system : kSystems)
    study.cases.push_back(saturated_case(desk, system.name, num_requests, system.manager, system.policy));
  for (const std::int32_t size : kBatchSizes) {
    study.cases.push_back({"batch of " + std::to_string(size), [desk, size](std::int32_t round) {
                             MeasuredRun run{.engine = desk.engine};
                             run.engine.prefill_first = true;
                             RequestWriter writer(desk, round);
                             for (std::int32_t i = 0; i < size; ++i)
                               run.requests.push_back({writer.write({16, 24})});
                             return run;
                           }});
  }
  study.report = [](const RealResults& results) {
    ExperimentReport report;
    ExperimentPlot plot{"Throughput, all requests there at once", "system", "requests/s"};
    PlotLine line{"ours", {}};
    std::array<double, kSystems.size()> per_s = {};
    for (std::size_t i = 0; i < kSystems.size(); ++i) {
      plot.x_names.push_back(kSystems[i].name);
      if (results[i].empty()) continue;
      per_s[i] = median_of(results[i], &RunFigures::requests_per_s);
      line.points.push_back({static_cast<double>(i), per_s[i]});
      report.figures.push_back(compared(kSystems[i].name, "requests/s", per_s[i], {}, {}, ""));
    }
    plot.lines = {std::move(line)};
    ExperimentPlot batches{"What a batch gives", "sequences in a step", "tokens/s"};
    PlotLine speed{"steps that only extend outputs", {}};
    for (std::size_t i = 0; i < kBatchSizes.size(); ++i) {
      const auto& rounds = results[kSystems.size() + i];
      const double ms = median_of(rounds, &RunFigures::decode_step_ms);
      if (ms > 0.0) speed.points.push_back({static_cast<double>(kBatchSizes[i]), 1e3 * kBatchSizes[i] / ms});
    }
    if (all_done(results)) {
      report.figures.push_back(compared("paged over one request at a time", "x", ratio(per_s[0], per_s[2]),
                                        14.0, 24.0, "vLLM's announcement (2023), on an A10G and an A100"));
      report.figures.push_back(
          compared("paged over static batches", "x", ratio(per_s[0], per_s[1]), {}, {}, ""));
      if (!speed.points.empty())
        report.figures.push_back(compared("32 sequences a step over one: the most that batches can give", "x",
                                          ratio(speed.points.back().y, speed.points.front().y), {}, {}, ""));
    }
    batches.lines = {std::move(speed)};
    report.plots = {std::move(plot), std::move(batches)};
    report.notes.push_back(
        "All three are this engine with its own kernels, so that only the policy differs; Hugging Face's "
        "loop also pays for Python.");
    return report;
  };
  return study;
}

}  // namespace

std::vector<KnownRealExperiment> real_serving_experiments() {
  const std::string lengths = "ShareGPT's lengths / 8, ";
  const std::string managers = "paged; Orca (Oracle, Pow2, Max), at equal bytes of keys and values";
  std::vector<KnownRealExperiment> all;
  all.push_back(
      {{"real-memory", "Memory managers on the real engine", "Figures 2 and 13a", kThisMachine,
        lengths + "all requests there at once", managers, "tokens held, requests together, requests/s"},
       start_real_memory});
  all.push_back({{"real-serving", "Latency by the rate of requests, on the real engine",
                  "Figure 12 and section 6.2", kThisMachine, lengths + "Poisson arrivals in real time",
                  managers, "mean of (end - arrival) / output tokens by the rate of arrivals"},
                 start_real_serving});
  all.push_back(
      {{"real-loop", "A plain loop, on the real engine",
        "vLLM's announcement: up to 24 times Hugging Face Transformers", kThisMachine,
        lengths + "all requests there at once", "paged; static batches; one request at a time", "requests/s"},
       start_real_loop});
  return all;
}

}  // namespace octavo::paper
