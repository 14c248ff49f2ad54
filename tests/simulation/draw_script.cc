#include "tests/simulation/draw_script.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/simulation/draw_chats.h"
#include "tests/simulation/expected_output.h"
#include "tests/simulation/random.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

constexpr std::int32_t kMostSequencesOfRequest = 6;

// What the requests of a life have in common. Rates are probabilities.
struct Habits {
  std::int32_t num_steps = 0;  // about so many until the last request comes
  std::int32_t longest_prompt = 0;
  std::int32_t longest_output = 0;
  double load = 0.0;          // work that comes / work that can be done
  double burst_rate = 0.0;    // of requests that come together with another
  double cancel_rate = 0.0;   // of requests
  double failure_rate = 0.0;  // of steps
  double reset_rate = 0.0;    // of steps
  double sleep_rate = 0.0;    // of steps
  double shared_rate = 0.0;   // of prompts that start like another
  double turn_rate = 0.0;     // of prompts that continue an answer
  double group_rate = 0.0;    // of requests with several outputs
  double beam_rate = 0.0;     // of requests
  double pin_rate = 0.0;      // of requests whose blocks are to stay
  std::int32_t num_salts = 0;
};

class ScriptDrawer {
 public:
  explicit ScriptDrawer(std::uint64_t seed) : random_(seed), others_(~seed * 3), seed_(seed) {}

  Script draw() {
    draw_options();
    draw_habits();
    if (random_.chance(0.4)) {
      make_tight();
    } else if (random_.chance(0.25)) {
      make_slow_prompts();
    } else if (random_.chance(0.3)) {
      make_long_prompts_beside_outputs();
    }
    draw_host_pool();
    if (seed_ % 4 == 1) draw_states();
    if (seed_ % 4 == 3 && script_.options.memory_manager == MemoryManager::kPaged) draw_windows();
    for (int index = 0; index < 3; ++index) shared_starts_.push_back(draw_tokens(2 * habits_.longest_prompt));
    if (seed_ % 3 == 0) chats_.emplace(~seed_, script_, std::max(1, habits_.longest_prompt / 2));
    draw_requests();
    draw_faults();
    if (seed_ % 5 < 2) draw_lines();
    if (seed_ % 7 < 3) draw_wishes();
    if (seed_ % 4 == 0) draw_device();
    std::ranges::stable_sort(script_.operations, {}, &Operation::at);
    return std::move(script_);
  }

 private:
  void draw_options() {
    auto& options = script_.options;
    options.num_blocks = random_.between_powers(2, 6);
    if (random_.chance(0.05)) options.num_blocks = random_.between_powers(7, 9);
    if (random_.chance(0.005)) options.num_blocks = random_.between_powers(10, 12);
    options.block_size = random_.chance(0.5) ? 1 << random_.between(0, 5) : random_.between(1, 32);
    options.bytes_per_block = 1024;
    options.max_num_seqs = random_.chance(0.1) ? 1 : random_.between_powers(1, 5);
    options.max_num_batched_tokens = random_.between_powers(0, 8);
    if (random_.chance(0.3)) options.target_step_us = random_.between(500, 8000);
    options.max_model_len = random_.between_powers(5, 8);
    if (random_.chance(0.1)) options.max_model_len = random_.between_powers(2, 5);
    options.enable_prefix_caching = random_.chance(0.85);
    options.prefill_first = random_.chance(0.1);
    draw_reserve(0.8);
    draw_policies();
    script_.clients.most_open = random_.between_powers(1, 6);
    script_.model.eos_period = random_.between_powers(4, 8);
    script_.model.invalid_logits_period = random_.chance(0.2) ? 2048 : 0;
    draw_speculation();
  }

  // With this chance one that keeps more than 1 % of the pool.
  void draw_reserve(double chance) {
    auto& reserve = script_.options.admission_reserve;
    reserve = random_.chance(0.7) ? AdmissionReserve::kLookAhead : AdmissionReserve::kBlockPerSequence;
    if (!random_.chance(chance)) reserve = AdmissionReserve::kOnePercent;
  }

