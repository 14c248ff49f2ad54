// A thread that does jobs one after the other, in the order in which they were given, and keeps what they
// bring until it is asked: for what takes longer than a frame may wait.
//
// Ownership: jobs move in, outcomes move out. Thread: calls from one thread,
// usually the window's; `perform` and
// `wake_up` are called on this one's own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace octavo::app {

// What becomes of jobs that were not begun when the thread is to end.
enum class JobsLeft { kDone, kDropped };

template <class Job, class Outcome>
class JobThread {
 public:
  // nullopt: there is nothing to tell, and nobody to wake up.
  using Perform = std::function<std::optional<Outcome>(Job job)>;

  JobThread(Perform perform, std::function<void()> wake_up, JobsLeft jobs_left)
      : perform_(std::move(perform)),
        wake_up_(std::move(wake_up)),
        jobs_left_(jobs_left),
        thread_([this] { run(); }) {}

  // Waits for the job in progress, and for the others as jobs_left says.
  ~JobThread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void give(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  // Since the last call, in order.
  std::vector<Outcome> take_outcomes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
  }

  // For a long job that looks now and then whether anybody still waits for it.
  bool stopping() const { return stopping_; }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty() || (stopping_ && jobs_left_ == JobsLeft::kDropped)) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      std::optional<Outcome> outcome = perform_(std::move(job));
      lock.lock();
      if (!outcome) continue;
      outcomes_.push_back(*std::move(outcome));
      lock.unlock();
      wake_up_();
      lock.lock();
    }
  }

  const Perform perform_;
  const std::function<void()> wake_up_;
  const JobsLeft jobs_left_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;                // guarded by mutex_
  std::vector<Outcome> outcomes_;       // guarded by mutex_
  std::atomic<bool> stopping_ = false;  // written under mutex_
  std::thread thread_;                  // last: it uses all of the above
};

}  // namespace octavo::app
