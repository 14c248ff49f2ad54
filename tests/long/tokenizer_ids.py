#!/usr/bin/env python3
"""Ids of Hugging Face folders against the package tokenizers: tests/long/run tokenizers.

    tokenizer_ids.py PROGRAM [--texts 2000] [--seed 1] [--only NAME] [--folder FOLDER]...

Tiny tokenizers of every kind (tests/golden/tiny_tokenizers.py), vocabularies of sentencepiece and of Mistral that the package
mistral-common carries, and any FOLDER with a tokenizer.json. Needs tokenizers, sentencepiece and protobuf; what is missing is
skipped by name.
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


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("--texts", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only")
    options.add_argument("--folder", action="append", default=[])
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
            except ModuleNotFoundError as missing:
                print(f"{name}: skipped, {missing}")
                skipped += 1
                return
            try:
                good = compare(name, ids_of(options.program, folder, texts), expected, texts)
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
        plain = [text for text in texts if not any(mark in text for mark in tiny_tokenizers.SPECIALS)]
        texts[:] = plain
        return [processor.encode(text) for text in plain]

    for path in mistral_models():
        run(path.name, lambda folder, path=path: of_sentencepiece(path, folder))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
