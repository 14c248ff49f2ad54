#include "engine/core/engine_thread.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <utility>

#include "engine/base/draw_seed.h"
#include "engine/base/request_counter.h"
#include "engine/grammar/grammar_compiler.h"

namespace octavo {
namespace {

// Calls that the engine has not seen yet. It takes all of them before each step, so a caller that finds the
// queue full waits for one step at most.
constexpr std::size_t kCommandCapacity = 1024;

IntakeSources real_sources(const tokenizer::Tokenizer& tokenizer,
                           const scheduler::SchedulerOptions& options) {
  IntakeSources sources{.tokenizer = &tokenizer,
                        .num_end_tokens = 0,
                        .max_prompt_tokens = static_cast<std::size_t>(std::max(1, options.max_model_len - 1)),
                        .memory_ends_exactly = options.num_states > 0 || options.window > 0,
                        .draw_seed = draw_seed};
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_end_of_sequence(id)) ++sources.num_end_tokens;
  }
  sources.unix_time_s = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
  sources.compile_grammar = [compiler = std::make_shared<GrammarCompiler>(tokenizer)](
                                const StructuredOutput& wanted, std::stop_token stop) {
    return compiler->compile(wanted, std::move(stop));
  };
  return sources;
}

RequestFailed failed_by_stop(RequestId request_id) {
  Error error{ErrorCode::kCancelled, "the engine was stopped before this request; send it to one that runs"};
  return {request_id, std::move(error), {}};
}

// There may be nobody to tell but whoever started the program.
void say_that_recording_ended(const Error& error) {
  std::fprintf(stderr, "octavo: %s\n", error.message.c_str());
}

std::unique_ptr<metrics::RecordingWriter> start_recording(
    std::unique_ptr<metrics::ByteSink> sink, const EngineDescription& description,
    std::shared_ptr<const metrics::StepRecorder> recorder) {
  if (!sink) return nullptr;
  metrics::RecordingHeader header;
  header.bytes_per_block = description.bytes_per_block;
  header.bytes_per_state = description.bytes_per_state;
  header.max_model_len = description.max_model_len;
  header.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
  header.model = description.model.name;
  return std::make_unique<metrics::RecordingWriter>(std::move(sink), std::move(header), std::move(recorder),
                                                    say_that_recording_ended);
}

}  // namespace

EngineThread::EngineThread(EngineParts parts, std::unique_ptr<metrics::ByteSink> recording)
    : parts_(std::move(parts)),
      commands_(kCommandCapacity),
      core_(parts_.scheduler,
            {.runner = parts_.runner.get(), .clock = &clock_, .tokenizer = parts_.tokenizer.get()}),
      recording_(start_recording(std::move(recording), parts_.description, core_.recorder())),
      thread_([this] { run(); }) {
  preparer_.emplace(real_sources(*parts_.tokenizer, parts_.scheduler),
                    [this](std::vector<EngineCommand> commands) { commands_.push(std::move(commands)); });
}

// What is not prepared yet is abandoned first: it still enters, to be ended with the others.
void EngineThread::stop() {
  std::lock_guard lock(stop_mutex_);
  if (!thread_.joinable()) return;
  preparer_->close();
  commands_.close();
  closing_ = true;
  thread_.join();
  outbox_.close();
}

// ---- callers' side

RequestId EngineThread::submit(GenerationRequest request) {
  std::vector<GenerationRequest> requests;
  requests.push_back(std::move(request));
  return submit_all(std::move(requests)).front();
}

std::vector<RequestId> EngineThread::submit_all(std::vector<GenerationRequest> requests) {
  std::vector<RequestId> request_ids;
  std::vector<SubmitRequest> batch;
  const std::int64_t now_us = clock_.now_us();
  std::lock_guard lock(submit_mutex_);
  for (GenerationRequest& request : requests) {
    request_ids.push_back(next_request_id());
    batch.push_back({request_ids.back(), std::move(request), now_us});
  }
  if (!preparer_->submit(std::move(batch))) {
    std::vector<EngineEvent> refused;
    for (const RequestId request_id : request_ids) refused.push_back(failed_by_stop(request_id));
    outbox_.add(std::move(refused));
    wake_reader();
  }
  return request_ids;
}

void EngineThread::cancel(RequestId request_id) { preparer_->cancel(request_id); }

void EngineThread::cancel_output(RequestId request_id, std::int32_t output_index) {
  preparer_->cancel_output(request_id, output_index);
}

void EngineThread::reset_prefix_cache() { commands_.push({ResetPrefixCache{}}); }

std::vector<EngineEvent> EngineThread::poll(std::chrono::microseconds timeout) {
  return outbox_.take(timeout);
}

