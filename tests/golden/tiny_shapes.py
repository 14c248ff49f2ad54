"""Tiny models of every architecture: metadata and the list of tensors that a converter would write. For make_tiny_models.py
and compare_tiny_models.py.
"""

VOCABULARY = 269  # of tests/support/gguf_writer.h: 3 special tokens, 256 bytes, 10 merges


def long_factors(count, most):
    return [1.0 + (most - 1.0) * i / (count - 1) for i in range(count)]


# What differs from the defaults of Shape; metadata by suffix.
VARIANTS = {
    "gemma": dict(architecture="gemma", head_dim=24),
    "gemma2": dict(architecture="gemma2", layers=3, head_dim=24,
                   keys={"attention.sliding_window": 8, "attn_logit_softcapping": 2.5, "final_logit_softcapping": 6.0}),
    "gemma2_defaults": dict(architecture="gemma2"),
    "gemma3": dict(architecture="gemma3", layers=7, head_dim=24,
                   keys={"attention.sliding_window": 8, "rope.freq_base": 1000000.0, "rope.scaling.type": "linear",
                         "rope.scaling.factor": 8.0}),
    "gemma3_without_window": dict(architecture="gemma3", keys={"rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    "gemma3_odd_sizes": dict(architecture="gemma3", layers=6, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                             keys={"attention.sliding_window": 5}),
    "gpt2": dict(architecture="gpt2", heads=4, kv_heads=None, biases=True),
    "gpt2_odd_sizes": dict(architecture="gpt2", width=57, hidden=71, heads=3, kv_heads=None, biases=True),
    "llama_with_window": dict(architecture="llama", untied=True, keys={"attention.sliding_window": 11}),
    "phi3": dict(architecture="phi3", untied=True, keys={"rope.dimension_count": 16, "attention.sliding_window": 0}),
    "phi3_with_window": dict(architecture="phi3", heads=4, kv_heads=4, untied=True,
                             keys={"rope.dimension_count": 12, "attention.sliding_window": 9}),
    "phi3_long": dict(architecture="phi3", untied=True, long_rope=True,
                      keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 32,
                            "rope.scaling.attn_factor": 1.1}),
    "phi3_long_within": dict(architecture="phi3", untied=True, long_rope=True, max_model_len=56,
                             keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 56,
                                   "rope.scaling.attn_factor": 1.1}),
    "qwen2": dict(architecture="qwen2", keys={"rope.freq_base": 1000000.0}, query_key_value_biases=True),
    "qwen2_untied": dict(architecture="qwen2", untied=True, query_key_value_biases=True),
    "qwen2_yarn": dict(architecture="qwen2", query_key_value_biases=True,
                       keys={"rope.freq_base": 10000.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                             "rope.scaling.original_context_length": 16}),
    "qwen3": dict(architecture="qwen3", head_dim=24, keys={"rope.freq_base": 1000000.0}),
}


class Shape:
    """One variant: `keys` is all of its metadata, `tensors` (name, rows or None, columns, centre, scale) in file order."""

    def __init__(self, variant, context_length=64):
        self.architecture = variant["architecture"]
        self.layers = variant.get("layers", 2)
        self.heads, self.kv_heads = variant.get("heads", 4), variant.get("kv_heads", 2)
        self.width, self.hidden = variant.get("width", 64), variant.get("hidden", 96)
        self.context_length = context_length
        self.head_dim = variant.get("head_dim", self.width // self.heads)
        self.variant = variant
        self.max_model_len = variant.get("max_model_len")
        self.keys = self._keys()
        self.tensors = list(self._tensors())

    def _keys(self):
        keys = {"block_count": self.layers, "context_length": self.context_length, "embedding_length": self.width,
                "feed_forward_length": self.hidden, "attention.head_count": self.heads}
        if self.kv_heads is not None:
            keys["attention.head_count_kv"] = self.kv_heads
        if self.head_dim != self.width // self.heads:
            keys["attention.key_length"] = keys["attention.value_length"] = self.head_dim
        if self.architecture == "gpt2":
            keys["attention.layer_norm_epsilon"] = 1e-5
        else:
            keys["attention.layer_norm_rms_epsilon"] = 1e-6
        return keys | self.variant.get("keys", {})

    def _norm(self, name, size=None):
        yield name + ".weight", None, size or self.width, 1.0, 0.125
        if self.architecture == "gpt2":
            yield name + ".bias", None, size or self.width, 0.0, 0.25

    def _linear(self, name, rows, columns, biases=False):
        yield name + ".weight", rows, columns, 0.0, 2.0 * columns**-0.5
        if biases or self.variant.get("biases"):
            yield name + ".bias", None, rows, 0.0, 0.25

    def _tensors(self):
        v, width, hidden = self.variant, self.width, self.hidden
        query, key = self.heads * self.head_dim, (self.kv_heads or self.heads) * self.head_dim
        yield "token_embd.weight", VOCABULARY, width, 0.0, 1.0
        if self.architecture == "gpt2":
            yield "position_embd.weight", self.context_length, width, 0.0, 0.5
        for layer in range(self.layers):
            prefix = f"blk.{layer}."
            yield from self._norm(prefix + "attn_norm")
            if self.architecture in ("gpt2", "phi3"):
                yield from self._linear(prefix + "attn_qkv", query + 2 * key, width)
            else:
                for name, rows in (("attn_q", query), ("attn_k", key), ("attn_v", key)):
                    yield from self._linear(prefix + name, rows, width, v.get("query_key_value_biases"))
            if self.architecture in ("qwen3", "gemma3"):
                yield from self._norm(prefix + "attn_q_norm", self.head_dim)
                yield from self._norm(prefix + "attn_k_norm", self.head_dim)
            yield from self._linear(prefix + "attn_output", width, query)
            if self.architecture in ("gemma2", "gemma3"):
                yield from self._norm(prefix + "post_attention_norm")
            yield from self._norm(prefix + "ffn_norm")
            if self.architecture not in ("gpt2", "phi3"):
                yield from self._linear(prefix + "ffn_gate", hidden, width)
            yield from self._linear(prefix + "ffn_up", 2 * hidden if self.architecture == "phi3" else hidden, width)
            yield from self._linear(prefix + "ffn_down", width, hidden)
            if self.architecture in ("gemma2", "gemma3"):
                yield from self._norm(prefix + "post_ffw_norm")
        yield from self._norm("output_norm")
        if v.get("untied"):
            yield from self._linear("output", VOCABULARY, width)

    def long_rope(self):
        """{name: values} of the tensors that are no weights."""
        if not self.variant.get("long_rope"):
            return {}
        count = self.keys["rope.dimension_count"] // 2
        return {"rope_factors_long.weight": long_factors(count, 6.0), "rope_factors_short.weight": long_factors(count, 1.75)}
