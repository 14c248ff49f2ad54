// Loads a model on a thread of its own, so that the window is there at once and can be closed meanwhile.
//
// Thread: all calls from the window's; `wake_up` is called from the loading one.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "app/window/models/engine_closer.h"
#include "engine/engine.h"

namespace octavo::app {

using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(const EngineOptions&, LoadProgress)>;

class ModelLoader {
 public:
  // `wake_up` is called whenever the fraction grew by about a hundredth, and at the end.
  ModelLoader(EngineFactory factory, std::function<void()> wake_up);
  // Cancels and waits.
  ~ModelLoader();
  ModelLoader(const ModelLoader&) = delete;
  ModelLoader& operator=(const ModelLoader&) = delete;

  // What `first` owns is ended before anything is loaded, so that its memory is there.
  // REQUIRES: nothing is being loaded.
  void start(const EngineOptions& options, std::vector<HeldEngine> first = {});
  // The result will be an Error of kind kCancelled, or the engine when it was too late.
  void cancel() { cancelled_ = true; }
  bool loading() const { return thread_.joinable(); }
  double fraction() const { return fraction_; }

  // The result, once.
  std::optional<Result<std::unique_ptr<Engine>>> take_result();

 private:
  void load(const EngineOptions& options);

  EngineFactory factory_;
  std::function<void()> wake_up_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<double> fraction_ = 0.0;
  std::mutex mutex_;
  std::optional<Result<std::unique_ptr<Engine>>> result_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace octavo::app
