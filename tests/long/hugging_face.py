#!/usr/bin/env python3
"""Tiny random models of every family as Hugging Face folders that `transformers` itself writes, and the prompt log-probabilities
of the program on them against those of `transformers`; and the default model, taken apart into a folder of floats, against its file,
and its /v1/embeddings, of the last token and as a mean, against the hidden states of `transformers`.

Needs: numpy gguf torch transformers tokenizers safetensors (tests/golden/compare_transformers.py says how torch runs here).
usage: hugging_face.py OCTAVO [--keep FOLDER] [--default-model FILE] [MODEL...]
Prints the mean and the largest |difference| of each; ends with "N passed, M failed, K skipped"; exit status 1 when any failed: a
mean above 0.002, an embedding whose cosine is 0.9999 or less, or a folder that the program refuses.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))

import gguf  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from compare_tiny_models import Refusal, octavo_logprobs, vocabulary  # noqa: E402
from clients import Server  # noqa: E402
from compare_transformers import FAMILIES, RandomModel, build  # noqa: E402
from tiny_shapes import VARIANTS, VOCABULARY, Shape  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

BOUND = 0.002  # of means
LEAST_COSINE = 0.9999

# Families whose random models `transformers` makes from a configuration alone: {name: (model type, configuration)}.
USUAL = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False, pad_token_id=None, bos_token_id=None,
             eos_token_id=None)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
              rope_theta=500000.0)
LONG = dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=64, short_factor=[1.0 + 0.1 * i for i in range(8)],
            long_factor=[1.5 + 0.5 * i for i in range(8)])
BY_CONFIGURATION = {
    "llama": ("llama", USUAL | dict(rms_norm_eps=1e-5)),
    "llama_tied_biases": ("llama", USUAL | dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=24)),
    "llama3_rope": ("llama", USUAL | dict(rope_parameters=LLAMA3)),
    "llama_linear_rope": ("llama", USUAL | dict(rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=10000.0))),
    "llama_yarn": ("llama", USUAL | dict(rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=10000.0,
                                                              original_max_position_embeddings=32))),
    "mistral": ("mistral", USUAL | dict(sliding_window=8)),
    "mistral_without_window": ("mistral", USUAL | dict(sliding_window=None, head_dim=32)),
    "mixtral": ("mixtral", USUAL | dict(num_local_experts=6, num_experts_per_tok=2, sliding_window=None)),
    "qwen2": ("qwen2", USUAL),
    "qwen2_tied": ("qwen2", USUAL | dict(tie_word_embeddings=True)),
    "qwen3": ("qwen3", USUAL | dict(head_dim=32)),
    "qwen3_moe": ("qwen3_moe", USUAL | dict(head_dim=32, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=48,
                                            norm_topk_prob=True)),
    "gemma": ("gemma", USUAL | dict(head_dim=24, tie_word_embeddings=True)),
    "gemma2": ("gemma2", USUAL | dict(head_dim=24, sliding_window=8, query_pre_attn_scalar=16, tie_word_embeddings=True)),
    "gemma3": ("gemma3_text", USUAL | dict(head_dim=24, num_hidden_layers=7, sliding_window=8, query_pre_attn_scalar=20,
                                           tie_word_embeddings=True)),
    "phi3": ("phi3", USUAL | dict(sliding_window=None)),
    "phi3_window": ("phi3", USUAL | dict(sliding_window=8)),
    "phi3_long_within": ("phi3", USUAL | dict(sliding_window=None, rope_parameters=LONG, original_max_position_embeddings=64)),
    "phi3_long_beyond": ("phi3", USUAL | dict(sliding_window=None, rope_parameters=LONG, original_max_position_embeddings=64)),
    "gpt2": ("gpt2", dict(vocab_size=VOCABULARY, n_embd=64, n_layer=3, n_head=4, n_positions=128, n_inner=96, bos_token_id=None,
                          eos_token_id=None)),
    "gpt2_odd_sizes": ("gpt2", dict(vocab_size=VOCABULARY, n_embd=57, n_layer=2, n_head=3, n_positions=128, bos_token_id=None,
                                    eos_token_id=None)),
    "opt": ("opt", dict(vocab_size=VOCABULARY, hidden_size=64, ffn_dim=96, num_hidden_layers=3, num_attention_heads=4,
                        max_position_embeddings=128, word_embed_proj_dim=64, pad_token_id=1, bos_token_id=2, eos_token_id=2)),
    "olmo2": ("olmo2", USUAL),
    "granite": ("granite", USUAL | dict(embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0,
                                        attention_multiplier=0.2)),
    "starcoder2": ("starcoder2", USUAL | dict(sliding_window=None, tie_word_embeddings=True, hidden_act="gelu_pytorch_tanh")),
    "stablelm": ("stablelm", USUAL | dict(use_qkv_bias=True)),
    "cohere": ("cohere", USUAL | dict(tie_word_embeddings=True, logit_scale=0.25)),
    "smollm3": ("smollm3", USUAL | dict(num_hidden_layers=5)),
    "ernie4_5": ("ernie4_5", USUAL | dict(head_dim=16)),
    "glm4": ("glm4", USUAL | dict(head_dim=16)),
    "seed_oss": ("seed_oss", USUAL | dict(head_dim=32)),
}


def write_vocabulary(folder):
    """Bytes and ten merges, as tests/support/gguf_writer.h has them."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    tokens, merges = vocabulary()
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(merge.split()) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in tokens[:3]])
    tokenizer.save(str(folder / "tokenizer.json"))


