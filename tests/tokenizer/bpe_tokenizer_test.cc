#include "engine/tokenizer/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/tokenizer/cpu_time.h"
#include "tests/tokenizer/encoding.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo::tokenizer {
namespace {

// Merging by its definition: again and again the pair of the lowest rank, the leftmost of equals.
Ids merge_naively(Ids ids,
                  const std::map<std::pair<TokenId, TokenId>, std::pair<std::size_t, TokenId>>& merges) {
  while (true) {
    std::size_t best = ids.size();
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found == merges.end()) continue;
      if (best == ids.size() || found->second.first < merges.at({ids[best], ids[best + 1]}).first) best = i;
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BpeTokenizer, MergesAsTheDefinitionSays) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Vocabulary vocabulary = byte_vocabulary();
    std::vector<TokenId> parts = {'a', 'b', 'c'};
    std::map<std::pair<TokenId, TokenId>, std::pair<std::size_t, TokenId>> merges;
    std::map<std::string, TokenId> ids_by_text;
    for (int i = 0; i < 60; ++i) {
      const TokenId left = parts[random() % parts.size()], right = parts[random() % parts.size()];
      const auto text = [&](TokenId id) { return vocabulary.tokens[static_cast<std::size_t>(id)]; };
      const std::string joined = text(left) + text(right);
      if (merges.contains({left, right}) || joined.size() > 12) continue;
      const std::size_t rank = vocabulary.merges.size();
      vocabulary.merges.push_back(text(left) + " " + text(right));
      if (!ids_by_text.contains(joined)) {
        ids_by_text[joined] = static_cast<TokenId>(vocabulary.tokens.size());
        vocabulary.tokens.push_back(joined);
        vocabulary.kinds.push_back(TokenKind::kNormal);
        parts.push_back(ids_by_text[joined]);
      }
      merges[{left, right}] = {rank, ids_by_text[joined]};
    }
    // 'a' is id 97 because the byte tokens stand in order.
    const auto tokenizer = make(vocabulary);
    for (int round = 0; round < 60; ++round) {
      std::string text;
      for (std::size_t length = 1 + random() % 40; text.size() < length;)
        text.push_back(static_cast<char>('a' + random() % 3));
      const Ids bytes(text.begin(), text.end());
      EXPECT_EQ(encode(*tokenizer, text), merge_naively(bytes, merges)) << text;
    }
  }
}

TEST(BpeTokenizer, IdsEqualHuggingFacesForTheDefaultModel) {
  if (default_tokenizer() == nullptr) GTEST_SKIP() << "the default model is not installed";
  for (const auto& entry : load_golden("tokenizer_splits.json")) {
    EXPECT_EQ(encode(*default_tokenizer(), entry["text"].get<std::string>()), entry["ids"].get<Ids>())
        << entry["text"];
  }
}

TEST(BpeTokenizer, ReferencePromptsHaveTheReferenceIds) {
  if (default_tokenizer() == nullptr) GTEST_SKIP() << "the default model is not installed";
  for (const auto& entry : load_golden("smollm2-135m-instruct-q4_1.json")) {
    const Ids expected = entry["token_ids"].get<Ids>();
    if (entry.contains("messages")) {
      const auto ids = default_tokenizer()->encode_chat(to_messages(entry["messages"]), 0);
      ASSERT_TRUE(ids) << ids.error().message;
      EXPECT_EQ(*ids, expected) << entry["name"];
      EXPECT_EQ(encode(*default_tokenizer(), entry["formatted"].get<std::string>(), true), expected)
          << entry["name"];
    } else {
      EXPECT_EQ(encode(*default_tokenizer(), entry["text"].get<std::string>()), expected) << entry["name"];
    }
  }
}

