// What the files with experiments have in common; for engine/experiments only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiments/experiment.h"
#include "engine/experiments/saturated_queue.h"
#include "engine/experiments/serving.h"

namespace octavo::paper {

// An experiment under way.
class ExperimentRun {
 public:
  virtual ~ExperimentRun() = default;
  virtual std::size_t num_parts() const = 0;
  // Other parts may run beside it; writes what it found to a place of its own.
  virtual void run_part(std::size_t part, const KeepGoing& keep_going) = 0;
  // Of the parts that `is_done` names.
  virtual ExperimentReport report(const std::vector<bool>& is_done) const = 0;
};

// Parts as functions, for experiments that are a few runs.
class RunOfFunctions final : public ExperimentRun {
 public:
  using Part = std::function<void(const KeepGoing&)>;
  using Report = std::function<ExperimentReport(const std::vector<bool>&)>;
  RunOfFunctions(std::vector<Part> parts, Report report)
      : parts_(std::move(parts)), report_(std::move(report)) {}
  std::size_t num_parts() const override { return parts_.size(); }
  void run_part(std::size_t part, const KeepGoing& keep_going) override { parts_[part](keep_going); }
  ExperimentReport report(const std::vector<bool>& is_done) const override { return report_(is_done); }

 private:
  std::vector<Part> parts_;
  Report report_;
};

struct KnownExperiment {
  ExperimentInfo info;
  std::unique_ptr<ExperimentRun> (*start)(const ExperimentOptions& options);
};
// memory_experiments.cc, rate_experiments.cc, ablation_experiments.cc.
std::vector<KnownExperiment> memory_experiments();
std::vector<KnownExperiment> rate_experiments();
std::vector<KnownExperiment> ablation_experiments();

// ---- systems

// Table 1 of the paper: tokens that fit beside the weights.
inline constexpr std::int32_t kSlots13B = kPaperSlots, kSlots66B = 9'696, kSlots175B = 60'096;

// The scheduler as the paper's authors ran theirs: prompts whole and beside outputs, at most 2,560 rows a
// step and 1 % of the pool left by a start; one of the memory managers of section 6.1.
scheduler::SchedulerOptions papers_policy(MemoryManager manager, std::int32_t num_slots,
                                          std::int32_t block_size = 16);
// As ours is by default: prompts in chunks of what is left of 512 rows, and of 100 ms beside outputs.
scheduler::SchedulerOptions our_policy(std::int32_t num_slots, std::int32_t block_size = 16);

ServingSetup serving_setup(const Machine& machine, const ModelShape& model,
                           const scheduler::SchedulerOptions& policy, const RequestSource& requests,
                           const ExperimentOptions& options);
// Static batches of up to so many requests, padded, on costs of their own.
ServingSetup static_setup(const Machine& machine, const ModelShape& model, std::int32_t num_slots,
                          std::int32_t num_in_batch, const EngineCosts& costs, const RequestSource& requests,
                          const ExperimentOptions& options);

const RequestSource& sharegpt_requests();
const RequestSource& alpaca_requests();
const LengthSource& alpaca_lengths();

// Where our own value stands beside a range; `most` missing: one value.
ComparedFigure compared(std::string name, std::string unit, double ours, std::optional<double> least,
                        std::optional<double> most, std::string source);

}  // namespace octavo::paper
