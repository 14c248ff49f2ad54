// Why a state of recurrent layers was kept.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

enum class CheckpointReason : std::uint8_t {
  kSystemPrompt,  // behind the system prompt: for every chat that starts with it
  kNextTurn,      // where the next turn's prompt will part from this one
  kEnd,           // where a sequence ended
  kLong,          // so many tokens after the one before
};
std::string_view checkpoint_reason_name(CheckpointReason reason);

}  // namespace octavo
