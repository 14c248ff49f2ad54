#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace octavo::fuzz {
namespace {

std::ptrdiff_t signed_of(std::size_t value) { return static_cast<std::ptrdiff_t>(value); }

}  // namespace

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "a promise is broken: %s\n", promise);
  std::abort();
}

void mutate_bytes(Bytes& input, std::size_t max_size, Random& random) {
  constexpr std::uint8_t kInteresting[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '"'};
  for (std::size_t i = 0, count = 1 + random.below(4); i < count; ++i) {
    const std::size_t kind = random.below(6);
    if (input.empty() || (kind == 0 && input.size() < max_size)) {
      input.insert(input.begin() + signed_of(random.below(input.size() + 1)),
                   static_cast<std::uint8_t>(random.next() >> 24));
      continue;
    }
    const std::size_t at = random.below(input.size());
    if (kind == 1) input[at] = static_cast<std::uint8_t>(random.next() >> 24);
    if (kind == 2) input[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
    if (kind == 3) input[at] = kInteresting[random.below(std::size(kInteresting))];
    if (kind == 4)
      input.erase(input.begin() + signed_of(at),
                  input.begin() + signed_of(std::min(input.size(), at + 1 + random.below(8))));
    if (kind == 5)
      std::fill_n(input.begin() + signed_of(at), std::min<std::size_t>(8, input.size() - at),
                  random.one_in(2) ? std::uint8_t{0xff} : std::uint8_t{0});
  }
  if (input.size() > max_size) input.resize(max_size);
}

void mutate_text(Bytes& input, std::size_t max_size, Random& random,
                 std::span<const std::string_view> dictionary, const MutateBytes& mutate_plainly) {
  if (random.one_in(4)) return mutate_plainly(input, max_size, random);
  for (std::size_t i = 0, count = 1 + random.below(3); i < count; ++i) {
    const std::size_t at = random.below(input.size() + 1);
    const std::string_view word = dictionary[random.below(dictionary.size())];
    const std::size_t kind = random.below(5);
    const std::size_t length = std::min(input.size() - at, 1 + random.below(24));
    if (kind <= 1) {  // a word in, or in the place of something
      if (kind == 1) input.erase(input.begin() + signed_of(at), input.begin() + signed_of(at + length));
      input.insert(input.begin() + signed_of(at), word.begin(), word.end());
    } else if (kind == 2) {  // something again, here or elsewhere
      const Bytes piece(input.begin() + signed_of(at), input.begin() + signed_of(at + length));
      const std::size_t target = random.one_in(2) ? at : random.below(input.size() + 1);
      for (std::size_t j = 0, times = random.one_in(8) ? random.below(40) : 1; j < times; ++j)
        input.insert(input.begin() + signed_of(target), piece.begin(), piece.end());
    } else if (kind == 3) {
      input.erase(input.begin() + signed_of(at), input.begin() + signed_of(at + length));
    } else {  // a number that is another
      const auto digit = std::find_if(input.begin() + signed_of(at), input.end(),
                                      [](std::uint8_t c) { return c >= '0' && c <= '9'; });
      if (digit != input.end()) *digit = static_cast<std::uint8_t>('0' + random.below(10));
    }
  }
  if (input.size() > max_size) input.resize(max_size);
}

}  // namespace octavo::fuzz