def randomise(network, random):
    """Weights of some size, norms near what they start from, so that every part of the model is heard."""
    for name, weight in network.state_dict().items():
        if not weight.is_floating_point():
            continue
        scale = 0.1 if weight.ndim < 2 else 1.5 * weight.shape[-1]**-0.5
        start = weight.double().numpy() if "norm" in name or "ln_" in name else 0.0
        weight.copy_(torch.tensor((start + scale * random.uniform(-1, 1, tuple(weight.shape))).astype(np.float32)))


def log_probabilities(network, ids):
    with torch.no_grad():
        return torch.log_softmax(network(torch.tensor(ids)[None]).logits[0].double(), -1).numpy()[np.arange(len(ids) - 1), ids[1:]]


class Runs:
    def __init__(self, program, folder):
        self.program, self.folder, self.passed, self.failed, self.skipped = program, folder, 0, 0, 0

    def check(self, name, path, ids, expected, shape, bound=BOUND):
        try:
            found = octavo_logprobs(self.program, str(path), [int(i) for i in ids], shape, "f32")
        except Refusal as refusal:
            print(f"{name:32}refused: {refusal}", flush=True)
            self.failed += 1
            return
        difference = np.abs(found - expected)
        good = difference.mean() <= bound
        print(f"{name:32}{difference.mean():10.1e}{difference.max():10.1e}{'' if good else '   too far'}", flush=True)
        self.passed, self.failed = self.passed + good, self.failed + (not good)

    def skip(self, name, why):
        print(f"{name:32}skipped: {why}", flush=True)
        self.skipped += 1


class AnyShape:
    def __init__(self, max_model_len=None):
        self.max_model_len = max_model_len


# Which factors LongRoPE takes is chosen by the longest context of the engine, there by the text's length: {name: (engine's, tokens)}.
LENGTHS = {"phi3_long_within": (64, 60), "phi3_long_beyond": (128, 100)}


def save(network, folder):
    network.config.eos_token_id = network.generation_config.eos_token_id = None  # of glm4: beyond this vocabulary
    network.float().save_pretrained(folder)
    write_vocabulary(folder)


def of_configuration(runs, name):
    kind, config = BY_CONFIGURATION[name]
    random = np.random.default_rng(11)
    config = AutoConfig.for_model(kind, **config)
    config._attn_implementation = config._experts_implementation = "eager"  # others know no float64
    network = AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        randomise(network, random)
    longest, num_tokens = LENGTHS.get(name, (None, 60))
    ids = random.integers(3, VOCABULARY, num_tokens)
    expected = log_probabilities(network, ids)
    folder = runs.folder / name
    save(network, folder)
    runs.check(name, folder, ids, expected, AnyShape(longest))


def of_shape(runs, name):
    shape = Shape(VARIANTS[name])
    random = np.random.default_rng(7)
    network = build(shape, RandomModel(shape, random))
    if network is None or not hasattr(network, "save_pretrained"):
        runs.skip(name, "transformers has no such model")
        return
    if getattr(network.config, "attention_chunk_size", None) not in (None, 8192):
        runs.skip(name, "chunks of 8,192 positions only, which published models have")
        return
    ids = random.integers(3, VOCABULARY, shape.tokens)
    expected = log_probabilities(network, ids)
    folder = runs.folder / f"shape_{name}"
    save(network, folder)
    runs.check("shape " + name, folder, ids, expected, shape)


