#include "engine/tokenizer/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/special_tokens.h"
#include "tests/tokenizer/cpu_time.h"
#include "tests/tokenizer/encoding.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/sentencepiece_vocabularies.h"

namespace octavo::tokenizer {
namespace {

const nlohmann::json& golden() {
  static const nlohmann::json json = load_golden("sentencepiece.json");
  return json;
}

Vocabulary golden_vocabulary(const std::string& name) {
  return sentencepiece_vocabulary(golden()["vocabularies"][name]);
}

std::uint64_t fnv1a(const Ids& ids) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<std::uint32_t>(id) >> shift & 255u)) * 0x100000001b3u;
    }
  }
  return hash;
}

bool holds_marker(const Vocabulary& vocabulary, std::string_view text, TokenKind kind) {
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.kinds[id] == kind && is_marker(vocabulary.tokens[id]) &&
        text.find(vocabulary.tokens[id]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

TEST(SentencePiece, IdsEqualThePythonPackages) {
  std::size_t num_compared = 0;
  for (const auto& [name, all_ids] : golden()["ids"].items()) {
    const Vocabulary vocabulary = golden_vocabulary(name);
    const auto tokenizer = make(vocabulary);
    for (std::size_t i = 0; i < all_ids.size(); ++i) {
      const std::string text = text_of_entry(golden()["texts"][i], golden()["short_texts"]);
      // The package finds markers in every text and control tokens in none: with parse_special we find both.
      // A space in front of text after a marker is llama.cpp's: see the header.
      const bool marked = holds_marker(vocabulary, text, TokenKind::kUserDefined);
      if (marked && (vocabulary.add_space_prefix || holds_marker(vocabulary, text, TokenKind::kControl)))
        continue;
      const Ids ids = encode(*tokenizer, text, /*parse_special=*/marked);
      const auto& expected = all_ids[i];
      ++num_compared;
      if (!expected.empty() && expected[0].get<std::int64_t>() < 0) {
        EXPECT_EQ(static_cast<std::int64_t>(ids.size()), -expected[0].get<std::int64_t>())
            << name << " " << i;
        EXPECT_EQ(fnv1a(ids), expected[1].get<std::uint64_t>()) << name << " " << i;
      } else {
        EXPECT_EQ(ids, expected.get<Ids>()) << name << " " << i << ": " << golden()["texts"][i];
      }
    }
  }
  EXPECT_GT(num_compared, 2500u);
}

// The package strips the space with which it began the text; an output of ours continues a prompt.
TEST(SentencePiece, DecodedTextIsThePythonPackagesWithTheSpaceThatBeginsIt) {
  for (const auto& [name, pairs] : golden()["decoded"].items()) {
    const Vocabulary vocabulary = golden_vocabulary(name);
    const auto tokenizer = make(vocabulary);
    for (const auto& pair : pairs) {
      std::string text = tokenizer->decode(pair[0].get<Ids>(), /*skip_special=*/true);
      const auto expected = pair[1].get<std::string>();
      if (vocabulary.remove_extra_whitespaces) {
        text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
      } else if (vocabulary.add_space_prefix && text.starts_with(' ')) {
        text.erase(0, 1);
      }
      // One U+FFFD for each byte there, one for each maximal part here.
      if (expected.find("\ufffd") == std::string::npos) {
        EXPECT_EQ(text, expected) << name << " " << pair[0];
      }
    }
  }
}

TEST(SentencePiece, TextArrivesPieceByPieceAsItIsDecodedAtOnce) {
  std::mt19937 random(23);
  for (const auto& [name, entry] : golden()["vocabularies"].items()) {
    const auto tokenizer = make(sentencepiece_vocabulary(entry));
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (int i = 0; i < 12; ++i) {
        ids.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer->vocabulary_size())));
      }
      Detokenizer detokenizer(*tokenizer);
      std::string text;
      for (const TokenId id : ids) text += detokenizer.push(id);
      text += detokenizer.flush();
      EXPECT_EQ(text, tokenizer->decode(ids, /*skip_special=*/true)) << name;
    }
  }
}

