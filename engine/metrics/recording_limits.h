// Every cap that a recording meets before anything is allocated for what it says. Each has a test that
// crosses it.
#pragma once

#include <cstdint>

namespace octavo::metrics {

inline constexpr std::int32_t kMaxRecordedBlockSize = 256;   // tokens
inline constexpr std::int32_t kMaxRecordedBlocks = 1 << 22;  // of a pool; 16 bytes each while it is replayed
inline constexpr std::int32_t kMaxRecordedStates = 1 << 16;  // of recurrent layers, of a pool
inline constexpr std::int64_t kMaxRecordedBlockBytes = std::int64_t{1} << 40;
inline constexpr std::uint32_t kMaxModelNameBytes = 4'096;
inline constexpr std::uint32_t kMaxSequenceNameBytes = 1'024;
inline constexpr std::uint32_t kMaxChunkBytes = 1 << 20;

// Of a lesson, whose every slot is drawn and whose events are replayed whenever the reader moves.
inline constexpr std::int32_t kMaxLessonBlockSize = 16;
inline constexpr std::int32_t kMaxLessonBlocks = 256;  // of either pool
inline constexpr std::uint64_t kMaxLessonEvents = 1 << 16;
inline constexpr std::uint32_t kMaxLessonStops = 4'096;
inline constexpr std::uint32_t kMaxLessonTextBytes = 4'096;  // of the title and of each sentence
inline constexpr std::uint32_t kMaxLessonWordBytes = 256;

}  // namespace octavo::metrics