  // Half of all lives, on texts that come again more or less often.
  void draw_speculation() {
    script_.options.speculative = static_cast<Speculation>(random_.chance(0.5));
    script_.model.surprise_period = random_.chance(0.7) ? random_.between_powers(1, 6) : 1;
    if (script_.options.speculative == Speculation::kOff) return;
    if (random_.chance(0.4)) script_.options.speculative = Speculation::kMtp;
    if (random_.chance(0.3)) script_.options.num_speculative_tokens = random_.between(1, 7);
  }

  void draw_policies() {
    auto& options = script_.options;
    options.preemption_mode = static_cast<PreemptionPolicy>(random_.between(0, 3));
    options.admit_after_preemption = static_cast<AdmissionAfterPreemption>(random_.chance(0.3));
    if (random_.chance(0.1)) options.batching_policy = static_cast<BatchingPolicy>(random_.between(1, 2));
    if (random_.chance(0.05)) options.memory_manager = static_cast<MemoryManager>(random_.between(1, 3));
  }

  // From none to as many as the device has.
  void draw_host_pool() {
    const std::int32_t num_blocks = script_.options.num_blocks;
    script_.options.num_host_blocks = random_.chance(0.3) ? num_blocks : random_.between(0, num_blocks);
    if (random_.chance(0.2) || script_.options.memory_manager != MemoryManager::kPaged)
      script_.options.num_host_blocks = 0;
  }

  // A model with recurrent layers: states for a few sequences more or less than may run, and for checkpoints.
  void draw_states() {
    auto& options = script_.options;
    const std::int32_t num_least = std::min(options.max_num_seqs, kMostSequencesOfRequest);
    options.num_states = random_.between(num_least, options.max_num_seqs + random_.between_powers(0, 5));
    if (options.num_host_blocks > 0) options.num_host_states = random_.between(0, options.num_states);
  }

  // A model whose layers with a window have a pool of their own: for a few sequences more than a request may
  // have, or for all blocks.
  void draw_windows() {
    auto& options = script_.options;
    options.window = random_.between_powers(0, 6);
    const std::int32_t for_rows =
        (options.max_num_batched_tokens + options.block_size - 1) / options.block_size;
    const std::int32_t for_each = (options.window - 1 + options.block_size - 1) / options.block_size + 3;
    const std::int32_t num_least = std::min(options.max_num_seqs, kMostSequencesOfRequest);
    const std::int32_t num_sequences = random_.between(num_least, std::max(num_least, options.max_num_seqs));
    options.num_window_blocks =
        std::min(options.num_blocks, for_rows + for_each * num_sequences + random_.between_powers(0, 4));
    if (options.num_host_blocks > 0)
      options.num_host_window_blocks = random_.between(0, options.num_window_blocks);
  }

  void draw_habits() {
    habits_.num_steps = random_.between(50, 1050);
    habits_.longest_prompt = random_.between_powers(1, 5);
    habits_.longest_output = random_.between_powers(2, 6);
    habits_.load = random_.chance(0.2) ? 0.5 : random_.chance(0.5) ? 1.0 : 2.0;
    habits_.burst_rate = random_.chance(0.3) ? 0.5 : 0.0;
    habits_.cancel_rate = random_.chance(0.5) ? 0.2 : 0.0;
    habits_.failure_rate = random_.chance(0.3) ? 0.01 : 0.0;
    habits_.reset_rate = random_.chance(0.2) ? 0.02 : 0.0;
    habits_.sleep_rate = random_.chance(0.1) ? 0.01 : 0.0;
    habits_.shared_rate = random_.chance(0.7) ? 0.6 : 0.0;
    habits_.turn_rate = random_.chance(0.5) ? 0.4 : 0.0;
    habits_.group_rate = random_.chance(0.6) ? 0.3 : 0.0;
    habits_.beam_rate = random_.chance(0.4) ? 0.2 : 0.0;
    habits_.pin_rate = random_.chance(0.2) ? 0.1 : 0.0;
    habits_.num_salts = random_.chance(0.2) ? 2 : 1;
  }

