#!/usr/bin/env python3
"""Beams as Hugging Face transformers finds them, on the tiny llama models of make_tiny_llama.py: tests/engine/beams_test.cc.

usage: make_beams.py OUT.json

Made with torch 2.15.0, transformers 5.23.0 and numpy 2.4.6, of PyPI, on a CPU. Where a torch made for CUDA finds no CUDA
libraries, `pip install nvidia-cufile nvidia-cusparselt-cu13 nvidia-nvshmem-cu13 nvidia-nccl-cu13` beside the toolkit's,
and name all their lib folders in LD_LIBRARY_PATH. Takes four minutes of a core.

The weights are those of make_tiny_llama.py, but for the rows of the output that belong to END_TOKEN_IDS: they are longer,
so that a search meets an end in many of its steps. A case is kept only if models in float32 and in float64 give the same
beams: it then tells searches apart, not roundings.

A beam is [token ids, score, log-probability]: the score by which transformers ranks it, which logit bias and repetition
penalty change, and what the model itself gives its tokens.
"""
import itertools
import json
import sys

import numpy as np
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation import GenerationMode

import make_tiny_llama as tiny

MODELS = {"plain": 3.0, "head_size_apart_biases_untied": 5.0}  # variant: how much longer the rows of ends are
END_TOKEN_IDS = [2, 100, 200]  # the first is the vocabulary's end of sequence
PROMPT_LENGTHS = 1, 2, 7, 16, 33
WIDTHS = range(1, 9)
LENGTH_PENALTIES = -1.0, 0.0, 0.5, 1.0, 2.0
EARLY_STOPPING = True, False, "never"
MAX_TOKENS = 1, 5, 12, 20
ADJUSTMENTS = [{}, {}, {"stop_token_ids": END_TOKEN_IDS[1:]}, {"min_tokens": 4},
               {"stop_token_ids": END_TOKEN_IDS[1:], "min_tokens": 3}, {"repetition_penalty": 1.25},
               {"logit_bias": {"2": 1.5, "7": -2.0, "9": 1.0}}]
ONE_OF = 53  # of all combinations, this part

torch.set_num_threads(1)

# With one beam transformers would draw greedily; its beam search takes one as well.
GenerationConfig.get_generation_mode = lambda *_: GenerationMode.BEAM_SEARCH


def weights(variant, ends_by):
    """As transformers names and lays them out: a head's rotated halves apart, not in pairs of neighbours."""
    d, width = variant["head_dim"], tiny.WIDTH

    def halves(x, heads):
        return x.reshape(heads, d // 2, 2, -1).swapaxes(1, 2).reshape(x.shape)

    def projection(to, name, rows, columns, heads=None):
        arrange = (lambda x: halves(x, heads)) if heads else (lambda x: x)
        state[to + ".weight"] = arrange(tiny.matrix(name + ".weight", rows, columns, 0.25))
        if variant.get("biases"):
            state[to + ".bias"] = arrange(tiny.values(name + ".bias", rows) / 4)

    state = {"model.embed_tokens.weight": tiny.matrix("token_embd.weight", tiny.VOCABULARY, width, 1.0),
             "model.norm.weight": 1.0 + tiny.values("output_norm.weight", width) / 8}
    for layer in range(tiny.LAYERS):
        to, name = f"model.layers.{layer}.", f"blk.{layer}."
        state[to + "input_layernorm.weight"] = 1.0 + tiny.values(name + "attn_norm.weight", width) / 8
        state[to + "post_attention_layernorm.weight"] = 1.0 + tiny.values(name + "ffn_norm.weight", width) / 8
        projection(to + "self_attn.q_proj", name + "attn_q", tiny.HEADS * d, width, tiny.HEADS)
        projection(to + "self_attn.k_proj", name + "attn_k", tiny.KV_HEADS * d, width, tiny.KV_HEADS)
        projection(to + "self_attn.v_proj", name + "attn_v", tiny.KV_HEADS * d, width)
        projection(to + "self_attn.o_proj", name + "attn_output", width, tiny.HEADS * d)
        projection(to + "mlp.gate_proj", name + "ffn_gate", tiny.HIDDEN, width)
        projection(to + "mlp.up_proj", name + "ffn_up", tiny.HIDDEN, width)
        projection(to + "mlp.down_proj", name + "ffn_down", width, tiny.HIDDEN)
    untied = variant.get("untied", False)
    output = tiny.matrix("output.weight", tiny.VOCABULARY, width, 0.25) if untied else state["model.embed_tokens.weight"]
    output[END_TOKEN_IDS] *= ends_by
    state["lm_head.weight"] = output
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()}


