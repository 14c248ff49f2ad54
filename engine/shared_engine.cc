#include "engine/shared_engine.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <variant>

#include "engine/core/event_outbox.h"

namespace octavo {
namespace {

bool is_last_event(const EngineEvent& event) {
  return std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event);
}

}  // namespace

// The engine and who reads it.
class SharedEngine::Hub {
 public:
  Hub(std::unique_ptr<Engine> engine, Observer everything)
      : everything_(std::move(everything)), engine_(std::move(engine)) {
    engine_->set_wake_up([this] { wake_all(); });
  }

  Engine& engine() { return *engine_; }

  void add(Reader& reader) {
    const std::lock_guard lock(wake_mutex_);
    readers_.push_back(&reader);
  }
  void remove(Reader& reader) {
    {
      const std::lock_guard lock(wake_mutex_);
      std::erase(readers_, &reader);
    }
    const std::lock_guard lock(mutex_);
    std::erase_if(owners_, [&](const auto& owned) { return owned.second == &reader; });
  }

  std::vector<RequestId> submit_all(Reader& reader, std::vector<GenerationRequest> requests) {
    const std::lock_guard lock(mutex_);
    const std::vector<RequestId> ids = engine_->submit_all(std::move(requests));
    for (const RequestId id : ids) owners_.emplace(id, &reader);
    return ids;
  }
  void cancel(RequestId id) {
    const std::lock_guard lock(mutex_);
    engine_->cancel(id);
  }

  void cancel_output(RequestId id, std::int32_t output_index) {
    const std::lock_guard lock(mutex_);
    engine_->cancel_output(id, output_index);
  }

  void hand_out();
  // How often the engine had something to tell.
  std::uint64_t num_wakes() const {
    const std::lock_guard lock(wake_mutex_);
    return num_wakes_;
  }
  // Returns when it had more to tell than that, when it was stopped, or at the end. False at the end.
  bool wait_for_more(std::uint64_t seen, std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(wake_mutex_);
    return woken_.wait_until(lock, end, [&] { return num_wakes_ != seen || is_stopped_; });
  }
  void stop() {
    engine_->stop();
    {
      const std::lock_guard lock(wake_mutex_);
      is_stopped_ = true;
    }
    woken_.notify_all();
  }
  bool is_stopped() const {
    const std::lock_guard lock(wake_mutex_);
    return is_stopped_;
  }
  void set_wake_up(Reader& reader, std::function<void()> wake_up);

 private:
  void wake_all();

  const Observer everything_;
  // Held while requests are submitted and events handed out, so that none comes before its reader is known.
  std::mutex mutex_;
  std::unordered_map<RequestId, Reader*> owners_;  // guarded by mutex_
  // Never held while the engine is called: it wakes from its own thread, and from submit() when it was
  // stopped.
  mutable std::mutex wake_mutex_;
  std::condition_variable woken_;
  std::vector<Reader*> readers_;  // guarded by wake_mutex_, as are the next two and Reader::wake_up_
  std::uint64_t num_wakes_ = 0;
  bool is_stopped_ = false;
  const std::unique_ptr<Engine> engine_;  // last: its thread uses all of the above
};

class SharedEngine::Reader final : public Engine {
 public:
  explicit Reader(Hub& hub) : hub_(hub) { hub_.add(*this); }
  ~Reader() override { hub_.remove(*this); }

  const EngineDescription& description() const override { return hub_.engine().description(); }
  const tokenizer::Tokenizer& tokenizer() const override { return hub_.engine().tokenizer(); }
  RequestId submit(GenerationRequest request) override {
    std::vector<GenerationRequest> one;
    one.push_back(std::move(request));
    return submit_all(std::move(one)).front();
  }
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override {
    return hub_.submit_all(*this, std::move(requests));
  }
  void cancel(RequestId request_id) override { hub_.cancel(request_id); }
  void cancel_output(RequestId request_id, std::int32_t output_index) override {
    hub_.cancel_output(request_id, output_index);
  }
  void reset_prefix_cache() override { hub_.engine().reset_prefix_cache(); }
  void stop() override { hub_.stop(); }
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override;
  void set_wake_up(std::function<void()> wake_up) override { hub_.set_wake_up(*this, std::move(wake_up)); }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override {
    return hub_.engine().kv_snapshot(scope);
  }
  void watch_block(std::optional<BlockId> block) override { hub_.engine().watch_block(block); }
  KvTotals kv_totals() const override { return hub_.engine().kv_totals(); }
  std::vector<ExpertChoices> take_expert_choices() override { return hub_.engine().take_expert_choices(); }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return hub_.engine().history(); }
  Trace trace_since(std::uint64_t step_mark, std::uint64_t event_mark) const override {
    return hub_.engine().trace_since(step_mark, event_mark);
  }

  void give(std::vector<EngineEvent> events) { outbox_.add(std::move(events)); }

 private:
  friend class Hub;

  Hub& hub_;
  EventOutbox outbox_;
  std::function<void()> wake_up_;  // guarded by Hub::wake_mutex_
};