TEST(BpeTokenizer, SpecialTextIsATokenOnlyWhenAsked) {
  const auto tokenizer = make(byte_vocabulary());
  EXPECT_EQ(encode(*tokenizer, "a<s><tool>", true), (Ids{'a', 256, 258}));
  EXPECT_EQ(encode(*tokenizer, "<s>", false), (Ids{'<', 's', '>'}));
  EXPECT_EQ(encode(*tokenizer, "<tool>", false).size(), 6u);
  EXPECT_EQ(encode(*tokenizer, "<s<s></s", true), (Ids{'<', 's', 256, '<', '/', 's'}));
}

TEST(BpeTokenizer, TheLongestSpecialTokenWins) {
  Vocabulary vocabulary = byte_vocabulary();
  for (const char* text : {"<s><s>", "<", "<s>x", ""}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.kinds.push_back(TokenKind::kUserDefined);
  }
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "<s><s>x", true), (Ids{259, 'x'}));
  EXPECT_EQ(encode(*tokenizer, "<s>x<s>", true), (Ids{261, 256}));
  EXPECT_EQ(encode(*tokenizer, "<s", true), (Ids{260, 's'}));
}

TEST(BpeTokenizer, UserDefinedRunsOfSpacesAndWordsAreText) {
  Vocabulary vocabulary = byte_vocabulary();
  for (const char* text : {"  ", "    ", "foo"}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.kinds.push_back(TokenKind::kUserDefined);
  }
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "a     foo<tool>"), (Ids{'a', 260, ' ', 261, '<', 't', 'o', 'o', 'l', '>'}));
}

TEST(BpeTokenizer, BosComesWhenModelAndCallerAgree) {
  Vocabulary vocabulary = byte_vocabulary();
  EXPECT_EQ(*make(vocabulary)->encode("a", false, true), (Ids{'a'}));
  vocabulary.add_bos_token = true;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(*tokenizer->encode("a", false, true), (Ids{256, 'a'}));
  EXPECT_EQ(*tokenizer->encode("a", false, false), (Ids{'a'}));
  const std::vector<ChatMessage> messages = {{Role::kUser, "a"}};
  EXPECT_EQ(*tokenizer->encode_chat(messages, 0), (Ids{256, 'a'}));  // plain completion
  vocabulary.chat_template = "{{ bos_token }}{{ messages[0].content }}";
  EXPECT_EQ(*make(vocabulary)->encode_chat(messages, 0), (Ids{256, 'a'}));  // the template's own
}

TEST(BpeTokenizer, NoInputTextBecomesASpecialToken) {
  if (default_tokenizer() == nullptr) GTEST_SKIP() << "the default model is not installed";
  const Tokenizer& tokenizer = *default_tokenizer();
  const auto num_special = [&](const std::vector<ChatMessage>& messages) {
    const auto ids = tokenizer.encode_chat(messages, 0);
    EXPECT_TRUE(ids);
    return std::count_if(ids->begin(), ids->end(), [&](TokenId id) { return tokenizer.is_special(id); });
  };
  int num_tried = 0;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.is_special(id)) continue;
    const std::string text(tokenizer.token_bytes(id));
    for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool}) {
      for (const std::string& content :
           {text, "a" + text + text + "b", text.substr(1), text.substr(0, text.size() - 1)}) {
        EXPECT_EQ(num_special({{role, content}}), num_special({{role, "x"}})) << content;
        ++num_tried;
      }
    }
    EXPECT_EQ(encode(tokenizer, text).size() > 1, true) << text;
  }
  EXPECT_GT(num_tried, 200);
}

// "<s" from the template and ">" from a message do not make a token together; nor do two messages.
TEST(BpeTokenizer, ASpecialTokenDoesNotReachIntoInput) {
  const auto tokenizer = make(byte_vocabulary());
  const auto ids = [&](const std::vector<PromptSpan>& spans) { return *tokenizer->encode_spans(spans); };
  EXPECT_EQ(ids({{"<s"}, {">", true}}), (Ids{'<', 's', '>'}));
  EXPECT_EQ(ids({{"<", true}, {"s>"}}), (Ids{'<', 's', '>'}));
  EXPECT_EQ(ids({{"<s"}, {"", true}, {">"}}), (Ids{'<', 's', '>'}));
  EXPECT_EQ(ids({{"<s"}, {">"}}), (Ids{256}));  // two stretches of template text are one
  EXPECT_EQ(ids({{"<s>"}, {"<s>", true}, {"<s>"}}), (Ids{256, '<', 's', '>', 256}));
}

