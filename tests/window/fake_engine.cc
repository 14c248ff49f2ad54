#include "tests/window/fake_engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace octavo::testing {
namespace {

constexpr std::int32_t kBlockSize = 16;

std::uint64_t content_of(std::span<const TokenId> tokens) {
  std::uint64_t hash = 1;
  for (const TokenId id : tokens) hash = hash_combine(hash, static_cast<std::uint64_t>(id));
  return hash | 1u;
}

// The next piece of at least `bytes`, in whole characters.
std::string take_piece(std::string& text, std::size_t bytes) {
  std::size_t end = 0;
  while (end < text.size() && end < bytes) end += decode_utf8(text, end).length;
  std::string piece = text.substr(0, end);
  text.erase(0, end);
  return piece;
}

// What ids stand for, in all vocabularies: also those of an engine that has ended.
class KnownPieces {
 public:
  void learn(std::uint64_t vocabulary, TokenId id, std::string_view piece) {
    const std::lock_guard lock(mutex_);
    pieces_[{vocabulary, id}] = piece;
  }
  std::string find(std::uint64_t vocabulary, TokenId id) {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find({vocabulary, id});
    return found == pieces_.end() ? "?" : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, TokenId>, std::string> pieces_;  // guarded by mutex_
};

KnownPieces& known_pieces() {
  static KnownPieces pieces;
  return pieces;
}

}  // namespace

Result<std::vector<TokenId>> FakeTokenizer::encode(std::string_view text, bool, bool,
                                                   const tokenizer::EncodeLimits&) const {
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint64_t hash = vocabulary_;
    for (const char c : text.substr(at, 4)) hash = hash_combine(hash, static_cast<unsigned char>(c));
    ids.push_back(static_cast<TokenId>(16 + hash % 1'000'000));
    known_pieces().learn(vocabulary_, ids.back(), text.substr(at, 4));
  }
  return ids;
}

Result<std::vector<TokenId>> FakeTokenizer::encode_spans(std::span<const tokenizer::PromptSpan> spans) const {
  std::string text;
  for (const auto& span : spans) text += span.text;
  return encode(text, false, false);
}

Result<std::vector<tokenizer::PromptSpan>> FakeTokenizer::apply_chat_template(
    std::span<const ChatMessage> messages, const TemplateInputs&) const {
  std::vector<tokenizer::PromptSpan> spans;
  for (const ChatMessage& message : messages) spans.push_back({message.content + "\n", true, -1});
  return spans;
}

Result<std::vector<TokenId>> FakeTokenizer::encode_chat(std::span<const ChatMessage> messages,
                                                        const TemplateInputs&,
                                                        const tokenizer::EncodeLimits&) const {
  std::vector<TokenId> ids;
  for (const ChatMessage& message : messages) {
    const auto content = encode(message.content, false, false);
    const auto& own = message.token_ids.empty() ? *content : message.token_ids;
    ids.push_back(8 + static_cast<TokenId>(message.role));
    ids.insert(ids.end(), own.begin(), own.end());
  }
  ids.push_back(kGenerationPrompt);
  return ids;
}

std::string_view FakeTokenizer::token_bytes(TokenId) const { return "?"; }
std::string FakeTokenizer::decode(std::span<const TokenId> ids, bool) const {
  std::string text;
  for (const TokenId id : ids) {
    if (id != kGenerationPrompt) text += known_pieces().find(vocabulary_, id);
  }
  return text;
}

FakeEngine::FakeEngine(Options options)
    : tokenizer_(options.vocabulary),
      options_(options),
      next_request_(options.first_request),
      next_sequence_(options.first_request),
      recorder_(std::make_shared<metrics::StepRecorder>(
          metrics::PoolShape{.block_size = kBlockSize, .num_blocks = options.num_blocks})) {
  ModelDescription& model = description_.model;
  model.path = options.path;
  model.name = options.name;
  model.architecture = "llama";
  model.quantisation = "Q4_1";
  model.num_parameters = 134'515'008;
  model.context_length = 8192;
  model.has_chat_template = true;
  model.sampling_advice = options.advice;
  model.template_switches = options.switches;
  description_.device = options_.device;
  description_.isa = "avx512_vnni";
  description_.threads = 2;
  description_.num_blocks = options.num_blocks;
  description_.bytes_per_block = 360 << 10;
  description_.max_model_len = options.max_model_len;
  description_.weight_bytes = options.weight_bytes;
  blocks_.resize(static_cast<std::size_t>(options.num_blocks));
}

