// A fixed set of threads that run short loops together with their caller.
//
// Thread: one thread at a time calls parallel_for (the engine's); loops do not nest. Nothing is allocated per
// call. Waiting is a bounded spin, then sleep, on both sides: the window shares the cores. A worker that is
// asleep or was descheduled before it joined a loop is not waited for: whoever is awake takes the items.
//
// Items are handed out one at a time; which worker gets which item is a matter of luck, so results must
// not depend on it. parallel_for hands them out in ascending order. parallel_for_in_runs gives each
// worker a run of neighbours, and what is left of the others' runs when it is through with its own: for
// items that stream through memory, where one long stream is faster than many short ones (decode on two
// threads of Zen 5: 1.1 times as fast).
//
// A loop costs about 0.6 us on two threads that are awake (Zen 5: 4 items of 2 us take 4.6 us).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/result.h"

namespace octavo::kernels::cpu {

class ThreadPool {
 public:
  static constexpr std::int32_t kMaxThreads = 512;

  // `num_threads` counts the caller: 1 starts no thread. Fails outside 1..kMaxThreads or when the system
  // refuses a thread.
  static Result<std::unique_ptr<ThreadPool>> create(std::int32_t num_threads);

  // Joins the workers. REQUIRES: no loop is running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::int32_t num_threads() const { return num_threads_; }

  // Calls function(std::int64_t item, std::int32_t worker) for 0 <= item < num_items and returns when all
  // have returned.
  //   worker  0..num_threads - 1, never two at once with the same number: an index for scratch memory. The
  //   caller is 0.
  // What the functions wrote is visible to the caller afterwards. The function must not throw.
  template <class Function>
  void parallel_for(std::int64_t num_items, const Function& function) {
    execute(num_items, /*num_runs=*/1, function);
  }
  template <class Function>
  void parallel_for_in_runs(std::int64_t num_items, const Function& function) {
    execute(num_items, num_threads_, function);
  }

 private:
  struct Loop {
    const void* context = nullptr;
    std::int64_t num_items = 0;
    std::int32_t num_runs = 1;
    void (*call)(const void* context, std::int64_t item, std::int32_t worker) = nullptr;

    std::int64_t first_item(std::int32_t run) const { return num_items * run / num_runs; }
  };
  struct alignas(64) NextItem {
    std::atomic<std::int64_t> value{0};
  };

  explicit ThreadPool(std::int32_t num_threads)
      : num_threads_(num_threads), next_items_(static_cast<std::size_t>(num_threads)) {}

  template <class Function>
  void execute(std::int64_t num_items, std::int32_t num_runs, const Function& function) {
    if (num_threads_ == 1 || num_items <= 1) {
      for (std::int64_t item = 0; item < num_items; ++item) function(item, std::int32_t{0});
      return;
    }
    run({&function, num_items, num_runs, [](const void* context, std::int64_t item, std::int32_t worker) {
           (*static_cast<const Function*>(context))(item, worker);
         }});
  }

  void run(const Loop& loop);
  void open_loop(const Loop& loop);
  void close_loop();
  void take_items(std::int32_t worker);
  void take_items_of_run(std::int32_t run, std::int32_t worker);

  void work(std::int32_t worker);
  bool wait_for_loop(std::uint32_t seen);
  bool join_loop(std::uint32_t seen);
  void leave_loop();

  const std::int32_t num_threads_;
  std::vector<std::thread> threads_;

  // Written by the caller while no worker is inside; read by workers that have joined.
  Loop loop_;

  // One word decides who is inside: [number of the loop | open? | workers inside]. Workers enter by
  // compare-and-swap, and only while it is open, so that the caller may reuse `loop_` as soon as it has
  // closed the loop and nobody is inside. The number wraps; mistaking one open loop for another of the same
  // number only means joining that one.
  alignas(64) std::atomic<std::uint32_t> state_{0};
  std::vector<NextItem> next_items_;  // of each run
  alignas(64) std::atomic<std::int32_t> num_sleeping_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;  // guards nothing but the way into sleep
  std::condition_variable loop_opened_, last_worker_left_;
};

}  // namespace octavo::kernels::cpu
