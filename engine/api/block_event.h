// One record per thing that happened to a block or a sequence's memory. Fixed size, cheap to keep by the million.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

enum class BlockEventKind : std::uint8_t {
  kStepBegin,    // aux: scheduled tokens
  kStepEnd,      // aux: blocks in use
  kAlloc,        // block was taken for sequence
  kFill,         // aux: filled slots after the step
  kSeal,         // block became full and can be found by content
  kHit,          // block was found by content for sequence; aux: reference count after
  kShare,        // sequence got a reference by fork; aux: reference count after
  kUnref,        // sequence let go; aux: reference count after
  kCopyOnWrite,  // block is the source, aux the target
  kEvict,        // cached contents were dropped
  kSwapOut,      // aux: host block
  kSwapIn,       // aux: host block
  kPreempt,      // aux: 0 recompute, 1 swap
  kResume,
  kFork,   // aux: low 32 bits of the child's sequence id
  kPrune,  // a beam died
  kFree,   // block holds nothing any more
};

std::string_view block_event_kind_name(BlockEventKind kind);

struct BlockEvent {
  std::int64_t step = 0;
  std::int64_t time_us = 0;  // stamped by the engine when the step is published
  std::uint64_t sequence = 0;
  std::int32_t block = -1;  // -1: none
  std::int32_t aux = 0;
  BlockEventKind kind = BlockEventKind::kStepBegin;
};

}  // namespace octavo