  // Long outputs on a pool for two or three of them: what runs is preempted again and again.
  void make_tight() {
    auto& options = script_.options;
    options.block_size = random_.between(1, 8);
    options.max_num_seqs = random_.between(4, 16);
    options.max_num_batched_tokens = random_.between(8, 64);
    options.max_model_len = 128;
    habits_.longest_prompt = random_.between(2, 12);
    habits_.longest_output = random_.between(8, 48);
    habits_.load = 2.0;
    script_.model.eos_period = 128;
    habits_.cancel_rate = random_.chance(0.7) ? 0.3 : 0.0;
    if (random_.chance(0.5)) options.preemption_mode = PreemptionPolicy::kSwap;
    const std::int32_t longest = 3 * habits_.longest_prompt + habits_.longest_output;
    options.num_blocks = random_.between(longest, 3 * longest) / options.block_size + 1;
  }

  // Prompts of many steps on a pool for one or two of them: who gives way is in the middle of its prompt, and
  // needs nearly everything to come back.
  void make_slow_prompts() {
    auto& options = script_.options;
    options.block_size = random_.between(1, 3);
    options.max_num_batched_tokens = random_.between(4, 8);
    options.max_num_seqs = options.max_num_batched_tokens;
    options.max_model_len = 160;
    draw_reserve(0.3);
    habits_.longest_prompt = random_.between(24, 48);
    habits_.longest_output = random_.between(8, 48);
    habits_.load = 2.0;
    habits_.group_rate = 0.6;
    habits_.beam_rate = 0.0;
    script_.model.eos_period = 128;
    if (random_.chance(0.5)) options.preemption_mode = PreemptionPolicy::kSwap;
    options.num_blocks =
        random_.between(habits_.longest_prompt, 2 * habits_.longest_prompt) / options.block_size + 4;
  }

  // Prompts of hundreds of tokens, which could have large steps, while others generate.
  void make_long_prompts_beside_outputs() {
    auto& options = script_.options;
    options.block_size = random_.between(4, 16);
    options.max_num_seqs = random_.between(4, 16);
    options.max_num_batched_tokens = random_.between(64, 256);
    options.max_model_len = 600;
    options.target_step_us = random_.between(1500, 8000);
    options.prefill_first = false;
    options.memory_manager = MemoryManager::kPaged;
    habits_.longest_prompt = random_.between(60, 150);
    habits_.longest_output = random_.between(16, 48);
    habits_.load = 1.0;
    script_.model.eos_period = 128;
    options.num_blocks = random_.between(2, 8) * 3 * habits_.longest_prompt / options.block_size;
  }

  // ---- requests
  void draw_requests() {
    const double gap = mean_steps_of_a_request() / habits_.load / (1.0 - habits_.burst_rate);
    double at = 0.0;
    for (std::uint64_t request = 1; at < habits_.num_steps; ++request) {
      Operation& submit = add(static_cast<std::int32_t>(at), OperationKind::kSubmit);
      submit.request = request;
      submit.asked = draw_request();
      if (random_.chance(habits_.cancel_rate)) draw_cancel(request, at);
      if (!random_.chance(habits_.burst_rate))
        at += 2.0 * gap * static_cast<double>(random_.between(0, 1000)) / 1000.0;
    }
  }

  // Of an engine that is busy: what a step costs is shared by all that run in it.
  double mean_steps_of_a_request() const {
    const auto& options = script_.options;
    const double output = 0.5 * std::min(habits_.longest_output, script_.model.eos_period);
    const double prompt = 0.5 * habits_.longest_prompt * (1.0 + habits_.shared_rate);
    const double pool = static_cast<double>(options.num_blocks) * options.block_size;
    const double fitting = std::max(1.0, pool / (prompt + output + 0.5 * options.block_size));
    const double together = std::min({fitting, static_cast<double>(options.max_num_seqs),
                                      static_cast<double>(options.max_num_batched_tokens)});
    return std::max(0.5, output / together + prompt / options.max_num_batched_tokens);
  }

