#!/usr/bin/env python3
"""Tiny random models of tiny_shapes.py in Hugging Face transformers, against tiny_transformer.py: the same weights, in float64.

Needs: numpy, torch, transformers 5. Only the families of FAMILIES, whose keys and names of tensors are listed here; a new family
is one more function. transformers reads no GGUF here: what our float64 program takes for the definition is held against what the
models' own authors published as code.
usage: compare_transformers.py [VARIANT ...]
Prints the mean and the largest |difference| of the prompt's log-probabilities; exit status 1 if a mean is above 1e-5.
"""
import sys
import types

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from tiny_shapes import VARIANTS, VOCABULARY, Shape
from tiny_transformer import Transformer

BOUND = 1e-5


class RandomModel:
    def __init__(self, shape, random):
        self.architecture, self.keys, self.tensors = shape.architecture, shape.keys, {}
        for name, rows, columns, centre, scale, *_ in shape.tensors:
            numbers = centre + scale * random.uniform(-1, 1, (rows, columns) if rows else columns)
            self.tensors[name] = numbers.astype(np.float32).astype(np.float64)
        self.tensors |= {name: np.array(numbers) for name, numbers in shape.tables().items()}

    def key(self, suffix, default=None):
        return self.keys.get(suffix, default)

    def tensor(self, name):
        return self.tensors.get(name)


# ---- what every family has

def common(shape):
    keys = shape.keys
    return dict(vocab_size=VOCABULARY, hidden_size=shape.width, intermediate_size=shape.hidden, num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads, head_dim=shape.head_dim,
                max_position_embeddings=shape.context_length, rms_norm_eps=keys.get("attention.layer_norm_rms_epsilon"),
                rope_parameters=dict(rope_type="default", rope_theta=keys.get("rope.freq_base", 10000.0)),
                tie_word_embeddings=not shape.variant.get("untied", False), pad_token_id=None, bos_token_id=None, eos_token_id=None)


def common_names(layer, feed_forward_norm="ffn_norm"):
    """(transformers, GGUF) of what stands in every layer, and may be missing."""
    there, here = f"model.layers.{layer}.", f"blk.{layer}."
    for name in "qkv":
        for part in ("weight", "bias"):
            yield f"{there}self_attn.{name}_proj.{part}", f"{here}attn_{name}.{part}"
    for part in ("weight", "bias"):
        yield f"{there}self_attn.o_proj.{part}", f"{here}attn_output.{part}"
    for name in "qk":
        yield f"{there}self_attn.{name}_norm.weight", f"{here}attn_{name}_norm.weight"
    for part in ("weight", "bias"):
        yield f"{there}input_layernorm.{part}", f"{here}attn_norm.{part}"
        yield f"{there}post_attention_layernorm.{part}", f"{here}{feed_forward_norm}.{part}"
    yield there + "self_attn.sinks", here + "attn_sinks.weight"
    for name in ("gate", "up", "down"):
        yield f"{there}mlp.{name}_proj.weight", f"{here}ffn_{name}.weight"
        yield f"{there}mlp.shared_experts.{name}_proj.weight", f"{here}ffn_{name}_shexp.weight"
    for router in ("gate", "router"):
        yield f"{there}mlp.{router}.weight", here + "ffn_gate_inp.weight"
        yield f"{there}mlp.{router}.bias", here + "ffn_gate_inp.bias"
    yield there + "mlp.gate.e_score_correction_bias", here + "exp_probs_b.bias"


def expert_parts(model, prefix, count):
    """gate, up, down, each [experts, rows, columns]"""
    def part(name):
        weight = model.tensor(prefix + name + ".weight")
        return None if weight is None else weight.reshape(count, -1, weight.shape[-1])
    both = part("ffn_gate_up_exps")
    gate, up = (part("ffn_gate_exps"), part("ffn_up_exps")) if both is None else np.split(both, 2, axis=1)
    return gate, up, part("ffn_down_exps")


def expert_parts_without_gates(model, prefix, count):
    up, down = (model.tensor(f"{prefix}ffn_{name}_exps.weight") for name in ("up", "down"))
    return None, up.reshape(count, -1, up.shape[-1]), down.reshape(count, -1, down.shape[-1])


def experts_behind_each_other(model, layer, count):
    prefix, there = f"blk.{layer}.", f"model.layers.{layer}.mlp.experts."
    if model.tensor(prefix + "ffn_down_exps.weight") is None:
        return {}
    gate, up, down = expert_parts(model, prefix, count)
    return {there + "gate_up_proj": np.concatenate([gate, up], 1), there + "down_proj": down}


def halves_of_neighbours(weight, heads):
    """Rows of llama's Q and K: GGUF rotates pairs of neighbours, transformers the two halves of a head."""
    rows = weight.reshape(heads, -1, 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape)


def rotated_halves(shape, model):
    """{name: numbers} of Q and K of all layers, biases included."""
    found = {}
    for layer in range(shape.layers):
        for name, heads in (("q", shape.heads), ("k", shape.kv_heads)):
            for part in ("weight", "bias"):
                numbers = model.tensor(f"blk.{layer}.attn_{name}.{part}")
                if numbers is not None:
                    found[f"model.layers.{layer}.self_attn.{name}_proj.{part}"] = halves_of_neighbours(numbers, heads)
    return found


# ---- the families: (model type, what its configuration says besides, {name: numbers} besides the names above, name of the norm)

