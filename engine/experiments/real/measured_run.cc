#include "engine/experiments/real/measured_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/machine_name.h"
#include "engine/base/median.h"
#include "engine/base/text.h"
#include "engine/engine.h"

namespace octavo::paper {
namespace {

constexpr std::int64_t kLongestPollUs = 30'000;
constexpr double kCutShare = 0.25;  // as run_serving()

Error cancelled() { return {ErrorCode::kCancelled, "the experiment was cancelled"}; }

Result<std::unique_ptr<Engine>> open(const EngineOptions& options, const StaysInterested& stays_interested) {
  return Engine::create(options, [&](double) { return !stays_interested || stays_interested(); });
}

// Sums over steps.
class StepSums {
 public:
  void add(const StepRecord& step) {
    if (step.num_running == 0) return;
    all_.add(step);
    if (step.num_waiting > 0) crowded_.add(step);
    if (step.used_blocks > 0) {
      sharing_ += static_cast<double>(step.logical_blocks) / static_cast<double>(step.used_blocks);
      ++num_shared_;
    }
    num_preempted_ += step.num_preempted;
    if (step.num_prefill_tokens == 0 && step.num_decode_tokens > 0)
      decode_ms_.push_back(static_cast<double>(step.execute_us) / 1e3);
  }

  void tell(RunFigures& figures, double num_slots) const {
    const Levels& levels = crowded_.num_steps > 0 ? crowded_ : all_;
    const double steps = std::max(1.0, static_cast<double>(levels.num_steps));
    figures.batched_requests = levels.running / steps;
    figures.tokens_held = 100.0 * levels.filled / steps / num_slots;
    if (num_shared_ > 0)
      figures.saved_blocks = 100.0 * (1.0 - std::min(1.0, static_cast<double>(num_shared_) / sharing_));
    figures.decode_step_ms = median(decode_ms_);
    figures.preemptions_per_request =
        static_cast<double>(num_preempted_) / std::max(1.0, static_cast<double>(figures.num_requests));
  }

 private:
  struct Levels {
    double running = 0.0, filled = 0.0;
    std::int64_t num_steps = 0;
    void add(const StepRecord& step) {
      running += step.num_running;
      filled += step.filled_slots;
      ++num_steps;
    }
  };
  Levels all_, crowded_;
  double sharing_ = 0.0;
  std::int64_t num_shared_ = 0, num_preempted_ = 0;
  std::vector<double> decode_ms_;
};

class RunUnderWay {
 public:
  RunUnderWay(MeasuredRun run, std::unique_ptr<Engine> engine, const Clock& clock)
      : run_(std::move(run)), engine_(std::move(engine)), clock_(clock), start_us_(clock.now_us()) {}

  Result<RunFigures> go(const StaysInterested& stays_interested) {
    const double end_s = run_.requests.empty() ? 0.0 : run_.requests.back().arrival_s * (1.0 + kCutShare);
    while (next_ < run_.requests.size() || !open_.empty()) {
      if (stays_interested && !stays_interested()) return cancelled();
      submit_due();
      if (run_.is_cut && next_ == run_.requests.size() && now_s() > end_s) break;
      for (const EngineEvent& event : engine_->poll(std::chrono::microseconds(poll_us())))
        OCTAVO_TRY_VOID(take(event));
      take_steps();
    }
    return figures();
  }

 private:
  struct Open {
    double arrival_s = 0.0;
    std::int32_t num_tokens = 1, num_outputs = 1;
  };

  double now_s() const { return static_cast<double>(clock_.now_us() - start_us_) / 1e6; }

  void submit_due() {
    std::vector<GenerationRequest> due;
    std::vector<Open> opened;
    for (; next_ < run_.requests.size() && run_.requests[next_].arrival_s <= now_s(); ++next_) {
      TimedRequest& request = run_.requests[next_];
      opened.push_back(
          {request.arrival_s, request.request.sampling.max_tokens, request.request.sampling.num_outputs()});
      due.push_back(std::move(request.request));
    }
    if (due.empty()) return;
    const std::vector<RequestId> request_ids = engine_->submit_all(std::move(due));
    for (std::size_t i = 0; i < opened.size(); ++i) open_[request_ids[i]] = opened[i];
  }

