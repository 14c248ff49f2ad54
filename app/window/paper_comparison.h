// The comparison of the PagedAttention paper (Kwon et al. 2023, arXiv:2309.06180, figures 2 and 13a) beside
// the running engine: one endless stream of requests, first come first served, under each memory manager, on
// the real scheduler and block manager and without a model. tests/paper measures the same at length.
//
// Thread: one for the four runs; everything here is for the UI thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/api/engine_options.h"
#include "ui/inspector_state.h"

namespace octavo::app {

// What the slots of the pool are for, in percent, and how many requests ran together: means over steps.
struct ManagerMeans {
  double input = 0, output = 0, reserved = 0, internal = 0, unreserved = 0;
  double batched_requests = 0;
};

inline constexpr std::int32_t kPaperWarmUpSteps = 4'000;

// `go_on` is asked now and then with the share that is done and the means so far; false ends the run.
ManagerMeans measure_manager(MemoryManager manager, std::int32_t num_steps, std::uint64_t seed,
                             const std::function<bool(double done, const ManagerMeans& means)>& go_on);

class PaperComparison {
 public:
  ~PaperComparison();

  void start();
  void cancel();
  bool is_running() const { return is_running_; }
  // What is known so far.
  void show(ui::PaperState& state);

 private:
  struct Progress {
    double done = 0;
    ManagerMeans means;
  };

  void run();

  std::thread thread_;
  std::atomic<bool> is_running_ = false, is_cancelled_ = false;
  std::mutex mutex_;
  std::array<Progress, 4> progress_ = {};  // guarded by mutex_
};

}  // namespace octavo::app
