#include "engine/experiments/simulated_hardware.h"

#include <algorithm>

namespace octavo::paper {

double paging_overhead(std::int32_t block_size) {
  constexpr double kTable = 0.04;     // of looking blocks up
  constexpr double kIdleLanes = 3.0;  // tokens' worth of a warp that each block leaves idle
  return 1.0 + kTable + kIdleLanes / block_size;
}

double swap_s(const Platform& platform, std::int64_t num_blocks) {
  const ModelShape& model = platform.model;
  const double bytes = model.kv_bytes_per_token() * platform.block_size / platform.machine.num_gpus;
  const double calls = 2.0 * model.num_layers;
  const double block_s = calls * kCopyCallS + bytes / platform.machine.host_bytes_per_s;
  return static_cast<double>(num_blocks) * block_s;
}

StepTime step_time(const Platform& platform, const StepLoad& load) {
  const auto& [machine, model, costs, block_size] = platform;
  const double num_gpus = machine.num_gpus;
  const auto rows = static_cast<double>(load.num_rows);
  StepTime time;
  if (load.num_rows > 0) {
    const double read_s = model.weight_bytes() / num_gpus / (machine.bytes_per_s * costs.weight_bandwidth);
    const double multiply_s =
        2.0 * model.num_parameters * rows / num_gpus / (machine.operations_per_s * costs.compute);
    time.linear_s = std::max(read_s, multiply_s);
    const double kv_s =
        model.kv_bytes_per_token() / num_gpus / (machine.bytes_per_s * costs.attention_bandwidth);
    const double overhead = costs.is_paged ? paging_overhead(block_size) : 1.0;
    const double read_kv =
        static_cast<double>(load.num_context_tokens) * (overhead + (costs.copies_kv ? 2.0 : 0.0));
    const double pairs = 4.0 * model.num_layers * model.width * static_cast<double>(load.num_prompt_pairs);
    time.attention_s = read_kv * kv_s + pairs / num_gpus / (machine.operations_per_s * costs.compute);
    time.host_s = costs.host_s + costs.request_s * static_cast<double>(load.num_requests) +
                  costs.sequence_s * static_cast<double>(load.num_sampled);
  }
  if (machine.num_gpus > 1 && load.num_rows > 0) {
    time.host_s += costs.tensor_parallel_s;
    // Two a layer, each GPU sends and takes 2 (n - 1) / n of the rows.
    const double bytes = 2.0 * model.width * rows * 2.0 * (num_gpus - 1) / num_gpus;
    time.reduce_s = 2.0 * model.num_layers * (machine.all_reduce_s + bytes / machine.link_bytes_per_s);
  }
  const double copied_bytes =
      2.0 * model.kv_bytes_per_token() / num_gpus * static_cast<double>(load.num_copied_tokens);
  time.copy_s = swap_s(platform, load.num_swapped_out_blocks + load.num_swapped_in_blocks) +
                copied_bytes / (machine.bytes_per_s * costs.weight_bandwidth);
  if (costs.copies_by_block) {
    const double num_blocks = static_cast<double>(load.num_copied_tokens) / block_size;
    time.copy_s += num_blocks * 2.0 * model.num_layers * kCopyCallS;
  }
  if (load.num_rows > 0) {
    const double waiting_s = costs.least_step_s - time.total_s();
    time.host_s += std::max(0.0, waiting_s);
  }
  return time;
}

}  // namespace octavo::paper
