#include "tests/simulation/simulation.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "engine/core/engine_core.h"
#include "engine/core/preparation_queue.h"
#include "engine/core/request_intake.h"
#include "engine/metrics/kv_state.h"
#include "engine/scheduler/step_budget.h"
#include "tests/simulation/admission_rules.h"
#include "tests/simulation/answers.h"
#include "tests/simulation/expected_prompt.h"
#include "tests/simulation/gap_rules.h"
#include "tests/simulation/intake_rules.h"
#include "tests/simulation/memory_rules.h"
#include "tests/simulation/preemption_rules.h"
#include "tests/simulation/priority_rules.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/retention_rules.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/simulated_runner.h"
#include "tests/simulation/slow_reader.h"
#include "tests/simulation/toy_chat_tokenizer.h"
#include "tests/simulation/toy_grammar.h"

namespace octavo::simulation {
namespace {

const ToyChatTokenizer& tokenizer() {
  static const ToyChatTokenizer kTokenizer;
  return kTokenizer;
}

class Simulation {
 public:
  Simulation(const Script& script, Mutation mutation, volatile std::int64_t* progress)
      : script_(with_expected_prompts(script)),
        mutation_(mutation),
        progress_(progress),
        runner_(script_, clock_),
        mutated_runner_(runner_, mutation),
        core_(script.options, {.runner = &mutated_runner_, .clock = &clock_, .tokenizer = &tokenizer()}),
        intake_(
            {.tokenizer = &tokenizer(),
             .num_end_tokens = 2,
             .memory_ends_exactly = memory_ends_exactly(script.options),
             .draw_seed = [this] { return mix64(++num_drawn_seeds_); },
             .unix_time_s = [] { return std::int64_t{0}; },
             .compile_grammar =
                 [grammar = std::make_shared<const ToyGrammar>()](const StructuredOutput&, std::stop_token) {
                   return Result<std::shared_ptr<const TokenGrammar>>(grammar);
                 }}),
        intake_rules_(script, problem_, counts_),
        answers_(script_, problem_, counts_),
        rules_(script_, runner_, problem_),
        memory_rules_(script_, runner_, problem_),
        retention_rules_(script_, runner_, problem_),
        admission_rules_(script_, runner_, problem_),
        preemption_rules_(script_, problem_),
        priority_rules_(script_, runner_, problem_),
        gap_rules_(script_, problem_),
        replayed_({.block_size = script.options.block_size,
                   .num_blocks = script.options.num_blocks,
                   .num_host_blocks = core_.totals().num_host_blocks,
                   .num_states = core_.totals().num_states,
                   .num_host_states = core_.totals().num_host_states,
                   .window = script.options.window,
                   .num_window_blocks = script.options.num_window_blocks,
                   .num_host_window_blocks = script.options.num_host_window_blocks}) {
    counts_.lives = 1;
    snapshot_ = core_.snapshot();
  }

  Report run() {
    std::int64_t idle_bound = most_steps();
    while (!problem_.exists()) {
      std::vector<EngineCommand> commands = take_commands();
      if (commands.empty() && is_idle()) {
        if (next_ == script_.operations.size()) break;
        now_ = script_.operations[next_].at;  // nothing happens until then
        continue;
      }
      if (next_ == script_.operations.size() && --idle_bound < 0) problem_.note("does not drain");
      step(std::move(commands));
      now_ += is_held_back() ? 0 : 1;
    }
    if (!problem_.exists()) check_the_end();
    note_totals();
    return {.problem = problem_.first(), .step = counts_.steps, .counts = counts_};
  }

 private:
  // ---- what is sent
  std::vector<EngineCommand> take_commands() {
    std::vector<EngineCommand> commands;
    if (intake_sleeps_ > 0) --intake_sleeps_;
    prepare(commands);
    for (; next_ < script_.operations.size() && script_.operations[next_].at <= now_; ++next_) {
      if (is_held_back()) break;
      apply(script_.operations[next_], commands);
    }
    cancel_swapped(commands);
    return commands;
  }

  // A client waits before it sends the next request.
  bool is_held_back() const {
    return next_ < script_.operations.size() && script_.operations[next_].kind == OperationKind::kSubmit &&
           answers_.num_open() >= static_cast<std::size_t>(std::max(1, script_.clients.most_open));
  }

