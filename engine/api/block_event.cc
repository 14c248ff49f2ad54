#include "engine/api/block_event.h"

namespace octavo {

std::string_view block_event_kind_name(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kStepBegin: return "step_begin";
    case BlockEventKind::kStepEnd: return "step_end";
    case BlockEventKind::kAlloc: return "alloc";
    case BlockEventKind::kFill: return "fill";
    case BlockEventKind::kSeal: return "seal";
    case BlockEventKind::kHit: return "hit";
    case BlockEventKind::kShare: return "share";
    case BlockEventKind::kPin: return "pin";
    case BlockEventKind::kUnref: return "unref";
    case BlockEventKind::kCopyOnWrite: return "copy_on_write";
    case BlockEventKind::kCopyPartial: return "copy_partial";
    case BlockEventKind::kEvict: return "evict";
    case BlockEventKind::kSwapOut: return "swap_out";
    case BlockEventKind::kSwapIn: return "swap_in";
    case BlockEventKind::kSwapDrop: return "swap_drop";
    case BlockEventKind::kPreempt: return "preempt";
    case BlockEventKind::kResume: return "resume";
    case BlockEventKind::kFork: return "fork";
    case BlockEventKind::kPrune: return "prune";
    case BlockEventKind::kLeaveWindow: return "leave_window";
    case BlockEventKind::kFree: return "free";
    case BlockEventKind::kStateTake: return "state_take";
    case BlockEventKind::kStateShare: return "state_share";
    case BlockEventKind::kStateResume: return "state_resume";
    case BlockEventKind::kStateCopy: return "state_copy";
    case BlockEventKind::kStateRelease: return "state_release";
    case BlockEventKind::kStateKeep: return "state_keep";
    case BlockEventKind::kStateForget: return "state_forget";
    case BlockEventKind::kStateSwapOut: return "state_swap_out";
    case BlockEventKind::kStateSwapIn: return "state_swap_in";
    case BlockEventKind::kStateMiss: return "state_miss";
    case BlockEventKind::kStateWorth: return "state_worth";
    case BlockEventKind::kWindowSkip: return "window_skip";
    case BlockEventKind::kWindowOpen: return "window_open";
    case BlockEventKind::kWindowKeep: return "window_keep";
    case BlockEventKind::kWindowClose: return "window_close";
    case BlockEventKind::kWindowSwapOut: return "window_swap_out";
    case BlockEventKind::kWindowSwapIn: return "window_swap_in";
    case BlockEventKind::kWindowMiss: return "window_miss";
  }
  return "unknown";
}

}  // namespace octavo
