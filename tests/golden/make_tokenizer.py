"""Golden data for tests/tokenizer, from the PyPI package tokenizers and from Python itself.

usage: make_tokenizer.py MODEL.gguf OUT_FOLDER
  tokenizer_splits.json   texts, the byte lengths of their pieces for each split pattern, and the ids with MODEL's vocabulary
  tokenizer_classes.json  ranges of code points that \\p{L}, \\p{N}, \\s and general categories match
  text_utf8.json          byte strings (hex) and bytes.decode("utf-8", "replace")
"""
import json, os, random, sys
from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")

UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
CASED_WORDS = (r"[^\r\n\p{L}\p{N}]?[" + UPPER + r"]*[" + LOWER + r"]+" + CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[" + UPPER + r"]+[" + LOWER + r"]*" + CONTRACTION)
GPT4O = CASED_WORDS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = GPT4O.replace(CONTRACTION, "").replace(r"\p{N}{1,3}", r"\p{N}")
# The letters with case that DeepSeek LLM's tokenizer.json lists.
CASED = "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
IDEOGRAPHS = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

split = lambda regex: pre_tokenizers.Split(Regex(regex), "isolated")
digits = lambda: pre_tokenizers.Digits(individual_digits=True)
PATTERNS = {
    "gpt-2": split(GPT2),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split(GPT2)]),
    "llama-bpe": split(LLAMA3),
    "qwen2": split(QWEN2),
    "qwen35": split(QWEN35),
    "gpt-4o": split(GPT4O),
    "tekken": split(TEKKEN),
    "deepseek-llm": pre_tokenizers.Sequence([split("[\r\n]"), split(r"\s?[" + CASED + "]+"), split(r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
                                            split(r"\s+$"), split(IDEOGRAPHS), digits()]),
    "deepseek-coder": pre_tokenizers.Sequence([split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(IDEOGRAPHS), digits()]),
    "deepseek-v3": pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK3)]),
    # The published file has Punctuation("contiguous") first, whose table of characters is that of Unicode 8.
    "falcon": pre_tokenizers.Sequence([split(r"[\p{P}$+<=>^`|~]+"), split(GPT2), split("[0-9][0-9][0-9]")]),
}

TEXTS = [
    "a", " ", "  ", "\n", "\t", "Hello, world!", "The capital of France is", "hello  world", " hello   world ",
    "I'm you're he's she'll we've they'd don't", "I'M YOU'RE HE'S SHE'LL WE'VE THEY'D DON'T", "I'm'll've 'sup 'tis 'dog 'l 'r 'v ' ''s",
    "it\u2019s \u2019s", "'\u017f 'S\u017f '\u212a x'\u017fy", "'Re 'vE 'Ll 'lL", "'s's 's\n's", "a 's b", "a  's b",
    "   leading", "trailing   ", "tabs\tand\t\ttabs", " \t mixed \t ", "line\nline\n\nline\n\n\n", "crlf\r\ncrlf\r\n\r\nend", "\r\r\n\n\r",
    "  \n  x", "x  \n  \n  y", "x \n", "\n x", "\n\n  x", " \r\n \r\n x", "x\n   ", "...\n\n...\r\nx", "!!!\n\n\n!!", " !\n !", "a\u2028b\u2029c\u0085d",
    "1 12 123 1234 12345 1234567890", "3.14159 1,000,000 0x1F 1e-9", "a1b22c333d4444", " 1  2   3", "1\n2\r\n3", "x  1", "x   12", "12  ", "v1.2.3-rc4",
    "\u0661\u0662\u0663 \u0967\u0968\u0969\u096a \uff11\uff12\uff13\uff14", "\u2160\u2161\u2162 \u216b", "\u00b2\u00b3\u00b9 \u00bd\u00bc \u2460\u2461\u246a",
    "\u3007\u4e00\u4e8c\u4e09", "10\u00b2 km", "\U0001d7ce\U0001d7cf\U0001d7d0\U0001d7d1",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "e\u0301clair cafe\u0301 \u00e9", "a\u0300\u0301\u0302b \u0300x", "Zalgo: h\u0335\u0321e\u0334l\u0336", "\u1e9e\u00df \ufb01 \ufb03",
    "\U0001f600\U0001f601 \U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "\U0001f44d\U0001f3fd\U0001f44d", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u2764\ufe0f 1\ufe0f\u20e3",
    "a\u00a0b \u00a0c\u00a0\u00a0d \u00a0", "\u2003em\u2009thin\u200bzero\u3000wide\u202fnarrow\u205f\u1680", "\ufeffbom", "\u180e\u200e\u200f",
    "\x00\x01\x02\x1b[31m\x7f\x80\x9f", "a\x0bb\x0cc\x1cd\x1de\x1ef\x1fg", "\u00ad soft", "\ud7ff\ue000\uf8ff\ufffd\uffff", "\U0010ffff\U000f0000",
    "def f(x):\n    return x**2  # square\n\n\nclass A:\n\tpass\n", "for (int i = 0; i < n; ++i) {\n\t\ta[i] += b[i];\n}\n", "<|im_start|>user\nHi<|im_end|>", "https://example.org/a?b=c&d=%20#e",
    "{\"a\": [1, 2.5, -3e10], \"b\": null}", "x=$(( 1+2 )); echo \"$x\" | tee -a 'f'", "a\\nb\\tc", "\\begin{align} x_1 &= \\frac{1}{2} \\end{align}", "____ ---- ==== ****", "a_b_c __init__ snake_case", "C++ C# F# .NET",
    "Pneumonoultramicroscopicsilicovolcanoconiosis", "a" * 300, "ab" * 200, " " * 100 + "x", "\n" * 50, "1" * 100, "!" * 200, "\u00e9" * 100, " \n" * 40, "x " * 60,
    "Ünïcödé straße ŁÓDŹ İstanbul ı", "\u01c5\u02b0\u02c7 \u02d8 \u2c7c", "\u2126 \u212b \u00b5", "mixed\u4f60\u597dabc\u0434\u0435\u0444123\u0967", "\u0d9a\u0dd4 \u1780\u17d2\u1798",
    "ABCdef AbcDEF aBC HTTPServer iPhone XMLHttpRequest \u4e2dABC ABC\u4e2dabc A\u0301B\u0301c \u0301ABC \u0301", "\u01c5abc \u01c5\u01c5 \u02b0ABC A\u02b0B", "Don'T DON'T don't'S 's", "a/b//c\n//d !/\n/\r/x", "\U00010d50\U00010d70 \ua7cb\ua7cd", "caf\u00e9 \u00c9t\u00e9 \u00e9", "\u3001\u3002\u3000\uff01a\u3000b \u3000", "  \u3000 ", "x \t", "\u30ab\u30bf\u30ab\u30ca\u3072\u3089\u304c\u306a\u6f22\u5b57abc", "\uac00\ub098 abc\uac00", "1,234.5678 12a345", "\u0e01\u0e33 \u0b95\u0bcd", "\u20ac5 +-*/=<>^~|` #a @b $c", "\x01abc \x02\x03 \x04.", "\ue000a \ue001", "a\u00adb \u200da",
    "\u00a1Hola! \u00bfQu\u00e9 tal? \u00abbon\u00bb \u201cquoted\u201d \u2014 dash\u2026", "$5 \u20ac10 \u00a320 \u00a530 50% 1\u20442", "a.b,c;d:e!f?g", " .  ,  ;", "\u2192\u2190 \u2200\u2203 \u221e\u2211", "\u2800\u2801",
    "\U00010330\U00010331 \U0001d400\U0001d401 \U00020000\U0002a6d6", "\U0002ebf0\U0002ebf1 \U000105c0 \U00010d40\U00010d41", "\u0c66\u0c67 \u0be6\u0bf0", "\u137c \u3021\u3029 \ua620",
]