// ---- a vocabulary small enough to think about

void add(Vocabulary& vocabulary, std::string text, TokenKind kind, float score = 0) {
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.kinds.push_back(kind);
  vocabulary.scores.push_back(score);
}

// <unk> 0, <s> 1, </s> 2, <0x00> to <0xFF> 3 to 258, then "▁" 259, a 260, b 261, "▁a" 262, ab 263, <turn> 264
// (user-defined).
Vocabulary small_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  add(vocabulary, "<unk>", TokenKind::kUnknown);
  add(vocabulary, "<s>", TokenKind::kControl);
  add(vocabulary, "</s>", TokenKind::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    add(vocabulary, text, TokenKind::kByte);
  }
  add(vocabulary, "\u2581", TokenKind::kNormal, -10);
  add(vocabulary, "a", TokenKind::kNormal, -11);
  add(vocabulary, "b", TokenKind::kNormal, -12);
  add(vocabulary, "\u2581a", TokenKind::kNormal, -2);
  add(vocabulary, "ab", TokenKind::kNormal, -1);
  add(vocabulary, "<turn>", TokenKind::kUserDefined);
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  vocabulary.add_space_prefix = true;
  return vocabulary;
}

constexpr TokenId kByteBase = 3, kSpace = 259, kA = 260, kB = 261, kSpaceA = 262, kAb = 263, kTurn = 264;

TEST(SentencePiece, TheHighestScoreMergesFirst) {
  const auto tokenizer = make(small_vocabulary());
  EXPECT_EQ(encode(*tokenizer, "ab"), (Ids{kSpace, kAb}));
  EXPECT_EQ(encode(*tokenizer, "a b"), (Ids{kSpaceA, kSpace, kB}));
  EXPECT_EQ(encode(*tokenizer, ""), Ids());
  EXPECT_EQ(encode(*tokenizer, " "), (Ids{kSpace, kSpace}));
}

TEST(SentencePiece, ASpaceStandsBeforeTextThatStartsOrFollowsASpecialToken) {
  const auto tokenizer = make(small_vocabulary());
  EXPECT_EQ(encode(*tokenizer, "<s>b</s>b", true), (Ids{1, kSpace, kB, 2, kSpace, kB}));
  EXPECT_EQ(encode(*tokenizer, "b<turn>b", true), (Ids{kSpace, kB, kTurn, kSpace, kB}));
  Vocabulary without = small_vocabulary();
  without.add_space_prefix = false;
  EXPECT_EQ(encode(*make(without), "<s>b<turn>b", true), (Ids{1, kB, kTurn, kB}));
}

TEST(SentencePiece, BosComesWhenModelAndCallerAgree) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.add_bos_token = true;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer->encode("b", false, true), (Ids{1, kSpace, kB}));
  EXPECT_EQ(*tokenizer->encode("", false, true), (Ids{1}));
  const std::vector<ChatMessage> messages = {{Role::kUser, "b"}};
  vocabulary.chat_template = "vicuna";  // leaves BOS to the tokenizer
  EXPECT_EQ(make(vocabulary)->encode_chat(messages, 0)->front(), 1);
  vocabulary.chat_template = "{{ messages[0].content }}";
  EXPECT_EQ(*make(vocabulary)->encode_chat(messages, 0), (Ids{kSpace, kB}));
}

TEST(SentencePiece, ControlTokensMayEatTheSpacesAfterThem) {
  Vocabulary vocabulary = small_vocabulary();
  add(vocabulary, "<|user|>", TokenKind::kControl);
  vocabulary.control_tokens_eat_spaces = true;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "<|user|>\n \tb", true), (Ids{265, kSpace, kB}));
  EXPECT_EQ(encode(*tokenizer, "<s> b", true), (Ids{1, kSpace, kSpace, kB}));
  EXPECT_EQ(encode(*tokenizer, "<|user|> \n<|user|> ", true), (Ids{265, 265}));
}

