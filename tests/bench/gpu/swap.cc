#include "kernels/cuda/runtime/block_moves.h"
#include "kernels/kv_layout.h"
#include "tests/bench/gpu/batch.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::BlockCopy;
using kernels::KvLayout;
using kernels::KvType;
using kernels::cuda::DeviceMemory;
using kernels::cuda::PinnedMemory;

constexpr std::int32_t kBlockSize = 16;

struct SwapModel {
  const char* name;
  KvLayout layout;
};

std::vector<SwapModel> models(const Sizes& sizes) {
  if (sizes.is_emulated) return {{"tiny", {KvType::kF16, kBlockSize, 2, 2, 8}}};
  return {{"SmolLM2-135M", {KvType::kF16, kBlockSize, 30, 3, 64}},
          {"Llama-1B", {KvType::kF16, kBlockSize, 16, 8, 64}},
          {"Llama-8B", {KvType::kF16, kBlockSize, 32, 8, 128}}};
}

std::vector<std::int32_t> batch_sizes(const Sizes& sizes) {
  if (sizes.is_emulated) return {1, 6};
  return {8, 64, 256};  // a sequence of 128, of 1,024 and of 4,096 tokens
}

enum class Direction { kOut, kIn };

// `count` blocks that lie shuffled in both pools, as after a while; or neighbours in both, as at first.
std::vector<BlockCopy> copies_of(std::int32_t count, std::int32_t num_blocks, bool is_shuffled) {
  const std::vector<std::int32_t> shuffled = shuffled_blocks(num_blocks);
  std::vector<BlockCopy> copies;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto forward = static_cast<std::size_t>(i), backward = shuffled.size() - 1 - forward;
    copies.push_back(is_shuffled ? BlockCopy{shuffled[forward], shuffled[backward]} : BlockCopy{i, i});
  }
  return copies;
}

Case case_of(Bench& bench, const SwapModel& model, std::vector<BlockCopy> copies, bool is_shuffled,
             Direction direction, std::byte* device, std::byte* host) {
  const bool is_out = direction == Direction::kOut;
  const std::int64_t block_bytes = model.layout.block_bytes();
  const std::string count = std::to_string(copies.size());
  Record record;
  record.section = "swap";
  record.name = std::string(model.name) + (is_out ? ", out, " : ", in, ") + count +
                (is_shuffled ? " shuffled blocks" : " neighbouring blocks");
  record.facts = {{"model", model.name},
                  {"direction", is_out ? "out" : "in"},
                  {"blocks", count},
                  {"block_kilobytes", std::to_string(block_bytes / 1000)}};
  record.bytes = static_cast<double>(block_bytes) * static_cast<double>(copies.size());
  record.limit_bytes = is_out ? bench.limits().to_host_bytes : bench.limits().to_device_bytes;
  return {std::move(record), [=, &bench, copies = std::move(copies)](std::int64_t) {
            kernels::cuda::move_pool_blocks(bench.stream(), is_out ? device : host, is_out ? host : device,
                                            block_bytes, copies);
          }};
}

Result<void> measure_model(Bench& bench, const SwapModel& model) {
  const std::int32_t num_blocks = batch_sizes(bench.sizes()).back() * 2;
  const std::int64_t bytes = num_blocks * model.layout.block_bytes();
  OCTAVO_TRY(const DeviceMemory device, DeviceMemory::allocate(bytes, "the KV pool"));
  OCTAVO_TRY(const PinnedMemory host, PinnedMemory::allocate(bytes, "the host pool"));
  OCTAVO_TRY_VOID(bench.random().fill_pool(model.layout, device.data(), num_blocks));
  bench.stream().copy(host.data(), device.data(), bytes);
  std::vector<Case> cases;
  for (const std::int32_t count : batch_sizes(bench.sizes())) {
    for (const bool is_shuffled : {true, false}) {
      for (const Direction direction : {Direction::kOut, Direction::kIn}) {
        cases.push_back(case_of(bench, model, copies_of(count, num_blocks, is_shuffled), is_shuffled,
                                direction, device.data(), host.data()));
      }
    }
  }
  return bench.measure(std::move(cases), bench.stream_timer());
}

}  // namespace

Result<void> measure_swap(Bench& bench) {
  for (const SwapModel& model : models(bench.sizes())) OCTAVO_TRY_VOID(measure_model(bench, model));
  return {};
}

}  // namespace octavo::bench
