#include "app/window/models/model_loader.h"

#include <utility>

#include "engine/base/check.h"

namespace octavo::app {

ModelLoader::ModelLoader(EngineFactory factory, std::function<void()> wake_up)
    : factory_(std::move(factory)), wake_up_(std::move(wake_up)) {}

ModelLoader::~ModelLoader() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void ModelLoader::start(const EngineOptions& options, std::vector<HeldEngine> first) {
  OCTAVO_CHECK(!loading(), "a model is being loaded");
  cancelled_ = false;
  fraction_ = 0.0;
  thread_ = std::thread([this, options, first = std::move(first)]() mutable {
    first.clear();
    load(options);
  });
}

void ModelLoader::load(const EngineOptions& options) {
  const auto progress = [this](double fraction) {
    if (fraction - fraction_ >= 0.01) {
      fraction_ = fraction;
      wake_up_();
    }
    return !cancelled_.load();
  };
  auto result = factory_(options, progress);
  {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
  }
  wake_up_();
}

std::optional<Result<std::unique_ptr<Engine>>> ModelLoader::take_result() {
  std::optional<Result<std::unique_ptr<Engine>>> result;
  {
    const std::lock_guard lock(mutex_);
    result.swap(result_);
  }
  if (result) thread_.join();
  return result;
}

}  // namespace octavo::app
