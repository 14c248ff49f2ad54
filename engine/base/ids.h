// Strong identifiers. Ids, not pointers, are what is stored from one step to the next.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace octavo {

template <class Tag, class Representation>
struct Id {
  using representation = Representation;
  Representation value{};
  friend constexpr auto operator<=>(Id, Id) = default;
};

// What the user asked once. Ascending in order of submission; never reused within a process.
using RequestId = Id<struct RequestTag, std::uint64_t>;
// One token list that is being extended. Ascending in order of creation; never reused within a process.
using SequenceId = Id<struct SequenceTag, std::uint64_t>;
// A physical block: its index in the device pool, 0 <= value < num_blocks.
using BlockId = Id<struct BlockTag, std::int32_t>;
constexpr std::size_t index_of(BlockId block) { return static_cast<std::size_t>(block.value); }
// What a person keeps, numbered upwards; 0 means none. A chat keeps its number after every start.
using ChatId = Id<struct ChatTag, std::uint64_t>;
// A message, numbered within its chat: 1 is the first.
using MessageId = Id<struct MessageTag, std::uint64_t>;
using FolderId = Id<struct FolderTag, std::uint64_t>;
using PresetId = Id<struct PresetTag, std::uint64_t>;
// An entry of the vocabulary.
using TokenId = std::int32_t;

}  // namespace octavo

template <class Tag, class Representation>
struct std::hash<octavo::Id<Tag, Representation>> {
  std::size_t operator()(octavo::Id<Tag, Representation> id) const noexcept {
    return std::hash<Representation>{}(id.value);
  }
};
