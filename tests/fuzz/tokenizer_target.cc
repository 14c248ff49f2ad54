// An untrusted vocabulary, and a text: building, encoding, decoding. The input is lines, then an
// empty line, then the text:
//   model NAME | pattern NAME | bytes (all 256 of them) | fallback (the same for sentencepiece) | token KIND
//   TEXT | score NUMBER (of the last token) merge LEFT RIGHT | bos ID | eos ID | eot ID | flags NUMBER
// \xNN in a token stands for that byte.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include "engine/base/text.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fuzz/target.h"
#include "tests/support/gguf_writer.h"

namespace octavo::fuzz {
namespace {

using tokenizer::Tokenizer;
using tokenizer::TokenKind;
using tokenizer::Vocabulary;

constexpr std::string_view kDictionary[] = {"\ntoken 1 ",
                                            "\ntoken 3 <|im_end|>",
                                            "\ntoken 4 <think>",
                                            "\ntoken 6 <0x41>",
                                            "\ntoken 2 <unk>",
                                            "\nmerge ",
                                            "\nmerge a b",
                                            "\ntoken 1 ab",
                                            "\nbytes",
                                            "\nscore -1.5",
                                            "\nfallback",
                                            "\nscore nan",
                                            "\nmodel gpt2",
                                            "\nmodel llama",
                                            "\npattern llama-bpe",
                                            "\npattern qwen2",
                                            "\npattern gpt-2",
                                            "\npattern smollm",
                                            "\npattern default",
                                            "\nbos 0",
                                            "\neos 1",
                                            "\nflags 7",
                                            "\n\n",
                                            "<|im_end|>",
                                            "\\xe2\\x96\\x81",
                                            "\xe2\x96\x81",
                                            "\xc4\xa0",
                                            "  ",
                                            "\t",
                                            "'s",
                                            "123456",
                                            "\xff",
                                            "\xf0\x9f\x98\x80",
                                            "\xcc\x81",
                                            "\xe4\xb8\xad\xe6\x96\x87",
                                            std::string_view("\0", 1)};

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escaped =
        text.substr(i, 2) == "\\x" && i + 4 <= text.size() &&
        std::from_chars(text.data() + i + 2, text.data() + i + 4, value, 16).ptr == text.data() + i + 4;
    plain.push_back(escaped ? static_cast<char>(value) : text[i]);
    if (escaped) i += 3;
  }
  return plain;
}

std::optional<TokenId> number_of(std::string_view text) {
  TokenId id = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), id).ec != std::errc()) return std::nullopt;
  return id;
}

// A few lines that stand for 256 tokens each would make every run slow and show nothing new.
constexpr std::size_t kMaxTokens = 600;

void add_token(Vocabulary& vocabulary, std::string text, int kind) {
  if (vocabulary.tokens.size() == kMaxTokens) return;
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  vocabulary.scores.push_back(-static_cast<float>(vocabulary.scores.size()));
}

void read_line(std::string_view line, Vocabulary& vocabulary) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
  if (word == "model") vocabulary.model = rest;
  if (word == "pattern") vocabulary.split_pattern = rest;
  if (word == "merge") vocabulary.merges.push_back(unescaped(rest));
  if (word == "bos") vocabulary.bos_token_id = number_of(rest);
  if (word == "eos") vocabulary.eos_token_id = number_of(rest);
  if (word == "eot") vocabulary.further_eos_token_ids.push_back(number_of(rest).value_or(0));
  if (word == "score" && !vocabulary.scores.empty()) {
    float score = 0.0f;
    std::from_chars(rest.data(), rest.data() + rest.size(), score);
    vocabulary.scores.back() = score;
  }
  if (word == "flags") {
    const auto flags = static_cast<unsigned>(number_of(rest).value_or(0));
    vocabulary.add_bos_token = (flags & 1) != 0, vocabulary.add_space_prefix = (flags & 2) != 0;
    vocabulary.remove_extra_whitespaces = (flags & 4) != 0,
    vocabulary.control_tokens_eat_spaces = (flags & 8) != 0;
  }
  if (word == "charsmap") vocabulary.precompiled_charsmap = unescaped(rest);
  if (word == "template") vocabulary.chat_template = rest;
  if (word == "bytes") {
    for (int byte = 0; byte < 256; ++byte) add_token(vocabulary, test::gpt2_spelling(byte), 1);
  }
  if (word == "fallback") {
    for (int byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
      add_token(vocabulary, text, 6);
    }
  }
  if (word == "token" && rest.size() >= 2) add_token(vocabulary, unescaped(rest.substr(2)), rest[0] - '0');
}

// `unknown`: the tokens that stand for text without a piece, which count as control tokens.
void check_ids(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool may_be_special,
               const std::vector<TokenId>& unknown) {
  for (const TokenId id : ids) {
    require(id >= 0 && id < tokenizer.vocabulary_size(), "every id is in the vocabulary");
    const bool is_unknown = std::find(unknown.begin(), unknown.end(), id) != unknown.end();
    require(may_be_special || is_unknown || !tokenizer.is_control(id),
            "text of a user never becomes a control token");
  }
}

std::vector<TokenId> unknown_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  for (std::size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    if (vocabulary.kinds[id] == TokenKind::kUnknown) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

void check_decoding(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  const std::string whole = tokenizer.decode(ids, /*skip_special=*/false);
  require(sanitise_utf8(whole) == whole, "decoded text is valid UTF-8");
  (void)tokenizer.decode(ids, /*skip_special=*/true);
}

void run(std::span<const std::uint8_t> input) {
  const std::string_view all(reinterpret_cast<const char*>(input.data()), input.size());
  const std::size_t border = std::min(all.find("\n\n"), all.size());
  const std::string_view text = all.substr(std::min(border + 2, all.size()));
  Vocabulary vocabulary;
  vocabulary.model = "gpt2", vocabulary.split_pattern = "smollm";
  for (std::size_t begin = 0; begin < border;) {
    const std::size_t end = std::min(all.find('\n', begin), border);
    read_line(all.substr(begin, end - begin), vocabulary);
    begin = end + 1;
  }
  const std::vector<TokenId> unknown = unknown_tokens(vocabulary);
  const auto created = Tokenizer::create(std::move(vocabulary));
  if (!created)
    return require(
        !created.error().message.empty() && created.error().message.find('\n') == std::string::npos,
        "an error is one line");
  const Tokenizer& tokenizer = **created;
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.encode(text, parse_special, /*add_bos=*/false);
    if (!ids) continue;
    check_ids(tokenizer, *ids, parse_special, unknown);
    check_decoding(tokenizer, *ids);
    require(*ids == *tokenizer.encode(text, parse_special, false), "encoding gives the same again");
  }
  const std::size_t half = text.size() / 2;
  const tokenizer::PromptSpan spans[] = {{std::string(text.substr(0, half)), true},
                                         {"<|im_end|>", false},
                                         {std::string(text.substr(half)), true}};
  if (const auto ids = tokenizer.encode_spans(spans)) check_ids(tokenizer, *ids, true, unknown);
  const ChatMessage message{.role = Role::kUser, .content = std::string(text)};
  if (const auto ids = tokenizer.encode_chat({&message, 1}, 0)) check_ids(tokenizer, *ids, true, unknown);
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  mutate_text(input, max_size, random, kDictionary, mutate_bytes);
}

std::vector<Bytes> no_seeds() { return {}; }

}  // namespace

const Target kTokenizerTarget = {"tokenizer", 256, run, mutate, no_seeds};

}  // namespace octavo::fuzz
