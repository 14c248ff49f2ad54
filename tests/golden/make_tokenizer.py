"""Golden data for tests/tokenizer, from the PyPI package tokenizers and from Python itself.

usage: make_tokenizer.py MODEL.gguf OUT_FOLDER
  tokenizer_splits.json   texts, the byte lengths of their pieces for each split pattern, and the ids with MODEL's vocabulary
  tokenizer_classes.json  ranges of code points that \\p{L}, \\p{N} and \\s match
  text_utf8.json          byte strings (hex) and bytes.decode("utf-8", "replace")
"""
import json, os, random, sys
from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

split = lambda regex: pre_tokenizers.Split(Regex(regex), "isolated")
PATTERNS = {
    "gpt-2": split(GPT2),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split(GPT2)]),
    "llama-bpe": split(LLAMA3),
    "qwen2": split(QWEN2),
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
    write(folder, "tokenizer_classes.json", {"letter": ranges_of(r"\p{L}"), "number": ranges_of(r"\p{N}"), "space": ranges_of(r"\s")})
    write(folder, "text_utf8.json", make_utf8())
