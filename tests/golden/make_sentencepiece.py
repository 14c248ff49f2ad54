"""Golden data for tests/tokenizer, from the PyPI package sentencepiece (0.2.1).

usage: make_sentencepiece.py OUT_FOLDER
  sentencepiece.json   "vocabularies": small models trained here, as llama.cpp's converter writes them into GGUF keys;
                       "texts": strings, or {"hex": bytes that are no UTF-8}, or {"repeat": string, "times": n},
                       or {"joined": string, "times": n}: all strings of "short_texts" with it between them;
                       "ids": for each vocabulary and text the ids, or [count, FNV-1a of the ids as u32] of long ones;
                       "decoded": for each vocabulary pairs of ids and their text
"""
import json, os, random, sys, tempfile
import sentencepiece as spm

WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you "
         "were her all she there would their we him been has when who will more no if out so said what up its about into than them can only other "
         "new some could time these two may then do first any my now such like our over man me even most made after also did many before must "
         "through back years where much your way well down should because each just those people how too little state good very make world still "
         "own see men work long get here between both life being under never day same another know while last might us great old year off come since "
         "against go came right used take three tokenizer memory block paged attention cache prefix sequence scheduler running waiting swapped").split()
SENTENCES = ["def main(argv):\n    for i in range(10):\n        print(i, end=\"\\n\\n\")\n", "int x = 0;\t\tx += 1;\r\n", "Привет, мир! Как дела?", "Größe, Straße, naïve café, Ünïcödé",
             "你好，世界！今天天气很好。", "こんにちは世界、東京は大きい。", "안녕하세요 세계", "مرحبا بالعالم", "नमस्ते दुनिया", "😀 😃 👍🏽 👨‍👩‍👧", "e\u0301 a\u0300 o\u0302", "1234567890 3.14159 1,000,000 2026-11-22",
             "https://example.org/a?b=c&d=%20#e", "{\"a\": [1, 2.5, -3e10]}", "<b>bold</b> [x] (y) {z}", "I'm you're they'd don't", "    indented\n        more\n", "a  b   c    d", "foo_bar(baz) == 42"]


def corpus(rng):
    lines = []
    for _ in range(3000):
        line = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(3, 14)))
        lines.append(line.capitalize() + rng.choice([".", "!", "?", "", ", " + rng.choice(WORDS)]))
    return lines + SENTENCES * 40


COMMON = dict(model_type="bpe", character_coverage=0.9995, normalization_rule_name="identity", remove_extra_whitespaces=False,
              num_threads=1, minloglevel=2, hard_vocab_limit=False, unk_id=0, bos_id=1, eos_id=2)
