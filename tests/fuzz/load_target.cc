// A whole file: opened, checked, weights prepared, pools sized, and one step computed, as an engine does it
// with the scheduler left out. A model that asks for more than a little memory is refused by its plan.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "engine/model_preview.h"
#include "engine/runner/model_runner.h"
#include "kernels/backends.h"
#include "tests/fuzz/gguf_mutation.h"

namespace octavo::fuzz {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{48} << 20;

// A file that lies in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "the test's file can be written");
  }
  ~MemoryFile() { close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

EngineOptions options_for(const model::ModelConfig& config) {
  EngineOptions options;
  options.threads = 1;
  options.num_kv_blocks = 2;
  options.swap_space = 0.0;
  options.max_num_batched_tokens = 8;
  options.max_num_seqs = 1;
  options.max_model_len = std::min(config.context_length, 32);
  return options;
}

void compute_a_step(runner::ModelRunner& model, std::vector<TokenId> prompt) {
  if (prompt.empty()) prompt = {0};
  prompt.resize(std::min<std::size_t>(prompt.size(), 8));
  const SamplingParams sampling;
  const std::vector<BlockId> table = {{0}};
  scheduler::SchedulerOutput step;
  scheduler::ScheduledSequence& sequence = step.sequences.emplace_back();
  sequence.sequence_id = {0};
  sequence.sampling = &sampling;
  sequence.prompt_token_ids = prompt;
  sequence.start_position = 0;
  sequence.token_ids = prompt;
  sequence.block_table = table;
  sequence.samples.push_back({.sequence_id = {0}, .output_index = 0, .seed = 1, .output_token_ids = {}});
  runner::RunnerOutput output;
  require(model.execute(step, output).has_value(), "a step that was planned can be computed");
  require(output.tokens.size() == 1, "a step draws a token, or says that it cannot");
}

void run(std::span<const std::uint8_t> input) {
  const MemoryFile file(input);
  auto preview = ModelPreview::open(file.path());
  if (!preview)
    return require(
        !preview.error().message.empty() && preview.error().message.find('\n') == std::string::npos,
        "an error is one line");
  (void)preview->try_chat_template();
  (void)preview->describe();
  (void)preview->origin();
  auto parts = std::move(*preview).take_parts();
  const EngineOptions options = options_for(parts.config);
  auto plan = runner::plan_runner(parts.config, parts.tensors, options, kMostBytes);
  if (!plan) return require(!plan.error().message.empty(), "a refusal says why");
  auto backend = kernels::create_backend({.device = "cpu", .threads = 1, .activation = plan->activation});
  require(backend.has_value(), "there is a processor");
  std::vector<TokenId> prompt;
  if (const auto ids = parts.tokenizer->encode("the <|im_end|> world", false, true)) prompt = *ids;
  auto loaded = runner::ModelRunner::load({.source = std::move(parts.source),
                                           .config = std::move(parts.config),
                                           .tensors = std::move(parts.tensors),
                                           .plan = *plan,
                                           .backend = *std::move(backend),
                                           .end_token_ids = {}});
  if (!loaded) return require(!loaded.error().message.empty(), "a refusal says why");
  compute_a_step(**loaded, std::move(prompt));
}

}  // namespace

const Target kLoadTarget = {"load", 16'384, run, mutate_gguf, model_seeds};

}  // namespace octavo::fuzz
