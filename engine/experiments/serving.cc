#include "engine/experiments/serving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/base/check.h"
#include "engine/base/hash.h"

namespace octavo::paper {
namespace {

constexpr std::int64_t kStepsBetweenQuestions = 256, kStepsBetweenFigures = 8;
constexpr double kOvertime = 1.25;  // of the time in which requests arrive

enum Stream : std::uint32_t { kArrivals = 1, kRequests = 2 };

class Serving {
 public:
  explicit Serving(const ServingSetup& setup)
      : setup_(setup),
        gaps_(hash_combine(setup.seed, kArrivals)),
        lengths_(hash_combine(setup.seed, kRequests)),
        engine_(setup.engine) {}

  ServingFigures run(const KeepGoing& keep_going) {
    const bool is_at_once = setup_.rate <= 0.0;
    const double end_s = is_at_once ? std::numeric_limits<double>::infinity() : setup_.seconds * kOvertime;
    next_arrival_s_ = gap_s();
    for (std::int64_t step = 0; now_s_ < end_s; ++step) {
      if (step % kStepsBetweenQuestions == 0 && keep_going && !keep_going()) break;
      if (!engine_.has_work()) {
        if (!has_arrivals()) break;
        now_s_ = std::max(now_s_, next_arrival_s_);
      }
      while (has_arrivals() && next_arrival_s_ <= now_s_) arrive();
      make_step(step);
    }
    return figures();
  }

 private:
  struct Arrival {
    double time_s = 0.0;
    std::int32_t num_prompt_tokens = 0, num_output_tokens = 0;
  };

  double gap_s() { return setup_.rate > 0.0 ? -std::log1p(-gaps_.next()) / setup_.rate : 0.0; }

  bool has_arrivals() const {
    return setup_.rate > 0.0 ? next_arrival_s_ < setup_.seconds : num_arrived_ < setup_.num_requests;
  }

  void arrive() {
    const ScriptedRequest request = setup_.requests->draw(lengths_);
    const RequestId request_id = engine_.add(request);
    unfinished_[request_id] = {next_arrival_s_, request.lengths.num_prompt_tokens,
                               request.lengths.num_output_tokens};
    next_arrival_s_ += gap_s();
    ++num_arrived_;
  }

  void make_step(std::int64_t step) {
    const bool was_empty = engine_.num_running() == 0;
    const scheduler::SchedulerOutput& plan = engine_.begin_step();
    OCTAVO_CHECK(!plan.empty() || plan.moves_memory(), "nothing can run, and there is work");
    StepLoad load = engine_.load();
    if (setup_.pads_batches) load = padded(load, was_empty, plan);
    const bool extends_outputs = plan.num_decode_tokens > 0;
    num_preemptions_ += std::ssize(plan.preemptions);
    const bool is_looked_at = now_s_ >= 0.5 * setup_.seconds && now_s_ < setup_.seconds;
    if (is_looked_at || setup_.rate <= 0.0) {
      num_running_ += engine_.num_running();
      ++num_looked_at_;
    }
    const bool takes_figures = (is_looked_at || setup_.rate <= 0.0) && step % kStepsBetweenFigures == 0;
    if (takes_figures) sharing_ratio_ += engine_.figures().sharing_ratio;
    engine_.commit_step();
    if (takes_figures) {
      const KvFigures figures = engine_.figures();
      filled_ += figures.filled_slots;
      used_ += figures.used_blocks;
      ++num_figures_;
    }
    const double step_s = step_time(setup_.platform, load).total_s();
    now_s_ += step_s;
    engine_.note_step_time(step_s);
    if (extends_outputs) ++gaps_by_ms_[static_cast<std::int64_t>(step_s * 1e4)];
    for (const RequestId request_id : engine_.end_step()) finish(request_id);
    if (setup_.pads_batches && engine_.num_running() == 0) deliver_batch();
  }

  // Of a batch that is computed as a rectangle.
  StepLoad padded(StepLoad load, bool is_first, const scheduler::SchedulerOutput& plan) {
    if (is_first) {
      num_in_batch_ = 0;
      batch_steps_ = 0;
      longest_prompt_ = 0;
      for (const scheduler::Admission& admission : plan.admissions) {
        ++num_in_batch_;
        longest_prompt_ = std::max(longest_prompt_, unfinished_.at(admission.request_id).num_prompt_tokens);
      }
      const std::int64_t num_outputs = num_in_batch_ * setup_.engine.num_outputs;
      load.num_rows = num_in_batch_ * longest_prompt_;
      load.num_sampled = num_outputs;
      load.num_requests = num_in_batch_;
      load.num_prompt_pairs = num_in_batch_ * longest_prompt_ * (std::int64_t{longest_prompt_} + 1) / 2;
      return load;
    }
    const std::int64_t num_outputs = num_in_batch_ * setup_.engine.num_outputs;
    ++batch_steps_;
    load.num_rows = load.num_sampled = num_outputs;
    load.num_requests = num_in_batch_;
    load.num_context_tokens = num_outputs * (longest_prompt_ + batch_steps_);
    return load;
  }

  void finish(RequestId request_id) {
    const auto found = unfinished_.find(request_id);
    if (setup_.pads_batches) {
      batch_.push_back(found->second);
    } else {
      note(found->second);
    }
    unfinished_.erase(found);
  }

