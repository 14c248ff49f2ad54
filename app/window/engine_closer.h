// Ends engines on a thread of its own: to wait for a step and to give back gigabytes takes longer than a frame.
//
// Thread: calls from the window's.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "app/window/token_counter.h"
#include "engine/engine.h"

namespace octavo::app {

// An engine with what reads it. The counter ends first.
struct HeldEngine {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<TokenCounter> token_counter;
};

class EngineCloser {
 public:
  EngineCloser();
  // Waits until everything has ended.
  ~EngineCloser();
  EngineCloser(const EngineCloser&) = delete;
  EngineCloser& operator=(const EngineCloser&) = delete;

  void close(HeldEngine held);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HeldEngine> closing_;  // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  std::thread thread_;
};

}  // namespace octavo::app