TEST(SentencePiece, NoTextIsAControlTokenWhateverTheFileSays) {
  Vocabulary vocabulary = small_vocabulary();
  add(vocabulary, "a", TokenKind::kControl);   // 265: one character
  add(vocabulary, "ab", TokenKind::kControl);  // 266: and what text merges to
  add(vocabulary, "bb", TokenKind::kNormal);   // 267: ends a sequence, and is called normal
  vocabulary.further_eos_token_ids = {267};
  vocabulary.unknown_token_id = 0;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "ab"), (Ids{kSpace, kAb}));
  EXPECT_EQ(encode(*tokenizer, "bb"), (Ids{kSpace, kB, kB}));
  EXPECT_TRUE(tokenizer->is_control(267));
  for (const char* text : {"<s>", "</s>", "<unk>", "<turn>", "<0x41>", "\xff"}) {
    for (const TokenId id : encode(*tokenizer, text)) EXPECT_FALSE(tokenizer->is_special(id)) << text;
  }
  EXPECT_EQ(encode(*tokenizer, "<0x41>").size(), 7u);  // is text, not the byte
}

TEST(SentencePiece, TokensThatCannotBeTextAreTolerated) {
  Vocabulary vocabulary = small_vocabulary();
  add(vocabulary, "", TokenKind::kNormal);
  add(vocabulary, "\xff\xfe", TokenKind::kNormal);
  add(vocabulary, std::string("\0", 1), TokenKind::kUserDefined);
  add(vocabulary, std::string("\0", 1), TokenKind::kNormal);  // 268
  add(vocabulary, "b", TokenKind::kNormal);                   // 269: the higher of equals
  add(vocabulary, "<0x41>", TokenKind::kByte);                // 270
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "b"), (Ids{kSpace, 269}));
  EXPECT_EQ(encode(*tokenizer, std::string("\0", 1)), (Ids{kSpace, 268}));
  EXPECT_EQ(encode(*tokenizer, "A"), (Ids{kSpace, 270}));
  EXPECT_EQ(tokenizer->decode(Ids{kB, 269, 270, kByteBase + 'A', 265, 266}, true), "bbAA\ufffd\ufffd");
}

TEST(SentencePiece, CharactersWithoutAPieceAreBytesOrOneUnknownToken) {
  EXPECT_EQ(encode(*make(small_vocabulary()), "\u00e9"), (Ids{kSpace, kByteBase + 0xc3, kByteBase + 0xa9}));
  Vocabulary vocabulary = small_vocabulary();
  const auto drop = [](auto& list) { list.erase(list.begin() + 3, list.begin() + 259); };
  drop(vocabulary.tokens), drop(vocabulary.kinds), drop(vocabulary.scores);
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "x\u00e9ya"), (Ids{3, 0, 4}));
  EXPECT_EQ(encode(*tokenizer, "x b x"), (Ids{3, 0, 3, 5, 3, 0}));
  EXPECT_EQ(tokenizer->decode(Ids{4, 0, 4}, true), "aa");
}

TEST(SentencePiece, AnAnswersOwnIdsStandInForItsText) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.chat_template = "{% for m in messages %}<s>{{ m.content }}b{% endfor %}";
  const auto tokenizer = make(vocabulary);
  const std::vector<ChatMessage> messages = {{Role::kAssistant, " ab", {kSpaceA, kB}}};
  EXPECT_EQ(*tokenizer->encode_chat(messages, 0), (Ids{1, kSpaceA, kB, kB}));  // no space after the answer
  const std::vector<ChatMessage> edited = {{Role::kAssistant, " ab"}};
  EXPECT_EQ(*tokenizer->encode_chat(edited, 0), (Ids{1, kSpace, kSpace, kAb, kB}));
}

