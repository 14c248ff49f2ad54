// A queue of values between threads. Any number of producers and consumers; bounded: a full queue is handled
// where the value is pushed, nothing is dropped silently.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace octavo {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // False when the queue is full or closed; the value is then untouched.
  bool try_push(T& value) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || values_.size() >= capacity_) return false;
      values_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  // Waits for room. False when the queue was closed; the value is then lost.
  bool push(T value) {
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [&] { return closed_ || values_.size() < capacity_; });
      if (closed_) return false;
      values_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  std::optional<T> try_pop() {
    std::optional<T> value;
    {
      std::lock_guard lock(mutex_);
      if (values_.empty()) return std::nullopt;
      value.emplace(std::move(values_.front()));
      values_.pop_front();
    }
    not_full_.notify_one();
    return value;
  }

  // Waits for a value. nullopt when the queue is closed and empty.
  std::optional<T> pop() {
    std::optional<T> value;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [&] { return closed_ || !values_.empty(); });
      if (values_.empty()) return std::nullopt;
      value.emplace(std::move(values_.front()));
      values_.pop_front();
    }
    not_full_.notify_one();
    return value;
  }

  // Waits until there is a value, the queue is closed, or the time is up. True when there is a value.
  bool wait_for(std::chrono::microseconds timeout) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, timeout, [&] { return closed_ || !values_.empty(); });
    return !values_.empty();
  }

  // Wakes everyone; later pushes fail, values already inside can still be taken.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  bool empty() const {
    std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<T> values_;  // guarded by mutex_
  bool closed_ = false;   // guarded by mutex_
};

}  // namespace octavo