  void apply(const Operation& operation, std::vector<EngineCommand>& commands) {
    const RequestId request_id{operation.request};
    switch (operation.kind) {
      case OperationKind::kSubmit:
        answers_.submitted(request_id, operation.asked, clock_.now_us());
        runner_.expect(request_id, operation.asked);
        preparation_.add({{request_id, to_request(operation.asked), clock_.now_us()}});
        return prepare(commands);
      case OperationKind::kCancel: return cancel(request_id, commands);
      case OperationKind::kCancelOutput: return cancel_output(request_id, operation.amount, commands);
      case OperationKind::kCancelSwapped: ++num_swapped_to_cancel_; return;
      case OperationKind::kResetPrefixCache:
        ++counts_.resets;
        releases_pins_ = true;
        commands.emplace_back(ResetPrefixCache{});
        return;
      case OperationKind::kReleasePins:
        ++counts_.pin_releases;
        releases_pins_ = true;
        commands.emplace_back(ReleasePins{});
        return;
      case OperationKind::kFailSwap:
        runner_.fail_next_swap(static_cast<FailurePoint>(operation.amount % 3));
        return;
      case OperationKind::kFailStep:
        runner_.fail_next(static_cast<FailurePoint>(operation.amount % 3));
        return;
      case OperationKind::kLoseDevice: runner_.lose_device(); return;
      case OperationKind::kReaderSleeps:
        ++counts_.reader_sleeps;
        reader_.sleep(operation.amount);
        return;
      case OperationKind::kIntakeSleeps:
        ++counts_.intake_sleeps;
        intake_sleeps_ = std::max(intake_sleeps_, operation.amount);
        return;
    }
  }

  // In order, however long it took.
  void prepare(std::vector<EngineCommand>& commands) {
    while (intake_sleeps_ == 0) {
      auto job = preparation_.take();
      if (!job) break;
      PreparedRequest prepared = intake_.prepare(std::move(job->submit), job->stop);
      intake_rules_.check(runner_.asked(prepared.request_id), prepared,
                          intake_.num_encoded_system_messages());
      preparation_.finish(std::move(prepared));
    }
    for (EngineCommand& command : preparation_.take_ready()) commands.push_back(std::move(command));
  }

  void cancel(RequestId request_id, std::vector<EngineCommand>& commands) {
    answers_.cancelled(request_id);
    cancelled_.push_back(request_id);
    if (preparation_.cancel(request_id)) {
      ++counts_.cancels_preparing;
      return prepare(commands);
    }
    count_cancel(request_id);
    commands.emplace_back(CancelRequest{request_id});
  }

  void cancel_output(RequestId request_id, std::int32_t index, std::vector<EngineCommand>& commands) {
    answers_.output_cancelled(request_id, index);
    rules_.note_cancelled_output(request_id);
    if (!preparation_.cancel_output(request_id, index))
      commands.emplace_back(CancelOutput{request_id, index});
  }

  bool is_idle() const { return !core_.has_work() && preparation_.empty(); }

  void cancel_swapped(std::vector<EngineCommand>& commands) {
    if (num_swapped_to_cancel_ == 0) return;
    const auto swapped =
        std::ranges::find(snapshot_.sequences, SequenceState::kSwapped, &SequenceSnapshot::state);
    if (swapped == snapshot_.sequences.end()) return;
    --num_swapped_to_cancel_;
    cancel(swapped->request_id, commands);
  }

  void count_cancel(RequestId request_id) {
    if (!answers_.is_open(request_id)) {
      ++counts_.cancels_ended;
      return;
    }
    const auto sequence = std::ranges::find(snapshot_.sequences, request_id, &SequenceSnapshot::request_id);
    if (sequence == snapshot_.sequences.end() || sequence->state == SequenceState::kWaiting) {
      ++counts_.cancels_waiting;
    } else {
      ++(sequence->state == SequenceState::kSwapped ? counts_.cancels_swapped : counts_.cancels_running);
    }
  }

  // ---- one step and what must hold after it
  void step(std::vector<EngineCommand> commands) {
    if (progress_) *progress_ = counts_.steps;
    clock_.advance_us(static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(now_)) % 1000));
    const std::int64_t num_failed_before = runner_.num_failed_steps();
    const bool is_ahead = runner_.has_begun();
    const std::int64_t begin_us = clock_.now_us();
    const std::vector<EngineEvent> events =
        mutate_events(mutation_, core_.step(mutate_commands(mutation_, std::move(commands))));
    const bool device_failed = runner_.num_failed_steps() > num_failed_before;
    if (runner_.problem()) problem_.note(*runner_.problem());
    answers_.hear(events, {.begin_us = begin_us,
                           .end_us = clock_.now_us(),
                           .device_failed = device_failed,
                           .device_lost = runner_.is_lost()});
    for (const RequestId request_id : std::exchange(cancelled_, {})) {
      if (answers_.is_open(request_id)) problem_.note(request_id, "not ended by its cancel");
    }
    if (answers_.goes_on_cancelled()) problem_.note("an output goes on that was cancelled");
    if (is_idle() && answers_.num_open() > 0) answers_.check_all_ended();
    reader_.step(events, problem_);
    check_state(events, device_failed, is_ahead);
  }

