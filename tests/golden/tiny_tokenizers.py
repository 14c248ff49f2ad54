"""Tiny tokenizers of every kind that published models have, trained by the package tokenizers, and texts to try them on.

make_tokenizers.py writes some of them down; tests/long/tokenizer_ids.py asks for all of them.
"""
import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}|\p{{N}}{{1,3}}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = GPT4O.replace(ENDING, "").replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
             r"\s*[\r\n]+|\s+(?!\S)|\s+").replace('\\"', '"')
# With an operation on classes, as Kimi K2 has it; nobody scans it by hand.
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

SCRIPTS = [
    "the quick brown fox jumps over lazy dogs and the LLM's we'll I'D they've answers",
    "für größere Wörter Straße übermäßig élève garçon naïve cœur señor mañana",
    "быстрая коричневая лиса прыгает через ленивую собаку",
    "η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί",
    "敏捷的棕色狐狸跳过懒狗。人工智能模型的缓存分页", "素早い茶色の狐が怠け者の犬を飛び越える カタカナ ひらがな",
    "빠른 갈색 여우가 게으른 개를 뛰어넘는다", "الثعلب البني السريع يقفز فوق الكلب الكسول", "השועל החום המהיר קופץ מעל הכלב",
    "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है", "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัข", "con cáo nâu nhanh nhẹn nhảy qua con chó lười",
    "def f(x):\n\tif x >= 10:\n        return [y**2 for y in range(x)]  # note\n", "{\"key\": [1, 2.5, -3e10], \"ok\": true}\r\n",
    "https://example.org/a?b=c&d=%20#e user@example.com C:\\temp\\x", "😀👍🏽👩‍👩‍👧🇩🇪 ✅ ★ ½ ² ³ ① Ⅷ ٣٤ १२", "1 12 123 1234 3.14159 1,000,000 2026-11-27",
]
ODD = ["\u00a0", "\u3000", "\u2028", "\u200b", "\u200d", "\ufeff", "\x00", "\x7f", "\x85", "e\u0301", "ﬁ", "ａＢ", "İ", "ſ", "\u0345",
       "\ufffd", "\U0001f468\u200d\U0001f4bb", "\u0e33", "\u1100\u1161\u11a8", "\u0958", "Å", "ﷺ", "\n\n\n", "   ", "\t\t", "\r\n", " \n ", "'S", "'ll"]
SPECIALS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<unk>", "<tool>", "[INST]", "  <s>  ", "a<s>b"]


def texts(seed, count, specials=True):
    rng = random.Random(seed)
    made = ["", " ", "  ", "\n", "a", " a", "a ", "Hello, how are you?", "San Francisco is a", "\n\n  x"]
    while len(made) < count:
        parts = []
        for _ in range(rng.randint(1, 8)):
            kind = rng.random()
            if kind < 0.55:
                words = rng.choice(SCRIPTS).split(" ")
                begin = rng.randrange(len(words))
                parts.append(" ".join(words[begin:begin + rng.randint(1, 6)]))
            elif kind < 0.7:
                parts.append(rng.choice(ODD))
            elif kind < 0.8:
                parts.append(rng.choice([" ", "\n", "\t", "\r\n", "\u00a0"]) * rng.randint(1, 9))
            elif kind < 0.9:
                parts.append("".join(chr(rng.choice([rng.randint(32, 126), rng.randint(160, 0x24f), rng.randint(0x370, 0x5ff),
                                                     rng.randint(0x3040, 0x30ff), rng.randint(0x4e00, 0x9fff)]))
                                     for _ in range(rng.randint(1, 6))))
            elif specials:
                parts.append(rng.choice(SPECIALS))
            parts.append(rng.choice(["", " ", " ", "\n"]))
        made.append("".join(parts))
    return made[:count]


def corpus():
    return SCRIPTS * 3 + ["the cat sat on the mat", "hello how are you", "San Francisco is a city", "1234567890 3.14"] * 3


def trained(model, trainer, normalizer=None, pre_tokenizer=None, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def changed(tokenizer, change):
    """With `change` made to the JSON."""
    value = json.loads(tokenizer.to_str())
    change(value)
    return Tokenizer.from_str(json.dumps(value))


def byte_level(size, pre_tokenizer, normalizer=None, **model):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
                                  special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"])
    tokenizer = trained(models.BPE(), trainer, normalizer, pre_tokenizer, decoders.ByteLevel())
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("   ", normalized=False)])
    return changed(tokenizer, lambda value: value["model"].update(model))