  ScriptedRequest draw_request() {
    ScriptedRequest asked;
    asked.n = random_.chance(habits_.group_rate) ? random_.between(2, 4) : 1;
    asked.greedy = random_.chance(0.5);
    if (random_.chance(0.5)) asked.seed = random_.next() % 1000;
    asked.max_tokens = random_.between(1, habits_.longest_output);
    if (random_.chance(0.1)) asked.min_tokens = random_.between(0, asked.max_tokens);
    if (random_.chance(0.1)) asked.stop_list = random_.between(1, 2);
    if (random_.chance(0.05)) asked.stop_token = random_.between(0, 8);
    asked.ignore_eos = random_.chance(0.2);
    asked.include_stop = (asked.stop_list > 0 || asked.stop_token >= 0) && random_.chance(0.3);
    asked.prompt_logprobs = random_.chance(0.05);
    if (random_.chance(0.1)) asked.logprobs = random_.between(1, 5);
    asked.salt = random_.between(0, habits_.num_salts - 1);
    if (random_.chance(0.3)) asked.retention = static_cast<RetentionClass>(random_.between(0, 2));
    if (random_.chance(habits_.pin_rate)) asked.retention = RetentionClass::kPinned;
    if (random_.chance(habits_.beam_rate)) draw_beams(asked);
    asked.prompt = draw_prompt(asked.salt);
    asked.structured = !asked.ignore_eos && asked.prompt.size() % 4 == 1;
    if (random_.chance(0.5)) remember_answer(asked);
    if (chats_) chats_->draw(asked);
    return asked;
  }

  void draw_beams(ScriptedRequest& asked) {
    asked.beam_width = random_.between(1, 6);
    asked.length_penalty_tenths = random_.between(-5, 20);
    asked.early_stopping = random_.chance(0.3);
    asked.biased = random_.chance(0.2);
    asked.max_tokens = random_.between(1, std::min(24, habits_.longest_output));
    asked.min_tokens = std::min(asked.min_tokens, asked.max_tokens);
    asked.n = 1;
    asked.seed.reset();
  }

  std::vector<TokenId> draw_prompt(std::int32_t& salt) {
    if (random_.chance(0.01))
      return random_.chance(0.5) ? std::vector<TokenId>{} : std::vector<TokenId>{5, 24};
    std::vector<TokenId> tokens;
    if (!answer_.empty() && random_.chance(habits_.turn_rate)) {
      tokens = answer_;
      salt = answer_salt_;
    } else if (random_.chance(habits_.shared_rate)) {
      const auto& start = shared_starts_[static_cast<std::size_t>(random_.between(0, 2))];
      tokens.assign(start.begin(),
                    start.begin() + random_.between(1, static_cast<std::int32_t>(start.size())));
      if (random_.chance(0.5)) return tokens;
    }
    const std::vector<TokenId> rest = draw_tokens(random_.between(1, habits_.longest_prompt));
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
  }

  // The next turn of a chat begins with the prompt and the answer of this one.
  void remember_answer(const ScriptedRequest& asked) {
    if (asked.is_beam_search() || (!asked.greedy && !asked.seed)) return;
    const RequestAlone alone = RequestAlone::of(asked, script_.options.max_model_len);
    ExpectedOutput expected(script_.model, alone, 0);
    expected.extend_to(static_cast<std::size_t>(asked.max_tokens));
    answer_ = asked.prompt;
    answer_.insert(answer_.end(), expected.token_ids().begin(), expected.token_ids().end());
    answer_salt_ = asked.salt;
    const auto most =
        static_cast<std::size_t>(std::min(script_.options.max_model_len, 4 * habits_.longest_prompt));
    if (answer_.size() > most) answer_.clear();
  }

  std::vector<TokenId> draw_tokens(std::int32_t length) {
    std::vector<TokenId> tokens;
    for (std::int32_t index = 0; index < length; ++index) {
      tokens.push_back(random_.between(0, ToyTokenizer::kVocabularySize - 1));
    }
    return tokens;
  }