def fuzz(rng, count):
    alphabets = [
        lambda: chr(rng.randrange(0x20, 0x7f)), lambda: rng.choice(" \t\n\r\u00a0\u3000\u2009\x0b\x85"), lambda: rng.choice("'sStTrReEvVlLmMdD \n"),
        lambda: chr(rng.randrange(0x80, 0x800)), lambda: rng.choice("0123456789\u0661\u00b2\u2163 a\n"),
        lambda: chr(rng.choice([rng.randrange(0x800, 0xd800), rng.randrange(0xe000, 0x11d00), rng.randrange(0x1f300, 0x1faff), rng.randrange(0x20000, 0x31350)])),
    ]
    for _ in range(count):
        mix = rng.sample(alphabets, rng.randrange(1, 4))
        yield "".join(rng.choice(mix)() for _ in range(rng.randrange(1, 40)))


def pieces(pre_tokenizer, text):
    parts = [text[a:b] for _, (a, b) in pre_tokenizer.pre_tokenize_str(text)]
    assert "".join(parts) == text
    return [len(p.encode("utf-8")) for p in parts]


def load_tokenizer(path):
    fields = {k: f.contents() for k, f in GGUFReader(path).fields.items() if k.startswith("tokenizer.ggml")}
    tokens = fields["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return tokenizer


def make_splits(model):
    tokenizer = load_tokenizer(model)
    entries = []
    for text in TEXTS + list(fuzz(random.Random(3), 260)):
        entry = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
        entry.update({name: pieces(p, text) for name, p in PATTERNS.items()})
        entries.append(entry)
    return entries


def ranges_of(regex):
    splitter = pre_tokenizers.Split(Regex(regex), "removed")
    matched = []
    for first in range(0, 0x110000, 0x1000):
        characters = [c for c in range(first, first + 0x1000) if not 0xd800 <= c <= 0xdfff]
        if not characters:
            continue
        left = set("".join(p for p, _ in splitter.pre_tokenize_str("".join(map(chr, characters)))))
        matched += [c for c in characters if chr(c) not in left]
    ranges = []
    for c in matched:
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1][1] = c
        else:
            ranges.append([c, c])
    return ranges


def make_utf8():
    rng = random.Random(7)
    strings = [b"", b"abc", b"\xff", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80",
               b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80", b"\xc2", b"\xc2\xc2\xa9", b"\x80\x80", b"a\xf1\x80\x80b", b"\xf8\x88\x80\x80\x80", b"\xe1\x80\xe2\x80\xf1\x80\x80"]
    leads = [0x41, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff]
    strings += [bytes(rng.choice(leads) for _ in range(rng.randrange(1, 9))) for _ in range(600)]
    return [[s.hex(), s.decode("utf-8", errors="replace")] for s in strings]


def write(folder, name, value):
    with open(os.path.join(folder, name), "w") as f:
        json.dump(value, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    model, folder = sys.argv[1:3]
    write(folder, "tokenizer_splits.json", make_splits(model))
    classes = {"letter": ranges_of(r"\p{L}"), "number": ranges_of(r"\p{N}"), "space": ranges_of(r"\s")}
    classes.update({name: ranges_of(r"\p{" + name + "}") for name in ["Lu", "Ll", "Lt", "Lm", "Lo", "M", "P", "S"]})
    write(folder, "tokenizer_classes.json", classes)
    write(folder, "text_utf8.json", make_utf8())