void EngineThread::set_wake_up(std::function<void()> wake_up) {
  std::lock_guard lock(published_mutex_);
  wake_up_ = std::move(wake_up);
}

void EngineThread::watch_block(std::optional<BlockId> block) {
  watched_block_ = block ? block->value : -1;
  CommandBatch nothing;
  commands_.try_push(nothing);
}

std::shared_ptr<const KvSnapshot> EngineThread::kv_snapshot(SnapshotScope scope) {
  const bool asks_for_more = scope == SnapshotScope::kPool && !pool_wanted_.exchange(true);
  if (!snapshot_wanted_.exchange(true) || asks_for_more) {
    CommandBatch nothing;
    commands_.try_push(nothing);  // wakes an idle engine; a full queue means that it is awake
  }
  std::lock_guard lock(published_mutex_);
  return snapshot_;
}

KvTotals EngineThread::kv_totals() const {
  std::lock_guard lock(published_mutex_);
  return totals_;
}

std::vector<ExpertChoices> EngineThread::take_expert_choices() {
  if (parts_.description.model.num_experts == 0) return {};
  std::lock_guard lock(published_mutex_);
  experts_wanted_ = true;
  return std::exchange(expert_choices_, {});
}

std::shared_ptr<const metrics::StepRecorder> EngineThread::history() const { return core_.recorder(); }

// ---- engine thread

void EngineThread::run() {
  tell({}, /*changed=*/true);
  std::vector<EngineCommand> commands = next_commands();
  while (!closing_) {
    core_.report_experts(experts_wanted_);
    const bool changed = !commands.empty() || core_.has_work();
    tell(core_.step(std::move(commands)), changed);
    commands = next_commands();
  }
  std::vector<EngineCommand> last = next_commands();  // the queue is closed: after these there are none
  commands.insert(commands.end(), std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  tell(core_.stop(std::move(commands)), /*changed=*/true);
}

// State first, then events: whoever has read of an end finds it in the totals.
void EngineThread::tell(std::vector<EngineEvent> events, bool changed) {
  if (recording_) recording_->notify();
  const bool has_events = !events.empty();
  bool has_snapshot = publish_state(changed);
  has_snapshot |= publish_experts();
  outbox_.add(std::move(events));
  if (has_events || has_snapshot) wake_reader();
}

// Everything asked since the last step; sleeps while there is nothing to do and the queue is open.
std::vector<EngineCommand> EngineThread::next_commands() {
  std::vector<EngineCommand> commands;
  std::optional<CommandBatch> batch = core_.has_work() ? commands_.try_pop() : commands_.pop();
  for (; batch; batch = commands_.try_pop()) {
    commands.insert(commands.end(), std::make_move_iterator(batch->begin()),
                    std::make_move_iterator(batch->end()));
  }
  return commands;
}

// True when a snapshot was published. A wish for one is kept until there is a state that its asker has not
// seen: an idle window that asks at each frame neither keeps the engine busy nor misses the next change.
bool EngineThread::publish_state(bool changed) {
  const std::int32_t watched = watched_block_;
  if (changed || watched != published_watch_) snapshot_is_newest_ = false;
  if (pool_wanted_ && published_scope_ != SnapshotScope::kPool) snapshot_is_newest_ = false;
  std::shared_ptr<const KvSnapshot> snapshot;
  if (!snapshot_is_newest_ && snapshot_wanted_.exchange(false)) {
    published_scope_ = pool_wanted_.exchange(false) ? SnapshotScope::kPool : SnapshotScope::kSequences;
    KvSnapshot state = core_.snapshot(published_scope_);
    const bool describes = published_scope_ == SnapshotScope::kPool && watched >= 0;
    if (describes && watched < state.totals.num_blocks)
      state.watched = core_.describe_block(BlockId{watched});
    published_watch_ = watched;
    snapshot = std::make_shared<const KvSnapshot>(std::move(state));
    snapshot_is_newest_ = true;
  }
  std::lock_guard lock(published_mutex_);
  totals_ = core_.totals();
  if (snapshot) snapshot_ = snapshot;
  return snapshot != nullptr;
}

// Whoever does not ask for so long does not look any more.
bool EngineThread::publish_experts() {
  std::optional<ExpertChoices> choices = core_.take_expert_choices();
  if (!choices) return false;
  std::lock_guard lock(published_mutex_);
  expert_choices_.push_back(*std::move(choices));
  if (expert_choices_.size() >= kMostStepsUnasked) experts_wanted_ = false;
  return true;
}

void EngineThread::wake_reader() {
  std::function<void()> wake_up;
  {
    std::lock_guard lock(published_mutex_);
    wake_up = wake_up_;
  }
  if (wake_up) wake_up();
}

}  // namespace octavo
