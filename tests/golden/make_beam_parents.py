#!/usr/bin/env python3
"""Which beam continued which, in real beam searches: the default model, its golden prompts, widths 2, 4 and 6.

    python make_beam_parents.py MODEL.gguf smollm2-135m-instruct-q4_1.json beam_parents.json

A search without end: end-of-text tokens are barred, for the paper's workload fixes output lengths (Kwon et al. 2023,
section 6.1). Each step keeps the best `width` of all continuations by cumulative log-probability,
best first. parents[step] is a string of digits: beam i of the step continues beam parents[step][i] of the step before.
Computed in float32 from the dequantised weights; needs gguf and numpy. About ten minutes on two cores.
"""
import json
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

PROMPTS = "capital", "haiku", "two-turns", "code", "raw-completion", "single-token"
WIDTHS = 2, 4, 6
STEPS = 512


class Llama:
    """One prompt, then a batch of beams. keys, values: [layer][beam, token, head, width of a head]."""

    def __init__(self, path):
        reader = GGUFReader(path)
        meta = {name: field.contents() for name, field in reader.fields.items()}
        self.w = {}
        for tensor in reader.tensors:
            flat = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            self.w[tensor.name] = flat.reshape(tuple(int(n) for n in reversed(tensor.shape)))
        of = lambda name: meta["llama." + name]
        self.layers, self.width = of("block_count"), of("embedding_length")
        self.heads, self.kv_heads = of("attention.head_count"), of("attention.head_count_kv")
        self.head = self.width // self.heads
        self.barred = [i for i, kind in enumerate(meta["tokenizer.ggml.token_type"]) if kind == 3]  # control tokens
        self.epsilon, self.base = of("attention.layer_norm_rms_epsilon"), of("rope.freq_base")

    def begin(self, capacity, beams):
        shape = (beams, self.kv_heads, capacity, self.head)
        self.keys = [np.zeros(shape, np.float32) for _ in range(self.layers)]
        self.values = [np.zeros(shape, np.float32) for _ in range(self.layers)]
        self.length = 0

    def reorder(self, parents):
        if parents == list(range(len(parents))):
            return
        for cache in self.keys + self.values:
            cache[:, :, : self.length] = cache[parents, :, : self.length]

    def norm(self, x, gain):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * gain

    def rope(self, x, position):
        angle = position * self.base ** (-np.arange(0, self.head, 2) / self.head)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out, even, odd = np.empty_like(x), x[..., 0::2], x[..., 1::2]
        out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return out

    def step(self, tokens):
        """One token for each beam; log-probabilities of the next."""
        w, beams, at = self.w, len(tokens), self.length
        x = w["token_embd.weight"][tokens]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = self.norm(x, w[name + "attn_norm.weight"])
            query = self.rope((y @ w[name + "attn_q.weight"].T).reshape(beams, self.heads, self.head), at)
            self.keys[layer][:, :, at] = self.rope(
                (y @ w[name + "attn_k.weight"].T).reshape(beams, self.kv_heads, self.head), at)
            self.values[layer][:, :, at] = (y @ w[name + "attn_v.weight"].T).reshape(beams, self.kv_heads, self.head)
            grouped = query.reshape(beams, self.kv_heads, -1, self.head)
            score = grouped @ self.keys[layer][:, :, : at + 1].swapaxes(-1, -2) / np.float32(np.sqrt(self.head))
            score = np.exp(score - score.max(-1, keepdims=True))
            score /= score.sum(-1, keepdims=True)
            mixed = (score @ self.values[layer][:, :, : at + 1]).reshape(beams, self.width)
            x = x + mixed @ w[name + "attn_output.weight"].T
            y = self.norm(x, w[name + "ffn_norm.weight"])
            gate, up = y @ w[name + "ffn_gate.weight"].T, y @ w[name + "ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w[name + "ffn_down.weight"].T
        self.length += 1
        logits = self.norm(x, w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def search(model, prompt, width):
    model.begin(len(prompt) + STEPS, width)
    for token in prompt:
        logprobs = model.step([token] * width)
    scores = np.array([0.0] + [-np.inf] * (width - 1))  # before the first step all beams are one
    parents_of_steps = []
    for _ in range(STEPS):
        logprobs[:, model.barred] = -np.inf
        best = np.argpartition(-logprobs, width, axis=-1)[:, :width]
        found = sorted(((-(scores[beam] + float(logprobs[beam, token])), beam, int(token))
                        for beam in range(width) for token in best[beam]))[:width]
        parents = [beam for _, beam, _ in found]
        scores = np.array([-score for score, _, _ in found])
        parents_of_steps.append("".join(map(str, parents)))
        model.reorder(parents)
        logprobs = model.step([token for _, _, token in found])
    return parents_of_steps, scores


def main(model_path, prompts_path, out_path):
    model = Llama(model_path)
    prompts = {prompt["name"]: prompt["token_ids"] for prompt in json.load(open(prompts_path))}
    searches = []
    for width in WIDTHS:
        for name in PROMPTS:
            searches.append({"width": width, "prompt": name, "parents": search(model, prompts[name], width)[0]})
            print(width, name, flush=True)
    rows = ",\n".join(json.dumps(one, separators=(",", ":")) for one in searches)
    open(out_path, "w").write(f'{{"made_by":"tests/golden/make_beam_parents.py","searches":[\n{rows}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:4])
