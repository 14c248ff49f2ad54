// Which engine is asked, and those before it that still have answers to finish.
//
// Owns none of them: each must live on as long as `uses` says. UI thread.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/engine.h"

namespace octavo::app {

class Engines {
 public:
  // nullptr when there is none.
  Engine* newest() const { return newest_; }
  const std::vector<Engine*>& retired() const { return retired_; }

  bool uses(const Engine& engine) const {
    return &engine == newest_ || std::find(retired_.begin(), retired_.end(), &engine) != retired_.end();
  }

  // The one before is retired, and let go with the next `drop_retired` that does not find it in use.
  void attach(Engine& engine) {
    if (newest_ != nullptr) retired_.push_back(newest_);
    newest_ = &engine;
  }
  void detach_all() {
    newest_ = nullptr;
    retired_.clear();
  }
  template <class IsUsed>
  void drop_retired(IsUsed is_used) {
    std::erase_if(retired_, [&](const Engine* engine) { return !is_used(*engine); });
  }

 private:
  Engine* newest_ = nullptr;
  std::vector<Engine*> retired_;
};

}  // namespace octavo::app
