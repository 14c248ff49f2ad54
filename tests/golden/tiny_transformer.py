"""The forward pass of every architecture that Octavo runs, in float64 with numpy, from the definitions of their authors:
what make_tiny_models.py and compare_tiny_models.py hold the product against. Shares no code with it.

A model is anything with `architecture`, `key(suffix, default)`, the metadata below the architecture's prefix, and
`tensor(name)`, an array of float64 or None ([rows, columns] for matrices), with the names that GGUF files use.
"""
import math

import numpy as np
from tiny_shapes import (LATENT, LAYER_NORMS, NAMED_BY_ATTENTION, POST_NORMS, RMS_NORMS_WITH_BIASES, SHORT_CONVOLUTIONS, STATE_SPACES,
                         WITHOUT_INPUT_NORMS, WITHOUT_NORM_BIASES)


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * weight + bias


def silu(z):
    return z / (1 + np.exp(-z))


def gelu(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def clamped_swiglu(gate, up):
    """OpenAI 2025, arXiv:2508.10925"""
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def largest(values, count):
    """Places of the largest, best first; of equals the first."""
    return np.argsort(-values, kind="stable")[:count]


def soft_cap(x, cap):
    return cap * np.tanh(x / cap) if cap else x


# Which pairs rotate.
NEIGHBOURS = ("cohere2", "command-r", "ernie4_5", "glm4", "granite", "granitehybrid", "granitemoe", "llama", "llama4", "minicpm", "mistral3",
              "muse-glimmer", "smollm3") + LATENT
PERIODS = {"cohere2": 4, "exaone4": 4, "gemma2": 2, "gemma3": 6, "gpt-oss": 2, "llama4": 4, "muse-glimmer": 4, "olmo2": 4}


class Transformer:
    def __init__(self, model, context_limit=None, kept_type=np.float64):
        """context_limit: what LongRoPE chooses its factors by; by default the whole context length. kept_type: what keys and values
        are rounded to."""
        self.kept_type = kept_type
        self.model, self.architecture = model, model.architecture
        key = model.key
        self.layers, self.width = key("block_count") - key("nextn_predict_layers", 0), key("embedding_length")
        self.heads = np.max(key("attention.head_count"))  # of a list with a number for each layer, where 0 means none
        self.all_kv_heads = key("attention.head_count_kv", self.heads)
        self.head_dim = key("attention.key_length", self.width // self.heads)
        self.rotary_dim = key("rope.dimension_count", self.head_dim)
        self.context_length = key("context_length")
        self.context_limit = context_limit or self.context_length
        self.is_gemma = self.architecture in ("gemma", "gemma2", "gemma3", "gemma4")
        self.has_layer_norms = self.architecture in LAYER_NORMS
        self.has_post_norms = self.architecture in POST_NORMS
        self.epsilon = key("attention.layer_norm_epsilon" if self.has_layer_norms else "attention.layer_norm_rms_epsilon",
                           key("attention.layer_norm_epsilon"))
        has_usual_window = self.architecture == "gemma2" or (self.architecture == "exaone4" and self.layers == 64)
        self.window = key("attention.sliding_window", 4096 if has_usual_window else 0)
        self.chunk = 0  # llama4: no key of a file says how long, only that there are none
        if self.architecture == "llama4" and key("attention.sliding_window", 8192) > 0:
            self.window = self.chunk = getattr(model, "chunk", 8192)
        self.period = key("attention.sliding_window_pattern", PERIODS.get(self.architecture, 0))
        self.score_cap = key("attn_logit_softcapping", 50.0) if self.architecture == "gemma2" else 0.0
        self.logit_cap = key("final_logit_softcapping", 30.0 if self.architecture == "gemma2" else 0.0)
        factors = {"minicpm": (12.0, 1.4 / math.sqrt(self.layers), self.width / 256)}.get(self.architecture, (0.0, 0.0, 1.0))
        self.embedding_factor = key("embedding_scale", factors[0]) or 1.0
        self.branch_factor = key("residual_scale", factors[1]) or 1.0
        self.logit_divisor = key("logit_scale", factors[2]) or 1.0
        if self.architecture in ("cohere2", "command-r", "muse-glimmer"):
            self.logit_divisor = 1 / self.logit_divisor
        by_width = self.layers == {"gemma2": 46, "gemma3": 62}.get(self.architecture)
        usual = 1 / math.sqrt(self.width / self.heads if by_width else self.head_dim)
        if self.architecture == "gemma4":
            usual = 1.0
        self.scale = key("attention.scale", usual) or usual
        self.num_owners = self.layers - key("attention.shared_kv_layers", 0)  # the other layers read theirs
        self.keys_and_values = {}
        self.first_position = 0

    def kv_heads(self, layer):
        return self.all_kv_heads[layer] if isinstance(self.all_kv_heads, list) else self.all_kv_heads

    def head_dim_of(self, layer):
        return self.model.key("attention.key_length_swa", self.head_dim) if self.is_local(layer) else self.head_dim

    def rotary_dim_of(self, layer):
        return self.model.key("rope.dimension_count_swa", self.rotary_dim) if self.is_local(layer) else self.rotary_dim

    def is_local(self, layer):
        if isinstance(self.period, list):
            return self.window > 0 and self.period[layer]
        return self.window > 0 and (self.period == 0 or layer % self.period < self.period - 1)

    def kept(self, x):
        return x.astype(self.kept_type).astype(np.float64)

    def linear(self, x, name, rows=slice(None)):
        y = x @ self.model.tensor(name + ".weight")[rows].T
        bias = self.model.tensor(name + ".bias")
        return y if bias is None else y + bias[rows]

    def norm(self, x, name):
        weight = self.model.tensor(name + ".weight")
        if weight is None:
            weight = self.model.tensor(name)
        if self.architecture in WITHOUT_NORM_BIASES:
            return layer_norm(x, weight, 0.0, self.epsilon)
        if self.has_layer_norms:
            return layer_norm(x, weight, self.model.tensor(name + ".bias"), self.epsilon)
        if self.architecture in RMS_NORMS_WITH_BIASES:
            return rms_norm(x, weight, self.epsilon) + self.model.tensor(name + ".bias")
        return rms_norm(x, weight, self.epsilon)

    def post_norm(self, x, name):
        if self.architecture == "muse-glimmer":
            return rms_norm(x, self.model.tensor(name + ".weight"), 1e-8)
        return self.norm(x, name)

    def head_norm(self, x, name):
        """x [tokens, heads, head_dim]; each head by itself, or whole rows, or as it is."""
        weight = self.model.tensor(name + ".weight")
        if weight is None:
            return x
        if self.architecture in ("command-r", "stablelm"):  # [heads, head_dim]
            return layer_norm(x, weight, 0.0, self.epsilon)
        if self.architecture in ("olmoe", "olmo2"):
            return rms_norm(x.reshape(len(x), -1), weight, self.epsilon).reshape(x.shape)
        return rms_norm(x, weight, self.epsilon)

    def frequencies(self, layer):
        """(inverse frequencies, factor on cosine and sine)"""
        key, d = self.model.key, self.rotary_dim_of(layer)
        exponents = -np.arange(0, d, 2) / d
        base = key("rope.freq_base", 10000.0)
        if self.architecture == "hunyuan-dense" and key("rope.scaling.alpha", 0.0):
            base *= key("rope.scaling.alpha") ** (self.head_dim / (self.head_dim - 2))
        if self.is_local(layer):
            is_apart = self.architecture in ("gemma3", "gemma4", "olmo2")
            local_base = key("rope.freq_base_swa", 10000.0 if is_apart and self.is_gemma else base)
            if is_apart:  # stretched positions are for the global layers only
                return local_base**exponents, 1.0
            base = local_base
        inverse = base**exponents
        # gemma4: proportional, pairs lie as far apart as if the whole head turned; others as llama 3.
        if self.model.tensor("rope_freqs.weight") is not None:
            return inverse / self.model.tensor("rope_freqs.weight"), 1.0
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
            if self.architecture in LATENT and key("rope.scaling.yarn_log_multiplier", 0.0):
                return inverse / factor * (1 - kept) + inverse * kept, 1.0  # the scores grow instead
            dampened = 0.1 * key("rope.scaling.yarn_log_multiplier", 0.0) * math.log(factor) + 1.0
            return inverse / factor * (1 - kept) + inverse * kept, (0.1 * math.log(factor) + 1.0) / dampened
        return inverse, 1.0

    def rotates(self, layer):
        if self.architecture in ("granite", "granitehybrid"):
            return self.model.key("rope.scaling.finetuned", True)
        if self.architecture in ("gpt2", "nemotron_h", "nemotron_h_moe", "opt"):
            return False
        if self.architecture in ("cohere2", "exaone4", "muse-glimmer"):
            return self.window == 0 or self.is_local(layer)
        if self.architecture == "smollm3" or self.chunk:
            return (layer + 1) % 4 != 0
        return True

    def rotate(self, x, layer):
        """x [tokens, heads, head_dim]"""
        if not self.rotates(layer):
            return x
        inverse, factor = self.frequencies(layer)
        angle = (self.first_position + np.arange(x.shape[0]))[:, None, None] * inverse
        cosine, sine = np.cos(angle) * factor, np.sin(angle) * factor
        half, out = inverse.shape[0], x.copy()
        if self.architecture in NEIGHBOURS:
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        out[..., first] = x[..., first] * cosine - x[..., second] * sine
        out[..., second] = x[..., first] * sine + x[..., second] * cosine
        return out

    def gemma4_projections(self, x, layer):
        """Queries; keys and values of this layer, or of the last one before the shared layers that has a window if this has."""
        prefix, head_dim = f"blk.{layer}.", self.head_dim_of(layer)

        def heads(name):
            return self.linear(x, prefix + name).reshape(len(x), -1, head_dim)

        q = self.rotate(rms_norm(heads("attn_q"), self.model.tensor(prefix + "attn_q_norm.weight"), self.epsilon), layer)
        if layer < self.num_owners:
            k = raw = heads("attn_k")
            v = raw if self.model.tensor(prefix + "attn_v.weight") is None else heads("attn_v")
            k = self.rotate(rms_norm(k, self.model.tensor(prefix + "attn_k_norm.weight"), self.epsilon), layer)
            self.keys_and_values[self.is_local(layer)] = k, rms_norm(v, 1.0, self.epsilon)
        return q, *self.keys_and_values[self.is_local(layer)], None

    def projections(self, x, layer):
        """Queries, keys and values of each head, and the gate of what attention gives, or None."""
        prefix, tokens = f"blk.{layer}.", len(x)
        q_rows, kv_rows = self.heads * self.head_dim, self.kv_heads(layer) * self.head_dim
        if self.model.tensor(prefix + "attn_qkv.weight") is not None:
            packed = prefix + "attn_qkv"
            q, k, v = (self.linear(x, packed, slice(first, first + rows)) for first, rows in
                       ((0, q_rows), (q_rows, kv_rows), (q_rows + kv_rows, kv_rows)))
        else:
            q, k, v = (self.linear(x, prefix + name) for name in ("attn_q", "attn_k", "attn_v"))
        gate = None
        if self.architecture in ("qwen35", "qwen35moe", "qwen3next"):  # of each head the query, then the gate
            q, gate = np.split(q.reshape(tokens, self.heads, 2 * self.head_dim), 2, -1)
            q, gate = q.reshape(tokens, q_rows), sigmoid(gate)
        if self.architecture == "muse-glimmer":
            gate = sigmoid(self.linear(x, prefix + "attn_gate")).reshape(tokens, self.heads, -1)
        q, k, v = (y.reshape(tokens, -1, self.head_dim) for y in (q, k, v))
        if self.architecture == "llama4":
            q, k = self.rotate(q, layer), self.rotate(k, layer)
            if self.rotates(layer) and self.model.key("expert_count") != 128:
                q, k = rms_norm(q, 1.0, self.epsilon), rms_norm(k, 1.0, self.epsilon)
            return q, k, v, gate
        if self.architecture == "hunyuan-dense":  # rotated first
            return self.head_norm(self.rotate(q, layer), prefix + "attn_q_norm"), self.head_norm(self.rotate(k, layer), prefix + "attn_k_norm"), v, gate
        q, k = self.head_norm(q, prefix + "attn_q_norm"), self.head_norm(k, prefix + "attn_k_norm")
        return self.rotate(q, layer), self.rotate(k, layer), v, gate

    def growth_of_queries(self, tokens):
        key = self.model.key
        length = key("attention.temperature_length", 0) or key("rope.scaling.original_context_length", self.context_length)
        return 1 + key("attention.temperature_scale", 0.0) * np.log(1 + np.arange(tokens) // length)

    def attention(self, x, layer):
        prefix, tokens = f"blk.{layer}.", len(x)
        q, k, v, gate = (self.gemma4_projections if self.architecture == "gemma4" else self.projections)(x, layer)
        k, v = self.kept(k), self.kept(v)
        if self.architecture == "mistral3":  # long contexts must not wash scores out
            q = q * self.growth_of_queries(tokens)[:, None, None]
        if self.chunk and not self.rotates(layer):  # Nakanishi 2025, arXiv:2501.19399
            q = q * (1 + 0.1 * np.log(1 + (np.arange(tokens) + 1) // self.chunk))[:, None, None]
        distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
        hidden = distance < 0
        if self.is_local(layer) and self.chunk:
            hidden |= np.arange(tokens)[None, :] < np.arange(tokens)[:, None] // self.chunk * self.chunk
        elif self.is_local(layer):
            hidden |= distance >= self.window
        out = np.zeros_like(q)
        for head in range(self.heads):
            kv_head = head // (self.heads // self.kv_heads(layer))
            score = soft_cap(q[:, head] @ k[:, kv_head].T * self.scale, self.score_cap)
            score[hidden] = -np.inf
            sinks = self.model.tensor(prefix + "attn_sinks.weight")
            if sinks is not None:  # one more position, whose value is zero
                score = np.concatenate([score, np.full((tokens, 1), sinks[head])], -1)
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, head] = (weight / weight.sum(-1, keepdims=True))[:, :tokens] @ v[:, kv_head]
        if gate is not None:
            out = out * gate
        return self.linear(out.reshape(tokens, -1), prefix + "attn_output")

    def latent_attention(self, x, layer):
        """DeepSeek-AI 2024, arXiv:2405.04434: keys and values of all heads are made from what is kept of a token."""
        key, tensor, prefix, tokens = self.model.key, self.model.tensor, f"blk.{layer}.", len(x)
        size, rotary = key("attention.kv_lora_rank"), key("rope.dimension_count")
        head_dim = key("attention.key_length_mla", key("attention.key_length"))
        value_dim = key("attention.value_length_mla", key("attention.value_length"))
        unrotated = head_dim - rotary
        if key("attention.q_lora_rank", 0):
            q = self.linear(self.norm(self.linear(x, prefix + "attn_q_a"), prefix + "attn_q_a_norm"), prefix + "attn_q_b")
        else:
            q = self.linear(x, prefix + "attn_q")
        q = q.reshape(tokens, self.heads, head_dim)
        kept = self.linear(x, prefix + "attn_kv_a_mqa")
        latent = self.kept(self.norm(kept[:, :size], prefix + "attn_kv_a_norm"))
        rotated_key = self.kept(self.rotate(kept[:, None, size:], layer)[:, 0])
        if tensor(prefix + "attn_kv_b.weight") is None:
            key_parts = tensor(prefix + "attn_k_b.weight").reshape(self.heads, size, unrotated)
            value_parts = tensor(prefix + "attn_v_b.weight").reshape(self.heads, value_dim, size)
        else:
            both = tensor(prefix + "attn_kv_b.weight").reshape(self.heads, unrotated + value_dim, size)
            key_parts, value_parts = both[:, :unrotated].transpose(0, 2, 1), both[:, unrotated:]
        scale = 1 / math.sqrt(head_dim)
        if key("rope.scaling.type", "") == "yarn":
            scale *= (1 + key("rope.scaling.yarn_log_multiplier", 0.0) * math.log(key("rope.scaling.factor"))) ** 2
        scales = scale * self.growth_of_queries(tokens)
        rotated_query = self.rotate(q[..., unrotated:], layer)
        hidden = np.arange(tokens)[:, None] < np.arange(tokens)[None, :]
        out = np.zeros((tokens, self.heads, value_dim))
        for head in range(self.heads):
            keys = np.concatenate([latent @ key_parts[head], rotated_key], -1)
            queries = np.concatenate([q[:, head, :unrotated], rotated_query[:, head]], -1)
            score = queries @ keys.T * scales[:, None]
            score[hidden] = -np.inf
            out[:, head] = softmax(score) @ (latent @ value_parts[head].T)
        return self.linear(out.reshape(tokens, -1), prefix + "attn_output")

    def has_feed_forward(self, layer):
        return not self.has_one_part or self.model.key("feed_forward_length")[layer] > 0

    @property
    def has_one_part(self):
        return self.architecture in ("nemotron_h", "nemotron_h_moe")

    def mixers(self, layer):
        """What is added to the rows before the feed-forward layer, all from the same rows."""
        if self.architecture in LATENT:
            return [self.latent_attention]
        if self.architecture == "falcon-h1":
            return [self.attention, self.state_space]
        if self.architecture in SHORT_CONVOLUTIONS + STATE_SPACES:
            if self.has_one_part and self.has_feed_forward(layer):
                return []
            if self.model.key("attention.head_count_kv")[layer] > 0:
                return [self.attention]
            return [self.state_space if self.architecture in STATE_SPACES else self.short_convolution]
        return [self.delta_net if self.is_recurrent(layer) else self.attention]

    def convolved(self, inputs, name):
        """Along the tokens, each channel by itself; what was before the first token is zero."""
        taps, tokens = self.model.tensor(name + ".weight"), len(inputs)
        width = taps.shape[1]
        before = np.concatenate([np.zeros((width - 1, inputs.shape[1])), inputs])
        sums = sum(taps[:, j] * before[j:j + tokens] for j in range(width))
        bias = self.model.tensor(name + ".bias")
        return sums if bias is None else sums + bias

    def short_convolution(self, x, layer):
        prefix = f"blk.{layer}.shortconv."
        before, behind, inputs = np.split(self.linear(x, prefix + "in_proj"), 3, -1)
        return self.linear(behind * self.convolved(before * inputs, prefix + "conv"), prefix + "out_proj")

    def state_space(self, x, layer):
        """Dao & Gu 2024, arXiv:2405.21060, one token after the other."""
        key, tensor, prefix, tokens = self.model.key, self.model.tensor, f"blk.{layer}.", len(x)
        heads, groups, size = key("ssm.time_step_rank"), key("ssm.group_count"), key("ssm.state_size")
        columns = key("ssm.inner_size")
        channels = columns + 2 * groups * size
        gate, inputs, time = np.split(self.linear(x, prefix + "ssm_in"), [columns, columns + channels], -1)
        inputs = silu(self.convolved(inputs, prefix + "ssm_conv1d"))
        values = inputs[:, :columns].reshape(tokens, heads, -1)
        writes, reads = (y.reshape(tokens, groups, size) for y in np.split(inputs[:, columns:], 2, -1))
        time = np.log1p(np.exp(time + tensor(prefix + "ssm_dt.bias")))
        decay = np.exp(time * tensor(prefix + "ssm_a")[:, 0])
        out = np.zeros_like(values)
        for head in range(heads):
            group, state = head * groups // heads, np.zeros((size, values.shape[-1]))
            for t in range(tokens):
                state = decay[t, head] * state + np.outer(writes[t, group], time[t, head] * values[t, head])
                out[t, head] = reads[t, group] @ state + tensor(prefix + "ssm_d")[head, 0] * values[t, head]
        out = out.reshape(tokens, columns) * silu(gate)
        weight = tensor(prefix + "ssm_norm.weight")  # of each group by itself
        if weight is not None:
            out = rms_norm(out.reshape(tokens, groups, -1), weight, self.epsilon).reshape(tokens, columns)
        return self.linear(out, prefix + "ssm_out")

    def is_recurrent(self, layer):
        if self.architecture not in ("qwen35", "qwen35moe", "qwen3next"):
            return False
        listed = self.model.key("attention.recurrent_layers")
        if listed is not None:
            return bool(listed[layer])
        return (layer + 1) % self.model.key("full_attention_interval", 4) != 0

    def delta_net_inputs(self, x, prefix):
        """Of all tokens: what is convolved, the gate, beta and alpha."""
        key, tensor, tokens = self.model.key, self.model.tensor, len(x)
        key_heads, heads = key("ssm.group_count"), key("ssm.time_step_rank")
        key_dim, columns = key("ssm.state_size"), key("ssm.inner_size")
        if tensor(prefix + "ssm_in.weight") is None:
            inputs, gate = self.linear(x, prefix + "attn_qkv"), self.linear(x, prefix + "attn_gate")
        else:  # by key head
            q, k, v, z = np.split(self.linear(x, prefix + "ssm_in").reshape(tokens, key_heads, -1),
                                  np.cumsum([key_dim, key_dim, columns // key_heads]), -1)
            inputs, gate = np.concatenate([y.reshape(tokens, -1) for y in (q, k, v)], -1), z.reshape(tokens, -1)
        if tensor(prefix + "ssm_ba.weight") is None:
            return inputs, gate, self.linear(x, prefix + "ssm_beta"), self.linear(x, prefix + "ssm_alpha")
        beta, alpha = np.split(self.linear(x, prefix + "ssm_ba").reshape(tokens, key_heads, -1), 2, -1)
        return inputs, gate, beta.reshape(tokens, heads), alpha.reshape(tokens, heads)

    def delta_net(self, x, layer):
        """Yang et al. 2024, arXiv:2412.06464, one token after the other."""
        key, tensor, prefix, tokens = self.model.key, self.model.tensor, f"blk.{layer}.", len(x)
        key_heads, heads, key_dim = key("ssm.group_count"), key("ssm.time_step_rank"), key("ssm.state_size")
        value_dim = key("ssm.inner_size") // heads
        inputs, gate, beta, alpha = self.delta_net_inputs(x, prefix)
        convolved = silu(self.convolved(inputs, prefix + "ssm_conv1d"))
        q, k, v = np.split(convolved, [key_heads * key_dim, 2 * key_heads * key_dim], -1)

        def unit(y):
            y = y.reshape(tokens, key_heads, key_dim)
            return y / np.sqrt((y * y).sum(-1, keepdims=True) + self.epsilon)

        q, k, v = unit(q) / math.sqrt(key_dim), unit(k), v.reshape(tokens, heads, value_dim)
        beta = sigmoid(beta)
        decay = np.exp(tensor(prefix + "ssm_a") * np.log1p(np.exp(alpha + tensor(prefix + "ssm_dt.bias"))))
        out = np.zeros((tokens, heads, value_dim))
        for head in range(heads):
            of_key = head // (heads // key_heads) if self.architecture == "qwen3next" else head % key_heads
            state = np.zeros((key_dim, value_dim))
            for t in range(tokens):
                state = state * decay[t, head]
                error = beta[t, head] * (v[t, head] - state.T @ k[t, of_key])
                state = state + np.outer(k[t, of_key], error)
                out[t, head] = state.T @ q[t, of_key]
        out = rms_norm(out, tensor(prefix + "ssm_norm.weight"), self.epsilon) * silu(gate).reshape(out.shape)
        return self.linear(out.reshape(tokens, -1), prefix + "ssm_out")

    def choose_experts(self, x, prefix):
        """For one row: numbers of the experts, best first, and their weights."""
        key = self.model.key
        scores = x @ self.model.tensor(prefix + "ffn_gate_inp.weight").T
        bias = self.model.tensor(prefix + "ffn_gate_inp.bias")
        if bias is not None:
            scores = scores + bias
        gating = key("expert_gating_func", {"glm4moe": 2, "gpt-oss": 3, "lfm2moe": 2, "nemotron_h_moe": 2}.get(self.architecture, 1))
        if self.architecture == "llama4":
            chosen = largest(scores, key("expert_used_count"))
            return chosen, sigmoid(scores[chosen])
        probabilities = {1: softmax, 2: sigmoid, 3: lambda z: z}[gating](scores)
        values = probabilities.copy()
        if self.model.tensor(prefix + "exp_probs_b.bias") is not None:
            values += self.model.tensor(prefix + "exp_probs_b.bias")
        groups = key("expert_group_count", 0)
        if groups > 1:
            members = values.reshape(groups, -1)
            worth = np.sort(members, -1)[:, -2:].sum(-1)
            kept = largest(worth, key("expert_group_used_count"))
            members[[g for g in range(groups) if g not in kept]] = -np.inf
        chosen = largest(values, key("expert_used_count"))
        weights = probabilities[chosen]
        if gating == 3:
            weights = softmax(weights)
        always = self.architecture in ("gemma4", "granitehybrid", "granitemoe", "lfm2moe", "llama", "minicpm", "mistral3", "phimoe",
                                       "qwen35moe", "qwen3moe", "qwen3next")
        if key("expert_weights_norm", always):
            weights = weights / max(weights.sum(), 6.103515625e-5)
        return chosen, weights * (key("expert_weights_scale", 0.0) or 1.0)

    def experts(self, x, prefix, router_x=None):
        """router_x: where the router reads other rows than the experts."""
        router_x = x if router_x is None else router_x
        tensor, count = self.model.tensor, self.model.key("expert_count")

        def part(name):
            weight = tensor(prefix + name + ".weight")
            return None if weight is None else weight.reshape(count, -1, weight.shape[-1])

        both, down = part("ffn_gate_up_exps"), part("ffn_down_exps")
        gate, up = (part("ffn_gate_exps"), part("ffn_up_exps")) if both is None else np.split(both, 2, axis=1)
        if gate is None:
            return self.experts_without_gates(x, prefix, up, down)

        def bias(name, expert):
            values = tensor(prefix + name + ".bias")
            return 0.0 if values is None else values.reshape(count, -1)[expert]

        activation = gelu if self.is_gemma else silu
        scales = tensor(prefix + "ffn_down_exps.scale")
        out = np.zeros_like(x)
        for row in range(len(x)):
            for expert, weight in zip(*self.choose_experts(router_x[row], prefix)):
                weight = weight if scales is None else weight * scales[expert]
                read = x[row]
                if self.architecture == "llama4":
                    read, weight = weight * read, 1.0
                g = gate[expert] @ read + bias("ffn_gate_exps", expert)
                u = up[expert] @ read + bias("ffn_up_exps", expert)
                inner = clamped_swiglu(g, u) if self.architecture == "gpt-oss" else activation(g) * u
                out[row] += weight * (down[expert] @ inner + bias("ffn_down_exps", expert))
        if tensor(prefix + "ffn_gate_shexp.weight") is not None:
            inner = silu(self.linear(x, prefix + "ffn_gate_shexp")) * self.linear(x, prefix + "ffn_up_shexp")
            shared = self.linear(inner, prefix + "ffn_down_shexp")
            gate = tensor(prefix + "ffn_gate_inp_shexp.weight")
            out = out + (shared if gate is None else sigmoid(x @ gate)[:, None] * shared)
        return out

    def experts_without_gates(self, x, prefix, up, down):
        """nemotron_h_moe: squared ReLU; experts may read and give rows of another length."""
        has_latent = self.model.tensor(prefix + "ffn_latent_down.weight") is not None
        read = self.linear(x, prefix + "ffn_latent_down") if has_latent else x
        out = np.zeros_like(read)
        for row in range(len(x)):
            for expert, weight in zip(*self.choose_experts(x[row], prefix)):
                out[row] += weight * (down[expert] @ np.maximum(up[expert] @ read[row], 0) ** 2)
        if has_latent:
            out = self.linear(out, prefix + "ffn_latent_up")
        if self.model.tensor(prefix + "ffn_up_shexp.weight") is not None:
            out = out + self.linear(np.maximum(self.linear(x, prefix + "ffn_up_shexp"), 0) ** 2, prefix + "ffn_down_shexp")
        return out

    def beside_experts(self, residual, layer):
        """gemma4: the feed-forward layer and the experts read the residual by norms of their own, and so does the router."""
        prefix = f"blk.{layer}."
        dense = self.norm(self.feed_forward(self.norm(residual, prefix + "ffn_norm"), layer), prefix + "post_ffw_norm_1")
        router_x = rms_norm(residual, 1.0, self.epsilon) / math.sqrt(self.width) * self.model.tensor(prefix + "ffn_gate_inp.scale")
        routed = self.experts(self.norm(residual, prefix + "pre_ffw_norm_2"), prefix, router_x)
        return dense + self.norm(routed, prefix + "post_ffw_norm_2")

    def layer_embeddings(self, x, token_ids):
        """[tokens, layers, size]: each layer's part of the second embedding."""
        size = self.model.key("embedding_length_per_layer_input", 0)
        if not size:
            return None
        projected = (self.linear(x, "per_layer_model_proj") / math.sqrt(self.width)).reshape(len(x), self.layers, size)
        table = self.model.tensor("per_layer_token_embd.weight")[token_ids].reshape(len(x), self.layers, size)
        return (self.norm(projected, "per_layer_proj_norm") + math.sqrt(size) * table) / math.sqrt(2)

    def feed_forward(self, x, layer):
        prefix = f"blk.{layer}."
        if self.architecture != "gemma4" and self.model.tensor(prefix + "ffn_gate_inp.weight") is not None:
            return self.experts(x, prefix)
        if self.has_one_part:
            inner = np.maximum(self.linear(x, prefix + "ffn_up"), 0) ** 2  # So et al. 2021, arXiv:2109.08668
        elif self.architecture == "opt":
            inner = np.maximum(self.linear(x, prefix + "ffn_up"), 0)
        elif self.architecture in ("gpt2", "starcoder2"):
            inner = gelu(self.linear(x, prefix + "ffn_up"))
        elif self.architecture in ("glm4", "phi3"):
            both = self.linear(x, prefix + "ffn_up")
            hidden = both.shape[-1] // 2
            inner = silu(both[:, :hidden]) * both[:, hidden:]
        else:
            gate = self.linear(x, prefix + "ffn_gate")
            inner = (gelu(gate) if self.is_gemma else silu(gate)) * self.linear(x, prefix + "ffn_up")
        return self.linear(inner, prefix + "ffn_down")

    def stand_side_by_side(self, layer):
        is_without = self.model.tensor(f"blk.{layer}.ffn_norm.weight") is None
        return self.architecture in ("cohere2", "command-r") or (self.architecture == "stablelm" and is_without)

    def rows(self, token_ids):
        """[tokens, width]: what the last layer leaves, before the output's norm."""
        model = self.model
        embedding = model.tensor("token_embd.weight")
        x = embedding[token_ids]
        if self.is_gemma:
            x = x * np.float64(np.sqrt(np.float32(self.width)))
        x = x * self.embedding_factor
        if self.architecture == "muse-glimmer":
            x = rms_norm(x, 1.0, self.epsilon)
        if self.architecture in ("gpt2", "opt"):
            x = x + model.tensor("position_embd.weight")[:len(token_ids)]
        embeddings = self.layer_embeddings(x, token_ids)
        for layer in range(self.layers):
            prefix = f"blk.{layer}."
            has_input_norms = self.architecture not in WITHOUT_INPUT_NORMS
            normed, mixers = self.norm(x, prefix + "attn_norm") if has_input_norms else x, self.mixers(layer)
            if self.stand_side_by_side(layer):
                x = x + self.attention(normed, layer) + self.feed_forward(normed, layer)
                continue
            if mixers:
                added = sum(mix(normed, layer) for mix in mixers)
                if self.has_post_norms:
                    added = self.post_norm(added, prefix + "post_attention_norm")
                x = x + added * self.branch_factor
            if not self.has_feed_forward(layer):
                continue
            norm = prefix + ("post_attention_norm" if self.architecture in NAMED_BY_ATTENTION else "ffn_norm")
            if self.has_one_part:
                norm = prefix + "attn_norm"
            if self.architecture == "gemma4" and model.tensor(prefix + "ffn_gate_inp.weight") is not None:
                added = self.beside_experts(x, layer)
            else:
                added = self.feed_forward(self.norm(x, norm) if has_input_norms else x, layer)
            if self.has_post_norms:
                added = self.post_norm(added, prefix + "post_ffw_norm")
            x = x + added * self.branch_factor
            if embeddings is not None:
                gated = gelu(self.linear(x, prefix + "inp_gate")) * embeddings[:, layer]
                x = x + self.norm(self.linear(gated, prefix + "proj"), prefix + "post_norm")
            if model.tensor(prefix + "layer_output_scale.weight") is not None:
                x = x * model.tensor(prefix + "layer_output_scale.weight")
        return x

    def log_softmax_of(self, normed, output=None):
        bias = self.model.tensor("output.bias") if output is None else None
        if output is None:
            output = self.model.tensor("output.weight")
        if output is None or self.architecture in ("cohere2", "command-r", "gemma", "gemma2"):
            output = self.model.tensor("token_embd.weight")
        logits = normed @ output.T + (0.0 if bias is None else bias)
        logits = soft_cap(logits / self.logit_divisor, self.logit_cap)
        logits = logits - logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def log_probabilities(self, token_ids):
        """[tokens, vocabulary]"""
        last_norm = "token_embd_norm" if self.architecture in SHORT_CONVOLUTIONS else "output_norm"
        return self.log_softmax_of(self.norm(self.rows(token_ids), last_norm))

    def predictions(self, token_ids, guesses):
        """Multi-token prediction (DeepSeek-AI 2024, arXiv:2412.19437): log-probabilities of the token two behind each but the last,
        and then behind each of `guesses`, which follow the list. A pair stands at the position of the second of its tokens."""
        prefix, tensor = f"blk.{self.layers}.", self.model.tensor
        own = prefix + "nextn."
        table = tensor(own + "embed_tokens.weight")
        table = tensor("token_embd.weight") if table is None else table
        last_norm = own + "shared_head_norm" if tensor(own + "shared_head_norm.weight") is not None else "output_norm"
        hidden = self.norm(self.rows(token_ids), "output_norm")[:-1]
        nexts = list(token_ids[1:])
        for guess in [None] + list(guesses):
            if guess is not None:
                hidden, nexts = np.concatenate([hidden, out[-1:]]), nexts + [guess]
            joined = np.concatenate([self.norm(table[nexts], own + "enorm"), self.norm(hidden, own + "hnorm")], -1)
            self.first_position, x = 1, self.linear(joined, own + "eh_proj")
            x = x + self.attention(self.norm(x, prefix + "attn_norm"), self.layers)
            x = x + self.feed_forward(self.norm(x, prefix + "post_attention_norm"), self.layers)
            self.first_position, out = 0, self.norm(x, last_norm)
        return self.log_softmax_of(out, tensor(own + "shared_head_head.weight"))