def of_default_model(runs, path):
    """A llama: its file's numbers as float32, under the names that its makers gave them."""
    from safetensors.numpy import save_file
    reader = gguf.GGUFReader(path)
    field = {name: each.contents() for name, each in reader.fields.items() if not name.startswith("tokenizer.")}
    assert field["general.architecture"] == "llama"
    heads, kv_heads = field["llama.attention.head_count"], field["llama.attention.head_count_kv"]
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    ends = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    weights = {}
    for tensor in reader.tensors:
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        name, part = tensor.name.rsplit(".", 1)
        if name in ends:
            weights[f"{ends[name]}.{part}"] = numbers
            continue
        _, layer, name = name.split(".")
        if name in ("attn_q", "attn_k"):
            count = heads if name == "attn_q" else kv_heads
            numbers = numbers.reshape(count, -1, 2, numbers.shape[-1]).swapaxes(1, 2).reshape(numbers.shape)
        weights[f"model.layers.{layer}.{names[name]}.{part}"] = np.ascontiguousarray(numbers)
    folder = runs.folder / "default_model"
    folder.mkdir()
    save_file(weights, folder / "model.safetensors")
    size = len(reader.fields["tokenizer.ggml.tokens"].data)
    (folder / "config.json").write_text(json.dumps(dict(
        model_type="llama", vocab_size=size, hidden_size=field["llama.embedding_length"],
        intermediate_size=field["llama.feed_forward_length"], num_hidden_layers=field["llama.block_count"], num_attention_heads=heads,
        num_key_value_heads=kv_heads, max_position_embeddings=field["llama.context_length"],
        rms_norm_eps=float(field["llama.attention.layer_norm_rms_epsilon"]), rope_theta=float(field["llama.rope.freq_base"]),
        tie_word_embeddings="output.weight" not in {t.name for t in reader.tensors})))
    write_vocabulary(folder)
    ids = [int(i) for i in np.random.default_rng(3).integers(3, size, 200)]
    expected = octavo_logprobs(runs.program, str(path), ids, AnyShape(), "f32")
    runs.check("default model", folder, ids, expected, AnyShape())
    check_embeddings(runs, path, folder, size)


def check_embeddings(runs, path, folder, vocabulary_size):
    """Of the default model: the file's, and those of the folder that holds its numbers."""
    random = np.random.default_rng(4)
    texts = [[int(i) for i in random.integers(3, vocabulary_size, length)] for length in (1, 2, 17, 100, 300)]
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval().model
    with torch.no_grad():
        hidden = [network(torch.tensor(ids)[None]).last_hidden_state[0].numpy() for ids in texts]
    expected = {"last": [states[-1] for states in hidden], "mean": [states.mean(axis=0) for states in hidden]}
    for source in (path, folder):
        server = Server(runs.program, "--model", str(source), "--activation-dtype", "f32", "--kv-cache-dtype", "f32")
        try:
            for pooling, vectors in expected.items():
                status, _, text = server.request("POST", "/v1/embeddings", {"input": texts, "pooling": pooling}, timeout=900)
                assert status == 200, text
                found = [np.array(one["embedding"]) for one in json.loads(text)["data"]]
                cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(found, vectors, strict=True)]
                good = min(cosines) > LEAST_COSINE
                print(f"{'embeddings, ' + pooling + (', folder' if source is folder else ', file'):32}1 - cosine at most "
                      f"{1 - min(cosines):.1e}{'' if good else '   too far'}", flush=True)
                runs.passed, runs.failed = runs.passed + good, runs.failed + (not good)
        finally:
            server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--default-model", type=pathlib.Path)
    arguments = parser.parse_intermixed_args()
    torch.set_default_dtype(torch.float64)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = Runs(arguments.program, folder)
        wanted = lambda name: not arguments.models or name in arguments.models  # noqa: E731
        print(f"{'model':32}{'mean':>10}{'largest':>10}")
        for name in filter(wanted, BY_CONFIGURATION):
            of_configuration(runs, name)
        for name in VARIANTS:
            if VARIANTS[name]["architecture"] in FAMILIES and wanted("shape_" + name):
                of_shape(runs, name)
        if wanted("default_model"):
            if arguments.default_model is None or not arguments.default_model.exists():
                runs.skip("default model", "give it with --default-model")
            else:
                of_default_model(runs, arguments.default_model)
    print(f"{runs.passed} passed, {runs.failed} failed, {runs.skipped} skipped")
    sys.exit(1 if runs.failed else 0)


if __name__ == "__main__":
    main()
