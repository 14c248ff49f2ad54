// Asks for keys and values before they are read, because no hardware follows a block table.
//
// Lines are asked for a few at a time, between the multiply-adds: in bursts they fill the queue of misses,
// and memory idles between two bursts (plain reading of scattered pieces of 4 KiB on a Zen 5 core: 32 GB/s
// with a request beside each line that is read, 22 with all requests of a piece at once, 27 with none). The
// order is that of reading, half a range ahead: values while their range's keys are scored, the next keys
// while these values are summed.
#pragma once

#include "kernels/cpu/simd/attention_visits.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr std::int64_t kLineBytes = 64;

// Into the second level: half a range is too much for the first.
OCTAVO_INLINE void ask_for_line(const std::byte* line) { __builtin_prefetch(line, 0, 2); }

// Some steps of a register tile's loop, each of which asks for the next few lines.
struct AskingSteps {
  int num_steps;
  const std::byte* line;
  std::int64_t step_bytes;
};

class Ahead {
 public:
  // AskingSteps that one call of plan_steps can want.
  static std::int64_t most_asking_steps(std::int64_t head_dim) {
    return (head_dim > kChunk ? head_dim : kChunk) + 1;
  }

  Ahead(int word_bytes, AskingSteps* steps) : word_bytes_(word_bytes), steps_(steps) {}

  // What is asked for from now on. What was left of the earlier visits is forgotten.
  void follow_keys(const AttentionTile& tile, Visits visits) { follow(tile, visits, /*values=*/false); }
  // Those of a latent tile came with its keys.
  void follow_values(const AttentionTile& tile, Visits visits) {
    follow(tile, tile.is_latent ? Visits() : visits, /*values=*/true);
  }
  // Keys of what comes next, if anything does.
  void follow_next(const AttentionTile* tile, Visits visits) {
    if (tile != nullptr) return follow_keys(*tile, visits);
    visits_ = {};
    line_ = piece_end_ = nullptr;
  }

  // For a loop of `num_steps` steps that asks for `num_lines` lines in each; its parts end at multiples of
  // `unit` steps at the latest. Valid until the next call.
  const AskingSteps* plan_steps(int num_steps, int num_lines, int unit) {
    AskingSteps* steps = steps_;
    for (int done = 0; done < num_steps; done += steps++->num_steps) {
      const int most = smaller(num_steps - done, unit - done % unit);
      if (line_ >= piece_end_ && !next_piece()) {
        *steps = {most, reinterpret_cast<const std::byte*>(steps_), 0};  // to no effect
        continue;
      }
      const std::int64_t step_bytes = num_lines * kLineBytes;
      const auto in_piece = static_cast<int>((piece_end_ - line_ + step_bytes - 1) / step_bytes);
      *steps = {smaller(most, in_piece), line_, step_bytes};
      line_ += steps->num_steps * step_bytes;
    }
    return steps_;
  }

  // At once.
  void ask(std::int64_t num_lines) {
    for (std::int64_t i = 0; i < num_lines; ++i, line_ += kLineBytes) {
      if (line_ >= piece_end_ && !next_piece()) return;
      ask_for_line(line_);
    }
  }
  void ask_for_all() {
    while (line_ < piece_end_ || next_piece()) ask(1);
  }

 private:
  void follow(const AttentionTile& tile, Visits visits, bool values) {
    tile_ = &tile;
    visits_ = visits;
    values_ = values;
    line_ = piece_end_ = nullptr;
    num_done_ = dimension_ = 0;
  }

  // False when nothing is left.
  bool next_piece() {
    if (visits_.size == 0) return false;
    const Visit& visit = visits_.start[0];
    const int position = visit.first_position + num_done_, offset = position % tile_->block_size;
    const int size = smaller(tile_->block_size - offset, visit.count - num_done_);
    const std::byte* block = block_at(*tile_, visit, position);
    if (values_) {
      begin_values(block, offset, size);
    } else {
      begin_keys(block, offset, size);
    }
    if (num_done_ == visit.count) {
      visits_ = {visits_.start + 1, visits_.size - 1};
      num_done_ = 0;
    }
    return true;
  }

  void begin_values(const std::byte* block, int offset, int size) {
    const std::int64_t token_bytes = std::int64_t{tile_->head_dim} * word_bytes_;
    begin_piece(block + tile_->half_head_bytes + offset * token_bytes, size * token_bytes, size);
  }

  // The whole block's keys, which are one piece of memory, or those of one dimension in a larger block.
  void begin_keys(const std::byte* block, int offset, int size) {
    if (tile_->type == KvType::kInt8 && dimension_ == 0) ask_for_scales(block, offset, size);
    if (tile_->block_size <= kChunk) return begin_piece(block, tile_->half_head_bytes, size);
    const std::int64_t first = std::int64_t{dimension_} * tile_->block_size + offset;
    dimension_ = dimension_ + 1 < tile_->head_dim ? dimension_ + 1 : 0;
    begin_piece(block + first * word_bytes_, std::int64_t{size} * word_bytes_, dimension_ == 0 ? size : 0);
  }

  void ask_for_scales(const std::byte* block, int offset, int size) const {
    const std::int64_t half = kKvScaleBytes * tile_->block_size;
    const std::byte* keys = block + tile_->scales_offset + kKvScaleBytes * offset;
    for (std::int64_t i = 0; i < kKvScaleBytes * size; i += kLineBytes) {
      ask_for_line(keys + i);
      if (!tile_->is_latent) ask_for_line(keys + half + i);
    }
  }

  void begin_piece(const std::byte* start, std::int64_t num_bytes, int num_positions) {
    line_ = start;
    piece_end_ = start + num_bytes;
    num_done_ += num_positions;
  }

  const AttentionTile* tile_ = nullptr;
  const int word_bytes_;
  AskingSteps* const steps_;
  Visits visits_;
  bool values_ = false;
  const std::byte *line_ = nullptr, *piece_end_ = nullptr;
  int num_done_ = 0;   // positions of the visit
  int dimension_ = 0;  // of the next piece of a large block's keys
};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
