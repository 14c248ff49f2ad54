#!/usr/bin/env python3
"""Ids of Hugging Face folders against the package tokenizers: tests/long/run tokenizers.

    tokenizer_ids.py PROGRAM [--texts 2000] [--seed 1] [--only NAME] [--folder FOLDER]... [--gguf FILE]...

Tiny tokenizers of every kind (tests/golden/tiny_tokenizers.py), the sentencepiece models that the package mistral-common carries,
any FOLDER with a tokenizer.json, and vocabularies of published models out of GGUF files (the sources of llama-cpp-python have a
dozen, vendor/llama.cpp/models/ggml-vocab-*.gguf), each as a tokenizer.json. Needs tokenizers, sentencepiece, protobuf and gguf;
what is missing is skipped by name.
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))


def ids_of(program, folder, texts):
    run = subprocess.run([program, str(folder)], input="".join(json.dumps(text) + "\n" for text in texts), text=True,
                         capture_output=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or f"exit status {run.returncode}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def compare(name, ours, theirs, texts):
    wrong = [i for i, text in enumerate(texts) if ours[i] != theirs[i]]
    for i in wrong[:3]:
        print(f"  {name}: {texts[i]!r}\n    expected {theirs[i]}\n    was      {ours[i]}")
    print(f"{name}: {len(texts) - len(wrong)} of {len(texts)} texts equal", flush=True)
    return not wrong


def mistral_models():
    """tokenizer.model files of the package mistral-common."""
    found = importlib.util.find_spec("mistral_common")
    if found is None:
        return []
    data = pathlib.Path(found.origin).parent / "data"
    return sorted(path for path in data.glob("*.model*"))


def pre_tokenizer_of(pre, tiny):
    """As the model's makers wrote it; None: one that is not held against the package here."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    gpt2 = {**level, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}

    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    steps = {
        "gpt-2": [gpt2], "phi-2": [gpt2], "mpt": [gpt2], "olmo": [gpt2], "default": [gpt2],
        "starcoder": [digits, gpt2], "refact": [digits, gpt2], "command-r": [digits, gpt2], "smollm": [digits, gpt2],
        "llama-bpe": [split(tiny.LLAMA3), level], "qwen2": [split(tiny.QWEN2), level],
        "deepseek-coder": [split(p) for p in ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-\u4e00\uac00-\ud7ff]+")] + [digits, level],
        "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, gpt2, {**digits, "individual_digits": False}, split("[0-9][0-9][0-9]")],
    }.get(pre)
    return {"type": "Sequence", "pretokenizers": steps} if steps else None


def merges_by_score(tokens, scores):
    """Sentencepiece's pieces as merges: each in the order of its score, of its halves the pair that comes first."""
    ids = {token: i for i, token in enumerate(tokens)}
    found = []
    for i, token in enumerate(tokens):
        found += [(-scores[i], ids[token[:cut]], ids[token[cut:]], token[:cut], token[cut:])
                  for cut in range(1, len(token)) if token[:cut] in ids and token[cut:] in ids]
    return [[left, right] for _, _, _, left, right in sorted(found)]


def folder_of_gguf(path, folder, tiny):
    """Writes a tokenizer.json with the vocabulary of a GGUF file; None where its kind has none here."""
    import gguf
    reader = gguf.GGUFReader(str(path))

    def value(key, otherwise=None):
        field = reader.fields.get(f"tokenizer.ggml.{key}")
        return otherwise if field is None else field.contents()
    tokens, kinds = value("tokens"), value("token_type")
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "vocab": {}, "merges": []}
    written = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None, "model": model}
    if value("model") == "gpt2":
        written["pre_tokenizer"] = pre_tokenizer_of(value("pre", "default"), tiny)
        if written["pre_tokenizer"] is None:
            return None
        written["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        model["merges"] = [merge.split(" ") for merge in value("merges")]
        model["ignore_merges"] = value("pre") == "llama-bpe"
    elif value("model") == "llama":
        written["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                                     {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
        written["pre_tokenizer"] = None
        written["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                               {"type": "ByteFallback"}, {"type": "Fuse"}]}
        plain = [token if kind == 1 else "" for token, kind in zip(tokens, kinds)]
        model.update({"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": merges_by_score(plain, value("scores"))})
    else:
        return None
    model["vocab"] = {token: i for i, token in enumerate(tokens)}
    special = [(i, token) for i, (token, kind) in enumerate(zip(tokens, kinds)) if kind in (2, 3)]
    written["added_tokens"] = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                                "special": True} for i, token in special]
    (folder / "tokenizer.json").write_text(json.dumps(written))
    return True


# What the published tokenizers give.
KNOWN = {"ggml-vocab-gpt-2.gguf": ("Hello, how are you?", [15496, 11, 703, 389, 345, 30]),
         "ggml-vocab-llama-spm.gguf": ("San Francisco is a", [3087, 8970, 338, 263])}  # and BOS: five


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--texts", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only")
    options.add_argument("--folder", action="append", default=[])
    options.add_argument("--gguf", action="append", default=[])
    options = options.parse_args()
    import tiny_tokenizers
    from tokenizers import Tokenizer
    texts = tiny_tokenizers.texts(options.seed, options.texts)
    passed = failed = skipped = 0
    print(f"seed {options.seed}")

    def run(name, prepare):
        nonlocal passed, failed, skipped
        if options.only and options.only != name:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                expected = prepare(pathlib.Path(folder))
                good = compare(name, ids_of(options.program, folder, texts), expected, texts)
            except ModuleNotFoundError as missing:
                print(f"{name}: skipped, {missing}")
                skipped += 1
                return
            except RuntimeError as problem:
                print(f"{name}: {problem}")
                good = False
        passed, failed = passed + good, failed + (not good)

    def of_tokenizer(tokenizer, folder):
        (folder / "tokenizer.json").write_text(tokenizer.to_str())
        return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]

    for name, make in tiny_tokenizers.makers(1500).items():
        run(name, lambda folder, make=make: of_tokenizer(make(), folder))
    for path in options.folder:
        run(path, lambda folder, path=path: of_tokenizer(Tokenizer.from_file(str(pathlib.Path(path) / "tokenizer.json")), folder))

    def of_sentencepiece(path, folder):
        import sentencepiece
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        (folder / "tokenizer.model").write_bytes(path.read_bytes())
        # Its control tokens are no text to the library, and a mark ends a stretch here.
        return [processor.encode(text) for text in texts]

    def of_gguf(path, folder):
        if folder_of_gguf(path, folder, tiny_tokenizers) is None:
            raise ModuleNotFoundError("no pre-tokenizer of its kind is written down here")
        if path.name in KNOWN:
            text, ids = KNOWN[path.name]
            was = ids_of(options.program, folder, [text])
            if was != [ids]:
                raise RuntimeError(f"{text!r} gives {was}, not {ids}")
            print(f"{path.name}: {text!r} is {ids}")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]

    for name in options.gguf:
        run(pathlib.Path(name).name, lambda folder, name=name: of_gguf(pathlib.Path(name), folder))
    texts = [text for text in texts if not any(mark in text for mark in ("<", "["))]  # control tokens are no text to the library
    for path in mistral_models():
        run(path.name, lambda folder, path=path: of_sentencepiece(path, folder))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
