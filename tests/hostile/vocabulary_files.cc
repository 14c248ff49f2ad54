// M2, G7: token lists, their types, merges, and ids that name no token.
#include <limits>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

const std::string kTokens = "tokenizer.ggml.tokens", kKinds = "tokenizer.ggml.token_type",
                  kMerges = "tokenizer.ggml.merges", kScores = "tokenizer.ggml.scores";
constexpr std::size_t kSize = kTinyVocabularySize;

class Adder {
 public:
  explicit Adder(HostileFiles& files) : files_(files) {}
  void with(const std::string& name, const std::string& key, std::function<void(ModelDraft&)> change,
            const std::string& rule = "M2") {
    files_.push_back(changed("vocabulary/" + name, rule, key, std::move(change)));
  }
  void merge(const std::string& name, std::vector<std::string> merges) {
    with("merge-" + name, kMerges, [m = std::move(merges)](ModelDraft& d) { d.set_strings(kMerges, m); });
  }

 private:
  HostileFiles& files_;
};

void add_ids(Adder& add) {
  for (const std::string name : {"bos", "eos", "unknown", "eot", "eom", "padding", "seperator", "cls", "mask",
                                 "fim_pre", "fim_suf", "fim_mid"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    add.with(name + "-id-is-the-size", key, [=](ModelDraft& d) { d.set_u32(key, kSize); });
    add.with(name + "-id-4294967295", key, [=](ModelDraft& d) { d.set_u32(key, 0xffffffffu); });
  }
  for (const std::string name : {"bos", "eos"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    add.with(name + "-id-negative", key, [=](ModelDraft& d) { d.set_i32(key, -1); });
    add.with(name + "-id-2147483648", key, [=](ModelDraft& d) { d.set_u32(key, 0x80000000u); });
    add.with(name + "-id-wraps-to-1", key,
             [=](ModelDraft& d) { d.set_u64(key, (std::uint64_t{1} << 32) + 1); });
    add.with(
        name + "-id-as-string", key, [=](ModelDraft& d) { d.set_string(key, "1"); }, "G7");
    add.with(
        name + "-id-as-float", key, [=](ModelDraft& d) { d.set_f32(key, 1.0f); }, "G7");
    add.with(
        name + "-id-as-boolean", key, [=](ModelDraft& d) { d.set_bool(key, 1); }, "G7");
    add.with(
        name + "-id-as-array", key, [=](ModelDraft& d) { d.set_array<std::uint32_t>(key, {1}); }, "G7");
  }
}

void add_arrays(Adder& add) {
  add.with("tokens-missing", "", [](ModelDraft& d) { d.remove(kTokens); });
  add.with("tokens-empty", "", [](ModelDraft& d) { d.set_strings(kTokens, {}); });
  add.with("tokens-one-less", "token_embd.weight",
           [](ModelDraft& d) { d.set_strings(kTokens, std::vector<std::string>(kSize - 1, "a")); });
  add.with("tokens-one-more", "token_embd.weight",
           [](ModelDraft& d) { d.set_strings(kTokens, std::vector<std::string>(kSize + 1, "a")); });
  add.with(
      "tokens-as-numbers", kTokens,
      [](ModelDraft& d) { d.set_array(kTokens, std::vector<std::uint8_t>(kSize, 1)); }, "G7");
  add.with(
      "tokens-as-one-string", kTokens, [](ModelDraft& d) { d.set_string(kTokens, "abc"); }, "G7");
  add.with(
      "tokens-as-booleans", kTokens,
      [](ModelDraft& d) { d.set_raw_array(kTokens, 7, kSize, std::vector<std::byte>(kSize)); }, "G7");
  add.with("types-one-less", kKinds,
           [](ModelDraft& d) { d.set_array(kKinds, std::vector<std::int32_t>(kSize - 1, 1)); });
  add.with("types-one-more", kKinds,
           [](ModelDraft& d) { d.set_array(kKinds, std::vector<std::int32_t>(kSize + 1, 1)); });
  add.with("types-empty", kKinds, [](ModelDraft& d) { d.set_array(kKinds, std::vector<std::int32_t>()); });
  add.with(
      "types-as-floats", kKinds, [](ModelDraft& d) { d.set_array(kKinds, std::vector<float>(kSize, 1.0f)); },
      "G7");
  add.with(
      "types-as-strings", kKinds,
      [](ModelDraft& d) { d.set_strings(kKinds, std::vector<std::string>(kSize, "1")); }, "G7");
  add.with(
      "types-as-one-number", kKinds, [](ModelDraft& d) { d.set_u32(kKinds, 1); }, "G7");
  add.with("types-twelve-million", kKinds,
           [](ModelDraft& d) { d.set_array(kKinds, std::vector<std::uint8_t>(12'000'000, 1)); });
  for (const std::int32_t kind : {0, 7, -1, std::numeric_limits<std::int32_t>::min()}) {
    add.with("type-" + std::to_string(kind), kKinds, [=](ModelDraft& d) {
      std::vector<std::int32_t> kinds(kSize, 1);
      kinds[100] = kind;
      d.set_array(kKinds, kinds);
    });
  }
  add.with("scores-one-less", kScores,
           [](ModelDraft& d) { d.set_array(kScores, std::vector<float>(kSize - 1, 0.0f)); });
  add.with(
      "scores-as-bytes", kScores,
      [](ModelDraft& d) { d.set_array(kScores, std::vector<std::uint8_t>(kSize, 0)); }, "G7");
  add.with(
      "scores-as-strings", kScores,
      [](ModelDraft& d) { d.set_strings(kScores, std::vector<std::string>(kSize, "0")); }, "G7");
  add.with("scores-not-finite", kScores, [](ModelDraft& d) {
    d.set_array(kScores, std::vector<float>(kSize, std::numeric_limits<float>::quiet_NaN()));
  });
  add.with(
      "merges-as-numbers", kMerges,
      [](ModelDraft& d) {
        d.set_array<std::int32_t>(kMerges, {1, 2});
      },
      "G7");
  add.with(
      "merges-as-one-string", kMerges, [](ModelDraft& d) { d.set_string(kMerges, "h e"); }, "G7");
  add.merge("of-one-part", {"he"});
  add.merge("of-three-parts", {"h e r"});
  add.merge("empty", {""});
  add.merge("of-a-space", {" "});
  add.merge("without-a-left-part", {" e"});
  add.merge("without-a-right-part", {"h "});
  add.merge("of-unknown-parts", {"\xe6\xbc\xa2 \xe5\xad\x97"});
  add.merge("that-makes-no-token", {"q z"});
  add.merge("with-terminal-sequences", {"\x1b[2J\nx y"});
  add.with("merge-empty-two-million-times", kMerges,
           [](ModelDraft& d) { d.set_raw_array(kMerges, 8, 2'000'000, std::vector<std::byte>(16'000'000)); });
}

void add_names(Adder& add) {
  for (const auto& [name, model] :
       std::vector<std::pair<std::string, std::string>>{{"unknown", "tekken"},
                                                        {"empty", ""},
                                                        {"with-a-line-break", "gpt2\n"},
                                                        {"with-terminal-sequences", "\x1b[2J"},
                                                        {"path", "/etc/passwd"}}) {
    add.with("model-" + name, "tokenizer.ggml.model",
             [m = model](ModelDraft& d) { d.set_string("tokenizer.ggml.model", m); });
  }
  add.with("model-missing", "tokenizer.ggml.model", [](ModelDraft& d) { d.remove("tokenizer.ggml.model"); });
  add.with(
      "model-as-number", "tokenizer.ggml.model", [](ModelDraft& d) { d.set_u32("tokenizer.ggml.model", 2); },
      "G7");
  add.with(
      "pattern-unknown", "tokenizer.ggml.pre",
      [](ModelDraft& d) { d.set_string("tokenizer.ggml.pre", "(a+)+$"); }, "M5");
  add.with(
      "pattern-with-terminal-sequences", "tokenizer.ggml.pre",
      [](ModelDraft& d) { d.set_string("tokenizer.ggml.pre", "\x1b[2J\n"); }, "M5");
  add.with(
      "pattern-as-number", "tokenizer.ggml.pre", [](ModelDraft& d) { d.set_u32("tokenizer.ggml.pre", 2); },
      "G7");
  add.with(
      "add-bos-as-number", "tokenizer.ggml.add_bos_token",
      [](ModelDraft& d) { d.set_u32("tokenizer.ggml.add_bos_token", 1); }, "G7");
  add.with(
      "add-space-as-string", "tokenizer.ggml.add_space_prefix",
      [](ModelDraft& d) { d.set_string("tokenizer.ggml.add_space_prefix", "yes"); }, "G7");
  add.with("special-token-of-a-mebibyte", kTokens, [](ModelDraft& d) {
    std::vector<std::string> tokens(kSize, "a");
    tokens[0] = std::string(1u << 20, 'x');
    d.set_strings(kTokens, tokens).set_strings(kMerges, {});
  });
}

}  // namespace

void add_vocabulary_files(HostileFiles& files) {
  Adder add(files);
  add_ids(add);
  add_arrays(add);
  add_names(add);
}

}  // namespace octavo::test
