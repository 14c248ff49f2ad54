#!/usr/bin/env python3
"""Hidden states of the default model, pooled: tests/engine/embeddings_test.cc.

usage: make_embeddings.py REFERENCE.py MODEL.gguf OUT.json

REFERENCE.py is the float32 program of numpy that made smollm2-135m-instruct-q4_1.json; this one runs its layers and keeps
what they give to the output matrix. Made with numpy 2.4.6 and gguf 0.19.0, of PyPI.

A case is {token_ids, last, mean}: the normalised hidden state of the last token, and the mean of all; neither of length 1.
"""
import importlib.util
import json
import sys

import numpy as np

TEXTS = ["The capital of France is Paris.", "A block holds sixteen tokens, and a table says where each block of a sequence is."]


class HiddenStates:
    """A matrix whose product with rows is these rows."""

    @property
    def T(self):
        return self

    def __rmatmul__(self, rows):
        self.rows = rows
        return rows

    __array_ufunc__ = None  # numpy leaves the product to us


def main(reference_path, model, out):
    spec = importlib.util.spec_from_file_location("reference", reference_path)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    meta, weights = reference.load(model)
    tokenizer = reference.tokenizer(meta)
    cases = []
    for text in TEXTS:
        token_ids = tokenizer.encode(text, add_special_tokens=False).ids
        hidden = HiddenStates()
        reference.Llama(meta, dict(weights, **{"output.weight": hidden})).step(token_ids)
        rows = hidden.rows.astype(np.float64)
        cases.append({"token_ids": token_ids, "last": [round(float(x), 5) for x in rows[-1]],
                      "mean": [round(float(x), 5) for x in rows.mean(0)]})
    with open(out, "w") as file:
        json.dump(cases, file)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
