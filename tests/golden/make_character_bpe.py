"""Golden data for tests/tokenizer, from the PyPI package tokenizers.

usage: make_character_bpe.py OUT_FOLDER
  character_bpe.json   "vocabulary": BPE over characters as gemma4's, trained here, as llama.cpp's converter writes it into GGUF keys;
                       "texts": strings; "ids": of each; "decoded": pairs of ids and their text
"""
import json, os, random, sys
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from make_tokenizer import TEXTS, fuzz

CONTROL, USER_DEFINED, BYTE, NORMAL = 3, 4, 6, 1
SPECIALS = {"<pad>": CONTROL, "<eos>": CONTROL, "<bos>": CONTROL, "<unk>": CONTROL, "<|turn>": CONTROL, "<turn|>": CONTROL,
            "<|channel>": USER_DEFINED, "<channel|>": USER_DEFINED, "<|tool_response>": USER_DEFINED}
WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had which one you were all "
         "there would their we him been has when who will more no if out so said what up its about into than them can only other new "
         "memory block paged attention cache prefix sequence scheduler running waiting swapped").split()
OWN_TEXTS = ["\n" * n for n in (1, 2, 3, 4, 7, 40)] + [
    "a\n\nb", " \n ", "\n\n\nthe", "the\n\n\n\n\nblock", "  a", "   the  the", "▁", "▁▁the", "the▁block", "<bos>", "<|channel>thought\n<channel|>",
    "<0x0A>", "<0xE4>", "你好，世界！", "\u0001\u0002", "𐍈 ꙮ ᚠ", "the " * 200, "\t\t\tthe"]


def train():
    """Merges that never reach from a line break to something else, as in the published vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n+"), "isolated")
    rng = random.Random(5)
    lines = [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(3, 14))) + rng.choice(["\n", "\n\n", ".\n\n\n", "  "]) for _ in range(3000)]
    trainer = trainers.BpeTrainer(vocab_size=900, min_frequency=2, max_token_length=24, show_progress=False, limit_alphabet=220)
    tokenizer.train_from_iterator(["".join(lines[i:i + 4]) for i in range(0, len(lines), 4)] + TEXTS * 3, trainer)
    return json.loads(tokenizer.to_str())["model"]


def build(model):
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    learned = [t for t, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1])]
    tokens = list(SPECIALS) + [f"<0x{b:02X}>" for b in range(256)] + learned
    kinds = list(SPECIALS.values()) + [BYTE] * 256 + [NORMAL] * len(learned)
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer, {"tokens": tokens, "kinds": kinds, "merges": [" ".join(m) for m in merges]}


def main(folder):
    tokenizer, vocabulary = build(train())
    rng = random.Random(11)
    texts = TEXTS + OWN_TEXTS + list(fuzz(rng, 260))
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    # Whole characters only: what half a character becomes is the program's business.
    decoded = [[each, tokenizer.decode(each, skip_special_tokens=False)] for each in ids[:120]]
    with open(os.path.join(folder, "character_bpe.json"), "w") as f:
        json.dump({"vocabulary": vocabulary, "texts": texts, "ids": ids, "decoded": decoded}, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