TEST(SentencePiece, DamagedVocabulariesAreRefusedWithTheirKey) {
  const auto expect_refused = [](const std::function<void(Vocabulary&)>& change, ErrorCode code,
                                 std::string_view part) {
    Vocabulary vocabulary = small_vocabulary();
    change(vocabulary);
    const auto tokenizer = Tokenizer::create(vocabulary);
    ASSERT_FALSE(tokenizer) << part;
    EXPECT_EQ(tokenizer.error().code, code) << tokenizer.error().message;
    EXPECT_NE(tokenizer.error().message.find(part), std::string::npos) << tokenizer.error().message;
    EXPECT_TRUE(tokenizer.error().subject.starts_with("tokenizer.ggml.")) << tokenizer.error().subject;
  };
  const auto damaged = ErrorCode::kDamagedFile, unsupported = ErrorCode::kUnsupported;
  expect_refused([](auto& v) { v.scores.clear(); }, damaged,
                 "tokenizer.ggml.scores has 0 entries for 265 tokens");
  expect_refused([](auto& v) { v.scores[3] = std::nanf(""); }, damaged, "not finite");
  expect_refused([](auto& v) { v.scores[3] = std::numeric_limits<float>::infinity(); }, damaged,
                 "not finite");
  expect_refused([](auto& v) { v.tokens[10] = "<0x-1>"; }, damaged, "is not written like");
  expect_refused([](auto& v) { v.tokens[10] = "<0x0g>"; }, damaged, "is not written like");
  expect_refused([](auto& v) { v.tokens[10] = "<0x100>"; }, damaged, "is not written like");
  expect_refused([](auto& v) { v.tokens[10] = "<0x41>"; }, damaged, "lacks 1 of the 256");
  expect_refused([](auto& v) { v.kinds[10] = TokenKind::kNormal; }, damaged, "lacks 1 of the 256");
  expect_refused([](auto& v) { v.tokens[kAb] = std::string(513, 'x'); }, unsupported, "513 bytes");
  expect_refused([](auto& v) { v.precompiled_charsmap = "abc"; }, damaged,
                 "precompiled_charsmap is too short");
  expect_refused([](auto& v) { v.precompiled_charsmap = std::string(2000, '\0'); }, damaged,
                 "does not hold the whole trie");
  expect_refused(
      [](auto& v) { v.precompiled_charsmap = std::string("\0\4\0\0", 4) + std::string(1025, 'x'); }, damaged,
      "ends inside its last rule");
  expect_refused([](auto& v) { v.precompiled_charsmap.resize(Charsmap::kMaxBytes + 1); }, unsupported,
                 "at most");
  expect_refused(
      [](auto& v) {
        for (std::size_t i = 1; i <= 65; ++i) add(v, std::string(i, 'q'), TokenKind::kUserDefined);
      },
      unsupported, "each a prefix of the next");
  expect_refused(
      [](auto& v) {
        for (std::size_t i = 0; i <= 65'536; ++i) add(v, "q" + std::to_string(i), TokenKind::kUserDefined);
      },
      unsupported, "65537 user-defined");
  expect_refused(
      [](auto& v) {
        v.tokens = {"a"}, v.kinds = {TokenKind::kNormal}, v.scores = {0};
        v.bos_token_id.reset(), v.eos_token_id.reset();
      },
      unsupported, "neither byte tokens nor an unknown token");
}

// On a thread with little stack: nothing recurses with the length of the text. Merges that build on each
// other, which real vocabularies have for runs.
TEST(SentencePiece, AMegabyteOfOneCharacterIsFastAndNeedsLittleStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    Vocabulary vocabulary = small_vocabulary();
    for (const char* part : {"a", "\u2581", "-", "\u4e16", "b ", "aab"}) {
      std::string text = part;
      for (int i = 0; i < 6; ++i) {
        text += text;
        add(vocabulary, text, i == 2 ? TokenKind::kUnused : TokenKind::kNormal, static_cast<float>(-i));
      }
    }
    const auto tokenizer = make(vocabulary);
    for (const char* part : {"a", " ", "\n", "-", "\u4e16", "b ", "aab", "a ", "<turn", "\xff", "\u2581"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += part;
      const double begin = cpu_seconds();
      EXPECT_FALSE(encode(*tokenizer, text, /*parse_special=*/true).empty());
      EXPECT_LT(cpu_seconds() - begin, 10.0) << part;
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(SentencePiece, SixtyFourNestedPiecesAreFound) {
  Vocabulary vocabulary = small_vocabulary();
  for (std::size_t i = 1; i <= 64; ++i) add(vocabulary, std::string(i, 'q'), TokenKind::kUserDefined);
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, std::string(64 + 3, 'q')), (Ids{kSpace, 264 + 64, 264 + 3}));
}

// Pieces that are never left as they are: the library takes them apart recursively.
TEST(SentencePiece, UnusedPiecesAreTakenApart) {
  Vocabulary vocabulary = small_vocabulary();
  std::string text = "a";
  while (text.size() < kMaxPieceBytes) {
    text += "a";
    add(vocabulary, text, TokenKind::kUnused, static_cast<float>(text.size()));
  }
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "b" + std::string(kMaxPieceBytes, 'a')).size(), 2 + kMaxPieceBytes);
}

