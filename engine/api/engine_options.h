// What an engine is built from. Names, order and defaults are those of the command line; a value of
// "auto" or an empty optional is resolved at start, and the resolved values are in
// EngineDescription (model_description.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.h"

namespace octavo {

enum class Device { kAuto, kCpu, kCuda };
enum class WeightType { kAuto, kFloat16, kBfloat16, kFloat32 };  // of unquantised weights in memory
// What unquantised weights become when they are loaded; where a matrix does not divide into its blocks, what
// kernels/quantize.h says. Embedding and output head: Q6_K, or Q8_0 where the others are.
enum class WeightQuantisation { kNone, kQ8_0, kQ6_K, kQ5_K, kQ5_1, kQ5_0, kQ4_K, kQ4_1, kQ4_0 };
enum class ActivationType { kAuto, kF32, kInt16, kInt8 };  // what quantised weights are multiplied with
enum class KvCacheType { kAuto, kF32, kF16, kBf16, kFp8E4m3, kFp8E5m2, kInt8 };
enum class PreemptionPolicy { kAuto, kSwap, kRecompute, kCost };

// Tokens guessed ahead and computed together with the newest one. A guess counts only where it is the token
// that is drawn there anyway: answers are the same, bit for bit.
enum class Speculation {
  kOff,
  kNgram,  // what followed the newest tokens where they stood before, in prompt or output
  kMtp,    // what the model's own layer for it predicts (multi-token prediction); not on a GPU
};

// When requests that never ran may start again after a preemption.
enum class AdmissionAfterPreemption {
  kResumed,    // every preempted group has its blocks again
  kCompleted,  // every preempted group has ended: the paper's rule
};

// What a start beside others leaves of the pool.
enum class AdmissionReserve {
  kLookAhead,         // what will be taken in the next steps, by what is known of lengths
  kBlockPerSequence,  // for comparison: 1 %, and one block for each running sequence
  kOnePercent,        // the paper's rule
};

// How KV memory is given out. All but kPaged are the baselines of Kwon et al. 2023
// (arXiv:2309.06180), section 6.1: one contiguous chunk for each output, reserved at its start, of a
// power of two of blocks; nothing is shared.
enum class MemoryManager { kPaged, kOrcaMax, kOrcaPow2, kOrcaOracle };

// When waiting requests may start.
enum class BatchingPolicy {
  kIteration,  // in any step: continuous batching
  kStatic,     // when everything that started together has ended
  kOneAtATime,
};

struct EngineOptions {
  std::string model = {};  // a path, or "org/name"; empty: the default model
  Device device = Device::kAuto;
  std::int32_t threads = 0;  // CPU workers; 0: one for each physical core
  WeightType dtype = WeightType::kAuto;
  WeightQuantisation quantisation = WeightQuantisation::kNone;
  ActivationType activation_dtype = ActivationType::kAuto;
  std::int32_t block_size = 16;  // tokens, 1..256
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;
  std::optional<std::int32_t> num_kv_blocks = {};     // at most one of these three
  std::optional<std::int64_t> kv_cache_memory = {};   // MiB
  std::optional<double> gpu_memory_utilization = {};  // 0 < F <= 1; used on a GPU, checked everywhere
  std::optional<double> swap_space = {};              // GiB
  std::optional<std::int32_t> num_states = {};        // of recurrent layers; no more sequences run at a time
  // Of layers with a window, whose keys and values have a pool of their own; 0: they stand with the others'
  std::optional<std::int32_t> num_window_blocks = {};
  std::optional<std::int32_t> max_model_len = {};  // tokens; at most the model's context length
  std::int32_t max_num_seqs = 64;
  std::optional<std::int32_t> max_num_batched_tokens = {};  // 512 on a CPU, 2,048 on a GPU
  // About how long a step may take in which outputs grow beside a prompt: the prompt gets fewer rows. 0: any
  // time
  std::int32_t target_step_ms = 100;
  bool enable_prefix_caching = true;
  PreemptionPolicy preemption_mode = PreemptionPolicy::kAuto;
  AdmissionAfterPreemption admit_after_preemption = AdmissionAfterPreemption::kResumed;
  AdmissionReserve admission_reserve = AdmissionReserve::kLookAhead;
  MemoryManager memory_manager = MemoryManager::kPaged;         // others: for comparison
  BatchingPolicy batching_policy = BatchingPolicy::kIteration;  // others: for comparison
  Speculation speculative = Speculation::kOff;
  // Guesses of an output in a step, at most: 3 of mtp, else as many as are cheap
  std::optional<std::int32_t> num_speculative_tokens = {};
  std::optional<bool> deterministic = {};  // on for the CPU
  bool cuda_graphs = true;                 // for a GPU; changes no result
  std::int32_t tensor_parallel_size = 1;
  std::string record = {};  // file for the event recording

  // No command line option: no output grows while a running prompt is incomplete, so that a measurement can
  // tell prefill and decode apart.
  bool prefill_first = false;
};

// What can be refused without looking at a model or a machine: ranges, contradictions, parts that
// are not built yet. One sentence.
Result<void> validate(const EngineOptions& options);

}  // namespace octavo