  void check_state(const std::vector<EngineEvent>& events, bool device_failed, bool is_ahead) {
    if (const auto broken = core_.scheduler().broken_invariant()) problem_.note("invariant: " + *broken);
    const KvSnapshot before = std::exchange(snapshot_, core_.snapshot());
    rules_.note_ends(events);
    count_pauses(events);
    count_found_system_tokens(events);
    rules_.check_figures(snapshot_);
    const auto scheduled = runner_.take_scheduled();
    const auto drafted = runner_.take_drafted();
    for (const SimulatedRunner::Scheduled& one : scheduled) {
      if (device_failed && answers_.is_open(one.request_id))
        problem_.note(one.request_id, "goes on though its step failed");
    }
    const metrics::Trace trace = core_.recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
    if (trace.num_lost != 0 || trace.steps.size() > 1) problem_.note("a step left more than one record");
    for (const StepRecord& record : trace.steps) {
      ++counts_.steps;
      counts_.block_copies += record.num_block_copies;
      counts_.drafted_tokens += record.num_draft_tokens;
      counts_.accepted_tokens += record.num_accepted_tokens;
      rules_.check(record, snapshot_);
      rules_.check({before, snapshot_, events, scheduled, device_failed});
    }
    replay(trace.block_events);
    check_peaks();
    const StepView step{.before = before,
                        .after = snapshot_,
                        .events = events,
                        .block_events = trace.block_events,
                        .drafted = drafted,
                        .releases_pins = std::exchange(releases_pins_, false),
                        .device_failed = device_failed,
                        .is_ahead = is_ahead};
    memory_rules_.check(step);
    retention_rules_.check(step);
    admission_rules_.check(step, misses_of(events));
    preemption_rules_.check(step);
    for (const StepRecord& record : trace.steps) preemption_rules_.learn(record, device_failed);
    priority_rules_.check(step, scheduled);
    counts_.passed_over = priority_rules_.num_passed_over();
    counts_.gave_way = priority_rules_.num_gave_way();
    gap_rules_.check(step, runner_.take_timing());
    counts_.judged_gaps = gap_rules_.num_judged();
    runner_.poison_unfilled(snapshot_);
  }

  void count_pauses(const std::vector<EngineEvent>& events) {
    for (const EngineEvent& event : events) {
      const auto* preempted = std::get_if<RequestPreempted>(&event);
      if (!preempted) continue;
      const auto others =
          std::ranges::find(snapshot_.sequences, preempted->request_id, &SequenceSnapshot::request_id);
      const bool others_run = others != snapshot_.sequences.end() && others->state == SequenceState::kRunning;
      counts_.paused_outputs += others_run ? 1 : 0;
    }
  }

  void count_found_system_tokens(const std::vector<EngineEvent>& events) {
    for (const EngineEvent& event : events) {
      const auto* admission = std::get_if<RequestAdmitted>(&event);
      if (!admission) continue;
      const std::int32_t num_system_tokens = expected_system_tokens(runner_.asked(admission->request_id));
      counts_.found_system_tokens += std::min(admission->num_cached_tokens, num_system_tokens);
    }
  }

  // Of those who have not ended in the same step.
  std::vector<AdmittedMiss> misses_of(const std::vector<EngineEvent>& events) const {
    std::vector<AdmittedMiss> misses;
    for (const EngineEvent& event : events) {
      const auto* admission = std::get_if<RequestAdmitted>(&event);
      if (!admission || core_.scheduler().sequences_of(admission->request_id).empty()) continue;
      misses.push_back({admission->request_id, core_.scheduler().prefix_miss(admission->request_id)});
    }
    return misses;
  }

  // (Beams fork after the step whose peaks were noted.)
  void check_peaks() {
    const KvTotals& totals = core_.totals();
    if (totals.peak_used_blocks < snapshot_.figures.used_blocks ||
        totals.peak_host_used_blocks < snapshot_.figures.host_used_blocks)
      problem_.note("a level is above its peak");
  }