RequestId FakeEngine::submit(GenerationRequest request) {
  Active active;
  active.id = RequestId{next_request_++};
  active.sequence_id = SequenceId{next_sequence_++};
  active.max_tokens = request.sampling.max_tokens;
  active.submitted_us = clock->now_us();
  const auto& messages = std::get<ChatPrompt>(request.prompt).messages;
  active.tokens = *tokenizer_.encode_chat(messages, 0);
  active.num_prompt = static_cast<std::int32_t>(active.tokens.size());
  if (answers.empty()) {
    active.rest = "You said: " + messages.back().content;
  } else {
    active.rest = std::move(answers.front());
    answers.pop_front();
  }
  const RequestId id = active.id;
  if (active.num_prompt > options_.max_model_len) {
    events_.push_back(RequestFailed{
        id,
        {ErrorCode::kTooLong, "the chat has " + std::to_string(active.num_prompt) +
                                  " tokens; the model takes " + std::to_string(options_.max_model_len) +
                                  ": begin a new chat"},
        {}});
  } else {
    events_.push_back(RequestAccepted{id, active.tokens, request.sampling.seed.value_or(7)});
    active_.push_back(std::move(active));
  }
  requests_.push_back(std::move(request));
  if (wake_up_) wake_up_();
  return id;
}

std::vector<RequestId> FakeEngine::submit_all(std::vector<GenerationRequest> requests) {
  std::vector<RequestId> ids;
  for (GenerationRequest& request : requests) ids.push_back(submit(std::move(request)));
  return ids;
}

void FakeEngine::cancel(RequestId request_id) {
  for (Active& active : active_) active.cancelled |= active.id == request_id;
  if (wake_up_) wake_up_();
}

std::vector<EngineEvent> FakeEngine::poll(std::chrono::microseconds) {
  if (device_lost_) fail_everything();
  if (!active_.empty()) step();
  if (!active_.empty() && steps_allowed != 0 && wake_up_) wake_up_();
  return std::exchange(events_, {});
}

void FakeEngine::fail_everything() {
  for (const Active& active : active_) {
    release(active);
    events_.push_back(
        RequestFailed{active.id, {ErrorCode::kDeviceLost, "the device failed: choose the CPU"}, {}});
  }
  active_.clear();
}

void FakeEngine::step() {
  const bool allowed = steps_allowed != 0;
  if (steps_allowed > 0) --steps_allowed;
  ++num_steps_;
  std::int32_t num_prefill = 0, num_decode = 0, num_running = 0;
  for (Active& active : active_) {
    if (active.cancelled) continue;
    if (!active.running && num_running < options_.max_running) {
      admit(active);
      num_prefill += active.num_prompt;
    }
    if (!active.running) continue;
    ++num_running;
    if (!allowed) continue;
    generate(active);
    ++num_decode;
  }
  for (Active& active : active_) {
    const bool long_enough = active.num_generated >= active.max_tokens ||
                             static_cast<std::int32_t>(active.tokens.size()) >= options_.max_model_len;
    if (active.cancelled) {
      finish(active, FinishReason::kAbort);
    } else if (active.running && (active.rest.empty() || long_enough) && active.num_generated > 0) {
      finish(active, active.rest.empty() ? FinishReason::kStop : FinishReason::kLength);
    }
  }
  std::erase_if(active_, [](const Active& active) { return active.num_prompt == 0; });
  record_step(num_prefill, num_decode);
}

