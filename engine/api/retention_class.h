// How long to keep what nobody reads any more.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

// Which cached contents are given up first: the lowest class, and within it the least
// recently used. Pinned contents stay.
enum class RetentionClass : std::uint8_t { kScratch, kChat, kSystemPrompt, kPinned };
std::string_view retention_class_name(RetentionClass retention);

}  // namespace octavo
