// How long a step takes on the machines of the paper, as a roofline: what is read from memory, what is
// multiplied, and what the program around it costs. Numbers of hardware are the vendor's, numbers of models
// are their shapes; five constants of the paper's program (EngineCosts) are fitted to what its figure 13
// implies, and named as such. tests/experiments holds the result against step times that others published.
//
// By Little's law, figure 13's means give step times of the authors' program on one A100 of 40 GB, OPT-13B:
//   30.42 requests at 2.0/s of 338 tokens: 45 ms with 30 rows over 14,000 tokens of KV
//    7.00 requests at 0.75/s: 28 ms with 7 rows over 3,300 tokens
//  132.44 requests at 30/s of 58 tokens: 75 ms with 132 rows over 11,000 tokens
// These three decide kPaperCosts. Pure; any thread.
#pragma once

#include <cstdint>

#include "engine/experiments/scripted_engine.h"

namespace octavo::paper {

// Of one GPU, except where all of them are meant.
struct Machine {
  const char* name;
  std::int32_t num_gpus;
  double memory_bytes;
  double bytes_per_s;       // of its memory, peak
  double operations_per_s;  // half precision, dense, peak
  double host_bytes_per_s;  // to or from pinned host memory, as measured with large copies
  double all_reduce_s;      // of a few rows between all GPUs of the machine: latency of NCCL's
  double link_bytes_per_s;  // between GPUs, each way
  double monthly_usd;       // 0: not priced
};

// A100: NVIDIA's data sheet (1,555 and 2,039 GB/s, 312 TFLOP/s, NVLink 600 GB/s both ways together). Copies
// to the host: what the authors' machine did by their figure 19a, where 256 tokens are computed again in at
// most 1.2 times of what swapping them there and back takes, however large the blocks; half of what PCIe 4.0
// x16 can do (kPcie4, CUDA's bandwidthTest). A small all-reduce takes NCCL 20 us among 4 and 30 us among 8
// GPUs over NVLink (nccl-tests, all_reduce_perf).
inline constexpr double kPcie4 = 25e9;
inline constexpr Machine kA100x1 = {"1 x A100 40 GB", 1, 40e9, 1'555e9, 312e12, 13e9, 0, 0, 0};
inline constexpr Machine kA100x4 = {"4 x A100 40 GB", 4, 40e9, 1'555e9, 312e12, 13e9, 20e-6, 300e9, 0};
inline constexpr Machine kA100x8 = {"8 x A100 80 GB", 8, 80e9, 2'039e9, 312e12, 13e9, 30e-6, 300e9, 0};
// T4: 320 GB/s, 65 TFLOP/s. P100 (PCIe): 732 GB/s, 18.7 TFLOP/s. Both 16 GB, PCIe 3.0. Prices by the month.
inline constexpr Machine kT4 = {"T4 16 GB", 1, 16e9, 320e9, 65e12, 12e9, 0, 0, 262};
inline constexpr Machine kP100 = {"P100 16 GB", 1, 16e9, 732e9, 18.7e12, 12e9, 0, 0, 1'817};

// In half precision.
struct ModelShape {
  const char* name;
  std::int32_t num_layers, width;
  double num_parameters;

  double weight_bytes() const { return 2.0 * num_parameters; }
  // Keys and values of all layers; no model here has grouped heads.
  double kv_bytes_per_token() const { return 4.0 * num_layers * width; }
};
inline constexpr ModelShape kOpt2_7B = {"OPT-2.7B", 32, 2'560, 2.65e9};
inline constexpr ModelShape kOpt13B = {"OPT-13B", 40, 5'120, 13.0e9};
inline constexpr ModelShape kOpt66B = {"OPT-66B", 64, 9'216, 66.0e9};
inline constexpr ModelShape kOpt175B = {"OPT-175B", 96, 12'288, 173.0e9};
inline constexpr ModelShape kLlama13B = {"LLaMA-13B", 40, 5'120, 13.0e9};

// The program that drives the GPU.
struct EngineCosts {
  double weight_bandwidth;     // share of the peak that products of few rows reach
  double compute;              // share of the peak that products of many rows reach
  double attention_bandwidth;  // share of the peak that attention over contiguous keys and values reaches
  double host_s;               // of a step, whatever is in it
  double tensor_parallel_s;    // of a step more, where several GPUs take part: their processes are told
  double request_s;     // of a step, for each request that gets tokens: its sampler loops over requests
  double sequence_s;    // of a step, for each output that gets a token
  double least_step_s;  // launching its kernels one by one takes so long, whatever they do
  bool is_paged;        // attention goes through a block table
  bool copies_kv;       // every step writes all keys and values to a new place
  bool copies_by_block = false;  // within the device: one call for each block, layer, and of keys and values
};

// The authors' program: Python, Ray, PyTorch without graphs.
inline constexpr EngineCosts kPaperCosts = {0.80, 0.60, 0.68, 2e-3, 10e-3, 0.22e-3, 0.06e-3, 0, true, false};
// FasterTransformer: C++, one call for a whole batch. The same kernels otherwise.
inline constexpr EngineCosts kFasterTransformerCosts = {0.80, 0.60, 0.68, 0.5e-3, 1e-3,
                                                        0,    0,    0,    false,  false};
// Hugging Face Transformers: eager, about 25 tokens/s of one sequence of 13 billion parameters on an A100,
// hardly fewer of one of 7: its launches. Keys and values are concatenated anew in each step.
inline constexpr EngineCosts kTransformersCosts = {0.80, 0.60,    0.40,  0,     10e-3,
                                                   0,    0.05e-3, 40e-3, false, true};

// What reading keys and values block by block costs beside reading them in one piece. A warp works on one
// block: the shorter it is, the less of the warp has work. Fitted to figure 18a: 20 to 26 % at 16.
double paging_overhead(std::int32_t block_size);

// A copy between the device and the host is one call for each block, layer, and of keys and values. As figure
// 19a has it for blocks of one token, which are calls and nothing else: 135 ms for 41,000 of them.
inline constexpr double kCopyCallS = 2.5e-6;

struct Platform {
  Machine machine;
  ModelShape model;
  EngineCosts costs;
  std::int32_t block_size = 16;
};

struct StepTime {
  double linear_s = 0;     // products with weights: reading them or multiplying, whichever takes longer
  double attention_s = 0;  // keys and values, and of prompts the products among themselves
  double reduce_s = 0;     // between GPUs
  double host_s = 0;
  double copy_s = 0;  // swaps and copies within the device

  double total_s() const { return linear_s + attention_s + reduce_s + host_s + copy_s; }
};
StepTime step_time(const Platform& platform, const StepLoad& load);

// One way, between device and host.
double swap_s(const Platform& platform, std::int64_t num_blocks);

}  // namespace octavo::paper
