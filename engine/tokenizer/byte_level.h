// GPT-2's spelling of bytes: vocabularies of byte-level BPE are text files, so each of the 256 bytes is
// written as one printable character (Radford et al. 2019, bytes_to_unicode). 0x21..7e, a1..ac and ae..ff
// stand for themselves, the other 68 bytes, in ascending order, are U+0100, U+0101, ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::tokenizer {

char32_t byte_spelling(std::uint8_t byte);

// The bytes that `spelling` stands for; nullopt when any of its characters spells no byte.
std::optional<std::string> spelled_bytes(std::string_view spelling);

}  // namespace octavo::tokenizer