void FakeEngine::admit(Active& active) {
  active.running = true;
  active.started_us = clock->now_us();
  std::int32_t num_cached = 0;
  const std::span<const TokenId> tokens = active.tokens;
  while (num_cached + kBlockSize < active.num_prompt) {
    const auto found =
        findable_.find(content_of(tokens.first(static_cast<std::size_t>(num_cached + kBlockSize))));
    if (found == findable_.end()) break;
    Block& block = blocks_[static_cast<std::size_t>(found->second)];
    ++block.ref_count;
    active.table.push_back(BlockId{found->second});
    record(BlockEventKind::kHit, active.sequence_id.value, found->second, block.ref_count);
    num_cached += kBlockSize;
  }
  extend_table(active);
  events_.push_back(
      RequestAdmitted{active.id, num_cached, clock->now_us() - active.submitted_us, active.sequence_id});
}

void FakeEngine::generate(Active& active) {
  const std::string piece = take_piece(active.rest, 4);
  const TokenId id = piece.empty() ? FakeTokenizer::kEnd : tokenizer_.encode(piece, false, false)->front();
  if (active.num_generated++ == 0) active.first_token_us = clock->now_us();
  active.tokens.push_back(id);
  extend_table(active);
  events_.push_back(TokensGenerated{.request_id = active.id,
                                    .token_ids = {id},
                                    .logprobs = {},
                                    .top_logprobs = {},
                                    .text = piece,
                                    .ttft_us = active.first_token_us - active.submitted_us});
}

void FakeEngine::extend_table(Active& active) {
  const auto num_tokens = static_cast<std::int32_t>(active.tokens.size());
  while (static_cast<std::int32_t>(active.table.size()) * kBlockSize < num_tokens) {
    const BlockId taken = take_block();
    blocks_[static_cast<std::size_t>(taken.value)].parent =
        active.table.empty() ? -1 : active.table.back().value;
    active.table.push_back(taken);
    record(BlockEventKind::kAlloc, active.sequence_id.value, taken.value, 0);
  }
  for (std::size_t i = 0; i < active.table.size(); ++i) {
    Block& block = blocks_[static_cast<std::size_t>(active.table[i].value)];
    const std::int32_t filled = std::min(kBlockSize, num_tokens - static_cast<std::int32_t>(i) * kBlockSize);
    if (std::exchange(block.filled, filled) != filled)
      record(BlockEventKind::kFill, active.sequence_id.value, active.table[i].value, filled);
    if (block.filled < kBlockSize || block.content != 0) continue;
    block.content = content_of(std::span<const TokenId>(active.tokens).first((i + 1) * kBlockSize));
    findable_.emplace(block.content, active.table[i].value);
    record(BlockEventKind::kSeal, active.sequence_id.value, active.table[i].value, 0);
  }
}

BlockId FakeEngine::take_block() {
  const auto is_free = [](const Block& block) { return block.ref_count == 0 && block.content == 0; };
  auto found = std::find_if(blocks_.begin(), blocks_.end(), is_free);
  if (found == blocks_.end()) {
    const auto is_cached = [](const Block& block) { return block.ref_count == 0; };
    found = std::find_if(blocks_.begin() + next_victim_, blocks_.end(), is_cached);
    if (found == blocks_.end()) found = std::find_if(blocks_.begin(), blocks_.end(), is_cached);
    next_victim_ = static_cast<std::int32_t>(found - blocks_.begin());
    findable_.erase(found->content);
    record(BlockEventKind::kEvict, 0, next_victim_, 0);
  }
  *found = {.ref_count = 1};
  return BlockId{static_cast<std::int32_t>(found - blocks_.begin())};
}

void FakeEngine::release(const Active& active) {
  for (const BlockId id : active.table) {
    Block& block = blocks_[index_of(id)];
    record(BlockEventKind::kUnref, active.sequence_id.value, id.value, --block.ref_count);
    if (block.ref_count > 0 || block.content != 0) continue;
    block = {};
    record(BlockEventKind::kFree, active.sequence_id.value, id.value, 0);
  }
}

void FakeEngine::finish(Active& active, FinishReason reason) {
  release(active);
  const std::int64_t now = clock->now_us();
  RequestMetrics metrics{.queue_us = active.started_us - active.submitted_us,
                         .ttft_us = active.first_token_us - active.submitted_us,
                         .e2e_us = now - active.submitted_us};
  if (active.num_generated > 1) metrics.tpot_us = (now - active.first_token_us) / (active.num_generated - 1);
  events_.push_back(OutputFinished{.request_id = active.id, .finish_reason = reason});
  events_.push_back(RequestFinished{active.id, {}, metrics});
  active.num_prompt = 0;
}