  std::int64_t poll_us() const {
    if (next_ == run_.requests.size()) return kLongestPollUs;
    const double wait_us = (run_.requests[next_].arrival_s - now_s()) * 1e6;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(wait_us), 0, kLongestPollUs);
  }

  Result<void> take(const EngineEvent& event) {
    if (const auto* failed = std::get_if<RequestFailed>(&event)) return failed->error;
    if (const auto* finished = std::get_if<RequestFinished>(&event)) {
      const auto found = open_.find(finished->request_id);
      if (found == open_.end()) return {};
      const Open& ended = found->second;
      last_end_s_ = now_s();
      latency_ += (last_end_s_ - ended.arrival_s) / ended.num_tokens;
      ++num_ended_;
      num_tokens_ += std::int64_t{ended.num_tokens} * ended.num_outputs;
      open_.erase(found);
    }
    return {};
  }

  // Where steps are lost because nobody read them in time, the figures are of the others.
  void take_steps() {
    const auto history = engine_->history();
    const metrics::Trace trace = history->read_since(step_mark_, history->next_event_mark());
    step_mark_ = trace.next_step_mark;
    for (const StepRecord& step : trace.steps) steps_.add(step);
  }

  RunFigures figures() {
    take_steps();
    const double end_s = now_s();
    RunFigures figures{.rate = run_.rate,
                       .num_requests = num_ended_ + static_cast<std::int64_t>(open_.size())};
    for (const auto& [request_id, unfinished] : open_)
      latency_ += (end_s - unfinished.arrival_s) / unfinished.num_tokens;
    figures.normalised_latency = latency_ / std::max(1.0, static_cast<double>(figures.num_requests));
    const double seconds = std::max(1e-6, last_end_s_);
    figures.requests_per_s = static_cast<double>(num_ended_) / seconds;
    figures.tokens_per_s = static_cast<double>(num_tokens_) / seconds;
    const EngineDescription& description = engine_->description();
    steps_.tell(figures, static_cast<double>(description.num_blocks) * description.block_size);
    const KvTotals totals = engine_->kv_totals();
    const auto per_token = [&](std::int64_t us, std::int64_t blocks) {
      return blocks == 0 ? 0.0
                         : static_cast<double>(us) / static_cast<double>(blocks * description.block_size);
    };
    figures.swap_out_us_per_token = per_token(totals.swap_out_us, totals.swapped_out_blocks);
    figures.swap_in_us_per_token = per_token(totals.swap_in_us, totals.swapped_in_blocks);
    return figures;
  }

  MeasuredRun run_;
  const std::unique_ptr<Engine> engine_;
  const Clock& clock_;
  const std::int64_t start_us_;
  std::size_t next_ = 0;  // request to be submitted
  std::map<RequestId, Open> open_;
  StepSums steps_;
  std::uint64_t step_mark_ = 0;
  double latency_ = 0.0, last_end_s_ = 0.0;
  std::int64_t num_ended_ = 0, num_tokens_ = 0;
};

}  // namespace

std::string machine_text(const EngineDescription& description) {
  const std::string processor = description.device == "cpu" ? processor_name() : description.device;
  const std::string& model =
      description.model.name.empty() ? description.model.architecture : description.model.name;
  return processor + ", " + description.isa + ", " + count_text(description.threads, "thread") + "; " +
         escape_for_message(model, 60) + ", " + description.model.quantisation;
}

Result<RunFigures> measure(MeasuredRun run, const Clock& clock, const StaysInterested& stays_interested) {
  OCTAVO_TRY(std::unique_ptr<Engine> engine, open(run.engine, stays_interested));
  return RunUnderWay(std::move(run), std::move(engine), clock).go(stays_interested);
}

Result<EngineDescription> describe(const EngineOptions& engine, const StaysInterested& stays_interested) {
  OCTAVO_TRY(const std::unique_ptr<Engine> opened, open(engine, stays_interested));
  return opened->description();
}

}  // namespace octavo::paper