// ---- the hub

void SharedEngine::Hub::hand_out() {
  const std::lock_guard lock(mutex_);
  for (EngineEvent& event : engine_->poll(std::chrono::microseconds(0))) {
    if (everything_) everything_(event);
    const auto owner = owners_.find(request_id_of(event));
    if (owner == owners_.end()) continue;  // its reader has gone
    Reader& reader = *owner->second;
    if (is_last_event(event)) owners_.erase(owner);
    std::vector<EngineEvent> one;
    one.push_back(std::move(event));
    reader.give(std::move(one));
  }
}

// One may have handed out what another one waits for: all are woken.
void SharedEngine::Hub::wake_all() {
  {
    const std::lock_guard lock(wake_mutex_);
    ++num_wakes_;
    for (const Reader* reader : readers_)
      if (reader->wake_up_) reader->wake_up_();
  }
  woken_.notify_all();
}

void SharedEngine::Hub::set_wake_up(Reader& reader, std::function<void()> wake_up) {
  const std::lock_guard lock(wake_mutex_);
  reader.wake_up_ = std::move(wake_up);
}

// ---- a reader

std::vector<EngineEvent> SharedEngine::Reader::poll(std::chrono::microseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const std::uint64_t seen = hub_.num_wakes();
    const bool was_stopped = hub_.is_stopped();
    hub_.hand_out();
    std::vector<EngineEvent> events = outbox_.take(std::chrono::microseconds(0));
    if (!events.empty() || was_stopped || !hub_.wait_for_more(seen, end)) return events;
  }
}

// ---- the first reader

SharedEngine::SharedEngine(std::unique_ptr<Engine> engine, Observer everything)
    : hub_(std::make_unique<Hub>(std::move(engine), std::move(everything))),
      first_(std::make_unique<Reader>(*hub_)) {}
SharedEngine::~SharedEngine() = default;

std::unique_ptr<Engine> SharedEngine::open_reader() { return std::make_unique<Reader>(*hub_); }

const EngineDescription& SharedEngine::description() const { return first_->description(); }
const tokenizer::Tokenizer& SharedEngine::tokenizer() const { return first_->tokenizer(); }
RequestId SharedEngine::submit(GenerationRequest request) { return first_->submit(std::move(request)); }
std::vector<RequestId> SharedEngine::submit_all(std::vector<GenerationRequest> requests) {
  return first_->submit_all(std::move(requests));
}
void SharedEngine::cancel(RequestId request_id) { first_->cancel(request_id); }
void SharedEngine::cancel_output(RequestId request_id, std::int32_t output_index) {
  first_->cancel_output(request_id, output_index);
}
void SharedEngine::reset_prefix_cache() { first_->reset_prefix_cache(); }
void SharedEngine::stop() { first_->stop(); }
std::vector<EngineEvent> SharedEngine::poll(std::chrono::microseconds timeout) {
  return first_->poll(timeout);
}
void SharedEngine::set_wake_up(std::function<void()> wake_up) { first_->set_wake_up(std::move(wake_up)); }
std::shared_ptr<const KvSnapshot> SharedEngine::kv_snapshot(SnapshotScope scope) {
  return first_->kv_snapshot(scope);
}
void SharedEngine::watch_block(std::optional<BlockId> block) { first_->watch_block(block); }
KvTotals SharedEngine::kv_totals() const { return first_->kv_totals(); }
std::vector<ExpertChoices> SharedEngine::take_expert_choices() { return first_->take_expert_choices(); }
std::shared_ptr<const metrics::StepRecorder> SharedEngine::history() const { return first_->history(); }
Engine::Trace SharedEngine::trace_since(std::uint64_t step_mark, std::uint64_t event_mark) const {
  return first_->trace_since(step_mark, event_mark);
}

}  // namespace octavo