def qwen3moe(shape, model):
    e = shape.experts
    config = dict(num_experts=e["count"], num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"], norm_topk_prob=True)
    return "qwen3_moe", config, [experts_behind_each_other(model, i, e["count"]) for i in range(shape.layers)], "ffn_norm"


def llama(shape, model):
    e = shape.experts
    if e is None or "shared" in e:
        return None
    extra = []
    for layer in range(shape.layers):
        extra.append(experts_behind_each_other(model, layer, e["count"]))
        for name, heads in (("q", shape.heads), ("k", shape.kv_heads)):
            weight = model.tensor(f"blk.{layer}.attn_{name}.weight")
            extra[-1][f"model.layers.{layer}.self_attn.{name}_proj.weight"] = halves_of_neighbours(weight, heads)
    return "mixtral", dict(num_local_experts=e["count"], num_experts_per_tok=e["used"], sliding_window=None), extra, "ffn_norm"


def granite(shape, model):
    keys = shape.keys
    if not keys.get("rope.scaling.finetuned", True):
        return None
    usual = (12.0, 1.4 * shape.layers**-0.5, shape.width / 256) if shape.architecture == "minicpm" else (1.0, 1.0, 1.0)
    config = dict(embedding_multiplier=keys.get("embedding_scale", usual[0]) or 1.0, logits_scaling=keys.get("logit_scale", usual[2]),
                  residual_multiplier=keys.get("residual_scale", usual[1]) or 1.0,
                  attention_multiplier=keys.get("attention.scale", 0.0) or shape.head_dim**-0.5,
                  attention_bias=shape.variant.get("biases", False), mlp_bias=shape.variant.get("biases", False))
    if shape.experts is None:
        extra = [rotated_halves(shape, model)]
        if shape.variant.get("biases"):
            extra += [{f"model.layers.{i}.mlp.{name}_proj.bias": model.tensor(f"blk.{i}.ffn_{name}.bias")
                       for name in ("gate", "up", "down")} for i in range(shape.layers)]
        return "granite", config, extra, "ffn_norm"
    e = shape.experts
    config |= dict(num_local_experts=e["count"], num_experts_per_tok=e["used"], shared_intermediate_size=e.get("shared", 0))
    extra = [rotated_halves(shape, model)]
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        extra += [{name.replace("mlp", "block_sparse_moe"): numbers
                   for name, numbers in experts_behind_each_other(model, layer, e["count"]).items()},
                  {there + "block_sparse_moe.router.weight": model.tensor(here + "ffn_gate_inp.weight")}]
        if "shared" in e:
            both = [model.tensor(f"{here}ffn_{name}_shexp.weight") for name in ("gate", "up")]
            extra.append({there + "shared_mlp.input_linear.weight": np.concatenate(both),
                          there + "shared_mlp.output_linear.weight": model.tensor(here + "ffn_down_shexp.weight")})
    return "granitemoeshared" if "shared" in e else "granitemoe", config, extra, "ffn_norm"


def minicpm(shape, model):
    """Its authors' code is not in transformers; granite's has the same multipliers, in the same places."""
    return None if has_biases(shape) else granite(shape, model)


def mistral3(shape, model):
    keys = shape.keys
    if shape.experts or has_biases(shape):
        return None
    positions = rope(shape, factor=keys["rope.scaling.factor"], mscale=1.0, mscale_all_dim=keys["rope.scaling.yarn_log_multiplier"],
                     beta_fast=32.0, beta_slow=1.0, llama_4_scaling_beta=keys.get("attention.temperature_scale", 0.0),
                     original_max_position_embeddings=keys["rope.scaling.original_context_length"]) | dict(rope_type="yarn")
    return "ministral3", dict(rope_parameters=positions, sliding_window=None), [rotated_halves(shape, model)], "ffn_norm"


def olmoe(shape, model):
    e = shape.experts
    config = dict(num_experts=e["count"], num_experts_per_tok=e["used"], norm_topk_prob=False, clip_qkv=None)
    return "olmoe", config, [experts_behind_each_other(model, i, e["count"]) for i in range(shape.layers)], "ffn_norm"


def glm4moe(shape, model):
    e, keys = shape.experts, shape.keys
    rotated = keys.get("rope.dimension_count", shape.head_dim) / shape.head_dim
    config = dict(n_routed_experts=e["count"], num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"],
                  n_shared_experts=e["shared_count"], first_k_dense_replace=e.get("dense", 0),
                  use_qk_norm=shape.variant.get("head_norms", False), attention_bias=shape.variant.get("query_key_value_biases", False),
                  n_group=keys.get("expert_group_count", 1), topk_group=keys.get("expert_group_used_count", 1),
                  norm_topk_prob=keys.get("expert_weights_norm", False), routed_scaling_factor=keys.get("expert_weights_scale", 1.0),
                  num_nextn_predict_layers=shape.predicted,
                  rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=rotated))
    return "glm4_moe", config, [experts_behind_each_other(model, i, e["count"]) for i in range(shape.layers)], "post_attention_norm"


def yarn_with_scores(keys):
    """Where the scores grow instead of queries and keys: mscale and mscale_all_dim are equal in published models."""
    if keys.get("rope.scaling.type") != "yarn":
        return dict(rope_type="default", rope_theta=keys.get("rope.freq_base", 10000.0))
    grows = keys.get("rope.scaling.yarn_log_multiplier", 0.0) * 10
    return dict(rope_type="yarn", rope_theta=keys.get("rope.freq_base", 10000.0), factor=keys["rope.scaling.factor"],
                original_max_position_embeddings=keys["rope.scaling.original_context_length"], beta_fast=32.0, beta_slow=1.0,
                **(dict(mscale=grows, mscale_all_dim=grows) if grows else {}))


def joint_matrix(shape, model, prefix):
    """Of each head the rows of its keys, then those of its values."""
    if model.tensor(prefix + "attn_kv_b.weight") is not None:
        return model.tensor(prefix + "attn_kv_b.weight")
    a, heads = shape.latent, shape.heads
    keys = model.tensor(prefix + "attn_k_b.weight").reshape(heads, a["size"], a["unrotated"]).swapaxes(1, 2)
    values = model.tensor(prefix + "attn_v_b.weight").reshape(heads, a["values"], a["size"])
    return np.concatenate([keys, values], 1).reshape(-1, a["size"])