// Long texts without borders of words are merged by code of our own, short ones by the library: a text whose
// parts cannot merge with each other has the ids of its parts.
TEST(SentencePiece, LongTextsAreMergedAsShortOnesAre) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    Vocabulary vocabulary = small_vocabulary();
    vocabulary.add_space_prefix = false;
    for (int i = 0; i < 30; ++i) {
      std::string text;
      for (std::size_t length = 2 + random() % 5; text.size() < length;)
        text += random() % 3 == 0 ? 'b' : 'a';
      const unsigned kind = random() % 8;
      add(vocabulary, text,
          kind < 3 ? TokenKind::kUnused : (kind == 3 ? TokenKind::kUserDefined : TokenKind::kNormal),
          static_cast<float>(random() % 6));
    }
    const auto tokenizer = make(vocabulary);
    std::string part;
    for (std::size_t length = 20 + random() % 200; part.size() < length;)
      part += random() % 3 == 0 ? 'b' : 'a';
    part += '-';  // in no piece
    const Ids once = encode(*tokenizer, part);
    std::string text;
    Ids expected;
    while (text.size() <= SentencePieceModel::kMaxLibraryBytes) {
      text += part;
      expected.insert(expected.end(), once.begin(), once.end());
    }
    EXPECT_EQ(encode(*tokenizer, text), expected) << round;
  }
}

// Whatever the table says, a text is normalised within bounds and its ids are real.
TEST(SentencePiece, AHostileTableOfRulesLeadsNowhere) {
  std::mt19937 random(41);
  const Vocabulary good = golden_vocabulary("normalised");
  ASSERT_GT(good.precompiled_charsmap.size(), 1000u);
  int num_made = 0;
  for (int round = 0; round < 300; ++round) {
    Vocabulary vocabulary = good;
    for (int i = 0; i < 1 + round % 40; ++i) {
      vocabulary.precompiled_charsmap[4 + random() % (vocabulary.precompiled_charsmap.size() - 4)] =
          static_cast<char>(random() % 256);
    }
    const auto tokenizer = Tokenizer::create(vocabulary);
    if (!tokenizer) continue;
    ++num_made;
    for (std::size_t i = 0; i < 60; ++i) {
      const auto ids =
          (*tokenizer)->encode(text_of_entry(golden()["texts"][i], golden()["short_texts"]), false, false);
      ASSERT_TRUE(ids);
      for (const TokenId id : *ids) ASSERT_TRUE(id >= 0 && id < (*tokenizer)->vocabulary_size());
    }
  }
  EXPECT_GT(num_made, 50);
}

}  // namespace
}  // namespace octavo::tokenizer
