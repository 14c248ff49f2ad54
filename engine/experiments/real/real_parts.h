// What the real experiments have in common; for engine/experiments/real only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/model_description.h"
#include "engine/experiments/experiment.h"
#include "engine/experiments/real/measured_run.h"
#include "engine/experiments/workload.h"

namespace octavo::paper {

// Lengths are so many times shorter than the paper's, and so is the longest sequence and the pool beside it:
// what memory allows at a time stays as it was.
inline constexpr std::int32_t kDeskScale = 8;
inline constexpr std::int32_t kDeskModelLen = kMaxModelLen / kDeskScale;
inline constexpr std::int32_t kDeskSlots = 983 * 16 / kDeskScale;  // OPT-13B on an A100, table 1 of the paper
inline constexpr std::int32_t kDeskBlockSize = 8;                  // half of the product's: outputs are short

// What is measured on, and how much.
struct Desk {
  EngineOptions engine;  // without prefix cache, paged, kDeskSlots
  EngineDescription description = {};
  std::uint64_t seed = 1;
  double time_share = 1.0;
  double requests_per_s = 1.0;  // that the paged engine ends when all of ShareGPT's shape are there at once

  // Of such requests: as many as take the paged engine about so long.
  std::int32_t num_requests(double seconds) const;
};

// Several runs that take turns.
struct RealCase {
  std::string name;
  std::function<MeasuredRun(std::int32_t round)> plan;
};
using RealResults = std::vector<std::vector<RunFigures>>;  // of each case, each round that is done
struct RealStudy {
  std::vector<RealCase> cases;
  std::function<ExperimentReport(const RealResults& results)> report;
};

struct KnownRealExperiment {
  ExperimentInfo info;
  RealStudy (*start)(const Desk& desk);
};
// real_serving.cc, real_sharing.cc, real_blocks.cc.
std::vector<KnownRealExperiment> real_serving_experiments();
std::vector<KnownRealExperiment> real_sharing_experiments();
std::vector<KnownRealExperiment> real_block_experiments();

// ---- requests

// ShareGPT's, scaled; the same for the same seed and round.
std::vector<RequestLengths> desk_lengths(const Desk& desk, std::int32_t num_requests, std::int32_t round);
// Arbitrary tokens, other ones in each request, greedy, as long as is said. `num_shared` tokens at the start
// are those of all requests.
class RequestWriter {
 public:
  RequestWriter(const Desk& desk, std::int32_t round);
  GenerationRequest write(RequestLengths lengths, std::int32_t num_shared = 0);

 private:
  TokenId next_token(UniformStream& uniform) const;

  std::int32_t vocabulary_size_;
  std::uint64_t seed_;
  UniformStream own_;
};
// All at once.
std::vector<TimedRequest> saturating(const Desk& desk, std::int32_t num_requests, std::int32_t round);
// Poisson arrivals of so many seconds.
std::vector<TimedRequest> arriving(const Desk& desk, double rate, double seconds, std::int32_t round);

// ---- figures

// 0 where no round is done.
double median_of(const std::vector<RunFigures>& rounds, double RunFigures::*figure);
bool all_done(const RealResults& results);
// 0 where `other` is.
double ratio(double ours, double other);

struct DeskManager {
  MemoryManager manager;
  const char* name;
  double papers_tokens_held, papers_batched;  // percent of slots, figure 2; requests, figure 13a
};
inline constexpr DeskManager kDeskManagers[] = {{MemoryManager::kPaged, "paged", 96.3, 30.42},
                                                {MemoryManager::kOrcaOracle, "Orca (Oracle)", 38.2, 13.62},
                                                {MemoryManager::kOrcaPow2, "Orca (Pow2)", 26.8, 9.81},
                                                {MemoryManager::kOrcaMax, "Orca (Max)", 20.4, 7.00}};

}  // namespace octavo::paper