def deepseek2(shape, model):
    e, keys, a = shape.experts, shape.keys, shape.latent
    if e is None or keys["attention.layer_norm_rms_epsilon"] != 1e-6:  # theirs has no other epsilon in the norms of ranks
        return None
    is_sigmoid = keys.get("expert_gating_func", 1) == 2
    config = dict(q_lora_rank=a["rank"] or None, kv_lora_rank=a["size"], qk_nope_head_dim=a["unrotated"], qk_rope_head_dim=a["rotary"],
                  v_head_dim=a["values"], head_dim=a["rotary"], num_key_value_heads=shape.heads, n_routed_experts=e["count"],
                  num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"], n_shared_experts=e["shared_count"],
                  first_k_dense_replace=e.get("dense", 0), n_group=keys.get("expert_group_count", 1),
                  topk_group=keys.get("expert_group_used_count", 1), norm_topk_prob=keys.get("expert_weights_norm", False),
                  routed_scaling_factor=keys.get("expert_weights_scale", 1.0), topk_method="greedy", rope_interleave=True,
                  rope_parameters=yarn_with_scores(keys))
    names = {"q_a_proj": "attn_q_a", "q_a_layernorm": "attn_q_a_norm", "q_b_proj": "attn_q_b", "kv_a_proj_with_mqa": "attn_kv_a_mqa",
             "kv_a_layernorm": "attn_kv_a_norm"}
    extra = [experts_behind_each_other(model, i, e["count"]) for i in range(shape.layers)]
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.self_attn.", f"blk.{layer}."
        extra.append({f"{there}{name}.weight": model.tensor(f"{here}{ours}.weight") for name, ours in names.items()})
        extra[-1][there + "kv_b_proj.weight"] = joint_matrix(shape, model, here)
        if is_sigmoid and layer >= e.get("dense", 0) and not e.get("selection_bias"):
            extra[-1][f"model.layers.{layer}.mlp.gate.e_score_correction_bias"] = np.zeros(e["count"])
    if not is_sigmoid:
        return "deepseek_v2", config, extra, "ffn_norm"
    return "deepseek_v3" if "expert_group_count" in keys else "glm4_moe_lite", config, extra, "ffn_norm"


def mistral4(shape, model):
    _, config, extra, norm = deepseek2(shape, model)
    config["rope_parameters"] |= dict(llama_4_scaling_beta=shape.keys["attention.temperature_scale"], partial_rotary_factor=1.0)
    return "mistral4", config, extra, norm


def gemma4(shape, model):
    keys, e, extra = shape.keys, shape.experts, {}
    layers, pattern = range(shape.layers), keys["attention.sliding_window_pattern"]
    if keys["rope.dimension_count_swa"] != shape.local_head_dim:
        return None
    in_full = {i: dict(head_dim=shape.head_dim, num_key_value_heads=shape.of_layer(shape.kv_heads, i)) for i in layers if not pattern[i]}
    hidden = [shape.of_layer(shape.hidden, i) for i in layers]
    config = dict(
        head_dim=shape.local_head_dim, num_key_value_heads=shape.of_layer(shape.kv_heads, pattern.index(True)), per_layer_config=in_full,
        intermediate_size=hidden[0], use_double_wide_mlp=hidden[-1] != hidden[0], sliding_window=keys["attention.sliding_window"],
        layer_types=[("sliding" if is_local else "full") + "_attention" for is_local in pattern], num_kv_shared_layers=shape.num_shared,
        attention_k_eq_v=shape.variant.get("values_from_keys", False), hidden_size_per_layer_input=shape.layer_embedding,
        vocab_size_per_layer_input=VOCABULARY, final_logit_softcapping=keys.get("final_logit_softcapping"),
        rope_parameters=dict(
            full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=keys["rope.freq_base"]),
            sliding_attention=dict(rope_type="default", rope_theta=keys.get("rope.freq_base_swa", 10000.0))))
    names = {"pre_feedforward_layernorm.weight": "ffn_norm.weight", "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
             "layer_scalar": "layer_output_scale.weight", "per_layer_input_gate.weight": "inp_gate.weight",
             "per_layer_projection.weight": "proj.weight", "post_per_layer_input_norm.weight": "post_norm.weight",
             "router.proj.weight": "ffn_gate_inp.weight", "router.scale": "ffn_gate_inp.scale",
             "router.per_expert_scale": "ffn_down_exps.scale", "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
             "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight", "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight"}
    for layer in layers:
        for there, here in names.items():
            extra[f"model.layers.{layer}.{there}"] = model.tensor(f"blk.{layer}.{here}")
        if model.tensor(f"blk.{layer}.layer_output_scale.weight") is None:
            extra[f"model.layers.{layer}.layer_scalar"] = np.ones(1)
    if shape.layer_embedding:
        extra |= {"model.embed_tokens_per_layer.weight": model.tensor("per_layer_token_embd.weight"),
                  "model.per_layer_model_projection.weight": model.tensor("per_layer_model_proj.weight"),
                  "model.per_layer_projection_norm.weight": model.tensor("per_layer_proj_norm.weight")}
    extra = [{name: numbers for name, numbers in extra.items() if numbers is not None}]
    if e:
        config |= dict(enable_moe_block=True, num_experts=e["count"], top_k_experts=e["used"], moe_intermediate_size=e["hidden"])
        extra += [{name.replace("mlp.", ""): numbers for name, numbers in experts_behind_each_other(model, i, e["count"]).items()} for i in layers]
    return "gemma4_text", config, extra, "post_attention_norm"


