#include "engine/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo::tokenizer {
namespace {

std::unique_ptr<Tokenizer> byte_tokenizer() { return *Tokenizer::create(byte_vocabulary()); }

bool is_valid(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!c.valid) return false;
    i += c.length;
  }
  return true;
}

TEST(Detokenizer, PiecesAreWholeCharactersAndAddUpToDecode) {
  const auto tokenizer = byte_tokenizer();
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const int leads[] = {0x41, 0x80, 0xbf, 0xc2, 0xe2, 0x82, 0xac, 0xed, 0xa0,
                         0xf0, 0x9f, 0x98, 0xf4, 0xff, 256,  257,  258};
    std::vector<TokenId> ids;
    for (std::size_t length = random() % 12; ids.size() < length;)
      ids.push_back(leads[random() % std::size(leads)]);
    for (const bool skip_special : {false, true}) {
      Detokenizer detokenizer(*tokenizer, skip_special);
      std::string text;
      for (const TokenId id : ids) {
        const std::string piece = detokenizer.push(id);
        EXPECT_TRUE(is_valid(piece)) << "seed " << seed;
        text += piece;
      }
      text += detokenizer.flush();
      EXPECT_EQ(text, tokenizer->decode(ids, skip_special)) << "seed " << seed;
      EXPECT_EQ(detokenizer.flush(), "");
    }
  }
}

TEST(Detokenizer, ACharacterComesWithItsLastByte) {
  const auto tokenizer = byte_tokenizer();
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(0xe2), "");
  EXPECT_EQ(detokenizer.push(0x82), "");
  EXPECT_EQ(detokenizer.push(0xac), "\u20ac");
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xf0), "");
  EXPECT_EQ(detokenizer.push('b'), "\ufffdb");  // known to be no character at once
  EXPECT_EQ(detokenizer.push(0xff), "\ufffd");
  EXPECT_EQ(detokenizer.push(257), "");  // </s> is left out
  EXPECT_EQ(detokenizer.push(0xc3), "");
  EXPECT_EQ(detokenizer.flush(), "\ufffd");
}

}  // namespace
}  // namespace octavo::tokenizer