TEST(BpeTokenizer, TextMergesAcrossTheBordersOfInput) {
  Vocabulary vocabulary = byte_vocabulary();
  add_merge(vocabulary, "a", "b");
  const auto tokenizer = make(vocabulary);
  const std::vector<PromptSpan> spans = {{"a"}, {"b", true}, {"a"}};
  EXPECT_EQ(*tokenizer->encode_spans(spans), (Ids{259, 'a'}));
}

TEST(BpeTokenizer, AnAnswersOwnIdsStandInForItsText) {
  Vocabulary vocabulary = byte_vocabulary();
  add_merge(vocabulary, "a", "b");
  vocabulary.chat_template = "{% for m in messages %}<s>{{ m.content|trim }}</s>{% endfor %}";
  const auto tokenizer = make(vocabulary);
  const auto ids = [&](Role role, const std::string& content, const Ids& own) {
    const std::vector<ChatMessage> messages = {{role, content, own}};
    return *tokenizer->encode_chat(messages, 0);
  };
  const Ids retokenised = {256, 259, 257}, reused = {256, 'a', 'b', 257};
  EXPECT_EQ(ids(Role::kAssistant, "ab", {}), retokenised);
  EXPECT_EQ(ids(Role::kAssistant, "ab", {'a', 'b'}), reused);
  EXPECT_EQ(ids(Role::kAssistant, "ab", {'a', 'c'}), retokenised);       // other text
  EXPECT_EQ(ids(Role::kAssistant, "ab", {'a', 'b', 257}), retokenised);  // a control token
  EXPECT_EQ(ids(Role::kAssistant, "ab", {-1, 'b'}), retokenised);        // no id
  EXPECT_EQ(ids(Role::kAssistant, "ab", {'a', 1 << 20}), retokenised);
  EXPECT_EQ(ids(Role::kUser, "ab", {'a', 'b'}), retokenised);             // not an answer
  EXPECT_EQ(ids(Role::kAssistant, "ab ", {'a', 'b', ' '}), retokenised);  // the template changes it
  EXPECT_EQ(ids(Role::kAssistant, "</s>", {257}).size(), 6u);             // text is not the token
}

TEST(BpeTokenizer, TheNextTurnExtendsThePreviousOne) {
  if (default_tokenizer() == nullptr) GTEST_SKIP() << "the default model is not installed";
  const Tokenizer& tokenizer = *default_tokenizer();
  std::vector<ChatMessage> messages = {{Role::kUser, "Count to three"}};
  const Ids first = *tokenizer.encode_chat(messages, 0);
  const Ids answer = {'4' - 0 + 33, 1000, 2000, 3000};  // any tokens: not what the text would give
  messages.push_back({Role::kAssistant, tokenizer.decode(answer, true), answer});
  messages.push_back({Role::kUser, "Again"});
  const Ids second = *tokenizer.encode_chat(messages, 0);
  Ids expected = first;
  expected.insert(expected.end(), answer.begin(), answer.end());
  ASSERT_GT(second.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), second.begin()));
  EXPECT_EQ(second[expected.size()], 2);  // <|im_end|>
}

TEST(BpeTokenizer, BytesThatAreNoTextComeBackAsReplacementCharacters) {
  const auto tokenizer = make(byte_vocabulary());
  const std::string bytes = "a\xff\xe2\x82z\xf0\x9f\x98\x80";
  const Ids ids = encode(*tokenizer, bytes);
  EXPECT_EQ(ids.size(), bytes.size());
  EXPECT_EQ(tokenizer->decode(ids, true), "a\ufffd\ufffdz\U0001f600");
}

