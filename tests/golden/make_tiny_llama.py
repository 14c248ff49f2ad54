"""Log-probabilities of tiny llama models in float64, for tests/model/transformer_test.cc. numpy only; shares no code with the product.

usage: make_tiny_llama.py OUT.json

The weights are no file: value(name, i) is a mixed counter, which the test computes again. Each variant exercises what the default
model has not: biases, an output of its own, heads apart from width / heads, partial rotation, and each way to stretch positions.
"""
import json
import sys
import zlib

import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCABULARY = 2, 64, 4, 2, 96, 269
BASE, EPSILON = 10000.0, 1e-5

VARIANTS = {
    "plain": dict(head_dim=16, rotary_dim=16),
    "head_size_apart_biases_untied": dict(head_dim=24, rotary_dim=24, biases=True, untied=True),
    "partial_rotation": dict(head_dim=24, rotary_dim=16, biases=True),
    "linear": dict(head_dim=16, rotary_dim=16, linear=4.0),
    "llama3": dict(head_dim=32, rotary_dim=32, factors=True),
    "yarn": dict(head_dim=32, rotary_dim=32, yarn=8.0, original_context=64, untied=True),
}


def mix64(x):
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def values(name, count):
    """In [-1, 1), multiples of 2^-15: exact in every type of at least 16 bits of fraction."""
    start = np.uint64(zlib.crc32(name.encode()) << 32)
    bits = mix64(start + np.arange(count, dtype=np.uint64))
    return (bits >> np.uint64(48)).astype(np.float64) / 32768.0 - 1.0


def matrix(name, rows, columns, scale):
    return values(name, rows * columns).reshape(rows, columns) * scale


def norm(x, name):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * (1.0 + values(name, x.shape[-1]) / 8)


def linear(x, name, rows, biases, scale=0.25):
    y = x @ matrix(name + ".weight", rows, x.shape[-1], scale).T
    return y + values(name + ".bias", rows) / 4 if biases else y


def rope_factors(rotary_dim):
    """The shape of Llama 3's: 1 for fast rotations, 8 for slow ones."""
    i = np.arange(rotary_dim // 2)
    return np.clip(1.0 + (i - 4) * 0.75, 1.0, 8.0)


def frequencies(v):
    """(inverse frequencies, factor on cosine and sine)"""
    d = v["rotary_dim"]
    inverse = BASE ** (-np.arange(0, d, 2) / d)
    if "linear" in v:
        return inverse / v["linear"], 1.0
    if v.get("factors"):
        return inverse / rope_factors(d), 1.0
    if "yarn" in v:  # Peng et al. 2023, arXiv:2309.00071, with beta 32 and 1
        def dimension(rotations):
            return d * np.log(v["original_context"] / (rotations * 2 * np.pi)) / (2 * np.log(BASE))
        low, high = max(0, np.floor(dimension(32))), min(d - 1, np.ceil(dimension(1)))
        keep = 1 - np.clip((np.arange(d // 2) - low) / max(0.001, high - low), 0, 1)
        return inverse / v["yarn"] * (1 - keep) + inverse * keep, 1.0 + 0.1 * np.log(v["yarn"])
    return inverse, 1.0


def rotate(x, inverse, factor, rotary_dim):
    """x [tokens, heads, head_dim]; pairs (2i, 2i + 1)."""
    angle = np.arange(x.shape[0])[:, None, None] * inverse
    c, s = np.cos(angle) * factor, np.sin(angle) * factor
    out = x.copy()
    even, odd = x[..., 0:rotary_dim:2], x[..., 1:rotary_dim:2]
    out[..., 0:rotary_dim:2] = even * c - odd * s
    out[..., 1:rotary_dim:2] = even * s + odd * c
    return out


def log_probabilities(ids, v):
    d, biases = v["head_dim"], v.get("biases", False)
    inverse, factor = frequencies(v)
    embedding = matrix("token_embd.weight", VOCABULARY, WIDTH, 1.0)
    x, tokens = embedding[ids], len(ids)
    for layer in range(LAYERS):
        p = f"blk.{layer}."
        y = norm(x, p + "attn_norm.weight")
        q = linear(y, p + "attn_q", HEADS * d, biases).reshape(tokens, HEADS, d)
        k = linear(y, p + "attn_k", KV_HEADS * d, biases).reshape(tokens, KV_HEADS, d)
        value = linear(y, p + "attn_v", KV_HEADS * d, biases).reshape(tokens, KV_HEADS, d)
        q, k = rotate(q, inverse, factor, v["rotary_dim"]), rotate(k, inverse, factor, v["rotary_dim"])
        out = np.zeros((tokens, HEADS, d))
        for h in range(HEADS):
            g = h // (HEADS // KV_HEADS)
            score = q[:, h] @ k[:, g].T / np.sqrt(d)
            score[np.triu_indices(tokens, 1)] = -np.inf
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, h] = weight / weight.sum(-1, keepdims=True) @ value[:, g]
        x = x + linear(out.reshape(tokens, HEADS * d), p + "attn_output", WIDTH, biases)
        y = norm(x, p + "ffn_norm.weight")
        gate, up = linear(y, p + "ffn_gate", HIDDEN, biases), linear(y, p + "ffn_up", HIDDEN, biases)
        x = x + linear(gate / (1 + np.exp(-gate)) * up, p + "ffn_down", WIDTH, biases)
    output = matrix("output.weight", VOCABULARY, WIDTH, 0.25) if v.get("untied") else embedding
    logits = norm(x, "output_norm.weight") @ output.T
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def main(out):
    ids = [int(i) for i in mix64(np.arange(48, dtype=np.uint64)) % np.uint64(VOCABULARY)]
    result = []
    for name, v in VARIANTS.items():
        lp = log_probabilities(ids, v)
        result.append(dict(
            name=name, **v, token_ids=ids,
            rope_factors=[float(f) for f in rope_factors(v["rotary_dim"])] if v.get("factors") else [],
            prompt_logprobs=[round(float(lp[i, ids[i + 1]]), 7) for i in range(len(ids) - 1)],
            last_logprobs=[round(float(x), 7) for x in lp[-1]]))
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r) for r in result) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