def make_model(variant, ends_by, dtype):
    config = LlamaConfig(
        vocab_size=tiny.VOCABULARY, hidden_size=tiny.WIDTH, intermediate_size=tiny.HIDDEN, num_hidden_layers=tiny.LAYERS,
        num_attention_heads=tiny.HEADS, num_key_value_heads=tiny.KV_HEADS, head_dim=variant["head_dim"],
        max_position_embeddings=512, rms_norm_eps=tiny.EPSILON, tie_word_embeddings=not variant.get("untied", False),
        attention_bias=variant.get("biases", False), mlp_bias=variant.get("biases", False),
        rope_parameters={"rope_type": "default", "rope_theta": tiny.BASE}, attn_implementation="eager",
        bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model = LlamaForCausalLM(config).to(dtype).eval()
    model.load_state_dict(weights(variant, ends_by), strict=True)
    return model


def log_probabilities(model, ids):
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1).numpy()


def check(name, variant):
    """The model is the one of make_tiny_llama.py, as long as no row is made longer."""
    ids = list(range(3, 40))
    difference = log_probabilities(make_model(variant, 1.0, torch.float64), ids) - tiny.log_probabilities(ids, variant)
    # transformers takes the angles of positions in float32.
    assert np.abs(difference).max() < 1e-4, f"{name}: another model than make_tiny_llama.py's"


def search(model, prompt, case):
    adjusted = {}
    if "logit_bias" in case:
        adjusted["sequence_bias"] = [[[int(token)], bias] for token, bias in case["logit_bias"].items()]
    if "repetition_penalty" in case:
        adjusted["repetition_penalty"] = case["repetition_penalty"]
    if "min_tokens" in case:
        adjusted["min_new_tokens"] = case["min_tokens"]
    with torch.no_grad():
        found = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
            num_beams=case["beam_width"], num_return_sequences=case["beam_width"], max_new_tokens=case["max_tokens"],
            length_penalty=case["length_penalty"], early_stopping=case["early_stopping"],
            eos_token_id=[END_TOKEN_IDS[0]] + case.get("stop_token_ids", []), pad_token_id=0,
            return_dict_in_generate=True, output_scores=True, **adjusted)
    beams = []
    for sequence, score, origin in zip(found.sequences.tolist(), found.sequences_scores.tolist(), found.beam_indices):
        tokens = sequence[len(prompt): len(prompt) + int((origin >= 0).sum())]
        rows = log_probabilities(model, prompt + tokens)[len(prompt) - 1: -1]
        beams.append([tokens, round(score, 6), round(float(sum(row[token] for row, token in zip(rows, tokens))), 6)])
    return beams


def all_cases():
    combinations = itertools.product(MODELS, range(len(PROMPT_LENGTHS)), MAX_TOKENS, LENGTH_PENALTIES, EARLY_STOPPING, WIDTHS,
                                     ADJUSTMENTS)
    for number, (model, prompt, most, penalty, early, width, adjustment) in enumerate(combinations):
        # Our search has no "never"; for these penalties it is what false is.
        if early == "never" and penalty > 0 or most < adjustment.get("min_tokens", 0):
            continue
        if int(tiny.mix64(np.uint64(number)) >> np.uint64(32)) % ONE_OF == 0:
            yield {"model": model, "prompt": prompt, "beam_width": width, "max_tokens": most, "length_penalty": penalty,
                   "early_stopping": early, **adjustment}


def main(out):
    prompts = [[int(i) for i in tiny.mix64(np.arange(1000 * n, 1000 * n + n, dtype=np.uint64)) % np.uint64(tiny.VOCABULARY)]
               for n in PROMPT_LENGTHS]
    models = {}
    for name, ends_by in MODELS.items():
        check(name, tiny.VARIANTS[name])
        models[name] = [make_model(tiny.VARIANTS[name], ends_by, dtype) for dtype in (torch.float64, torch.float32)]
    cases, left_out, early, beams_seen = [], 0, 0, 0
    for case in all_cases():
        exact, rounded = (search(model, prompts[case["prompt"]], case) for model in models[case["model"]])
        if [beam[0] for beam in exact] != [beam[0] for beam in rounded]:
            left_out += 1
            continue
        cases.append({**case, "beams": exact})
        beams_seen += len(exact)
        early += sum(len(beam[0]) < case["max_tokens"] for beam in exact)
    header = {"made_by": "tests/golden/make_beams.py", "end_token_ids": END_TOKEN_IDS,
              "models": [{"name": name, "ends_by": by, **tiny.VARIANTS[name], "rope_factors": []} for name, by in MODELS.items()],
              "prompts": prompts}
    with open(out, "w") as file:
        file.write(json.dumps(header)[:-1] + ', "cases": [\n' +
                   ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]}\n")
    print(f"{len(cases)} cases, {left_out} left out, {early} of {beams_seen} beams end before max_tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
