#include "engine/experiments/real/real_experiment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/median.h"
#include "engine/base/text.h"
#include "engine/experiments/real/real_parts.h"

namespace octavo::paper {
namespace {

const std::vector<KnownRealExperiment>& known_real_experiments() {
  static const std::vector<KnownRealExperiment> known = [] {
    std::vector<KnownRealExperiment> all;
    for (auto* const list : {real_serving_experiments, real_sharing_experiments, real_block_experiments}) {
      for (KnownRealExperiment& one : list()) all.push_back(std::move(one));
    }
    return all;
  }();
  return known;
}

const KnownRealExperiment* find_real(const std::string& name) {
  for (const KnownRealExperiment& one : known_real_experiments()) {
    if (one.info.name == name) return &one;
  }
  return nullptr;
}

// The engine's own policy, in a pool with the paper's ratio to the longest sequence.
EngineOptions desk_engine(EngineOptions options) {
  const EngineOptions defaults;
  options.block_size = kDeskBlockSize;
  options.num_kv_blocks = kDeskSlots / kDeskBlockSize;
  options.kv_cache_memory = {};
  options.gpu_memory_utilization = {};
  options.swap_space = {};
  options.num_states = {};
  options.num_window_blocks = {};
  options.max_model_len = kDeskModelLen;
  options.max_num_seqs = defaults.max_num_seqs;
  options.max_num_batched_tokens = {};
  options.target_step_ms = defaults.target_step_ms;
  options.enable_prefix_caching = false;
  options.preemption_mode = defaults.preemption_mode;
  options.admit_after_preemption = defaults.admit_after_preemption;
  options.admission_reserve = defaults.admission_reserve;
  options.memory_manager = MemoryManager::kPaged;
  options.batching_policy = BatchingPolicy::kIteration;
  options.speculative = Speculation::kOff;
  options.num_speculative_tokens = {};
  options.record.clear();
  options.prefill_first = false;
  return options;
}

// What the machine does, measured once before the systems take turns.
Result<Desk> set_up_desk(const RealExperimentOptions& options, const Clock& clock,
                         const StaysInterested& stays_interested) {
  constexpr std::int32_t kNumCalibrating = 32;
  Desk desk{.engine = desk_engine(options.engine), .seed = options.seed, .time_share = options.time_share};
  OCTAVO_TRY(desk.description, describe(desk.engine, stays_interested));
  const auto number =
      static_cast<std::int32_t>(std::ceil(kNumCalibrating * std::min(1.0, options.time_share)));
  OCTAVO_TRY(const RunFigures figures,
             measure({.engine = desk.engine, .requests = saturating(desk, number, /*round=*/-1)}, clock,
                     stays_interested));
  desk.requests_per_s = std::max(1e-3, figures.requests_per_s);
  return desk;
}

Error no_such_experiment(const std::string& name) {
  std::string names;
  for (const KnownRealExperiment& one : known_real_experiments())
    names += (names.empty() ? "" : ", ") + one.info.name;
  return {ErrorCode::kNotFound,
          "there is no experiment '" + escape_for_message(name) + "' on a real engine; there are " + names};
}

}  // namespace

std::span<const ExperimentInfo> real_experiments() {
  static const std::vector<ExperimentInfo> infos = [] {
    std::vector<ExperimentInfo> all;
    for (const KnownRealExperiment& one : known_real_experiments()) all.push_back(one.info);
    return all;
  }();
  return infos;
}

Result<ExperimentReport> run_real_experiment(const std::string& name, const RealExperimentOptions& options,
                                             const WatchExperiment& watch) {
  const KnownRealExperiment* const known = find_real(name);
  if (known == nullptr) return no_such_experiment(name);
  if (options.num_rounds < 1)
    return Error{ErrorCode::kInvalidArgument, "an experiment has at least one round", "--rounds"};
  const SteadyClock steady;
  const Clock& clock = options.clock != nullptr ? *options.clock : steady;
  ExperimentReport so_far{.name = name};
  double done = 0.0;
  const StaysInterested stays_interested = [&] { return !watch || watch(done, so_far); };
  OCTAVO_TRY(const Desk desk, set_up_desk(options, clock, stays_interested));
  const RealStudy study = known->start(desk);
  RealResults results(study.cases.size());
  const auto report = [&](std::int32_t num_rounds) {
    ExperimentReport told = study.report(results);
    told.name = name;
    told.machine = machine_text(desk.description);
    told.notes.push_back("Lengths are 1/" + std::to_string(kDeskScale) +
                         " of the paper's, and so is the pool: " + std::to_string(kDeskSlots) +
                         " slots where nothing else is said. The whole engine ran, "
                         "every system in turn; medians of " +
                         count_text(num_rounds, "round") + ".");
    return told;
  };
  const double num_runs = static_cast<double>(study.cases.size()) * options.num_rounds;
  for (std::int32_t round = 0; round < options.num_rounds; ++round) {
    for (std::size_t i = 0; i < study.cases.size(); ++i) {
      OCTAVO_TRY(const RunFigures figures, measure(study.cases[i].plan(round), clock, stays_interested));
      results[i].push_back(figures);
      done += 1.0 / num_runs;
      so_far = report(round + (i + 1 == study.cases.size() ? 1 : 0));
    }
  }
  done = 1.0;
  stays_interested();
  return so_far;
}

// ---- real_parts.h

std::int32_t Desk::num_requests(double seconds) const {
  constexpr double kFewest = 40.0, kMost = 96.0;  // fewer fill no pool, more only take longer
  const double wanted = std::clamp(requests_per_s * seconds, kFewest, kMost);
  return std::max(2, static_cast<std::int32_t>(wanted * time_share));
}

std::vector<RequestLengths> desk_lengths(const Desk& desk, std::int32_t num_requests, std::int32_t round) {
  UniformStream uniform(desk.seed * 1'000'003 + static_cast<std::uint64_t>(round + 1));
  std::vector<RequestLengths> lengths;
  for (std::int32_t i = 0; i < num_requests; ++i) {
    const RequestLengths whole = sharegpt_lengths().draw(uniform);
    lengths.push_back({std::max(1, whole.num_prompt_tokens / kDeskScale),
                       std::max(1, whole.num_output_tokens / kDeskScale)});
  }
  return lengths;
}

RequestWriter::RequestWriter(const Desk& desk, std::int32_t round)
    : vocabulary_size_(desk.description.model.vocabulary_size),
      seed_(desk.seed),
      own_(desk.seed * 7'368'787 + static_cast<std::uint64_t>(round + 1)) {}

// The first tokens of a vocabulary are bytes and signs that mean something to an engine.
TokenId RequestWriter::next_token(UniformStream& uniform) const {
  const double first = std::min(1'000.0, vocabulary_size_ / 2.0);
  return static_cast<TokenId>(first + uniform.next() * (vocabulary_size_ - first));
}

GenerationRequest RequestWriter::write(RequestLengths lengths, std::int32_t num_shared) {
  UniformStream common(seed_ + 77);
  std::vector<TokenId> prompt;
  for (std::int32_t i = 0; i < lengths.num_prompt_tokens; ++i)
    prompt.push_back(next_token(i < num_shared ? common : own_));
  return {.prompt = TokenPrompt{std::move(prompt)},
          .sampling = {.temperature = 0.0, .max_tokens = lengths.num_output_tokens, .ignore_eos = true}};
}

std::vector<TimedRequest> saturating(const Desk& desk, std::int32_t num_requests, std::int32_t round) {
  RequestWriter writer(desk, round);
  std::vector<TimedRequest> requests;
  for (const RequestLengths lengths : desk_lengths(desk, num_requests, round))
    requests.push_back({writer.write(lengths)});
  return requests;
}

std::vector<TimedRequest> arriving(const Desk& desk, double rate, double seconds, std::int32_t round) {
  UniformStream gaps(desk.seed * 15'485'863 + static_cast<std::uint64_t>(round + 1));
  std::vector<double> arrivals;  // the same moments at each rate, but for its measure
  for (double at = 0.0;;) {
    at -= std::log(1.0 - gaps.next()) / rate;
    if (at > seconds && !arrivals.empty()) break;
    arrivals.push_back(at);
  }
  std::vector<TimedRequest> requests = saturating(desk, static_cast<std::int32_t>(arrivals.size()), round);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].arrival_s = arrivals[i];
  return requests;
}

double median_of(const std::vector<RunFigures>& rounds, double RunFigures::*figure) {
  std::vector<double> values;
  for (const RunFigures& round : rounds) values.push_back(round.*figure);
  return median(std::move(values));
}

bool all_done(const RealResults& results) {
  return std::ranges::none_of(results, [](const auto& rounds) { return rounds.empty(); });
}

double ratio(double ours, double other) { return other > 0.0 ? ours / other : 0.0; }

}  // namespace octavo::paper
