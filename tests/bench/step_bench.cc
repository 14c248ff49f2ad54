// What a step costs beside the model's arithmetic, in microseconds of this thread:
//   octavo_step_bench
// 1. schedule and commit while a long prompt waits behind sequences that decode: for blocks, with half of it
//    found in the prefix cache and others' blocks becoming findable all the time.
// 2. the step that preempts a group of many outputs by recompute: who will share which blocks with whom.
// 3. cutting the attention of a step into items: the CPU backend does it once for all layers of a kind.
// 4. a snapshot of the pool: all of it, as the Memory workspace shows it, and without its blocks.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "kernels/cpu/attention_work.h"

namespace octavo {
namespace {

using scheduler::Scheduler;
using scheduler::SchedulerOptions;
using scheduler::SchedulerOutput;

constexpr std::int32_t kBlockSize = 16;
constexpr std::int32_t kLongPrompt = 8000;

// Of this thread's own work: another program on the machine does not count.
double thread_us() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

template <class Function>
double us_of(const Function& function) {
  const double begin = thread_us();
  function();
  return thread_us() - begin;
}

SchedulerOptions options_with(std::int32_t num_blocks) {
  return {.block_size = kBlockSize,
          .num_blocks = num_blocks,
          .bytes_per_block = 1,
          .max_num_seqs = 128,
          .max_num_batched_tokens = 512,
          .max_model_len = 2 * kLongPrompt};
}

std::vector<TokenId> tokens_of(std::int32_t content, std::int32_t count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i)
    tokens[static_cast<std::size_t>(i)] = (i * 7 + content * 131) % 4999;
  return tokens;
}

void add(Scheduler& scheduler, std::uint64_t id, std::vector<TokenId> prompt, std::int32_t num_outputs = 1) {
  scheduler::NewRequest request{
      .request_id = RequestId{id}, .prompt_token_ids = std::move(prompt), .sampling = {}};
  request.sampling.n = num_outputs;
  request.sampling.max_tokens = kLongPrompt;
  if (const auto added = scheduler.add(std::move(request)); !added) std::puts(added.error().message.c_str());
}

// Every output gets other tokens.
SchedulerOutput run_step(Scheduler& scheduler) {
  SchedulerOutput step = scheduler.schedule();
  std::vector<scheduler::CommittedToken> tokens;
  for (const auto& row : step.sequences) {
    for (const auto& target : row.samples)
      tokens.push_back({target.sequence_id, static_cast<TokenId>(5000 + target.output_index)});
  }
  scheduler.commit(step, tokens);
  (void)scheduler.take_events();
  return step;
}

void measure_waiting_prompt() {
  constexpr std::int32_t kNumDecoding = 16, kNumSteps = 200;
  Scheduler scheduler(options_with(kNumDecoding * 60 + 300));
  const std::vector<TokenId> prompt = tokens_of(1, kLongPrompt);
  add(scheduler, 1, {prompt.begin(), prompt.begin() + kLongPrompt / 2});
  for (int i = 0; i < 12; ++i) run_step(scheduler);
  for (std::uint64_t id = 2; id < 2 + kNumDecoding; ++id)
    add(scheduler, id, tokens_of(static_cast<std::int32_t>(id), 500));
  for (int i = 0; i < 40; ++i) run_step(scheduler);
  const auto measure = [&] {
    std::vector<double> us;
    for (int i = 0; i < kNumSteps; ++i) us.push_back(us_of([&] { run_step(scheduler); }));
    return median(std::move(us));
  };
  const double alone = measure();
  add(scheduler, 100, prompt);
  const double beside = measure();
  std::printf("%d sequences decode: %.1f us a step, %.1f while a prompt of %d tokens waits\n",
              kNumDecoding + 1, alone, beside, kLongPrompt);
  if (scheduler.num_waiting() != 1 || scheduler.num_running() != kNumDecoding + 1) std::puts("(wrong state)");
}

void measure_sharing_plan() {
  for (const std::int32_t num_outputs : {4, 16, 64}) {
    Scheduler scheduler(options_with(600 + 8 * num_outputs));
    add(scheduler, 1, tokens_of(1, 1200));
    add(scheduler, 2, tokens_of(2, 4000), num_outputs);
    double us = 0.0;
    for (bool has_preempted = false; !has_preempted && scheduler.has_work();)
      us = us_of([&] { has_preempted = !run_step(scheduler).preemptions.empty(); });
    std::printf("preempting %d outputs of a prompt of 4,000 tokens: %.0f us\n", num_outputs, us);
  }
}

// Sequences of so many rows each behind `context` others, in blocks of their own.
void measure_attention_plan(std::int32_t num_sequences, std::int32_t num_rows, std::int32_t context) {
  std::vector<std::int32_t> positions, query_start{0}, context_lens, tables;
  const std::int32_t num_blocks = (context + num_rows + kBlockSize - 1) / kBlockSize;
  for (std::int32_t sequence = 0; sequence < num_sequences; ++sequence) {
    for (std::int32_t row = 0; row < num_rows; ++row) positions.push_back(context + row);
    for (std::int32_t block = 0; block < num_blocks; ++block) tables.push_back(sequence * num_blocks + block);
    query_start.push_back(static_cast<std::int32_t>(positions.size()));
    context_lens.push_back(context + num_rows);
  }
  const kernels::PagedBatch batch{.num_tokens = static_cast<std::int32_t>(positions.size()),
                                  .num_sequences = num_sequences,
                                  .positions = positions,
                                  .slot_mapping = {},
                                  .query_start = query_start,
                                  .context_lens = context_lens,
                                  .block_tables = tables,
                                  .max_blocks = num_blocks,
                                  .rotations = {}};
  const kernels::cpu::AttentionPlan plan{
      .block_size = kBlockSize, .num_kv_heads = 3, .group_size = 3, .num_threads = 2, .floats_per_row = 200};
  kernels::cpu::AttentionWork work;
  std::vector<double> us;
  for (int i = 0; i < 200; ++i) us.push_back(us_of([&] { kernels::cpu::plan_attention(batch, plan, work); }));
  std::printf("attention of %d x %d rows behind %d tokens: %.1f us to cut\n", num_sequences, num_rows,
              context, median(std::move(us)));
}

void measure_snapshots() {
  for (const std::int32_t num_blocks : {4'096, 65'536}) {
    Scheduler scheduler(options_with(num_blocks));
    for (std::uint64_t id = 1; id <= 16; ++id)
      add(scheduler, id, tokens_of(static_cast<std::int32_t>(id), 1000));
    for (int i = 0; i < 60; ++i) run_step(scheduler);
    std::vector<double> whole, without_blocks;
    for (int i = 0; i < 100; ++i) {
      whole.push_back(us_of([&] { (void)scheduler.snapshot(SnapshotScope::kPool); }));
      without_blocks.push_back(us_of([&] { (void)scheduler.snapshot(SnapshotScope::kSequences); }));
    }
    std::printf("a snapshot of %d blocks and 16 sequences: %.0f us, without the blocks %.1f us\n", num_blocks,
                median(std::move(whole)), median(std::move(without_blocks)));
  }
}

}  // namespace
}  // namespace octavo

int main() {
  octavo::measure_waiting_prompt();
  octavo::measure_sharing_plan();
  octavo::measure_attention_plan(1, 1, 2000);
  octavo::measure_attention_plan(16, 1, 2000);
  octavo::measure_attention_plan(1, 512, 2000);
  octavo::measure_snapshots();
}