def expression(pattern, size, normalizer=None, behavior="isolated", **model):
    return byte_level(size, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior),
                                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                      normalizer, **model)


def characters(size, normalizer, pre_tokenizer=None, **model):
    """BPE over characters with byte tokens, as Llama 2 and Gemma have it."""
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=60,
                                  special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)])
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer = trained(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True), trainer, normalizer, pre_tokenizer, decoder)

    def change(value):
        value["added_tokens"] = [token for token in value["added_tokens"] if not token["content"].startswith("<0x")]
        value["model"].update({"byte_fallback": True, "fuse_unk": True, **model})
    return changed(tokenizer, change)


def unigram(size, normalizer, pre_tokenizer, bytes_too=False):
    trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>", special_tokens=["<s>", "</s>", "<unk>"])
    tokenizer = trained(models.Unigram(), trainer, normalizer, pre_tokenizer, decoders.Metaspace())
    if not bytes_too:
        return tokenizer

    def change(value):
        value["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0] for i in range(256)]
        value["model"]["byte_fallback"] = True
    return changed(tokenizer, change)


def words_with_flags(size):
    tokenizer = byte_level(size, pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC())
    tokenizer.add_special_tokens([AddedToken("<|im_end|>", rstrip=True), AddedToken("<mask>", lstrip=True)])
    tokenizer.add_tokens([AddedToken("fox", single_word=True, normalized=False), AddedToken("naïve", normalized=True)])
    return tokenizer


def precompiled():
    """Sentencepiece's rules, of a model trained on the spot; None without the package."""
    import io

    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=out, vocab_size=300, model_type="unigram",
                                             character_coverage=0.98, minloglevel=2, hard_vocab_limit=False)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(out.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def makers(size):
    byte, spaces = pre_tokenizers.ByteLevel, pre_tokenizers.Metaspace
    llama2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    gemma = normalizers.Replace(" ", "▁")
    small = size + 100
    return {
        "gpt2": lambda: byte_level(size, byte(add_prefix_space=False)),
        "prefix_space": lambda: byte_level(size, byte(add_prefix_space=True)),
        "llama3": lambda: expression(LLAMA3, size, ignore_merges=True),
        "qwen2": lambda: expression(QWEN2, size, normalizers.NFC()),
        "qwen35": lambda: expression(QWEN35, size, normalizers.NFC()),
        "gpt4o": lambda: expression(GPT4O, size),
        "tekken": lambda: expression(TEKKEN, size, ignore_merges=True),
        "kimi": lambda: expression(KIMI, size),
        "removed": lambda: expression(r"\p{N}+", size, behavior="removed"),
        "with_previous": lambda: expression(r"[aeiou]", size, behavior="merged_with_previous"),
        "with_next": lambda: expression(r"[aeiou ]", size, behavior="merged_with_next"),
        "contiguous": lambda: expression(r"[aeiou ]", size, behavior="contiguous"),
        "smollm": lambda: byte_level(size, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                                    byte(add_prefix_space=False)])),
        "deepseek3": lambda: byte_level(size, pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in (r"\p{N}{1,3}", "[一-龥\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK3)]
            + [byte(add_prefix_space=False, use_regex=False)])),
        "deepseek_coder": lambda: byte_level(size, pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated")
             for pattern in ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"\s+$", "[一-龥\u0800-\u4e00\uac00-\ud7ff]+")]
            + [pre_tokenizers.Digits(individual_digits=True), byte(add_prefix_space=False, use_regex=False)])),
        "falcon": lambda: byte_level(size, pre_tokenizers.Sequence(
            [pre_tokenizers.Punctuation("contiguous"), byte(add_prefix_space=False), pre_tokenizers.Digits(individual_digits=False),
             pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])),
        "flags": lambda: words_with_flags(size),
        "llama2": lambda: characters(size, llama2),
        "gemma": lambda: characters(size, gemma, pre_tokenizers.Split(" ", "merged_with_previous")),
        "ignores_merges": lambda: characters(size, gemma, spaces(prepend_scheme="never"), ignore_merges=True),
        "first_space": lambda: characters(size, None, spaces(prepend_scheme="first", split=False)),
        "whitespace": lambda: characters(size, normalizers.NFKC(), pre_tokenizers.Whitespace()),
        "punctuation": lambda: characters(size, normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                                          pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])),
        "unigram": lambda: unigram(small, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), spaces()),
        "unigram_bytes": lambda: unigram(small, normalizers.Strip(), spaces(prepend_scheme="first"), bytes_too=True),
        "t5": lambda: unigram(small, normalizers.Precompiled(precompiled()),
                              pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces()])),
    }