  void deliver_batch() {
    for (const Arrival& arrival : batch_) note(arrival);
    batch_.clear();
  }

  void note(const Arrival& arrival) {
    latency_ += (now_s_ - arrival.time_s) / arrival.num_output_tokens;
    num_output_tokens_ += arrival.num_output_tokens;
    ++num_finished_;
    last_end_s_ = now_s_;
  }

  double late_gap_s() const {
    std::int64_t num_steps = 0;
    for (const auto& [tenth_ms, count] : gaps_by_ms_) num_steps += count;
    std::int64_t num_above = num_steps / 100;
    for (auto gap = gaps_by_ms_.rbegin(); gap != gaps_by_ms_.rend(); ++gap) {
      num_above -= gap->second;
      if (num_above < 0) return static_cast<double>(gap->first) * 1e-4;
    }
    return 0.0;
  }

  ServingFigures figures() const {
    double latency = latency_;
    std::int64_t num_requests = num_finished_;
    const auto add_unfinished = [&](const Arrival& arrival) {
      latency += (now_s_ - arrival.time_s) / arrival.num_output_tokens;
      ++num_requests;
    };
    for (const auto& [request_id, arrival] : unfinished_) add_unfinished(arrival);
    for (const Arrival& arrival : batch_) add_unfinished(arrival);
    const double slots = double{1} * setup_.engine.options.num_blocks * setup_.engine.options.block_size;
    const auto per = [](double sum, std::int64_t number) {
      return sum / static_cast<double>(std::max<std::int64_t>(1, number));
    };
    const double sharing = std::max(1.0, per(sharing_ratio_, num_figures_));
    const double end_s = std::max(1e-9, last_end_s_);
    return {.rate = setup_.rate,
            .normalised_latency = per(latency, num_requests),
            .requests_per_s = static_cast<double>(num_finished_) / end_s,
            .tokens_per_s = static_cast<double>(num_output_tokens_) * setup_.engine.num_outputs / end_s,
            .batched_requests = per(static_cast<double>(num_running_), num_looked_at_),
            .saved_blocks = 100.0 * (1.0 - 1.0 / sharing),
            .tokens_held = 100.0 * per(filled_, num_figures_) / slots,
            .used_blocks = 100.0 * per(used_, num_figures_) / setup_.engine.options.num_blocks,
            .preemptions_per_request = per(static_cast<double>(num_preemptions_), num_finished_),
            .longest_gap_s = late_gap_s(),
            .num_requests = num_requests};
  }

  const ServingSetup& setup_;
  UniformStream gaps_, lengths_;
  ScriptedEngine engine_;
  double now_s_ = 0.0, next_arrival_s_ = 0.0, last_end_s_ = 0.0;
  std::int32_t num_arrived_ = 0;
  std::map<RequestId, Arrival> unfinished_;
  std::vector<Arrival> batch_;  // ended, and not delivered
  std::int64_t num_in_batch_ = 0, batch_steps_ = 0;
  std::int32_t longest_prompt_ = 0;
  // Sums.
  double latency_ = 0.0, sharing_ratio_ = 0.0, filled_ = 0.0, used_ = 0.0;
  std::int64_t num_finished_ = 0, num_output_tokens_ = 0, num_preemptions_ = 0;
  std::int64_t num_running_ = 0, num_looked_at_ = 0, num_figures_ = 0;
  std::map<std::int64_t, std::int64_t> gaps_by_ms_;  // steps by tenths of a millisecond
};

}  // namespace

ServingFigures run_serving(const ServingSetup& setup, const KeepGoing& keep_going) {
  return Serving(setup).run(keep_going);
}

RateSearch find_sustained_rate(ServingSetup setup, double guess, const KeepGoing& keep_going,
                               double latency) {
  constexpr double kWiden = 1.3;
  constexpr int kMostWidenings = 12, kHalvings = 3;
  RateSearch search;
  const auto goes_on = [&] { return !keep_going || keep_going(); };
  const auto latency_at = [&](double rate) {
    setup.rate = rate;
    search.points.push_back(run_serving(setup, keep_going));
    return search.points.back().normalised_latency;
  };
  double low = 0.0, low_latency = 0.0, high = 0.0, high_latency = 0.0;
  double rate = guess;
  for (int i = 0; i < kMostWidenings && (low == 0.0 || high == 0.0) && goes_on(); ++i) {
    const double found = latency_at(rate);
    if (found < latency) {
      low = rate;
      low_latency = found;
      rate *= kWiden;
    } else {
      high = rate;
      high_latency = found;
      rate /= kWiden;
    }
  }
  for (int i = 0; i < kHalvings && low > 0.0 && high > 0.0 && goes_on(); ++i) {
    const double middle = std::sqrt(low * high), found = latency_at(middle);
    (found < latency ? low : high) = middle;
    (found < latency ? low_latency : high_latency) = found;
  }
  search.sustained = low;
  if (low > 0.0 && high > 0.0)
    search.sustained += (high - low) * (latency - low_latency) / (high_latency - low_latency);
  for (const double share : {0.35, 0.7}) {
    if (goes_on()) latency_at(share * search.sustained);
  }
  std::ranges::sort(search.points, {}, &ServingFigures::rate);
  return search;
}

}  // namespace octavo::paper
