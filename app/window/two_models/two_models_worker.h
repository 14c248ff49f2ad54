// Loads two models and compares them over a text on a thread of its own, beside the engine that answers;
// looks into files before, and reads texts. Both models are gone when a comparison has ended.
//
// Ownership: jobs move in, reports move out. Thread: calls from the window's; `wake_up` is called from the
// working one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "app/window/job_thread.h"
#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/comparison/model_comparison.h"
#include "ui/two_models_state.h"

namespace octavo::app {

// ---- what it is asked

struct LookAtTwoModels {
  comparison::ComparisonOptions options;
  std::uint64_t serial = 0;
};
struct ReadTextFile {
  std::string path;  // as people type it
};
// Messages are a question and its answer, the last of them: what the model reads of them, answer included.
using TextToCompare = std::variant<std::string, std::vector<ChatMessage>>;
struct CompareText {
  comparison::ComparisonOptions options;
  TextToCompare text;
  std::uint64_t serial = 0;
};
using TwoModelsJob = std::variant<LookAtTwoModels, ReadTextFile, CompareText>;

// ---- what it reports

struct TwoModelsSeen {
  std::uint64_t serial = 0;
  Result<comparison::ComparisonNeeds> needs;
};
struct TextFileRead {
  std::string name;  // one line of valid UTF-8
  Result<std::string> text;
};
struct TextCompared {
  std::uint64_t serial = 0;
  Result<ui::TwoModelsResult> result;
};
using TwoModelsReport = std::variant<TwoModelsSeen, TextFileRead, TextCompared>;

struct TwoModelsProgress {
  ui::TwoModelsPhase phase = ui::TwoModelsPhase::kSetUp;
  double fraction = 0.0;
};

class TwoModelsWorker {
 public:
  // Also called whenever the fraction grew by about a hundredth.
  explicit TwoModelsWorker(std::function<void()> wake_up);
  // Cancels, and waits for the job in progress.
  ~TwoModelsWorker() { cancel(); }

  void give(TwoModelsJob job);
  // Comparisons that were given before end with kCancelled, or with what they have when it is too late.
  void cancel() { cancelled_serial_ = newest_serial_.load(); }
  TwoModelsProgress progress() const { return {phase_, fraction_}; }
  // Since the last call, in order.
  std::vector<TwoModelsReport> take_reports() { return jobs_.take_outcomes(); }

 private:
  TwoModelsReport perform(TwoModelsJob job);
  Result<ui::TwoModelsResult> compare(const CompareText& job);
  comparison::ComparisonProgress report_on(ui::TwoModelsPhase phase, std::uint64_t serial);

  const std::function<void()> wake_up_;
  std::atomic<std::uint64_t> newest_serial_ = 0, cancelled_serial_ = 0;
  std::atomic<ui::TwoModelsPhase> phase_ = ui::TwoModelsPhase::kSetUp;
  std::atomic<double> fraction_ = 0.0;
  JobThread<TwoModelsJob, TwoModelsReport> jobs_;  // last: it uses all of the above
};

// A comparison as it is shown. Control tokens are shown by name.
ui::TwoModelsResult shown_result(const comparison::ModelComparison& models,
                                 const comparison::ComparedText& text);

}  // namespace octavo::app
