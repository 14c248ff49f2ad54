// Random requests on a random pool, through the real engine core: shared starts, several outputs, beams,
// cancels, a cache that is emptied, a device that fails. What is tried is drawn from one seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/block/window_manager.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::metrics {

// Draws tokens from nothing but sequence and position, and fails when told.
class CarelessRunner final : public runner::Runner {
 public:
  bool fails = false;

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    if (fails) return Error{ErrorCode::kDevice, "the device fell over"};
    for (const auto& row : step.sequences) {
      for (std::size_t i = 0; i < row.samples.size(); ++i) {
        const auto& target = row.samples[i];
        if (i > 0 && row.num_draft_tokens > 0 && output.tokens.back().token_id != row.draft()[i - 1]) break;
        runner::SampledToken& token = output.tokens.emplace_back();
        token.sequence_id = target.sequence_id;
        const std::uint64_t bits = token_bits(target.sequence_id.value, target.output_token_ids.size());
        if (target.num_candidates == 0) {
          token.token_id = letter(bits);
          token.logprob = -1.0f;
          continue;
        }
        for (std::int32_t i = 0; i < target.num_candidates && i < 16; ++i) {
          const float logprob = -0.5f - static_cast<float>(i) - 0.1f * static_cast<float>(bits % 7);
          token.candidates.push_back({letter(bits + static_cast<std::uint64_t>(i)), logprob, logprob});
        }
      }
    }
    return {};
  }

 private:
  // Every other sequence repeats eight tokens, but for one token in nine.
  static std::uint64_t token_bits(std::uint64_t sequence, std::size_t position) {
    const bool repeats = sequence % 2 == 0 && position % 9 != 8;
    return hash_combine(sequence, repeats ? position % 8 : position);
  }

  // Ids 4 to 19 of the toy tokenizer: no output ends by itself.
  static TokenId letter(std::uint64_t bits) { return static_cast<TokenId>(4 + bits % 16); }
};

// Whether the model has layers that keep a state, or that have a window and a pool for it.
enum class TrafficLayers { kAttention, kRecurrent, kWindowed };
inline TrafficLayers layers_of(unsigned seed) { return static_cast<TrafficLayers>(seed % 3); }

class EngineTraffic {
 public:
  explicit EngineTraffic(unsigned seed, TrafficLayers layers = TrafficLayers::kAttention)
      : random_(seed), options_(draw_options(layers)), core_(options_, dependencies()) {}

