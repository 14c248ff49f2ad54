// The comparison of the PagedAttention paper (Kwon et al. 2023, arXiv:2309.06180, figures 2 and 13a) beside
// the running engine: the experiment of engine/experiments under each memory manager. tests/experiments
// measures the same at length.
//
// Thread: one for the four runs; everything here is for the UI thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "engine/api/engine_options.h"
#include "engine/experiments/saturated_queue.h"
#include "ui/evaluation_state.h"

namespace octavo::app {

// The experiment of one memory manager as the window runs it: the paper's pool and rule of admission,
// ShareGPT's lengths.
paper::SteadyState measure_manager(MemoryManager manager, std::int32_t num_steps, std::uint64_t seed,
                                   const paper::GoOn& go_on = {});

class PaperComparison {
 public:
  ~PaperComparison();

  void start();
  void cancel();
  bool is_running() const { return is_running_; }
  // Whether show() has news: it runs, or has ended since.
  bool has_news() const { return !is_end_shown_; }
  // What is known so far.
  void show(ui::EvaluationState& state);

 private:
  struct Progress {
    double done = 0;
    paper::SteadyState state;
  };

  void run();

  std::thread thread_;
  std::atomic<bool> is_running_ = false, is_cancelled_ = false;
  bool is_end_shown_ = true;
  std::mutex mutex_;
  std::array<Progress, 4> progress_ = {};  // guarded by mutex_
};

}  // namespace octavo::app
