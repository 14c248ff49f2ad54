#include "app/window/engine_closer.h"

#include <utility>

namespace octavo::app {

EngineCloser::EngineCloser() : thread_([this] { run(); }) {}

EngineCloser::~EngineCloser() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void EngineCloser::close(HeldEngine held) {
  {
    const std::lock_guard lock(mutex_);
    closing_.push_back(std::move(held));
  }
  changed_.notify_one();
}

void EngineCloser::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !closing_.empty(); });
    if (closing_.empty()) return;
    std::vector<HeldEngine> closing = std::exchange(closing_, {});
    lock.unlock();
    closing.clear();
    lock.lock();
  }
}

}  // namespace octavo::app
