// What the "Explain" tour draws beside the pools: a chapter's words, what is in every slot of its small pool,
// and what a visitor tries. Plain values, written by app/window/memory between frames.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/kv_snapshot.h"

namespace octavo::ui {

// What the step at the cursor did with a slot: nothing, it read the KV that was there, or it wrote it.
enum class SlotUse { kKept, kReused, kComputed };

struct ShownSlot {
  std::string word = {};
  SlotUse use = SlotUse::kKept;
};

struct ShownCell {
  BlockState state = BlockState::kFree;
  std::int32_t ref_count = 0;
  std::vector<ShownSlot> slots = {};       // as far as they are filled
  std::vector<std::uint16_t> owners = {};  // indices of sequences, in their order
};

enum class CopyKind { kCopy, kSwapOut, kSwapIn };
struct BlockArrow {
  CopyKind kind = CopyKind::kCopy;
  std::int32_t from = 0, to = 0;  // blocks; the host's where it comes from there or goes there
  friend bool operator==(const BlockArrow&, const BlockArrow&) = default;
};

struct SlotMap {
  std::vector<ShownCell> device, host;
  std::vector<BlockArrow> arrows;  // of the step at the cursor
  std::int32_t num_computed = 0;   // slots that this step wrote
  std::int32_t num_reused = 0;     // slots that it read, each once
  std::int64_t num_computed_so_far = 0;
};

enum class TrialAnswers { kOneSample, kThreeSamples, kTwoBeams };

// What a visitor types.
struct TourTrial {
  std::array<std::string, 2> prompts = {};  // the second may be empty
  TrialAnswers answers = TrialAnswers::kThreeSamples;
  friend bool operator==(const TourTrial&, const TourTrial&) = default;
};

struct TourState {
  std::vector<std::string> chapters = {};
  std::int32_t chapter = 0;
  std::int32_t step = 0, num_steps = 0;
  std::string sentence = {};
  std::string figures = {};  // what the step computed and what it reused
  std::string title = {};
  bool is_lesson = false;    // from a file: no chapter of ours
  bool is_trial = false;     // the chapter in which the visitor types
  TourTrial trial = {};      // as it was played
  std::string problem = {};  // why what was typed cannot be played
};

}  // namespace octavo::ui
