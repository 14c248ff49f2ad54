// Ends engines on a thread of its own: to wait for a step and to give back
// gigabytes takes longer than a frame.
//
// Thread: calls from the window's.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "app/window/chat/token_counter.h"
#include "app/window/job_thread.h"
#include "engine/engine.h"

namespace octavo::app {

// What reads an engine beside the chats, and may have answers to finish.
class EngineReader {
 public:
  virtual ~EngineReader() = default;
  virtual bool is_busy() const = 0;
};

// An engine with what reads it, which ends first.
struct HeldEngine {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<TokenCounter> token_counter;
  std::unique_ptr<EngineReader> reader = {};  // null: there is none
};

class EngineCloser {
 public:
  EngineCloser();
  // Waits until everything has ended.
  ~EngineCloser() = default;

  void close(HeldEngine held) { jobs_.give(std::move(held)); }

 private:
  JobThread<HeldEngine, std::monostate> jobs_;
};

}  // namespace octavo::app