def gpt_oss(shape, model):
    e, keys, extra = shape.experts, shape.keys, []
    for layer in range(shape.layers):
        prefix, there = f"blk.{layer}.", f"model.layers.{layer}.mlp.experts."
        gate, up, down = expert_parts(model, prefix, e["count"])
        biases = [model.tensor(f"{prefix}ffn_{name}_exps.bias") for name in ("gate", "up", "down")]
        both = np.stack([gate, up], 2).reshape(e["count"], -1, shape.width)  # rows in turn
        extra.append({there + "gate_up_proj": both.swapaxes(1, 2), there + "down_proj": down.swapaxes(1, 2),
                      there + "gate_up_proj_bias": np.stack(biases[:2], 2).reshape(e["count"], -1), there + "down_proj_bias": biases[2]})
    positions = rope(shape)
    if keys.get("rope.scaling.type") == "yarn":  # files do not say `truncate`; llama.cpp and we round
        positions |= dict(rope_type="yarn", factor=keys["rope.scaling.factor"], beta_fast=32.0, beta_slow=1.0, truncate=True,
                     original_max_position_embeddings=keys["rope.scaling.original_context_length"])
    kinds = ["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(shape.layers)]
    config = dict(num_local_experts=e["count"], num_experts_per_tok=e["used"], intermediate_size=e["hidden"], rope_parameters=positions,
                  sliding_window=keys["attention.sliding_window"], layer_types=kinds, attention_bias=True)
    return "gpt_oss", config, extra, "post_attention_norm"


def rope(shape, **besides):
    return dict(rope_type="default", rope_theta=shape.keys.get("rope.freq_base", 10000.0), **besides)


def partial_rope(shape):
    return rope(shape, partial_rotary_factor=shape.keys["rope.dimension_count"] / shape.head_dim)


def has_biases(shape):
    return shape.variant.get("query_key_value_biases", False)


def ernie4_5(shape, model):
    return "ernie4_5", dict(use_bias=False), [], "ffn_norm"


def glm4(shape, model):
    extra = {}
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        extra |= {there + "post_self_attn_layernorm.weight": model.tensor(here + "post_attention_norm.weight"),
                  there + "post_mlp_layernorm.weight": model.tensor(here + "post_ffw_norm.weight"),
                  there + "mlp.gate_up_proj.weight": model.tensor(here + "ffn_up.weight")}
    config = dict(attention_bias=has_biases(shape), rope_parameters=partial_rope(shape))
    return "glm4", config, [extra], "ffn_norm"


def seed_oss(shape, model):
    return "seed_oss", dict(attention_bias=has_biases(shape), attention_out_bias=False), [], "post_attention_norm"


def smollm3(shape, model):
    extra = {}
    for layer in range(shape.layers):
        for name, heads in (("q", shape.heads), ("k", shape.kv_heads)):
            weight = model.tensor(f"blk.{layer}.attn_{name}.weight")
            extra[f"model.layers.{layer}.self_attn.{name}_proj.weight"] = halves_of_neighbours(weight, heads)
    return "smollm3", dict(no_rope_layer_interval=4, use_sliding_window=False), [extra], "ffn_norm"


def stablelm(shape, model):
    config = dict(layer_norm_eps=shape.keys["attention.layer_norm_epsilon"], use_qkv_bias=has_biases(shape),
                  rope_parameters=partial_rope(shape), use_parallel_residual=shape.stand_side_by_side(),
                  qk_layernorm=shape.variant.get("norms_apart", False))
    if shape.head_dim * shape.heads != shape.width:
        return None
    norms = {f"model.layers.{i}.self_attn.{name}_layernorm.norms.{head}.weight": model.tensor(f"blk.{i}.attn_{name}_norm.weight")[head]
             for i in range(shape.layers) for name, heads in (("q", shape.heads), ("k", shape.kv_heads)) for head in range(heads)
             if shape.variant.get("norms_apart")}
    return "stablelm", config, [norms], "ffn_norm"


def kinds_of_attention(shape, period, local="sliding_attention"):
    """As the files say, or every period-th layer without a window."""
    pattern = shape.keys.get("attention.sliding_window_pattern")
    if not isinstance(pattern, list):
        pattern = [(i + 1) % period != 0 for i in range(shape.layers)]
    return [local if is_local else "full_attention" for is_local in pattern]


def muse_glimmer(shape, model):
    keys, extra = shape.keys, [rotated_halves(shape, model)]
    kinds = kinds_of_attention(shape, 4)
    scale = model.tensor("blk.0.attn_q_norm.weight")[0]
    if "rope.freq_base_swa" in keys:
        return None
    for layer in range(shape.layers):  # the norms of heads have no weights but one factor, which the converter writes as these
        here, there = f"blk.{layer}.", f"model.layers.{layer}."
        model.tensors[here + "attn_q_norm.weight"] = np.full(shape.head_dim, scale)
        model.tensors[here + "attn_k_norm.weight"] = np.ones(shape.head_dim)
        norms = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
                 "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
        extra.append({f"{there}{name}.weight": model.tensor(f"{here}{gguf}.weight") - 1 for name, gguf in norms.items()})
        extra.append({there + "self_attn.gate_proj.weight": model.tensor(here + "attn_gate.weight")})
    config = dict(sliding_window=keys["attention.sliding_window"], layer_types=kinds, qk_scale_factor=float(scale),
                  layer_rope_theta=[keys["rope.freq_base"] if kind.startswith("sliding") else 0 for kind in kinds],
                  output_multiplier=keys["logit_scale"], final_logit_softcapping=keys["final_logit_softcapping"])
    return "muse_glimmer_text", config, extra, "post_attention_norm"


def llama4(shape, model):
    e, keys, extra = shape.experts, shape.keys, []
    kinds = kinds_of_attention(shape, 4, "chunked_attention")
    if has_biases(shape) or "attention.sliding_window" in keys:
        return None
    for layer in range(shape.layers):
        here, there = f"blk.{layer}.", f"model.layers.{layer}.feed_forward."
        if not shape.has_experts(layer):
            extra.append({f"{there}{name}_proj.weight": model.tensor(f"{here}ffn_{name}.weight") for name in ("gate", "up", "down")})
            continue
        gate, up, down = expert_parts(model, here, e["count"])
        extra.append({there + "experts.gate_up_proj": np.concatenate([gate, up], 1).swapaxes(1, 2),
                      there + "experts.down_proj": down.swapaxes(1, 2), there + "router.weight": model.tensor(here + "ffn_gate_inp.weight")})
        extra.append({f"{there}shared_expert.{name}_proj.weight": model.tensor(f"{here}ffn_{name}_shexp.weight")
                      for name in ("gate", "up", "down")})
    config = dict(num_local_experts=e["count"], num_experts_per_tok=e["used"], intermediate_size=e["hidden"], intermediate_size_mlp=shape.hidden,
                  interleave_moe_layer_step=e["step"], use_qk_norm=e["count"] != 128, attention_chunk_size=shape.chunk, layer_types=kinds,
                  floor_scale=shape.chunk, attn_scale=0.1, attn_temperature_tuning=True,
                  no_rope_layers=[int((i + 1) % 4 != 0) for i in range(shape.layers)])
    return "llama4_text", config, extra, "ffn_norm"


def post_norms(shape, model):
    """Of families without norms before their branches."""
    extra = {}
    for layer in range(shape.layers):
        here, there = f"blk.{layer}.", f"model.layers.{layer}."
        extra[there + "post_attention_layernorm.weight"] = model.tensor(here + "post_attention_norm.weight")
        extra[there + "post_feedforward_layernorm.weight"] = model.tensor(here + "post_ffw_norm.weight")
    return extra


def olmo2(shape, model):
    keys = shape.keys
    if shape.head_dim * shape.heads != shape.width:
        return None
    if "attention.sliding_window" not in keys:
        return "olmo2", {}, [post_norms(shape, model)], "post_attention_norm"
    stretched = rope(shape) if "rope.scaling.type" not in keys else rope(
        shape, factor=keys["rope.scaling.factor"], beta_fast=32.0, beta_slow=1.0,
        original_max_position_embeddings=keys["rope.scaling.original_context_length"]) | dict(rope_type="yarn")
    config = dict(sliding_window=keys["attention.sliding_window"], layer_types=kinds_of_attention(shape, 4),
                  rope_parameters=dict(full_attention=stretched, sliding_attention=rope(shape)))
    return "olmo3", config, [post_norms(shape, model)], "post_attention_norm"


def exaone4(shape, model):
    window = shape.keys.get("attention.sliding_window", 4096 if shape.layers == 64 else None)
    kinds = kinds_of_attention(shape, 4) if window else ["full_attention"] * shape.layers
    if shape.variant.get("divisors") or shape.head_dim * shape.heads != shape.width:
        return None
    return "exaone4", dict(sliding_window=window, layer_types=kinds), [post_norms(shape, model)], "post_attention_norm"


def cohere(shape, model):
    keys = shape.keys
    if shape.head_dim * shape.heads != shape.width and shape.architecture == "command-r":
        return None
    extra = [rotated_neighbours_of_cohere(shape, model)]
    config = dict(logit_scale=keys.get("logit_scale", 1.0), layer_norm_eps=keys["attention.layer_norm_epsilon"], attention_bias=has_biases(shape),
                  use_qk_norm=shape.variant.get("norms_apart", False))
    if shape.architecture == "command-r":
        return "cohere", config, extra, "ffn_norm"
    if keys.get("rope.dimension_count", shape.head_dim) != shape.head_dim:
        return None
    config |= dict(sliding_window=keys["attention.sliding_window"], layer_types=kinds_of_attention(shape, 4))
    return "cohere2", config, extra, "ffn_norm"


def rotated_neighbours_of_cohere(shape, model):
    """It rotates neighbours as GGUF files do; biases of the output are not in them."""
    if not has_biases(shape):
        return {}
    return {f"model.layers.{i}.self_attn.o_proj.bias": np.zeros(shape.width) for i in range(shape.layers)}


def hunyuan_dense(shape, model):
    if has_biases(shape):
        return None
    names = [(f"model.layers.{i}.self_attn.{there}_layernorm.weight", f"blk.{i}.attn_{here}_norm.weight") for i in range(shape.layers)
             for there, here in (("query", "q"), ("key", "k"))]
    return "hunyuan_v1_dense", {}, [{there: model.tensor(here) for there, here in names}], "ffn_norm"


def starcoder2(shape, model):
    if shape.head_dim * shape.heads != shape.width:
        return None
    extra = {}
    for layer in range(shape.layers):
        for there, here in (("c_fc", "ffn_up"), ("c_proj", "ffn_down")):
            for part in ("weight", "bias"):
                extra[f"model.layers.{layer}.mlp.{there}.{part}"] = model.tensor(f"blk.{layer}.{here}.{part}")
    config = dict(norm_epsilon=shape.keys["attention.layer_norm_epsilon"], use_bias=True, sliding_window=None,
                  hidden_act="gelu_pytorch_tanh")
    return "starcoder2", config, [extra], "ffn_norm"


def grouped_heads(numbers, shape, axis=0):
    """What belongs to value heads: GGUF has their turn at the key heads, transformers those of a key head together."""
    r = shape.recurrent
    split = numbers.shape[:axis] + (r["value_heads"] // r["key_heads"], r["key_heads"], -1) + numbers.shape[axis + 1:]
    return numbers.reshape(split).swapaxes(axis, axis + 1).reshape(numbers.shape)


def delta_net_numbers(shape, model, layer):
    """Of a recurrent layer of qwen35 and qwen35moe."""
    here, there = f"blk.{layer}.", f"model.layers.{layer}.linear_attn."
    keys = 2 * shape.recurrent["key_heads"] * shape.recurrent["key_dim"]

    def behind_keys(numbers):
        return np.concatenate([numbers[:keys], grouped_heads(numbers[keys:], shape)])

    yield there + "in_proj_qkv.weight", behind_keys(model.tensor(here + "attn_qkv.weight"))
    yield there + "conv1d.weight", behind_keys(model.tensor(here + "ssm_conv1d.weight"))[:, None]
    for name, gguf in (("in_proj_z.weight", "attn_gate.weight"), ("in_proj_b.weight", "ssm_beta.weight"),
                       ("in_proj_a.weight", "ssm_alpha.weight"), ("dt_bias", "ssm_dt.bias")):
        yield there + name, grouped_heads(model.tensor(here + gguf), shape)
    yield there + "A_log", np.log(-grouped_heads(model.tensor(here + "ssm_a"), shape))
    yield there + "norm.weight", model.tensor(here + "ssm_norm.weight")
    yield there + "out_proj.weight", grouped_heads(model.tensor(here + "ssm_out.weight"), shape, 1)


def delta_net_numbers_of_next(shape, model, layer):
    """Of qwen3next, whose files hold them as transformers does but for what the converter takes apart."""
    r, here, there = shape.recurrent, f"blk.{layer}.", f"model.layers.{layer}.linear_attn."
    inputs = model.tensor(here + "ssm_in.weight")
    if inputs is None:
        q, k, v = np.split(model.tensor(here + "attn_qkv.weight"), np.cumsum([r["key_heads"] * r["key_dim"]] * 2))
        parts = [x.reshape(r["key_heads"], -1, shape.width) for x in (q, k, v, model.tensor(here + "attn_gate.weight"))]
        inputs = np.concatenate(parts, 1).reshape(-1, shape.width)
    yield there + "in_proj_qkvz.weight", inputs
    yield there + "conv1d.weight", model.tensor(here + "ssm_conv1d.weight")[:, None]
    yield there + "A_log", np.log(-model.tensor(here + "ssm_a"))
    for name, gguf in (("in_proj_ba.weight", "ssm_ba.weight"), ("dt_bias", "ssm_dt.bias"), ("norm.weight", "ssm_norm.weight"),
                       ("out_proj.weight", "ssm_out.weight")):
        yield there + name, model.tensor(here + gguf)


def hybrid(shape, model, kind, numbers):
    """Recurrent layers among gated attention; norms are stored less one."""
    if shape.keys["attention.layer_norm_rms_epsilon"] != 1e-6:  # fixed where queries and keys are normalised
        return None
    r, e, extra = shape.recurrent, shape.experts, {}
    norms = [(f"model.layers.{i}.{there}.weight", f"blk.{i}.{here}.weight") for i in range(shape.layers) for there, here in
             (("input_layernorm", "attn_norm"), ("post_attention_layernorm", "post_attention_norm"),
              ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm"))]
    for there, here in norms + [("model.norm.weight", "output_norm.weight")]:
        if model.tensor(here) is not None:
            extra[there] = model.tensor(here) - 1
    for layer in range(shape.layers):
        if shape.is_recurrent(layer):
            extra |= dict(numbers(shape, model, layer))
    config = dict(
        rope_parameters=partial_rope(shape), layer_types=[("linear" if shape.is_recurrent(i) else "full") + "_attention" for i in range(shape.layers)],
        linear_conv_kernel_dim=r.get("width", 4), linear_key_head_dim=r["key_dim"], linear_value_head_dim=r["value_dim"],
        linear_num_key_heads=r["key_heads"], linear_num_value_heads=r["value_heads"])
    if e:
        config |= dict(num_experts=e["count"], num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"],
                       shared_expert_intermediate_size=e.get("shared", shape.hidden), norm_topk_prob=True)
        for layer in range(shape.layers):
            here, there = f"blk.{layer}.", f"model.layers.{layer}.mlp."
            extra |= experts_behind_each_other(model, layer, e["count"])
            extra[there + "shared_expert_gate.weight"] = model.tensor(here + "ffn_gate_inp_shexp.weight")[None]
            for name in ("gate", "up", "down"):
                extra[f"{there}shared_expert.{name}_proj.weight"] = model.tensor(f"{here}ffn_{name}_shexp.weight")
    return kind, config, [extra], "post_attention_norm"


def qwen35(shape, model):
    return hybrid(shape, model, "qwen3_5_text", delta_net_numbers)


def qwen35moe(shape, model):
    return hybrid(shape, model, "qwen3_5_moe_text", delta_net_numbers)


def qwen3next(shape, model):
    return hybrid(shape, model, "qwen3_next", delta_net_numbers_of_next)


def short_convolutions(shape, model):
    """lfm2 and lfm2moe."""
    if "attention.sliding_window" in shape.keys:
        return None
    e, r = shape.experts, shape.recurrent
    config = dict(norm_eps=shape.keys["attention.layer_norm_rms_epsilon"], conv_L_cache=r["width"], block_auto_adjust_ff_dim=False,
                  layer_types=["conv" if shape.is_recurrent(i) else "full_attention" for i in range(shape.layers)])
    extra = {"model.embedding_norm.weight": model.tensor("token_embd_norm.weight"), "model.norm.weight": None}
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        extra |= {there + "operator_norm.weight": model.tensor(here + "attn_norm.weight"),
                  there + "ffn_norm.weight": model.tensor(here + "ffn_norm.weight")}
        if shape.is_recurrent(layer):
            extra |= {there + "conv.conv.weight": model.tensor(here + "shortconv.conv.weight")[:, None],
                      there + "conv.in_proj.weight": model.tensor(here + "shortconv.in_proj.weight"),
                      there + "conv.out_proj.weight": model.tensor(here + "shortconv.out_proj.weight")}
        else:
            extra |= {there + "self_attn.out_proj.weight": model.tensor(here + "attn_output.weight"),
                      there + "self_attn.q_layernorm.weight": model.tensor(here + "attn_q_norm.weight"),
                      there + "self_attn.k_layernorm.weight": model.tensor(here + "attn_k_norm.weight")}
        there += "feed_forward."
        if shape.has_experts(layer):
            extra |= {name.replace("mlp", "feed_forward"): numbers for name, numbers in experts_behind_each_other(model, layer, e["count"]).items()}
            extra |= {there + "gate.weight": model.tensor(here + "ffn_gate_inp.weight"),
                      there + "expert_bias": model.tensor(here + "exp_probs_b.bias")}
        else:
            extra |= {f"{there}{name}.weight": model.tensor(f"{here}ffn_{gguf}.weight")
                      for name, gguf in (("w1", "gate"), ("w2", "down"), ("w3", "up"))}
    if e:
        config |= dict(num_experts=e["count"], num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"], num_dense_layers=e["dense"])
    return "lfm2_moe" if e else "lfm2", config, [extra], "ffn_norm"


def state_space_numbers(model, here, there):
    for name, gguf in (("in_proj.weight", "ssm_in.weight"), ("out_proj.weight", "ssm_out.weight"), ("dt_bias", "ssm_dt.bias"),
                       ("conv1d.bias", "ssm_conv1d.bias")):
        yield there + name, model.tensor(here + gguf)
    yield there + "conv1d.weight", model.tensor(here + "ssm_conv1d.weight")[:, None]
    yield there + "A_log", np.log(-model.tensor(here + "ssm_a")[:, 0])
    yield there + "D", model.tensor(here + "ssm_d")[:, 0]
    norm = model.tensor(here + "ssm_norm.weight")
    yield there + "norm.weight", None if norm is None else norm.reshape(-1)


def mamba(shape):
    r = shape.recurrent
    return dict(mamba_n_heads=r["heads"], mamba_d_head=r["head_dim"], mamba_n_groups=r["groups"], mamba_d_state=r["state"],
                mamba_d_conv=r.get("width", 4), mamba_conv_bias=r.get("bias", False))


def granitehybrid(shape, model):
    """Only with one group: transformers norms the whole row whatever the groups, llama.cpp each group. Published models have one."""
    if shape.recurrent["groups"] > 1:
        return None
    keys, e, extra = shape.keys, shape.experts, {}
    config = mamba(shape) | dict(
        layer_types=["mamba" if shape.is_recurrent(i) else "attention" for i in range(shape.layers)],
        embedding_multiplier=keys["embedding_scale"], logits_scaling=keys["logit_scale"], residual_multiplier=keys["residual_scale"],
        attention_multiplier=keys["attention.scale"], num_local_experts=e["count"], num_experts_per_tok=e["used"],
        shared_intermediate_size=e["shared"])
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        if shape.is_recurrent(layer):
            extra |= dict(state_space_numbers(model, here, there + "mamba."))
        extra |= {name.replace("mlp", "block_sparse_moe"): numbers for name, numbers in experts_behind_each_other(model, layer, e["count"]).items()}
        both = [model.tensor(f"{here}ffn_{name}_shexp.weight") for name in ("gate", "up")]
        extra |= {there + "block_sparse_moe.router.weight": model.tensor(here + "ffn_gate_inp.weight"),
                  there + "shared_mlp.input_linear.weight": np.concatenate(both),
                  there + "shared_mlp.output_linear.weight": model.tensor(here + "ffn_down_shexp.weight")}
    return "granitemoehybrid", config, [extra], "ffn_norm"


def falcon_h1(shape, model):
    r = shape.recurrent
    config = mamba(shape) | dict(mamba_d_ssm=r["heads"] * r["head_dim"], mamba_rms_norm=r.get("norm", False), mamba_norm_before_gate=False)
    extra = {"model.final_layernorm.weight": model.tensor("output_norm.weight"), "model.norm.weight": None}
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        extra |= dict(state_space_numbers(model, here, there + "mamba."))
        extra[there + "pre_ff_layernorm.weight"] = model.tensor(here + "ffn_norm")
        extra |= {f"{there}feed_forward.{name}_proj.weight": model.tensor(f"{here}ffn_{name}.weight") for name in ("gate", "up", "down")}
    return "falcon_h1", config, [extra], "ffn_norm"


def nemotron_h(shape, model):
    if has_biases(shape):
        return None
    r, e = shape.recurrent, shape.experts
    kinds = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
    config = dict(layers_block_type=[kinds[c] for c in r["pattern"]], mamba_num_heads=r["heads"], mamba_head_dim=r["head_dim"],
                  n_groups=r["groups"], ssm_state_size=r["state"], conv_kernel=r.get("width", 4), use_conv_bias=r.get("bias", False),
                  mlp_bias=shape.variant.get("feed_forward_biases", False),
                  layer_norm_epsilon=shape.keys.get("attention.layer_norm_rms_epsilon", shape.keys["attention.layer_norm_epsilon"]))
    extra = {"model.embeddings.weight": model.tensor("token_embd.weight"), "model.embed_tokens.weight": None,
             "model.norm_f.weight": model.tensor("output_norm.weight"), "model.norm.weight": None}
    if e:
        config |= dict(n_routed_experts=e["count"], num_experts_per_tok=e["used"], moe_intermediate_size=e["hidden"], n_group=1, topk_group=1,
                       moe_shared_expert_intermediate_size=e["shared"], moe_latent_size=e.get("latent"), n_shared_experts=1,
                       norm_topk_prob=shape.keys.get("expert_weights_norm", False), num_nextn_predict_layers=0,
                       routed_scaling_factor=shape.keys.get("expert_weights_scale", 1.0))
    for layer in range(shape.layers):
        there, here = f"model.layers.{layer}.", f"blk.{layer}."
        extra[there + "norm.weight"] = model.tensor(here + "attn_norm.weight")
        if shape.has_experts(layer) and shape.has_feed_forward(layer):
            _, up, down = expert_parts_without_gates(model, here, e["count"])
            mixer = there + "mixer."
            extra |= {mixer + "experts.up_proj": up, mixer + "experts.down_proj": down,
                      mixer + "gate.weight": model.tensor(here + "ffn_gate_inp.weight"),
                      mixer + "gate.e_score_correction_bias": model.tensor(here + "exp_probs_b.bias"),
                      mixer + "shared_experts.up_proj.weight": model.tensor(here + "ffn_up_shexp.weight"),
                      mixer + "shared_experts.down_proj.weight": model.tensor(here + "ffn_down_shexp.weight"),
                      mixer + "fc1_latent_proj.weight": model.tensor(here + "ffn_latent_down.weight"),
                      mixer + "fc2_latent_proj.weight": model.tensor(here + "ffn_latent_up.weight")}
        if shape.is_recurrent(layer):
            extra |= dict(state_space_numbers(model, here, there + "mixer."))
        names = [(f"{name}_proj", f"attn_{name}") for name in "qkv"] + [("o_proj", "attn_output"), ("up_proj", "ffn_up"), ("down_proj", "ffn_down")]
        extra |= {f"{there}mixer.{name}.{part}": model.tensor(f"{here}{gguf}.{part}") for name, gguf in names for part in ("weight", "bias")}
    return "nemotron_h", config, [extra], "ffn_norm"


FAMILIES = {"cohere2": cohere, "deepseek2": deepseek2, "command-r": cohere, "exaone4": exaone4, "hunyuan-dense": hunyuan_dense, "llama4": llama4,
            "muse-glimmer": muse_glimmer, "nemotron_h_moe": nemotron_h, "olmo2": olmo2, "falcon-h1": falcon_h1, "granitehybrid": granitehybrid, "lfm2": short_convolutions, "lfm2moe": short_convolutions,
            "nemotron_h": nemotron_h, "ernie4_5": ernie4_5, "gemma4": gemma4, "glm4": glm4, "glm4moe": glm4moe, "gpt-oss": gpt_oss, "granite": granite,
            "granitemoe": granite, "llama": llama, "minicpm": minicpm, "mistral3": mistral3, "mistral4": mistral4, "olmoe": olmoe,
            "qwen35": qwen35, "qwen35moe": qwen35moe, "qwen3moe": qwen3moe, "qwen3next": qwen3next, "seed_oss": seed_oss,
            "smollm3": smollm3, "stablelm": stablelm, "starcoder2": starcoder2}


def muse_with_head(config):
    """transformers has it only together with eyes: the text's layers are its own, the head is a line of its definition."""
    from transformers.models.muse_glimmer.modeling_muse_glimmer import MuseGlimmerTextModel

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = MuseGlimmerTextModel(config)
            self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

        def forward(self, ids):
            logits = self.lm_head(self.model(ids).last_hidden_state) * config.output_multiplier
            cap = config.final_logit_softcapping
            return types.SimpleNamespace(logits=torch.tanh(logits / cap) * cap)

    return Network()


def network_of(kind, config):
    if kind == "muse_glimmer_text":
        return muse_with_head(config)
    if kind == "mistral4":  # of which the automatic class knows only the one with eyes
        from transformers.models.mistral4.modeling_mistral4 import Mistral4ForCausalLM
        return Mistral4ForCausalLM(config)
    return AutoModelForCausalLM.from_config(config)


def build(shape, model):
    """The model of transformers with these weights; None: it has no such model."""
    family = FAMILIES[shape.architecture](shape, model)
    if family is None:
        return None
    kind, besides, extra, norm = family
    config = AutoConfig.for_model(kind, **(common(shape) | besides))
    config.tie_word_embeddings = not shape.variant.get("untied", False)
    config._attn_implementation = config._experts_implementation = "eager"
    network = network_of(kind, config).double().eval()
    numbers = {"model.embed_tokens.weight": model.tensor("token_embd.weight"), "model.norm.weight": model.tensor("output_norm.weight")}
    if model.tensor("output_norm.bias") is not None:
        numbers["model.norm.bias"] = model.tensor("output_norm.bias")
    output = model.tensor("output.weight")
    numbers["lm_head.weight"] = model.tensor("token_embd.weight") if output is None else output
    wanted = network.state_dict()
    for layer in range(shape.layers):
        for there, here in common_names(layer, norm):
            if there in wanted and model.tensor(here) is not None:
                numbers[there] = model.tensor(here)
    for some in extra:
        numbers |= some
    numbers = {name: some for name, some in numbers.items() if some is not None}
    missing, unexpected = network.load_state_dict({n: torch.tensor(x) for n, x in numbers.items()}, strict=False)
    if missing or unexpected:
        sys.exit(f"{shape.architecture}: without numbers {missing}, not known {unexpected}")
    return network


def main(names):
    torch.set_default_dtype(torch.float64)
    failed = False
    print(f"{'model':28}{'mean':>10}{'largest':>10}")
    for name, variant in VARIANTS.items():
        if variant["architecture"] not in FAMILIES or (names and name not in names):
            continue
        random = np.random.default_rng(7)
        shape = Shape(variant)
        model = RandomModel(shape, random)
        network = build(shape, model)
        if network is None:
            continue
        ids = random.integers(3, VOCABULARY, shape.tokens)
        with torch.no_grad():
            theirs = torch.log_softmax(network(torch.tensor(ids)[None]).logits[0].double(), -1).numpy()
        if shape.chunk:
            model.chunk = shape.chunk
        ours = Transformer(model).log_probabilities(ids)
        difference = np.abs(theirs - ours)[np.arange(len(ids) - 1), ids[1:]]
        print(f"{name:28}{difference.mean():10.1e}{difference.max():10.1e}", flush=True)
        failed |= not difference.mean() <= BOUND
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
