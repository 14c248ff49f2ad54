// For each kind of memory that layers keep: OCTAVO_IDENTITY_RUNS random requests (some, where the variable is
// not set), in random company, in engines of random sizes, give what each gives alone, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backends.h"
#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

using simulation::Random;

constexpr std::int32_t kContext = 1024, kMostSequences = 4, kLongestOutput = 60;
constexpr TokenRange kWords = {3, static_cast<TokenId>(test::kTinyVocabularySize) - 1};

int num_requests() {
  const char* const chosen = std::getenv("OCTAVO_IDENTITY_RUNS");
  return chosen != nullptr ? std::atoi(chosen) : 250;
}

struct Kind {
  const char* name;
  std::uint64_t first_seed;         // of its engines
  std::vector<std::string> models;  // of tests/golden/tiny_models.json
  std::int32_t window = 0;          // tokens; 0: these have none, or it is left as it is
  bool has_states = false;

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

// Whether Q4_1 can be the type of its matrices.
bool divides_into_blocks(const nlohmann::json& model) {
  return std::ranges::all_of(model["tensors"], [](const nlohmann::json& tensor) {
    return tensor[1] == 0 || test::is_float_in_every_file(tensor[0].get<std::string>()) ||
           tensor[2].get<int>() % 32 == 0;
  });
}

// With 4-bit weights where that can be, and room for long prompts.
std::string path_of(const std::string& name, std::int32_t window) {
  static const test::TemporaryFolder folder;
  const auto file = folder / (name + ".gguf");
  if (!std::filesystem::exists(file)) {
    const nlohmann::json model = test::tiny_model(name);
    test::TinyModelOptions options{.context_length = kContext};
    if (divides_into_blocks(model)) options.weight_type = kernels::TensorType::kQ4_1;
    if (window > 0 && model["keys"].contains("attention.sliding_window")) options.window = window;
    test::make_tiny_model(model, options).write(file);
  }
  return file.string();
}

std::vector<TokenId> draw_tokens(Random& random, std::int32_t length) {
  std::vector<TokenId> tokens;
  for (std::int32_t i = 0; i < length; ++i) tokens.push_back(random.between(kWords.first, kWords.last));
  return tokens;
}

// A tenth of all lengths is in each tenth of their logarithms.
std::int32_t draw_length(Random& random, std::int32_t most) {
  const double exponent = random.between(0, 1000) / 1000.0;
  return std::clamp(static_cast<std::int32_t>(std::lround(std::pow(most, exponent))), 1, most);
}

// What requests that come together have in common.
struct Habits {
  std::int32_t chunk = 0;  // tokens of a step
  std::int32_t longest_prompt = 0, longest_output = 0;
  bool grows = false;  // outputs are longer than prompts, so that they drive one another out of a small pool
};

// Prompts of hundreds of tokens where chunks are large, else they take long.
Habits draw_habits(Random& random) {
  Habits habits{.chunk = draw_length(random, 512), .grows = random.chance(0.6)};
  habits.longest_prompt = habits.grows ? 30 : std::min(600, 40 + habits.chunk * random.between(1, 20));
  habits.longest_output = habits.grows ? random.between(20, kLongestOutput) : random.between(1, 20);
  return habits;
}

// Prompts that start alike, and next turns of answers that were given.
class RequestDrawer {
 public:
  explicit RequestDrawer(std::uint64_t seed) : random_(seed) {
    for (const int length : {20, 64, 150, 400}) starts_.push_back(draw_tokens(random_, length));
  }

  GenerationRequest draw(const Habits& habits) {
    GenerationRequest request{.prompt = TokenPrompt{draw_prompt(habits.longest_prompt)}};
    SamplingParams& sampling = request.sampling;
    sampling.seed = random_.next() % 100;
    sampling.max_tokens =
        random_.between(habits.grows ? habits.longest_output / 2 : 1, habits.longest_output);
    sampling.ignore_eos = habits.grows || random_.chance(0.5);
    if (random_.chance(0.2)) request.priority = RequestPriority::kBackground;
    switch (random_.between(0, 4)) {
      case 0: sampling.temperature = 0.0; break;
      case 1: sampling.n = random_.between(2, kMostSequences); break;
      case 2:
        sampling.beam_width = random_.between(1, kMostSequences);
        sampling.early_stopping = random_.chance(0.3);
        return request;
      case 3:
        sampling.best_of = random_.between(2, kMostSequences);
        sampling.n = random_.between(1, *sampling.best_of);
        break;
      default:
        sampling.temperature = 0.8;
        sampling.top_p = 0.9;
        sampling.repetition_penalty = 1.2;
        sampling.presence_penalty = 0.1;
    }
    if (random_.chance(0.1)) sampling.min_tokens = random_.between(0, sampling.max_tokens);
    sampling.logprobs = test::kTinyVocabularySize;  // every logit shows
    if (random_.chance(0.1)) sampling.prompt_logprobs = test::kTinyVocabularySize;
    if (random_.chance(0.05)) request.embedding = {.pooling = static_cast<Pooling>(random_.between(0, 1))};
    return request;
  }