TEST(BpeTokenizer, DecodingGivesTheTextBack) {
  const auto tokenizer = make(byte_vocabulary());
  for (const auto& entry : load_golden("tokenizer_splits.json")) {
    const auto text = entry["text"].get<std::string>();
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text), true), text);
  }
}

TEST(BpeTokenizer, OnlyControlTokensAreLeftOutOfText) {
  const auto tokenizer = make(byte_vocabulary());
  const Ids ids = {256, 'a', 258, 257};
  EXPECT_EQ(tokenizer->decode(ids, true), "a<tool>");
  EXPECT_EQ(tokenizer->decode(ids, false), "<s>a<tool></s>");
}

TEST(BpeTokenizer, WholeWordsWinOverMergesForLlama3) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.tokens.push_back("abc");  // no merge makes it
  vocabulary.kinds.push_back(TokenKind::kNormal);
  EXPECT_EQ(encode(*make(vocabulary), "abc"), (Ids{'a', 'b', 'c'}));
  vocabulary.split_pattern = "llama-bpe";
  EXPECT_EQ(encode(*make(vocabulary), "abc"), (Ids{259}));
  EXPECT_EQ(encode(*make(vocabulary), "abcd"), (Ids{'a', 'b', 'c', 'd'}));
}

TEST(BpeTokenizer, AByteWithoutATokenLeavesNone) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.tokens['x'] = "xx-unreachable";
  add_merge(vocabulary, "a", "b");
  EXPECT_EQ(encode(*make(vocabulary), "axb"), (Ids{259}));  // its neighbours then merge, as in tokenizers
}

TEST(BpeTokenizer, OfEqualTokensTheHigherIdIsMade) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.tokens.push_back("a");
  vocabulary.kinds.push_back(TokenKind::kNormal);
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "a"), (Ids{259}));
  EXPECT_EQ(tokenizer->decode(Ids{'a', 259}, true), "aa");
}

TEST(BpeTokenizer, ASpacePrefixIsAddedWhereTheModelWantsOne) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.add_space_prefix = true;
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "a<s>b c", true), (Ids{' ', 'a', 256, ' ', 'b', ' ', 'c'}));
  EXPECT_EQ(encode(*tokenizer, " a"), (Ids{' ', 'a'}));
}

TEST(BpeTokenizer, EndTokensEndAnOutput) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.further_eos_token_ids = {258};
  const auto tokenizer = make(vocabulary);
  EXPECT_TRUE(tokenizer->is_end_of_sequence(257));
  EXPECT_TRUE(tokenizer->is_end_of_sequence(258));
  EXPECT_FALSE(tokenizer->is_end_of_sequence(256));
}

