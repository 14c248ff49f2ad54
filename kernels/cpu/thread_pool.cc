#include "kernels/cpu/thread_pool.h"

#include <chrono>
#include <string>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octavo::kernels::cpu {
namespace {

constexpr std::uint32_t kInside = 0x3ff;  // counts workers
constexpr std::uint32_t kOpen = 0x400;
constexpr std::uint32_t kLoopNumber = ~(kInside | kOpen);
constexpr std::uint32_t kOneLoop = kOpen << 1;
static_assert(ThreadPool::kMaxThreads <= kInside);

// Longer than the pause between two loops of a step, short beside a display frame.
constexpr auto kSpinTime = std::chrono::microseconds(60);

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// True as soon as `condition` holds; false when it did not become true in kSpinTime.
template <class Condition>
bool spin_until(const Condition& condition) {
  constexpr int kPausesBetweenClocks = 32;
  for (int i = 0; i < kPausesBetweenClocks; ++i) {  // most waits end here, without a look at the clock
    if (condition()) return true;
    pause_briefly();
  }
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesBetweenClocks; ++i) {
      if (condition()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return condition();
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(std::int32_t num_threads) {
  if (num_threads < 1 || num_threads > kMaxThreads) {
    return Error{ErrorCode::kInvalidArgument,
                 "threads is " + std::to_string(num_threads) + "; choose 1 to " + std::to_string(kMaxThreads),
                 "threads"};
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(num_threads));
  try {
    pool->threads_.reserve(static_cast<std::size_t>(num_threads - 1));
    for (std::int32_t worker = 1; worker < num_threads; ++worker) {
      pool->threads_.emplace_back([raw = pool.get(), worker] { raw->work(worker); });
    }
  } catch (const std::system_error&) {
    return Error{ErrorCode::kDevice,
                 "the system refused to start " + std::to_string(num_threads) + " threads; choose fewer",
                 "threads"};
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  loop_opened_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const Loop& loop) {
  open_loop(loop);
  take_items(/*worker=*/0);
  close_loop();
}

void ThreadPool::open_loop(const Loop& loop) {
  loop_ = loop;
  for (std::int32_t run = 0; run < loop.num_runs; ++run) {
    next_items_[static_cast<std::size_t>(run)].value.store(loop.first_item(run), std::memory_order_relaxed);
  }
  const std::uint32_t number = (state_.load(std::memory_order_relaxed) + kOneLoop) & kLoopNumber;
  // Sequentially consistent, as the sleepers' side: either they see the loop or we see them.
  state_.store(number | kOpen);
  if (num_sleeping_.load() == 0) return;
  { std::lock_guard lock(mutex_); }
  loop_opened_.notify_all();
}

void ThreadPool::take_items(std::int32_t worker) {
  for (std::int32_t i = 0; i < loop_.num_runs; ++i) take_items_of_run((worker + i) % loop_.num_runs, worker);
}

void ThreadPool::take_items_of_run(std::int32_t run, std::int32_t worker) {
  std::atomic<std::int64_t>& next = next_items_[static_cast<std::size_t>(run)].value;
  const std::int64_t end = loop_.first_item(run + 1);
  if (next.load(std::memory_order_relaxed) >= end) return;
  for (;;) {
    const std::int64_t item = next.fetch_add(1, std::memory_order_relaxed);
    if (item >= end) return;
    loop_.call(loop_.context, item, worker);
  }
}

void ThreadPool::close_loop() {
  state_.fetch_and(~kOpen);
  const auto nobody_inside = [&] { return (state_.load() & kInside) == 0; };
  if (spin_until(nobody_inside)) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_.store(true);
  last_worker_left_.wait(lock, nobody_inside);
  caller_sleeps_.store(false);
}

void ThreadPool::work(std::int32_t worker) {
  std::uint32_t seen = 0;  // number of the last loop that this worker took part in
  while (wait_for_loop(seen)) {
    if (!join_loop(seen)) continue;
    seen = state_.load(std::memory_order_relaxed) & kLoopNumber;  // cannot change while we are inside
    take_items(worker);
    leave_loop();
  }
}

// False when the pool is being destroyed.
bool ThreadPool::wait_for_loop(std::uint32_t seen) {
  const auto has_news = [&] {
    const std::uint32_t state = state_.load();
    return ((state & kOpen) != 0 && (state & kLoopNumber) != seen) ||
           stopping_.load(std::memory_order_relaxed);
  };
  if (!spin_until(has_news)) {
    std::unique_lock lock(mutex_);
    num_sleeping_.fetch_add(1);
    loop_opened_.wait(lock, has_news);
    num_sleeping_.fetch_sub(1);
  }
  return !stopping_.load();
}

bool ThreadPool::join_loop(std::uint32_t seen) {
  std::uint32_t state = state_.load();
  while ((state & kOpen) != 0 && (state & kLoopNumber) != seen) {
    if (state_.compare_exchange_weak(state, state + 1)) return true;
  }
  return false;
}

void ThreadPool::leave_loop() {
  const std::uint32_t before = state_.fetch_sub(1);
  if ((before & kInside) != 1 || !caller_sleeps_.load()) return;
  { std::lock_guard lock(mutex_); }
  last_worker_left_.notify_one();
}

}  // namespace octavo::kernels::cpu