  void remember(const GenerationRequest& request, const RequestOutput& answer) {
    if (answer.outputs.empty()) return;
    answered_ = std::get<TokenPrompt>(request.prompt).token_ids;
    const std::vector<TokenId>& output = answer.outputs.back().token_ids;
    answered_.insert(answered_.end(), output.begin(), output.end());
  }

 private:
  std::vector<TokenId> draw_prompt(std::int32_t longest) {
    std::vector<TokenId> prompt;
    if (!answered_.empty() && random_.chance(0.3)) {
      prompt = answered_;
      prompt.push_back(random_.between(kWords.first, kWords.last));
      return prompt;
    }
    if (random_.chance(0.6)) {
      const auto& start = starts_[static_cast<std::size_t>(random_.between(0, 3))];
      prompt.assign(start.begin(),
                    start.begin() + random_.between(1, static_cast<std::int32_t>(start.size())));
    }
    const auto rest = draw_tokens(random_, draw_length(random_, longest));
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    prompt.resize(std::min(prompt.size(), static_cast<std::size_t>(longest)));
    return prompt;
  }

  Random random_;
  std::vector<std::vector<TokenId>> starts_;
  std::vector<TokenId> answered_;  // a prompt and its answer; empty: none yet
};

// Requests that come at once, and what each gives alone.
struct Call {
  std::vector<GenerationRequest> requests;
  std::vector<RequestOutput> expected;
};

// Blocks that hold a request whatever it generates.
std::int32_t most_blocks(const GenerationRequest& request, std::int32_t block_size) {
  const auto num_blocks = [&](std::int32_t num_tokens) { return (num_tokens + block_size - 1) / block_size; };
  const auto prompt_len = static_cast<std::int32_t>(std::get<TokenPrompt>(request.prompt).token_ids.size());
  return num_blocks(prompt_len) +
         request.sampling.num_sequences() * (num_blocks(request.sampling.max_tokens) + 1);
}

// In half of all engines the pools hold hardly more than the largest request takes.
EngineOptions draw_options(Random& random, const Kind& kind, const Habits& habits,
                           const std::vector<Call>& calls) {
  EngineOptions options{.threads = random.chance(0.2) ? 2 : 1};
  options.block_size = random.chance(0.3) ? 16 : random.between_powers(0, 5);
  options.max_num_batched_tokens = habits.chunk;
  options.max_num_seqs = random.between(kMostSequences, 32);
  options.enable_prefix_caching = random.chance(0.8);
  options.preemption_mode = random.chance(0.4)   ? PreemptionPolicy::kSwap
                            : random.chance(0.7) ? PreemptionPolicy::kRecompute
                            : random.chance(0.5) ? PreemptionPolicy::kAuto
                                                 : PreemptionPolicy::kCost;
  options.admission_reserve = random.chance(0.6) ? AdmissionReserve::kOnePercent
                                                 : static_cast<AdmissionReserve>(random.between(0, 1));
  if (random.chance(0.3)) options.speculative = Speculation::kNgram;
  std::int32_t largest = 0;
  for (const Call& call : calls)
    for (const GenerationRequest& request : call.requests)
      largest = std::max(largest, most_blocks(request, options.block_size));
  const bool is_tight = random.chance(0.7);
  options.num_kv_blocks =
      is_tight ? largest + random.between(0, largest / 4) : random.between(2, 6) * largest;
  if (kind.has_states)
    options.num_states = random.between(kMostSequences, options.max_num_seqs + random.between_powers(0, 4));
  if (kind.window > 0 && random.chance(0.8)) {
    const std::int32_t for_rows = (habits.chunk + options.block_size - 1) / options.block_size;
    const std::int32_t for_each = (kind.window - 1 + options.block_size - 1) / options.block_size + 3;
    options.num_window_blocks = std::min(
        *options.num_kv_blocks, for_rows + for_each * (is_tight ? kMostSequences : options.max_num_seqs));
  }
  return options;
}

std::string text_of(const EngineOptions& options) {
  const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
  return "blocks of " + number(options.block_size) + " x " + number(options.num_kv_blocks.value_or(0)) +
         ", window blocks " + number(options.num_window_blocks.value_or(-1)) + ", states " +
         number(options.num_states.value_or(-1)) + ", chunk " +
         number(options.max_num_batched_tokens.value_or(0)) + ", sequences " + number(options.max_num_seqs) +
         ", caches " + number(options.enable_prefix_caching) + ", preemption " +
         number(options.preemption_mode) + ", reserve " + number(options.admission_reserve) + ", guesses " +
         number(options.speculative);
}

struct Counts {
  std::int64_t requests = 0, swapped = 0, recomputed = 0, copied_blocks = 0, found_tokens = 0;
  std::int64_t left_window_parts = 0, resumed_states = 0, engines = 0;

