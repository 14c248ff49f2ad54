// A runner without scheduler and engine: loads a model with given options, and builds steps by hand.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/runner/model_runner.h"
#include "kernels/backends.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::runner {

enum class BackendChoice { kReference, kCpu };

inline std::unique_ptr<kernels::Backend> make_backend(BackendChoice choice, kernels::Activation activation,
                                                      std::int32_t threads) {
  if (choice == BackendChoice::kReference) return kernels::reference::create_reference_backend(activation);
  auto backend = kernels::create_backend({.device = "cpu", .threads = threads, .activation = activation});
  if (!backend) throw std::runtime_error(backend.error().message);
  return *std::move(backend);
}

inline RunnerParts make_parts(const std::filesystem::path& path, const EngineOptions& options,
                              BackendChoice choice) {
  const auto take = [](auto result) {
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  };
  auto source = take(model::open_model_source(path));
  model::ModelConfig config = take(model::read_model_config(source->metadata()));
  model::ModelTensors tensors = take(model::find_model_tensors(*source, config));
  if (options.speculative == Speculation::kMtp) {
    if (auto added = model::add_next_token_layer(*source, config, tensors); !added)
      throw std::runtime_error(added.error().message);
  }
  const RunnerPlan plan = take(plan_runner(config, tensors, options, available_memory_bytes()));
  auto backend = make_backend(choice, plan.activation, options.threads);
  return {.source = std::move(source),
          .config = config,
          .tensors = std::move(tensors),
          .plan = plan,
          .backend = std::move(backend),
          .end_token_ids = {2}};
}

inline std::unique_ptr<ModelRunner> load_runner(const std::filesystem::path& path,
                                                const EngineOptions& options,
                                                BackendChoice choice = BackendChoice::kCpu) {
  auto runner = ModelRunner::load(make_parts(path, options, choice));
  if (!runner) throw std::runtime_error(runner.error().message);
  return *std::move(runner);
}

// One sequence as the scheduler would keep it. Stays where it is: steps look into it.
struct DirectSequence {
  SequenceId sequence_id;
  std::vector<TokenId> token_ids;  // prompt and output
  std::size_t num_prompt_tokens = 0;
  SamplingParams sampling = {};
  std::uint64_t seed = 0;
  std::vector<BlockId> block_table = {};
  std::size_t num_computed_tokens = 0;

  std::span<const TokenId> prompt() const { return std::span(token_ids).first(num_prompt_tokens); }
  std::span<const TokenId> output() const { return std::span(token_ids).subspan(num_prompt_tokens); }
};

// The next `count` tokens; when they reach the end of what is known, one target is drawn for each output
// index below `num_targets`.
inline scheduler::ScheduledSequence scheduled(const DirectSequence& sequence, std::size_t count,
                                              std::uint32_t num_targets = 1) {
  scheduler::ScheduledSequence scheduled;
  scheduled.sequence_id = sequence.sequence_id;
  scheduled.sampling = &sequence.sampling;
  scheduled.prompt_token_ids = sequence.prompt();
  scheduled.start_position = static_cast<std::int32_t>(sequence.num_computed_tokens);
  scheduled.token_ids = std::span(sequence.token_ids).subspan(sequence.num_computed_tokens, count);
  scheduled.block_table = sequence.block_table;
  if (sequence.num_computed_tokens + count < sequence.token_ids.size()) return scheduled;
  for (std::uint32_t index = 0; index < num_targets; ++index) {
    scheduled.samples.push_back({.sequence_id = {sequence.sequence_id.value + index},
                                 .output_index = index,
                                 .seed = sequence.seed,
                                 .output_token_ids = sequence.output()});
  }
  return scheduled;
}

// The newest token and the `num_drafted` behind it that `all` goes on with as guesses.
inline scheduler::ScheduledSequence draft_of(const DirectSequence& all, std::size_t num_known,
                                             std::size_t num_drafted) {
  const std::span<const TokenId> token_ids = all.token_ids;
  scheduler::ScheduledSequence row;
  row.sequence_id = all.sequence_id;
  row.sampling = &all.sampling;
  row.prompt_token_ids = all.prompt();
  row.known_token_ids = token_ids.first(num_known);
  row.start_position = static_cast<std::int32_t>(num_known) - 1;
  row.token_ids = token_ids.subspan(num_known - 1, 1 + num_drafted);
  row.num_draft_tokens = static_cast<std::int32_t>(num_drafted);
  row.block_table = all.block_table;
  for (std::size_t i = 0; i <= num_drafted; ++i) {
    row.samples.push_back(
        {.sequence_id = all.sequence_id,
         .seed = all.seed,
         .output_token_ids = token_ids.first(num_known + i).subspan(all.num_prompt_tokens)});
  }
  return row;
}

inline RunnerOutput execute(ModelRunner& runner, const scheduler::SchedulerOutput& step) {
  RunnerOutput output;
  const auto executed = runner.execute(step, output);
  if (!executed) throw std::runtime_error(executed.error().message);
  return output;
}

// Hands out blocks of a pool in random order.
class BlockDealer {
 public:
  BlockDealer(std::int32_t num_blocks, std::int32_t block_size, std::uint64_t seed)
      : block_size_(block_size) {
    for (std::int32_t block = 0; block < num_blocks; ++block) blocks_.push_back({block});
    std::mt19937_64 random(seed);
    std::shuffle(blocks_.begin(), blocks_.end(), random);
  }
  BlockId take() {
    if (blocks_.empty()) throw std::runtime_error("the test's pool is too small");
    const BlockId block = blocks_.back();
    blocks_.pop_back();
    return block;
  }
  std::vector<BlockId> take_for(std::size_t num_tokens) {
    std::vector<BlockId> table;
    while (table.size() * static_cast<std::size_t>(block_size_) < num_tokens) table.push_back(take());
    return table;
  }

 private:
  std::int32_t block_size_;
  std::vector<BlockId> blocks_;
};

}  // namespace octavo::runner
