"""Log-probabilities of tiny models of every architecture in float64, for tests/model/architecture_test.cc. numpy only.

usage: make_tiny_models.py OUT.json

The weights are no file: each is a mixed counter, as in make_tiny_llama.py, which the test computes again from the list of
tensors that goes into OUT.json.
"""
import json
import sys

import numpy as np
from make_tiny_llama import mix64, values
from tiny_shapes import VARIANTS, VOCABULARY, Shape
from tiny_transformer import Transformer


def round_scale(scale):
    """The nearest power of two: products with it are exact in float32."""
    return float(2.0 ** np.round(np.log2(scale)))


class CounterModel:
    def __init__(self, shape):
        self.architecture, self._keys, self._tensors = shape.architecture, shape.keys, {}
        if shape.chunk:
            self.chunk = shape.chunk
        for name, rows, columns, centre, scale, *_ in shape.tensors:
            numbers = centre + round_scale(scale) * values(name, (rows or 1) * columns)
            self._tensors[name] = numbers.reshape(rows, columns) if rows else numbers
        for name, numbers in shape.tables().items():
            self._tensors[name] = np.array(numbers, dtype=np.float32).astype(np.float64)

    def key(self, suffix, default=None):
        value = self._keys.get(suffix, default)
        return float(np.float32(value)) if isinstance(value, float) else value

    def tensor(self, name):
        return self._tensors.get(name)


PREDICTING = ("glm4moe", "qwen35", "qwen35moe")  # by the layer behind their own
GUESSES = [17, 100]


def predictions(transformer, ids):
    """Of the token two behind each; of all tokens behind the last two, and behind each guess that follows them."""
    lp = transformer.predictions(ids, GUESSES)
    return dict(prediction_logprobs=[round(float(lp[i, ids[i + 2]]), 7) for i in range(len(ids) - 2)], guesses=GUESSES,
                last_predictions=[[round(float(x), 7) for x in row] for row in lp[len(ids) - 2:]])


def main(out):
    result = []
    for name, variant in VARIANTS.items():
        shape = Shape(variant)
        ids = [int(i) for i in mix64(np.arange(shape.tokens, dtype=np.uint64)) % np.uint64(VOCABULARY)]
        transformer = Transformer(CounterModel(shape), shape.max_model_len)
        lp = transformer.log_probabilities(ids)
        predicts = shape.predicted and shape.architecture in PREDICTING
        result.append(dict(
            name=name, architecture=shape.architecture, keys=shape.keys, max_model_len=shape.max_model_len or shape.context_length,
            tensors=[[n, rows or 0, columns, centre, round_scale(scale), *experts] for n, rows, columns, centre, scale, *experts in shape.tensors],
            long_rope=shape.long_rope(), **({"rope_freqs": shape.rope_freqs()} if shape.rope_freqs() else {}), token_ids=ids,
            **({"chunk": shape.chunk} if shape.chunk else {}),
            prompt_logprobs=[round(float(lp[i, ids[i + 1]]), 7) for i in range(len(ids) - 1)],
            last_logprobs=[round(float(x), 7) for x in lp[-1]],
            **(predictions(transformer, ids) if predicts else {})))
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r) for r in result) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