  void add(const KvTotals& totals) {
    ++engines;
    swapped += totals.preempted_swap;
    recomputed += totals.preempted_recompute;
    copied_blocks += totals.cow_copies;
    found_tokens += totals.prefix_hit_tokens;
    left_window_parts += totals.windows.num_left;
    resumed_states += totals.states.num_resumed;
  }
};

std::unique_ptr<Engine> open_on(const std::string& instruction_set, EngineOptions options,
                                const std::string& model) {
  const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", instruction_set);
  options.model = model;
  return open_untimed(std::move(options));
}

class MemoryKinds : public testing::TestWithParam<Kind> {
 protected:
  // A few calls to one engine.
  void run_engine(std::uint64_t seed, const std::string& model) {
    Random random(seed);
    const Habits habits = draw_habits(random);
    const std::vector<Call> calls = draw_calls(random, habits, model);
    const EngineOptions options = draw_options(random, GetParam(), habits, calls);
    const std::vector<std::string> instruction_sets = kernels::usable_instruction_sets();
    const std::string& instruction_set =
        instruction_sets[static_cast<std::size_t>(random.next() % instruction_sets.size())];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + model + ", " + instruction_set + ": " +
                 text_of(options));
    const auto engine = open_on(instruction_set, options, model);
    for (const Call& call : calls) {
      ASSERT_EQ(first_difference(run_together(*engine, call.requests), call.expected), "");
      counts_.requests += static_cast<std::int64_t>(call.requests.size());
      if (random.chance(0.2)) engine->reset_prefix_cache();
    }
    counts_.add(engine->kv_totals());
  }

  std::vector<Call> draw_calls(Random& random, const Habits& habits, const std::string& model) {
    RequestDrawer drawer(random.next());
    std::vector<Call> calls(static_cast<std::size_t>(random.between(1, 2)));
    for (Call& call : calls) {
      for (int count = random.between(4, 12); count > 0; --count) {
        call.requests.push_back(drawer.draw(habits));
        call.expected.push_back(run_alone(alone(model), call.requests.back()));
      }
      drawer.remember(call.requests.back(), call.expected.back());
    }
    return calls;
  }

  // The engine that computes one request at a time, in as few steps as it can, and keeps everything.
  Engine& alone(const std::string& model) {
    std::unique_ptr<Engine>& engine = alone_[model];
    if (!engine) {
      engine = open_on(
          "portable",
          {.threads = 1, .num_kv_blocks = 400, .num_window_blocks = 0, .enable_prefix_caching = false},
          model);
    }
    return *engine;
  }

  Counts counts_;

 private:
  std::map<std::string, std::unique_ptr<Engine>> alone_;
};

TEST_P(MemoryKinds, GiveEveryRequestWhatItGetsAlone) {
  const Kind& kind = GetParam();
  for (std::uint64_t seed = kind.first_seed; counts_.requests < num_requests() && !HasFatalFailure();
       ++seed) {
    run_engine(seed, path_of(kind.models[seed % kind.models.size()], kind.window));
  }
  std::printf(
      "%s: %lld requests to %lld engines, %lld swapped and %lld recomputed, %lld blocks copied, %lld tokens "
      "found, %lld window parts left, %lld states resumed\n",
      kind.name, static_cast<long long>(counts_.requests), static_cast<long long>(counts_.engines),
      static_cast<long long>(counts_.swapped), static_cast<long long>(counts_.recomputed),
      static_cast<long long>(counts_.copied_blocks), static_cast<long long>(counts_.found_tokens),
      static_cast<long long>(counts_.left_window_parts), static_cast<long long>(counts_.resumed_states));
  EXPECT_GT(counts_.swapped, 0);
  EXPECT_GT(counts_.recomputed, 0);
  EXPECT_GT(counts_.copied_blocks, 0);
  EXPECT_GT(counts_.found_tokens, 0);
  EXPECT_EQ(counts_.left_window_parts > 0, kind.window > 0);
  EXPECT_EQ(counts_.resumed_states > 0, kind.has_states);
}

INSTANTIATE_TEST_SUITE_P(
    , MemoryKinds,
    testing::Values(
        Kind{.name = "Dense", .first_seed = 1, .models = {"qwen3", "gpt2", "qwen3moe", "command-r"}},
        Kind{.name = "Windows",
             .first_seed = 100001,
             .models = {"gemma3", "gpt-oss", "llama_with_window", "muse-glimmer", "olmo2_windows"},
             .window = 20},
        Kind{.name = "Hybrid",
             .first_seed = 200001,
             .models = {"qwen35", "lfm2", "granitehybrid", "falcon-h1", "nemotron_h", "qwen3next"},
             .has_states = true},
        Kind{.name = "Latent",
             .first_seed = 300001,
             .models = {"deepseek2", "deepseek2_lite", "mistral4", "deepseek2_joint"}},
        Kind{.name = "Shared",
             .first_seed = 400001,
             .models = {"gemma4_embedded", "gemma4_shared_apart"},
             .window = 20}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octavo
