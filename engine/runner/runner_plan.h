// What running a model will take, by arithmetic alone: types and limits resolved from the options, bytes, and
// the size of the pool. Nothing is loaded or allocated to find out.
#pragma once

#include <cstdint>
#include <string>

#include "engine/api/engine_options.h"
#include "engine/base/result.h"
#include "engine/model/model_config.h"
#include "engine/model/model_tensors.h"
#include "kernels/backend.h"
#include "kernels/kv_layout.h"
#include "kernels/state_layout.h"

namespace octavo::runner {

struct RunnerPlan {
  kernels::Activation activation = kernels::Activation::kInt16;
  WeightType dtype = WeightType::kAuto;
  std::int32_t max_model_len = 0;           // tokens
  std::int32_t max_num_batched_tokens = 0;  // rows of a step
  kernels::KvLayout kv_layout;              // of layers that are not set apart; may have none
  kernels::KvLayout window_layout;          // of those with a window that are; else without layers
  std::int32_t window = 0;                  // tokens that these see; 0: there are none
  kernels::StateLayout state_layout;        // empty: no layer is recurrent; of the host, without drafts
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;         // at most num_blocks
  std::int32_t num_window_blocks = 0;       // 0 exactly if window is
  std::int32_t num_host_window_blocks = 0;  // at most num_window_blocks
  std::int32_t num_states = 0;              // 0 exactly if no layer is recurrent
  std::int32_t num_host_states = 0;         // at most num_states
  std::int64_t weight_bytes = 0;            // of matrices; a backend may pad them
  kernels::StepShape step_shape;            // the largest step
  // Activations, logits, sampling, what drafts bring to states, and the kernels' scratch of the largest step
  std::int64_t working_bytes = 0;
  std::string notice;  // what was not done as the options say; else empty

  std::int64_t bytes_per_state() const { return state_layout.state_bytes(); }
  std::int64_t kv_bytes() const {
    return num_blocks * kv_layout.block_bytes() + num_window_blocks * window_layout.block_bytes();
  }
  std::int64_t state_bytes() const { return num_states * bytes_per_state(); }
  std::int64_t host_bytes() const {
    return num_host_blocks * kv_layout.block_bytes() + num_host_window_blocks * window_layout.block_bytes() +
           num_host_states * bytes_per_state();
  }
  std::int64_t total_bytes() const {
    return weight_bytes + working_bytes + kv_bytes() + state_bytes() + host_bytes();
  }
};

// Rows whose logits are computed together, so that a step which needs many (log-probabilities of a prompt)
// does not hold as many vocabularies. The height changes no result.
inline constexpr std::int32_t kLogitsRows = 64;

inline constexpr std::int32_t kDefaultCheckpoints = 32;

// Memory that can be had without swapping: MemAvailable of /proc/meminfo, or all memory where that cannot be
// read.
std::int64_t available_memory_bytes();

// The pool: num_kv_blocks, or as many blocks as fit kv_cache_memory, or enough for 8 full contexts but at
// most a quarter of what weights and working memory leave of `available_bytes`. A pool smaller than one
// context is allowed.
//
// On a CPU, layers with a window have a pool of their own where that is smaller (window_pool.h); what it
// saves is for more blocks, unless num_kv_blocks says how many.
//
// The host pool: swap_space, or as large as the device pool but at most 4 GiB and what memory is left beside
// all the rest. Never larger than the device pool: more could not be filled. A swap_space beyond that is
// clamped with a notice.
//
// States of recurrent layers: num_states, or one for each sequence that may run and kDefaultCheckpoints more,
// but at most a quarter of the memory that is left, before the pool gets its part. In the host pool a quarter
// of it is theirs.
//
// Errors, each with both numbers: kInvalidArgument for a max_model_len beyond the model's; kOutOfMemory.
// (Whoever wants the numbers of a model that does not fit asks with more available_bytes than there are.)
// REQUIRES: validate(options); a validated config.
Result<RunnerPlan> plan_runner(const model::ModelConfig& config, const model::ModelTensors& tensors,
                               const EngineOptions& options, std::int64_t available_bytes);

// What the weights are multiplied with: all that a backend has to know before there is a plan.
kernels::Activation activation_of(const EngineOptions& options, const model::ModelTensors& tensors);

// The same on a device with memory of its own: weights, working memory and pool in gpu_memory_utilization
// of that memory (0.9 if it is not given), less what others use of it now; the host pool in
// `available_bytes` of the host's. With gpu_memory_utilization the pool is all that is left, else at most 8
// full contexts. Reserves the backend's step, so that its working memory is known and not guessed.
// REQUIRES: backend.device_bytes()
Result<RunnerPlan> plan_runner_on_device(const model::ModelConfig& config, const model::ModelTensors& tensors,
                                         const EngineOptions& options, std::int64_t available_bytes,
                                         kernels::Backend& backend);

}  // namespace octavo::runner
