#include "app/window/memory/paper_comparison.h"

#include <utility>

#include "engine/experiments/workload.h"

namespace octavo::app {
namespace {

constexpr std::int32_t kMeasuredSteps = 60'000;

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

}  // namespace

paper::SteadyState measure_manager(MemoryManager manager, std::int32_t num_steps, std::uint64_t seed,
                                   const paper::GoOn& go_on) {
  scheduler::SchedulerOptions options = paper::paper_pool(manager);
  options.admission_reserve = AdmissionReserve::kOnePercent;  // the paper's rule of admission
  return paper::run_saturated({.options = options, .num_measured_steps = num_steps, .seed = seed},
                              paper::sharegpt_lengths(), go_on);
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
  is_end_shown_ = false;
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
                    [&](double done, const paper::SteadyState& so_far) {
                      std::lock_guard lock(mutex_);
                      progress_[i] = {done, so_far};
                      return !is_cancelled_.load();
                    });
  }
  is_running_ = false;
}

void PaperComparison::show(ui::EvaluationState& state) {
  state.is_queue_running = is_running_;
  is_end_shown_ = !state.is_queue_running;  // what it measured last was written before it said so
  std::lock_guard lock(mutex_);
  state.rows.clear();
  state.is_queue_done = true;
  for (std::size_t i = 0; i < kContenders.size(); ++i) {
    const auto& [done, so_far] = progress_[i];
    const paper::MemoryMap& map = so_far.memory;
    state.is_queue_done &= done >= 1.0;
    state.rows.push_back({.name = kContenders[i].name,
                          .input = map.input,
                          .output = map.output,
                          .reserved = map.reserved,
                          .internal = map.internal,
                          .unreserved = map.unreserved,
                          .batched_requests = so_far.batched_requests,
                          .paper_tokens_held = kContenders[i].paper_tokens_held,
                          .paper_batched_requests = kContenders[i].paper_batched_requests,
                          .progress = done});
  }
}

}  // namespace octavo::app
