"""The forward pass of every architecture that Octavo runs, in float64 with numpy, from the definitions of their authors:
what make_tiny_models.py and compare_tiny_models.py hold the product against. Shares no code with it.

A model is anything with `architecture`, `key(suffix, default)`, the metadata below the architecture's prefix, and
`tensor(name)`, an array of float64 or None ([rows, columns] for matrices), with the names that GGUF files use.
"""
import math

import numpy as np


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * weight + bias


def silu(z):
    return z / (1 + np.exp(-z))


def gelu(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def soft_cap(x, cap):
    return cap * np.tanh(x / cap) if cap else x


class Transformer:
    def __init__(self, model, context_limit=None):
        """context_limit: what LongRoPE chooses its factors by; by default the whole context length."""
        self.model, self.architecture = model, model.architecture
        key = model.key
        self.layers, self.width = key("block_count"), key("embedding_length")
        self.heads = key("attention.head_count")
        self.kv_heads = key("attention.head_count_kv", self.heads)
        self.head_dim = key("attention.key_length", self.width // self.heads)
        self.rotary_dim = key("rope.dimension_count", self.head_dim)
        self.context_length = key("context_length")
        self.context_limit = context_limit or self.context_length
        self.is_gemma = self.architecture in ("gemma", "gemma2", "gemma3")
        self.epsilon = key("attention.layer_norm_epsilon" if self.architecture == "gpt2" else "attention.layer_norm_rms_epsilon")
        self.window = key("attention.sliding_window", 4096 if self.architecture == "gemma2" else 0)
        self.period = key("attention.sliding_window_pattern", {"gemma2": 2, "gemma3": 6}.get(self.architecture, 0))
        self.score_cap = key("attn_logit_softcapping", 50.0) if self.architecture == "gemma2" else 0.0
        self.logit_cap = key("final_logit_softcapping", 30.0 if self.architecture == "gemma2" else 0.0)
        by_width = self.layers == {"gemma2": 46, "gemma3": 62}.get(self.architecture)
        self.scale = key("attention.scale", 1 / math.sqrt(self.width / self.heads if by_width else self.head_dim))

    def is_local(self, layer):
        return self.window > 0 and (self.period == 0 or layer % self.period < self.period - 1)

    def linear(self, x, name, rows=slice(None)):
        y = x @ self.model.tensor(name + ".weight")[rows].T
        bias = self.model.tensor(name + ".bias")
        return y if bias is None else y + bias[rows]

    def norm(self, x, name):
        weight = self.model.tensor(name + ".weight")
        if self.architecture == "gpt2":
            return layer_norm(x, weight, self.model.tensor(name + ".bias"), self.epsilon)
        return rms_norm(x, weight, self.epsilon)

    def frequencies(self, layer):
        """(inverse frequencies, factor on cosine and sine)"""
        key, d = self.model.key, self.rotary_dim
        exponents = -np.arange(0, d, 2) / d
        base = key("rope.freq_base", 10000.0)
        if self.is_local(layer):
            local_base = key("rope.freq_base_swa", 10000.0 if self.architecture == "gemma3" else base)
            if self.architecture == "gemma3":  # stretched positions are for the global layers only
                return local_base**exponents, 1.0
            base = local_base
        inverse = base**exponents
        is_long = self.context_limit > key("rope.scaling.original_context_length", self.context_length)
        divisors = self.model.tensor("rope_factors_long.weight" if is_long else "rope_factors_short.weight")
        if divisors is not None:  # Ding et al. 2024, arXiv:2402.13753
            return inverse / divisors, key("rope.scaling.attn_factor", 1.0)
        factor = key("rope.scaling.factor", 1.0)
        if key("rope.scaling.type", "") == "linear":
            inverse = inverse / factor
        if key("rope.scaling.type", "") == "yarn":  # Peng et al. 2023, arXiv:2309.00071, with beta 32 and 1
            def pair(rotations):
                return d * math.log(key("rope.scaling.original_context_length") / (rotations * 2 * math.pi)) / (2 * math.log(base))
            first, last = max(0, math.floor(pair(32))), min(d - 1, math.ceil(pair(1)))
            kept = 1 - np.clip((np.arange(d // 2) - first) / max(0.001, last - first), 0, 1)
            return inverse / factor * (1 - kept) + inverse * kept, 0.1 * math.log(factor) + 1.0
        return inverse, 1.0

    def rotate(self, x, layer):
        """x [tokens, heads, head_dim]"""
        if self.architecture == "gpt2":
            return x
        inverse, factor = self.frequencies(layer)
        angle = np.arange(x.shape[0])[:, None, None] * inverse
        cosine, sine = np.cos(angle) * factor, np.sin(angle) * factor
        half, out = self.rotary_dim // 2, x.copy()
        if self.architecture == "llama":
            first, second = slice(0, self.rotary_dim, 2), slice(1, self.rotary_dim, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        out[..., first] = x[..., first] * cosine - x[..., second] * sine
        out[..., second] = x[..., first] * sine + x[..., second] * cosine
        return out

    def attention(self, x, layer):
        prefix, tokens = f"blk.{layer}.", len(x)
        q_rows, kv_rows = self.heads * self.head_dim, self.kv_heads * self.head_dim
        if self.model.tensor(prefix + "attn_qkv.weight") is not None:
            packed = prefix + "attn_qkv"
            q, k, v = (self.linear(x, packed, slice(first, first + rows)) for first, rows in
                       ((0, q_rows), (q_rows, kv_rows), (q_rows + kv_rows, kv_rows)))
        else:
            q, k, v = (self.linear(x, prefix + name) for name in ("attn_q", "attn_k", "attn_v"))
        q, k, v = (y.reshape(tokens, -1, self.head_dim) for y in (q, k, v))
        if self.architecture in ("qwen3", "gemma3"):
            q = rms_norm(q, self.model.tensor(prefix + "attn_q_norm.weight"), self.epsilon)
            k = rms_norm(k, self.model.tensor(prefix + "attn_k_norm.weight"), self.epsilon)
        q, k = self.rotate(q, layer), self.rotate(k, layer)
        distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
        hidden = distance < 0
        if self.is_local(layer):
            hidden |= distance >= self.window
        out = np.zeros((tokens, self.heads, self.head_dim))
        for head in range(self.heads):
            kv_head = head // (self.heads // self.kv_heads)
            score = soft_cap(q[:, head] @ k[:, kv_head].T * self.scale, self.score_cap)
            score[hidden] = -np.inf
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, head] = weight / weight.sum(-1, keepdims=True) @ v[:, kv_head]
        return self.linear(out.reshape(tokens, q_rows), prefix + "attn_output")

    def feed_forward(self, x, layer):
        prefix = f"blk.{layer}."
        if self.architecture == "gpt2":
            inner = gelu(self.linear(x, prefix + "ffn_up"))
        elif self.architecture == "phi3":
            both = self.linear(x, prefix + "ffn_up")
            hidden = both.shape[-1] // 2
            inner = silu(both[:, :hidden]) * both[:, hidden:]
        else:
            gate = self.linear(x, prefix + "ffn_gate")
            inner = (gelu(gate) if self.is_gemma else silu(gate)) * self.linear(x, prefix + "ffn_up")
        return self.linear(inner, prefix + "ffn_down")

    def log_probabilities(self, token_ids):
        """[tokens, vocabulary]"""
        model = self.model
        embedding = model.tensor("token_embd.weight")
        x = embedding[token_ids]
        if self.is_gemma:
            x = x * np.float64(np.sqrt(np.float32(self.width)))
        if self.architecture == "gpt2":
            x = x + model.tensor("position_embd.weight")[:len(token_ids)]
        for layer in range(self.layers):
            prefix = f"blk.{layer}."
            added = self.attention(self.norm(x, prefix + "attn_norm"), layer)
            if self.architecture in ("gemma2", "gemma3"):
                added = self.norm(added, prefix + "post_attention_norm")
            x = x + added
            added = self.feed_forward(self.norm(x, prefix + "ffn_norm"), layer)
            if self.architecture in ("gemma2", "gemma3"):
                added = self.norm(added, prefix + "post_ffw_norm")
            x = x + added
        output = model.tensor("output.weight")
        if output is None or self.architecture in ("gemma", "gemma2"):
            output = embedding
        logits = soft_cap(self.norm(x, "output_norm") @ output.T, self.logit_cap)
        logits = logits - logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))