TEST(BpeTokenizer, DamagedVocabulariesAreRefusedWithTheirKey) {
  const auto expect_refused = [](const Vocabulary& vocabulary, ErrorCode code, std::string_view part) {
    const auto tokenizer = Tokenizer::create(vocabulary);
    ASSERT_FALSE(tokenizer) << part;
    EXPECT_EQ(tokenizer.error().code, code);
    EXPECT_NE(tokenizer.error().message.find(part), std::string::npos) << tokenizer.error().message;
  };
  const auto changed = [](auto change) {
    Vocabulary vocabulary = byte_vocabulary();
    change(vocabulary);
    return vocabulary;
  };
  const auto damaged = ErrorCode::kDamagedFile;
  expect_refused(changed([](auto& v) { v.model = "bert\x1b"; }), ErrorCode::kUnsupported, "bert\\x1b");
  expect_refused(changed([](auto& v) { v.split_pattern = "viking"; }), ErrorCode::kUnsupported, "viking");
  expect_refused(changed([](auto& v) { v.tokens.clear(), v.kinds.clear(); }), damaged,
                 "tokenizer.ggml.tokens");
  expect_refused(changed([](auto& v) { v.kinds.pop_back(); }), damaged, "258 entries for 259 tokens");
  expect_refused(changed([](auto& v) { v.kinds[3] = static_cast<TokenKind>(7); }), damaged,
                 "says 7 for token 3");
  expect_refused(changed([](auto& v) { v.kinds[3] = static_cast<TokenKind>(-1); }), damaged, "token_type");
  expect_refused(changed([](auto& v) { v.bos_token_id = 259; }), damaged, "bos_token_id is 259");
  expect_refused(changed([](auto& v) { v.eos_token_id = -1; }), damaged, "eos_token_id is -1");
  expect_refused(changed([](auto& v) { v.unknown_token_id = 1 << 30; }), damaged, "unknown_token_id");
  expect_refused(changed([](auto& v) { v.further_eos_token_ids = {1, 999}; }), damaged, "is 999");
  for (const char* merge : {"ab", "a", "", " ", "a ", " b", "a b c", "a  b"}) {
    expect_refused(changed([&](auto& v) { v.merges = {merge}; }), damaged, "merges[0]");
  }
  expect_refused(changed([](auto& v) { v.merges = {"a zz"}; }), damaged, "has a part that is not a token");
  expect_refused(changed([](auto& v) { v.merges = {"a b"}; }), damaged,
                 "yields something that is not a token");
  expect_refused(changed([](auto& v) { v.tokens[258] = std::string(600, '<'); }), ErrorCode::kUnsupported,
                 "600 bytes");
}

TEST(BpeTokenizer, ATemplateThatCannotBeParsedFailsOnlyWhereItIsNeeded) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.chat_template = "{% include 'x' %}";
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "a"), (Ids{'a'}));
  const std::vector<ChatMessage> messages = {{Role::kUser, "a"}};
  const auto ids = tokenizer->encode_chat(messages, 0);
  ASSERT_FALSE(ids);
  EXPECT_NE(ids.error().message.find("'include' is not supported"), std::string::npos) << ids.error().message;
}

double seconds_for(const Tokenizer& tokenizer, const std::string& text) {
  const double begin = cpu_seconds();
  const auto ids = tokenizer.encode(text, /*parse_special=*/true, false);
  EXPECT_TRUE(ids);
  EXPECT_EQ(tokenizer.decode(*ids, false), text);
  return cpu_seconds() - begin;
}

// On a thread with little stack: nothing recurses with the length of the text. The bound is loose: quadratic
// merging of a megabyte would take hours.
TEST(BpeTokenizer, AMegabyteOfOneCharacterIsFastAndNeedsLittleStack) {
  if (default_tokenizer() == nullptr) GTEST_SKIP() << "the default model is not installed";
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    for (const char* part :
         {"x", " ", "\n", "1", "!", "\u00e9", "\u4f60", "^", "ab", "<|im_end", "'s", " a"}) {
      std::string text;
      while (text.size() < (1 << 20)) text += part;
      EXPECT_LT(seconds_for(*default_tokenizer(), text), 10.0) << part;
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(BpeTokenizer, AMillionTokensAreReadInSeconds) {
  Vocabulary vocabulary = byte_vocabulary();
  const double begin = cpu_seconds();
  for (std::uint32_t i = 0; vocabulary.tokens.size() < 1'000'000; ++i) {
    std::string name = "t";
    for (std::uint32_t n = i; n > 0; n /= 26) name.push_back(static_cast<char>('a' + n % 26));
    vocabulary.tokens.push_back(name + "Q");
    vocabulary.tokens.push_back(name + "QZ");
    vocabulary.merges.push_back(name + "Q Z");
  }
  vocabulary.kinds.clear();
  const auto tokenizer = make(std::move(vocabulary));
  EXPECT_LT(cpu_seconds() - begin, 30.0);
  EXPECT_GE(tokenizer->vocabulary_size(), 1'000'000);
}

}  // namespace
}  // namespace octavo::tokenizer