RULES = "0041 0301\t00C1\nFB01\t0066 0069\n00A0\t0020\n200B\t\n2460\t0028 0031 0029\n0009\t0020\nFF21\t0041\n0061 0062 0063 0064\t0058\n0061 0062\t0059\n"
MODELS = {
    "llama": dict(vocab_size=900, byte_fallback=True, add_dummy_prefix=True, split_digits=True, allow_whitespace_only_pieces=True),
    "gemma": dict(vocab_size=1100, byte_fallback=True, add_dummy_prefix=False, split_digits=True, allow_whitespace_only_pieces=True, pad_id=3,
                  user_defined_symbols=["<start_of_turn>", "<end_of_turn>", "\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "▁▁▁▁", "▁▁▁▁▁▁▁▁", "[multimodal]"]),
    "no_bytes": dict(vocab_size=500, byte_fallback=False, add_dummy_prefix=True),
    "words": dict(vocab_size=700, byte_fallback=True, add_dummy_prefix=True, user_defined_symbols=["foo_bar", "foo", "http://", "世界", "▁the▁", "a\u0300", "<sep>"],
                  control_symbols=["<|user|>", "<|end|>"]),
    "no_word_borders": dict(vocab_size=800, byte_fallback=True, add_dummy_prefix=True, split_by_whitespace=False),
    "normalised": dict(vocab_size=700, byte_fallback=True, add_dummy_prefix=True, remove_extra_whitespaces=True, normalization_rule_tsv="RULES", user_defined_symbols=["x\u00a0y", "abc"]),
    "normalised_no_prefix": dict(vocab_size=500, byte_fallback=False, add_dummy_prefix=False, remove_extra_whitespaces=True),
}

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n\n\n", "\t", "\t\t", "\r\n", " \n ", "a", " a", "  a", "a ", "a  ", " a ", "a b", "a  b", "a   b", "a                 b",
    "Hello, world!", "The paged attention of a sequence", "the the  the   the", "▁", "▁▁", "▁a", "a▁b", " ▁ ", "▁▁▁▁▁", "a▁▁b  c", "\u00a0", "x\u00a0y", "a\u00a0\u00a0b", "\u200b", "a\u200bb", "\u3000",
    "abc", "abcd", "abcde", "ab", "ababcdabcd", "xabcabcdx", "A\u0301", "A", "ﬁn", "①②", "ＡＢ", "a\tb",
    "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<0x0A>", "<0xFF>", "<0x00>", "a<s>b", "<start_of_turn>user\nHi<end_of_turn>\n", "<start_of_turn>", "<end_of_turn>", "[multimodal]", "<sep>", "a<sep>b <sep> c", "<|user|>", "<|end|>",
    "foo_bar", "foo", "foobar", "foo_ba", "foofoo_bar", "http://http://", "世界", "你好世界世界", "▁the▁", " the ", "in the world", "inthe world", "a\u0300a", "b\u0300",
    "1234567890", "3.14159", "Größe naïve café", "你好，世界！", "こんにちは", "안녕하세요", "مرحبا", "नमस्ते", "ไทย", "😀😀", "👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "e\u0301", "Zalgo: h\u0335\u0321e\u0334l\u0336", "\u0301\u0301", "\u202ertl\u202c", "\ufeffbom", "\ufffd", "\ufffda\ufffd",
    "\x00", "a\x00b", "\x00\x00\x00", "\x1b[31m", "\x7f\x80\x9f", "\ud7ff\ue000\uffff", "\U0010ffff", "\U000f0000", "\U00020000",
    "def f(x):\n    return x**2\n\n\nclass A:\n\tpass\n", "a\\nb", "{{ 7*7 }} {% raw %}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ababababababababab", "!!!!!!!!!!!!", "-----------------", "                                ",
    {"hex": "ff"}, {"hex": "61ff62"}, {"hex": "c0af"}, {"hex": "e282"}, {"hex": "e28261"}, {"hex": "f09f98"}, {"hex": "f09f9880ff"}, {"hex": "eda080"}, {"hex": "f4908080"}, {"hex": "80"}, {"hex": "20ff20fe20"}, {"hex": "e29681ff"}, {"hex": "c2"}, {"hex": "e296e29681"},
    {"repeat": "a", "times": 100000}, {"repeat": " ", "times": 100000}, {"repeat": "\n", "times": 20000}, {"repeat": "ab", "times": 30000}, {"repeat": "世", "times": 20000}, {"repeat": "😀", "times": 10000}, {"repeat": "the ", "times": 20000}, {"repeat": "\x00", "times": 5000}, {"repeat": "a\u0300", "times": 5000},
    {"joined": "", "times": 30}, {"joined": " ", "times": 30}, {"joined": "the", "times": 20}, {"joined": "▁a", "times": 20},
]


def fuzz(rng, count):
    alphabets = [lambda: chr(rng.randrange(0x20, 0x7f)), lambda: rng.choice(" \t\n\r\u00a0\u3000▁"), lambda: rng.choice("etaoin shrdlu"), lambda: rng.choice(WORDS + ["foo_bar", "foo", "▁the▁", "世界", "http://"]), lambda: rng.choice(["  ", "\n\n", "▁▁", "a\u0300", "\u0301"]),
                 lambda: chr(rng.choice([rng.randrange(0x80, 0x800), rng.randrange(0x800, 0xd800), rng.randrange(0xe000, 0x10000), rng.randrange(0x1f300, 0x1faff), rng.randrange(0x4e00, 0x5000)])), lambda: rng.choice("你好世界天气。，"), lambda: rng.choice("0123456789.,")]
    for _ in range(count):
        mix = rng.sample(alphabets, rng.randrange(1, 5))
        yield "".join(rng.choice(mix)() for _ in range(rng.randrange(1, 40)))


def to_bytes(text):
    if isinstance(text, str):
        return text.encode("utf-8")
    if "joined" in text:
        return (text["joined"].join(t for t in TEXTS if isinstance(t, str)) * text["times"]).encode("utf-8")
    return bytes.fromhex(text["hex"]) if "hex" in text else text["repeat"].encode("utf-8") * text["times"]


def fnv1a(ids):
    value = 0xcbf29ce484222325
    for i in ids:
        for shift in (0, 8, 16, 24):
            value = ((value ^ ((i >> shift) & 255)) * 0x100000001b3) % 2**64
    return value


def train(name, options, folder):
    options = dict(COMMON, **options)
    if options.get("normalization_rule_tsv"):
        options["normalization_rule_tsv"] = os.path.join(folder, "rules.tsv")
        open(options["normalization_rule_tsv"], "w").write(RULES)
        del options["normalization_rule_name"]
    prefix = os.path.join(folder, name)
    with open(prefix + ".txt", "w", encoding="utf-8") as f:
        f.write("\n".join(line.replace("\n", " ") for line in corpus(random.Random(5))))
    spm.SentencePieceTrainer.train(input=prefix + ".txt", model_prefix=prefix, **options)
    return spm.SentencePieceProcessor(model_file=prefix + ".model"), options, open(prefix + ".model", "rb").read()


def charsmap_of(model):
    """Field 2 of field 3 (NormalizerSpec) of a serialised ModelProto."""
    def fields(data):
        position = 0

        def varint():
            nonlocal position
            value = shift = 0
            while True:
                byte = data[position]
                position += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while position < len(data):
            key = varint()
            if key & 7 == 0:
                varint()
            elif key & 7 == 5:
                position += 4
            else:
                length = varint()
                yield key >> 3, data[position:position + length]
                position += length
    for number, spec in fields(model):
        if number == 3:
            return next((value for n, value in fields(spec) if n == 2), b"")
    return b""


def vocabulary(processor, options, model):
    def kind(i):
        if processor.IsUnknown(i):
            return 2
        if processor.IsControl(i):
            return 3
        if processor.IsByte(i):
            return 6
        if processor.IsUnused(i):
            return 5
        return 4 if processor.IdToPiece(i) in options.get("user_defined_symbols", []) else 1
    size = processor.vocab_size()
    return {"tokens": [processor.IdToPiece(i) for i in range(size)], "scores": [processor.GetScore(i) for i in range(size)], "token_type": [kind(i) for i in range(size)],
            "add_space_prefix": options.get("add_dummy_prefix", True), "remove_extra_whitespaces": options["remove_extra_whitespaces"], "precompiled_charsmap": list(charsmap_of(model))}


if __name__ == "__main__":
    texts = TEXTS + list(fuzz(random.Random(11), 300))
    golden = {"texts": texts, "short_texts": [t for t in TEXTS if isinstance(t, str)], "vocabularies": {}, "ids": {}, "decoded": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in MODELS.items():
            processor, used, model = train(name, options, folder)
            golden["vocabularies"][name] = vocabulary(processor, used, model)
            all_ids = [processor.encode(to_bytes(text)) for text in texts]
            golden["ids"][name] = [ids if len(ids) <= 120 else [-len(ids), fnv1a(ids)] for ids in all_ids]
            rng = random.Random(17)
            decodable = [i for i in range(processor.vocab_size()) if not processor.IsControl(i) and not processor.IsUnknown(i)]
            lists = [[rng.choice(decodable) for _ in range(rng.randrange(1, 12))] for _ in range(60)]
            golden["decoded"][name] = [[ids, processor.decode(ids)] for ids in lists]
    with open(os.path.join(sys.argv[1], "sentencepiece.json"), "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")
