#!/usr/bin/env python3
"""Writes tokenizers.json: tiny tokenizers of tiny_tokenizers.py, and the ids that the package tokenizers gives for a few texts.

    python3 -m venv V && V/bin/pip install tokenizers==0.22.2 sentencepiece==0.2.1 protobuf && V/bin/python tests/golden/make_tokenizers.py
"""
import json
import pathlib

import tiny_tokenizers

KEPT = ["gpt2", "llama3", "qwen2", "deepseek_coder", "falcon", "kimi", "flags", "llama2", "gemma", "first_space", "whitespace", "unigram", "unigram_bytes"]


def main():
    makers = tiny_tokenizers.makers(380)
    golden = {}
    for name in KEPT:
        tokenizer = makers[name]()
        texts = tiny_tokenizers.texts(7, 24)
        golden[name] = {"tokenizer.json": json.loads(tokenizer.to_str()),
                        "texts": [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts]}
    path = pathlib.Path(__file__).with_name("tokenizers.json")
    path.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
                                       for name, value in golden.items()) + "\n}\n")


if __name__ == "__main__":
    main()