void FakeEngine::record(BlockEventKind kind, std::uint64_t sequence, std::int32_t block, std::int32_t aux) {
  const BlockEvent event{num_steps_, clock->now_us(), sequence, block, aux, kind};
  recorder_->record(std::nullopt, {&event, 1});
}

KvFigures FakeEngine::figures() const {
  KvFigures figures;
  for (const Block& block : blocks_) {
    if (block.ref_count > 0) {
      ++figures.used_blocks;
      figures.unfilled_slots += kBlockSize - block.filled;
    } else {
      ++(block.content != 0 ? figures.cached_blocks : figures.free_blocks);
    }
  }
  for (const Active& active : active_)
    figures.logical_blocks += static_cast<std::int32_t>(active.table.size());
  if (figures.used_blocks > 0) {
    figures.sharing_ratio = static_cast<double>(figures.logical_blocks) / figures.used_blocks;
    figures.internal_fragmentation =
        static_cast<double>(figures.unfilled_slots) / (kBlockSize * figures.used_blocks);
  }
  figures.saved_bytes = (figures.logical_blocks - figures.used_blocks) * description_.bytes_per_block;
  return figures;
}

void FakeEngine::record_step(std::int32_t num_prefill, std::int32_t num_decode) {
  const KvFigures now = figures();
  StepRecord record;
  record.step = num_steps_;
  record.begin_us = clock->now_us();
  record.num_prefill_tokens = num_prefill;
  record.num_decode_tokens = num_decode;
  record.num_running = static_cast<std::int32_t>(active_.size());
  record.used_blocks = now.used_blocks;
  record.cached_blocks = now.cached_blocks;
  record.free_blocks = now.free_blocks;
  record.logical_blocks = now.logical_blocks;
  record.unfilled_slots = now.unfilled_slots;
  recorder_->record(record, {});
}

std::shared_ptr<const KvSnapshot> FakeEngine::kv_snapshot(SnapshotScope scope) {
  const std::uint64_t mark = recorder_->next_event_mark();
  const bool is_newest = published_ != nullptr && published_->event_mark == mark &&
                         published_->step == num_steps_ && published_->scope() == scope;
  if (is_newest) return published_;
  auto snapshot = std::make_shared<KvSnapshot>();
  snapshot->step = num_steps_;
  snapshot->time_us = clock->now_us();
  snapshot->event_mark = mark;
  snapshot->totals = kv_totals();
  snapshot->figures = figures();
  snapshot->blocks.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const BlockState state = block.ref_count > 0  ? BlockState::kUsed
                             : block.content != 0 ? BlockState::kCached
                                                  : BlockState::kFree;
    snapshot->blocks[i] = {.state = state,
                           .ref_count = block.ref_count,
                           .filled = block.filled,
                           .parent = block.parent,
                           .findable = block.content != 0};
  }
  for (auto active = active_.rbegin(); active != active_.rend(); ++active) {
    if (!active->running) continue;
    for (const BlockId id : active->table) {
      snapshot->blocks[index_of(id)].first_owner = active->sequence_id;
    }
    const auto num_tokens = static_cast<std::int32_t>(active->tokens.size());
    snapshot->sequences.insert(snapshot->sequences.begin(), {.sequence_id = active->sequence_id,
                                                             .request_id = active->id,
                                                             .state = SequenceState::kRunning,
                                                             .num_tokens = num_tokens,
                                                             .num_computed_tokens = num_tokens,
                                                             .block_table = active->table});
  }
  if (scope == SnapshotScope::kSequences) snapshot->blocks.clear();
  published_ = snapshot;
  return snapshot;
}

KvTotals FakeEngine::kv_totals() const {
  KvTotals totals;
  totals.block_size = kBlockSize;
  totals.num_blocks = options_.num_blocks;
  totals.bytes_per_block = description_.bytes_per_block;
  return totals;
}

}  // namespace octavo::testing