  // One step of the core, with whatever is asked of it at that moment. Never inlined: GCC 12 would then warn
  // of the storage of variants, for no reason.
  [[gnu::noinline]] void step() {
    clock_.advance_us(1 + below(2'000));
    runner_.fails = below(100) < percent_failing_;
    std::vector<EngineCommand> commands;
    if (below(3) == 0) {
      GenerationRequest request = draw_request();
      if (below(4) == 0) {  // as from two programs: both compute what neither finds
        commands.push_back(submit(request));
        request.retention = draw_retention();
      }
      commands.push_back(submit(std::move(request)));
    }
    if (below(100) < percent_cancelled_ && num_submitted_ > 0) {
      commands.push_back(CancelRequest{RequestId{1 + random_() % num_submitted_}});
    }
    if (below(80) == 0) commands.push_back(ResetPrefixCache{});
    core_.step(std::move(commands));
  }

  void drain() {
    runner_.fails = false;
    while (core_.has_work()) {
      clock_.advance_us(1'000);
      core_.step({});
    }
  }

  const EngineCore& core() const { return core_; }
  const scheduler::SchedulerOptions& options() const { return options_; }
  PoolShape pool() const {
    return {options_.block_size,        options_.num_blocks,
            options_.num_host_blocks,   options_.num_states,
            options_.num_host_states,   options_.window,
            options_.num_window_blocks, options_.num_host_window_blocks};
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_()) % bound; }

 private:
  EngineDependencies dependencies() {
    return {.runner = &runner_, .clock = &clock_, .tokenizer = &tokenizer_};
  }

  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low + 1)));
  }

  scheduler::SchedulerOptions draw_options(TrafficLayers layers) {
    constexpr std::int32_t kBlockSizes[] = {1, 2, 4, 8, 16};
    constexpr PreemptionPolicy kModes[] = {PreemptionPolicy::kAuto, PreemptionPolicy::kSwap,
                                           PreemptionPolicy::kRecompute};
    constexpr AdmissionReserve kReserves[] = {
        AdmissionReserve::kLookAhead, AdmissionReserve::kBlockPerSequence, AdmissionReserve::kOnePercent};
    scheduler::SchedulerOptions options;
    options.block_size = kBlockSizes[below(5)];
    options.num_blocks = between(6, 60);
    options.num_host_blocks = below(3) == 0 ? 0 : between(1, options.num_blocks);
    options.preemption_mode = kModes[below(3)];
    options.admission_reserve = kReserves[below(3)];
    options.bytes_per_block = 64;
    options.max_num_seqs = between(1, 12);
    options.max_num_batched_tokens = between(4, below(2) == 0 ? 8 : 64);
    options.max_model_len = between(8, 120);
    options.enable_prefix_caching = below(5) != 0;
    options.speculative = below(2) == 0 ? Speculation::kOff : Speculation::kNgram;
    if (layers == TrafficLayers::kRecurrent) {
      options.num_states = between(options.max_num_seqs, options.max_num_seqs + 8);
      options.num_host_states = below(2) == 0 ? 0 : between(1, options.num_states);
      options.bytes_per_state = 640;
    }
    if (layers == TrafficLayers::kWindowed) draw_windows(options);
    percent_failing_ = below(3) == 0 ? below(10) : 0;
    percent_cancelled_ = below(2) == 0 ? below(12) : 0;
    return options;
  }

  // Of the length of a few blocks, and places for a few sequences.
  void draw_windows(scheduler::SchedulerOptions& options) {
    const std::int32_t block_size = options.block_size;
    options.window = between(2, 3 * block_size + 2);
    const std::int32_t num_running = between(1, options.max_num_seqs);
    options.num_window_blocks = block::num_places_for_step(options.max_num_batched_tokens, block_size) +
                                num_running * block::num_places_for_sequence(options.window, block_size);
    options.num_window_blocks = std::min(options.num_window_blocks, options.num_blocks);
    if (options.num_host_blocks > 0 && below(3) != 0)
      options.num_host_window_blocks = between(1, options.num_host_blocks);
    options.bytes_per_window_block = 32;
  }

  EngineCommand submit(GenerationRequest request) {
    return intake_.prepare({RequestId{++num_submitted_}, std::move(request), clock_.now_us()});
  }

  // Nothing: as the engine chooses.
  std::optional<RetentionClass> draw_retention() {
    if (below(3) != 0) return std::nullopt;
    return static_cast<RetentionClass>(below(3));
  }

  // Half of the prompts begin alike.
  GenerationRequest draw_request() {
    GenerationRequest request;
    TokenPrompt prompt;
    const std::int32_t num_tokens = between(1, std::max(1, options_.max_model_len - 2));
    const std::uint32_t start = below(2) == 0 ? 0 : 1 + below(1'000);
    for (std::int32_t i = 0; i < num_tokens; ++i) {
      prompt.token_ids.push_back(
          static_cast<TokenId>(4 + hash_combine(start, static_cast<std::uint64_t>(i)) % 16));
    }
    if (below(2) == 0) prompt.token_ids.back() = static_cast<TokenId>(4 + below(16));
    const bool continues = options_.num_states + options_.window > 0 && below(2) == 0;
    if (continues) prompt.token_ids = longer_prompt();
    request.prompt = std::move(prompt);
    request.sampling.max_tokens = continues ? 1 : between(1, 30);
    request.sampling.ignore_eos = true;
    if (below(3) == 0) request.sampling.n = between(1, 5);
    if (below(4) == 0) request.sampling.beam_width = between(2, 4);
    if (below(6) == 0) request.cache_salt = "salt";
    request.retention = draw_retention();
    return request;
  }

  // That of the last one, and more: it ends with its prompt, and leaves a checkpoint there.
  std::vector<TokenId> longer_prompt() {
    const auto most = static_cast<std::size_t>(std::max(1, options_.max_model_len - 2));
    if (growing_.size() >= most) growing_.clear();
    const std::size_t wanted = std::min(most, growing_.size() + static_cast<std::size_t>(between(1, 40)));
    while (growing_.size() < wanted) growing_.push_back(static_cast<TokenId>(4 + below(16)));
    return growing_;
  }

  std::mt19937_64 random_;
  std::vector<TokenId> growing_;
  std::uint32_t percent_failing_ = 0, percent_cancelled_ = 0;
  const simulation::ToyTokenizer tokenizer_;
  ManualClock clock_;
  CarelessRunner runner_;
  std::uint64_t num_submitted_ = 0, num_seeds_drawn_ = 0;
  const scheduler::SchedulerOptions options_;
  EngineCore core_;
  RequestIntake intake_{{.tokenizer = &tokenizer_,
                         .draw_seed = [this] { return ++num_seeds_drawn_; },
                         .unix_time_s = [] { return std::int64_t{0}; }}};
};

}  // namespace octavo::metrics
