// Mixing of 64-bit values, for hash tables and counter-based random numbers. Not for secrets.
#pragma once

#include <cstdint>

namespace octavo {

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA
// 2014): a bijection of 64-bit words in which every input bit changes about half of the output bits.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t value) {
  return mix64(seed ^ mix64(value));
}

}  // namespace octavo