  // ---- faults
  void draw_cancel(std::uint64_t request, double at) {
    const std::int32_t later = random_.between(0, habits_.longest_output);
    add(static_cast<std::int32_t>(at) + later, OperationKind::kCancel).request = request;
  }

  void draw_faults() {
    scatter(habits_.failure_rate, OperationKind::kFailStep, 3);
    scatter(5.0 * habits_.failure_rate, OperationKind::kFailSwap, 3);
    if (random_.chance(3.0 * habits_.failure_rate))
      add(random_.between(habits_.num_steps / 2, habits_.num_steps), OperationKind::kLoseDevice);
    scatter(0.1 * habits_.pin_rate, OperationKind::kReleasePins, 1);
    scatter(0.05 * habits_.cancel_rate, OperationKind::kCancelSwapped, 1);
    scatter(habits_.reset_rate, OperationKind::kResetPrefixCache, 1);
    scatter(habits_.sleep_rate, OperationKind::kReaderSleeps, 50);
    if (random_.chance(0.3)) scatter(0.05, OperationKind::kIntakeSleeps, 12);
  }

  void scatter(double rate, OperationKind kind, std::int32_t below_amount) {
    for (int count = static_cast<int>(rate * habits_.num_steps); count > 0; --count) {
      add(random_.between(0, habits_.num_steps), kind).amount = random_.between(0, below_amount - 1);
    }
  }

  // ---- what came later, with chances of its own: other lives are what they were
  // Programs beside people; sometimes few of either.
  void draw_lines() {
    const double background_rate = 0.1 * others_.between(1, 9);
    for (Operation& operation : script_.operations) {
      if (operation.kind == OperationKind::kSubmit)
        operation.asked.background = others_.chance(background_rate);
    }
  }

  // Progress, embeddings, and outputs that nobody wants any more.
  void draw_wishes() {
    const std::size_t num_operations = script_.operations.size();
    for (std::size_t index = 0; index < num_operations; ++index) {
      if (script_.operations[index].kind != OperationKind::kSubmit) continue;
      ScriptedRequest& asked = script_.operations[index].asked;
      asked.progress = others_.chance(0.5);
      if (!asked.is_beam_search() && others_.chance(0.1)) {
        asked = {.prompt = asked.prompt,
                 .chat = asked.chat,
                 .continue_answer = asked.continue_answer,
                 .max_tokens = 1,
                 .salt = asked.salt,
                 .retention = asked.retention,
                 .background = asked.background,
                 .progress = asked.progress,
                 .embedding = others_.between(1, 2)};
      }
      if (asked.num_outputs() > 1 && others_.chance(0.5)) draw_cancelled_outputs(index);
    }
  }

  void draw_cancelled_outputs(std::size_t submit) {
    const std::uint64_t request = script_.operations[submit].request;
    const std::int32_t at = script_.operations[submit].at, n = script_.operations[submit].asked.num_outputs();
    for (std::int32_t count = others_.between(1, n); count > 0; --count) {
      Operation& cancel = add(at + others_.between(0, others_.chance(0.5) ? 2 : habits_.longest_output),
                              OperationKind::kCancelOutput);
      cancel.request = request;
      cancel.amount = others_.between(0, n);  // one behind the last does not exist
    }
  }

  // One that draws by itself. Nothing is begun ahead while somebody waits: half of these lives have few
  // clients.
  void draw_device() {
    script_.device.runs_ahead = true;
    if (others_.chance(0.5)) script_.clients.most_open = others_.between(1, 3);
  }

  Operation& add(std::int32_t at, OperationKind kind) {
    script_.operations.push_back({.at = at, .kind = kind});
    return script_.operations.back();
  }

  Random random_, others_;
  const std::uint64_t seed_;
  Script script_;
  Habits habits_;
  std::optional<ChatDrawer> chats_;  // one life in three has some
  std::vector<std::vector<TokenId>> shared_starts_;
  std::vector<TokenId> answer_;  // with the prompt before it; empty: none to continue
  std::int32_t answer_salt_ = 0;
};

}  // namespace

Script draw_script(std::uint64_t seed) { return ScriptDrawer(seed).draw(); }

}  // namespace octavo::simulation
