// One record per thing that happened to a block or a sequence's memory. Fixed
// size, cheap to keep by the million.
//
// The records alone tell the state of all pools (engine/metrics/kv_state.h). A sequence's block table is in
// the order of its kAlloc, kHit and kShare, but that the target of kCopyOnWrite, allocated before it, takes
// the source's place. A block keeps what it holds, and can be found if it was sealed, until kEvict or kFree.
//
// Who names a block, in a table or by a pin, reads its window part, but for the first entries of a table,
// which kWindowSkip and kLeaveWindow count.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/api/checkpoint_reason.h"
#include "engine/api/retention_class.h"

namespace octavo {

enum class BlockEventKind : std::uint8_t {
  kStepBegin,  // aux: scheduled tokens
  kStepEnd,    // aux: blocks in use, exactly here
  kAlloc,      // a free block was taken for sequence: one reference, nothing filled
  kFill,       // aux: filled slots after the step; sequence names the block
  kSeal,       // the contents of block can be found from now on; aux: seal_after() or seal_instead_of()
  kHit,        // block was found by content for sequence; aux: reference count after
  kShare,      // sequence got a reference by fork; aux: reference count after
  kPin,        // a reference that no table has: a copy reads block in this step; aux: reference count after
  kUnref,      // sequence (0: a pin) released it; aux: reference count after. At 0 the block is cached until
               // kFree
  kCopyOnWrite,  // block is the source, aux the target, which has the source's filled slots
  kCopyPartial,  // the same for a prefix that ends inside block; the target's kFill follows
  kEvict,        // cached contents of block were dropped for sequence: it is free
  kFree,         // block, which had no reference left, holds nothing any more
  kSwapOut,      // contents of block go to host block aux, which is taken; the block's kUnref follow
  kSwapIn,       // contents of host block aux go to block, whose kAlloc came before; its kSwapDrop follows
  kSwapDrop,     // host block aux is free
  kPreempt,      // aux: 0 recompute, 1 swap
  kResume,
  kFork,         // aux: low 32 bits of the child's sequence id
  kPrune,        // a beam died
  kLeaveWindow,  // sequence reads the window part of block no more; aux: how many still do
  // Of the states of recurrent layers: `block`, and `aux` where it says so, is a state. A sequence owns one
  // at most. A state is free without an owner and a checkpoint, and cached with a checkpoint alone.
  kStateTake,     // a free state was taken for sequence
  kStateShare,    // sequence owns it, too, by fork
  kStateResume,   // sequence owns it, found by content; aux: the tokens before it
  kStateCopy,     // sequence leaves it, and owns the free state aux, with the same contents, instead
  kStateRelease,  // sequence let it go; aux: 1 for a state of the host pool, else 0
  kStateKeep,     // it is a checkpoint from now on; aux: checkpoint_aux()
  kStateForget,  // it is none any more; aux: 1 when it was evicted, for sequence (0: its blocks were), else 0
  kStateSwapOut,  // sequence leaves it, and owns the host state aux instead, where the first to leave copies
                  // it
  kStateSwapIn,   // sequence leaves the host state aux, and owns it instead
  kStateMiss,     // blocks hold aux more tokens of sequence than any checkpoint: they are computed again
  kStateWorth,    // of a checkpoint, from now on; aux: checkpoint_worth_aux()
  // Of window parts, beside kLeaveWindow: what layers with a window keep of a block.
  kWindowSkip,     // sequence reads no window part of its first aux blocks, also of those that are to come
  kWindowOpen,     // block has a window part, in the free place aux
  kWindowKeep,     // nobody reads the window part of block; it is kept, aux: as this RetentionClass
  kWindowClose,    // block has none any more; aux: 1 when its place was needed, for sequence, else 0
  kWindowSwapOut,  // the window part of block goes to that of host block aux, until its kSwapDrop
  kWindowSwapIn,   // the window part of host block aux goes to that of block, whose kWindowOpen came before
  kWindowMiss,     // blocks hold aux more tokens of sequence than window parts: they are computed again
};

// Whether an event is about a state, so that its numbers are none of blocks.
constexpr bool is_of_states(BlockEventKind kind) {
  return kind >= BlockEventKind::kStateTake && kind <= BlockEventKind::kStateWorth;
}
// Whether it is about window parts.
constexpr bool is_of_windows(BlockEventKind kind) {
  return kind == BlockEventKind::kLeaveWindow || kind >= BlockEventKind::kWindowSkip;
}

// What a sealed block follows, or whose place in its chain it takes, in one number. A block takes the place
// of another with the same contents, which is freed next: what followed that one follows this one from now
// on. 0: it follows nothing, or nobody tells.
constexpr std::int32_t seal_after(std::int32_t block) { return block + 1; }  // -1: nothing
constexpr std::int32_t seal_instead_of(std::int32_t block) { return -1 - block; }
constexpr bool is_instead_of(std::int32_t aux) { return aux < 0; }
constexpr std::int32_t sealed_after(std::int32_t aux) { return aux - 1; }
constexpr std::int32_t sealed_instead_of(std::int32_t aux) { return -1 - aux; }

// Where a checkpoint stands, and why, in one number.
constexpr std::int32_t checkpoint_aux(std::int32_t position, CheckpointReason reason) {
  return position * 4 + static_cast<std::int32_t>(reason);
}
constexpr std::int32_t checkpoint_position(std::int32_t aux) { return aux / 4; }
constexpr CheckpointReason checkpoint_reason(std::int32_t aux) {
  return static_cast<CheckpointReason>(aux % 4);
}

// What a checkpoint saves, and how long to keep it, in one number.
constexpr std::int32_t checkpoint_worth_aux(std::int32_t num_saved_tokens, RetentionClass retention) {
  return num_saved_tokens * 4 + static_cast<std::int32_t>(retention);
}
constexpr std::int32_t checkpoint_saved_tokens(std::int32_t aux) { return aux / 4; }
constexpr RetentionClass checkpoint_retention(std::int32_t aux) {
  return static_cast<RetentionClass>(aux % 4);
}

std::string_view block_event_kind_name(BlockEventKind kind);

struct BlockEvent {
  std::int64_t step = 0;
  std::int64_t time_us = 0;  // stamped by the engine when the step is published
  std::uint64_t sequence = 0;
  std::int32_t block = -1;  // -1: none
  std::int32_t aux = 0;
  BlockEventKind kind = BlockEventKind::kStepBegin;
};

// The child's whole number: sequences are numbered upwards from 1, so that its upper half is its parent's or
// one more. REQUIRES: event.kind == kFork
constexpr std::uint64_t forked_child(const BlockEvent& event) {
  constexpr std::uint64_t kLow = 0xffff'ffffu;
  const std::uint64_t child = (event.sequence & ~kLow) | static_cast<std::uint32_t>(event.aux);
  return child < event.sequence ? child + kLow + 1 : child;
}

}  // namespace octavo