  // The state by events is the engine's own.
  void replay(const std::vector<BlockEvent>& events) {
    for (const BlockEvent& event : events) {
      counts_.forks += event.kind == BlockEventKind::kFork ? 1 : 0;
      counts_.prunes += event.kind == BlockEventKind::kPrune ? 1 : 0;
      if (auto applied = replayed_.apply(event); !applied) return problem_.note(applied.error().message);
    }
    if (auto difference = replayed_.difference(metrics::KvState::from(snapshot_)))
      problem_.note("replayed events differ from the state: " + *difference);
  }

  // ---- the end
  // Far more than all requests need one after another, each computed again after each of its tokens.
  std::int64_t most_steps() const {
    std::int64_t bound = 100;
    for (const Operation& operation : script_.operations) {
      bound += operation.amount;
      const ScriptedRequest& asked = operation.asked;
      const auto length = static_cast<std::int64_t>(asked.prompt.size()) + asked.max_tokens;
      // (Background requests may have a part in one step of 65.)
      bound += (has_both_lines(script_) ? 80 : 8) * (length / fewest_prompt_rows() + asked.max_tokens + 3) *
               asked.num_outputs();
    }
    return bound;
  }

  // Of a step that has any to give.
  std::int32_t fewest_prompt_rows() const {
    const std::int32_t most = script_.options.max_num_batched_tokens;
    return script_.options.target_step_us > 0 ? std::min(most, scheduler::kFewestPromptRows) : most;
  }

  void check_the_end() {
    answers_.check_all_ended();
    reader_.check_the_end(problem_);
    if (runner_.has_begun()) problem_.note("a step is under way after the end");
    const KvFigures& figures = snapshot_.figures;
    if (figures.used_blocks != 0 || !snapshot_.sequences.empty())
      problem_.note("blocks are in use after the end");
    if (figures.cached_blocks + figures.free_blocks != script_.options.num_blocks && counts_.steps > 0)
      problem_.note("the pool is not whole at the end");
  }

  void note_totals() {
    const KvTotals& totals = core_.totals();
    counts_.failed_steps = runner_.num_failed_steps();
    counts_.failed_swaps = runner_.num_failed_swaps();
    counts_.rows_ahead = runner_.num_rows_ahead();
    counts_.rows_in_vain = runner_.num_rows_in_vain();
    counts_.preempted_recompute = totals.preempted_recompute;
    counts_.preempted_swap = totals.preempted_swap;
    counts_.swapped_out_blocks = totals.swapped_out_blocks;
    counts_.swapped_in_blocks = totals.swapped_in_blocks;
    counts_.partial_copies = totals.partial_copies;
    counts_.hit_tokens = totals.prefix_hit_tokens;
    counts_.evictions = totals.evicted_cached_blocks;
    counts_.checkpoints = totals.states.num_taken;
    counts_.resumed_checkpoints = totals.states.num_resumed;
    counts_.evicted_checkpoints = totals.states.num_evicted;
    counts_.copied_states = totals.states.num_copied;
    counts_.left_window_parts = totals.windows.num_left;
    counts_.evicted_window_parts = totals.windows.num_evicted;
    counts_.swapped_window_parts = totals.windows.num_swapped_out + totals.windows.num_swapped_in;
    counts_.swapped_states = totals.states.num_swapped_out + totals.states.num_swapped_in;
  }

  const Script script_;
  const Mutation mutation_;
  volatile std::int64_t* const progress_;
  ManualClock clock_;
  SimulatedRunner runner_;
  MutatedRunner mutated_runner_;
  std::uint64_t num_drawn_seeds_ = 0;
  EngineCore core_;
  RequestIntake intake_;
  PreparationQueue preparation_{tokenizer()};
  Problem problem_;
  Counts counts_;
  IntakeRules intake_rules_;
  Answers answers_;
  Rules rules_;
  MemoryRules memory_rules_;
  RetentionRules retention_rules_;
  AdmissionRules admission_rules_;
  PreemptionRules preemption_rules_;
  PriorityRules priority_rules_;
  GapRules gap_rules_;
  SlowReader reader_;

  std::size_t next_ = 0;              // operation
  std::int32_t now_ = 0;              // step
  std::vector<RequestId> cancelled_;  // by the commands of this step
  bool releases_pins_ = false;        // one of them does
  std::int32_t num_swapped_to_cancel_ = 0;
  std::int32_t intake_sleeps_ = 0;  // steps
  KvSnapshot snapshot_;             // after the last step
  metrics::KvState replayed_;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
};

}  // namespace

Report live(const Script& script, Mutation mutation, volatile std::int64_t* progress) {
  return Simulation(script, mutation, progress).run();
}

}  // namespace octavo::simulation
