// A model file before anything of it is loaded: what is inside, and what running it would take. Opening
// checks what Engine::create checks of a file, so that what is refused there is refused here first.
//
// Ownership: owns the open file and what was read of it. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/api/engine_options.h"
#include "engine/api/metrics.h"
#include "engine/api/model_description.h"
#include "engine/base/result.h"
#include "engine/model/model_config.h"
#include "engine/model/model_source.h"
#include "engine/model/model_tensors.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// Where a model comes from, in the words of its file: untrusted text. Empty where it says nothing.
struct ModelOrigin {
  std::string author;
  std::string organisation;
  std::string licence;
  std::string base_model;
};

// What an engine with given options would take of this machine's memory.
struct MemoryPlan {
  std::int64_t weight_bytes = 0;
  std::int64_t working_bytes = 0;  // activations, logits, sampling, scratch
  std::int64_t bytes_per_block = 0;
  std::int32_t block_size = 0;  // tokens
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int64_t bytes_per_state = 0;  // of recurrent layers; 0: there are none
  std::int32_t num_states = 0, num_host_states = 0;
  std::int64_t bytes_per_window_block = 0;  // of layers with a window that are set apart; 0: there are none
  std::int32_t num_window_blocks = 0, num_host_window_blocks = 0;
  std::int32_t max_model_len = 0;
  // Why it cannot be had. The numbers are then those of the least that is of use: what the options ask for,
  // and where they leave it open a pool for one full context and no host pool.
  std::optional<Error> refusal = {};

  std::int64_t kv_bytes() const {
    return num_blocks * bytes_per_block + num_window_blocks * bytes_per_window_block;
  }
  std::int64_t state_bytes() const { return num_states * bytes_per_state; }
  std::int64_t host_bytes() const {
    return num_host_blocks * bytes_per_block + num_host_window_blocks * bytes_per_window_block +
           num_host_states * bytes_per_state;
  }
};

class ModelPreview {
 public:
  static Result<ModelPreview> open(const std::filesystem::path& path);

  ModelDescription describe() const;
  ModelOrigin origin() const;
  // Otherwise the type of activations has no effect.
  bool has_quantised_weights() const;

  // Errors: options that cannot hold for this model on any machine.
  Result<MemoryPlan> plan(const EngineOptions& options, std::int64_t available_bytes) const;

  // Whether the chat template can be read and turns one message of a user into a prompt. A model whose
  // template cannot is still good for prompts as they are. No template: it holds.
  Result<void> try_chat_template() const;

  // For Engine::create: what the runner is built from.
  struct Parts {
    std::unique_ptr<model::ModelSource> source;
    model::ModelConfig config;
    model::ModelTensors tensors;
    std::unique_ptr<tokenizer::Tokenizer> tokenizer;
    std::string notice = {};  // of the vocabulary
  };
  Parts take_parts() && { return std::move(parts_); }
  const Parts& parts() const { return parts_; }

 private:
  explicit ModelPreview(Parts parts) : parts_(std::move(parts)) {}
  static Result<MemoryPlan> plan_of(const model::ModelConfig& config, const model::ModelTensors& tensors,
                                    const EngineOptions& options, std::int64_t available_bytes);
  Parts parts_;
};

// The header alone, without vocabulary: for a list of many files.
Result<ModelDescription> read_model_description(const std::filesystem::path& path);

// What ending an engine frees at least: a pool's memory is allocated when a block is first written.
std::int64_t resident_bytes(const EngineDescription& description, const KvTotals& totals);
// What its device pool may still take.
std::int64_t unwritten_pool_bytes(const EngineDescription& description, const KvTotals& totals);

}  // namespace octavo
