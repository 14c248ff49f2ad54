// A scene for pictures of the Memory workspace: chats that share a long start, samples, beams, and a pool so
// small that some are swapped out. Played on the real engine core with drawn tokens, and recorded to a file.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_writer.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::testing {

class MemoryScene {
 public:
  // `num_states`: of recurrent layers; 0: the model has none, else at least 32. `num_window_blocks`: of
  // layers with a window, for which so many places suffice for at least four sequences; 0: none has a pool
  // for it.
  explicit MemoryScene(std::int32_t num_blocks = 240, std::int32_t num_host_blocks = 120,
                       std::int32_t num_states = 0, std::int32_t num_window_blocks = 0)
      : options_{.block_size = 16,
                 .num_blocks = num_blocks,
                 .bytes_per_block = 360 << 10,
                 .max_num_seqs = 32,
                 .max_num_batched_tokens = 256,
                 .max_model_len = 2'048,
                 .num_host_blocks = num_host_blocks,
                 .num_states = num_states,
                 .num_host_states = num_states / 4,
                 .bytes_per_state = num_states > 0 ? 19 << 20 : 0,
                 .window = num_window_blocks > 0 ? 128 : 0,
                 .num_window_blocks = num_window_blocks,
                 .num_host_window_blocks = num_window_blocks / 2,
                 .bytes_per_window_block = num_window_blocks > 0 ? 1'800 << 10 : 0,
                 .preemption_mode = PreemptionPolicy::kSwap},
        core_(options_, dependencies()) {
    clock_.advance_us(1'000'000);
  }

  void record(const std::filesystem::path& path, int num_steps) {
    metrics::RecordingHeader header;
    header.bytes_per_block = options_.bytes_per_block;
    header.bytes_per_state = options_.bytes_per_state;
    header.bytes_per_window_block = options_.bytes_per_window_block;
    header.max_model_len = options_.max_model_len;
    header.model = "SmolLM2 135M Instruct";
    metrics::RecordingWriter writer(*metrics::RecordingFile::open(path), std::move(header), core_.recorder(),
                                    [](const Error&) {});
    for (int step = 0; step < num_steps; ++step) {
      this->step(step);
      writer.notify();
    }
  }

  const EngineCore& core() const { return core_; }

 private:
  class Letters final : public runner::Runner {
   public:
    Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
      output.swap_out_us = 20 * static_cast<std::int64_t>(step.swap_outs.size());
      output.swap_in_us = 20 * static_cast<std::int64_t>(step.swap_ins.size());
      for (const auto& row : step.sequences) {
        for (const auto& target : row.samples) {
          const std::uint64_t bits = hash_combine(target.sequence_id.value, target.output_token_ids.size());
          runner::SampledToken token{.sequence_id = target.sequence_id};
          if (target.num_candidates == 0) token.token_id = letter(bits);
          for (std::int32_t i = 0; i < target.num_candidates && i < 16; ++i) {
            const float logprob =
                -0.5f - 0.4f * static_cast<float>(i) - 0.05f * static_cast<float>(bits % 17);
            token.candidates.push_back({letter(bits + static_cast<std::uint64_t>(i)), logprob, logprob});
          }
          output.tokens.push_back(std::move(token));
        }
      }
      return {};
    }

   private:
    static TokenId letter(std::uint64_t bits) { return static_cast<TokenId>(4 + bits % 16); }
  };

  EngineDependencies dependencies() {
    return {.runner = &runner_, .clock = &clock_, .tokenizer = &tokenizer_};
  }

  void step(int step) {
    clock_.advance_us(14'000 + 1'500 * (step % 5));
    std::vector<EngineCommand> commands;
    if (step % 45 == 0 && num_submitted_ < 14) commands.push_back(submit());
    core_.step(std::move(commands));
  }

  PreparedRequest submit() {
    GenerationRequest request;
    TokenPrompt prompt;
    const std::uint64_t own = num_submitted_ + 1;
    const std::size_t num_tokens = 420 + 37 * (own % 7);
    for (std::size_t i = 0; i < num_tokens; ++i) {
      const std::uint64_t start = i < 320 && own % 4 != 0 ? 0 : own;  // most begin alike
      prompt.token_ids.push_back(static_cast<TokenId>(4 + hash_combine(start, i) % 16));
    }
    request.prompt = std::move(prompt);
    request.sampling.max_tokens = static_cast<std::int32_t>(500 + 60 * (own % 5));
    request.sampling.ignore_eos = true;
    if (own % 5 == 2) request.sampling.n = 4;
    if (own % 5 == 4) request.sampling.beam_width = 4;
    return intake_.prepare({RequestId{++num_submitted_}, std::move(request), clock_.now_us()});
  }

  Letters runner_;
  simulation::ToyTokenizer tokenizer_;
  ManualClock clock_;
  scheduler::SchedulerOptions options_;
  EngineCore core_;
  RequestIntake intake_{{.tokenizer = &tokenizer_,
                         .draw_seed = [] { return std::uint64_t{1}; },
                         .unix_time_s = [] { return std::int64_t{0}; }}};
  std::uint64_t num_submitted_ = 0;
};

}  // namespace octavo::testing
