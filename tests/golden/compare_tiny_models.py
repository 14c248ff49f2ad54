#!/usr/bin/env python3
"""Writes tiny random models of every architecture with the PyPI package gguf, in several types, and compares the prompt
log-probabilities of the program with those of tiny_transformer.py and, if asked, of llama.cpp.

Needs: numpy gguf, and for llama.cpp the PyPI package llama-cpp-python (or its source in PYTHONPATH).
usage: compare_tiny_models.py OCTAVO [--llama-cpp FOLDER] [--types F32,F16,Q8_0,...] [--models NAME,...] [--keep FOLDER]
  FOLDER of llama.cpp holds libllama.so. Its attention runs with float32 keys and values. With anything but F32 it rounds
  activations, and GELU it takes from a table of float16: what differs there is its doing.
Prints the mean and the largest |difference| for each; exit status 1 if a mean against tiny_transformer.py is above 1e-4.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from tiny_shapes import VARIANTS, Shape
from tiny_transformer import Transformer

BOUND = 1e-4
FLOATS = ("ffn_gate_inp", "per_layer_model_proj", "position_embd", "shortconv.conv", "ssm_conv1d", "ssm_norm")  # in every file
BYTES = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]  # which GPT-2 spells as themselves


def vocabulary():
    others = [b for b in range(256) if b not in BYTES]
    spelling = {b: chr(b) for b in BYTES} | {b: chr(0x100 + i) for i, b in enumerate(others)}
    merges = ["Ġ t", "h e", "Ġ a", "i n", "Ġt he", "e r", "o n", "r e", "Ġ s", "o u"]
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [spelling[b] for b in range(256)] + [m.replace(" ", "") for m in merges]
    return tokens, merges


def add_vocabulary(writer):
    tokens, merges = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


def write_model(shape, kind, path, random):
    writer = gguf.GGUFWriter(path, shape.architecture)
    for suffix, value in shape.keys.items():
        name = f"{shape.architecture}.{suffix}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        else:
            writer.add_uint32(name, value)
    add_vocabulary(writer)
    for name, rows, columns, centre, scale, *experts in shape.tensors:
        numbers = (centre + scale * random.uniform(-1, 1, (rows, columns) if rows else columns)).astype(np.float32)
        if experts and experts[0] > 1:  # of each expert
            numbers = numbers.reshape(experts[0], -1, columns)
        is_weight = rows is not None and name.endswith(".weight") and not any(n in name for n in FLOATS)
        tensor_kind = kind if is_weight else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(numbers, tensor_kind), raw_dtype=tensor_kind)
    for name, numbers in shape.tables().items():
        writer.add_tensor(name, np.array(numbers, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class FileModel:
    """What stands in the file, as PyPI gguf reads it."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.architecture = reader.fields["general.architecture"].contents()
        self.tensors = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def key(self, suffix, default=None):
        field = self.fields.get(f"{self.architecture}.{suffix}")
        return default if field is None else field.contents()

    def tensor(self, name):
        return self.tensors.get(name)


def octavo_logprobs(program, path, token_ids, shape):
    request = {"prompt_token_ids": token_ids, "sampling": {"max_tokens": 1}}
    command = [program, "generate", "--json", "--model", path, "--device", "cpu", "--activation-dtype", "f32",
               "--kv-cache-dtype", "f32", "--prompt-logprobs", "--requests-file", "-"]
    if shape.max_model_len:
        command += ["--max-model-len", str(shape.max_model_len)]
    done = subprocess.run(command, input=json.dumps(request) + "\n", capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}{done.stdout[-500:]}")
    return np.array(json.loads(done.stdout)["requests"][0]["prompt_logprobs"][1:], dtype=np.float64)


class LlamaCpp:
    """Through the few functions of llama.h that it takes."""

    def __init__(self, folder):
        os.environ["LLAMA_CPP_LIB_PATH"] = folder
        import llama_cpp
        self.api = llama_cpp
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p())
        llama_cpp.llama_backend_init()

    def logprobs(self, path, token_ids, shape):
        api = self.api
        model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        if not model:
            return None
        params = api.llama_context_default_params()
        params.n_ctx = max(shape.max_model_len or shape.context_length, len(token_ids))
        params.n_batch = params.n_ubatch = max(64, len(token_ids))
        params.type_k = params.type_v = 0  # float32
        params.flash_attn_type = 0         # off
        context = api.llama_init_from_model(model, params)
        batch = api.llama_batch_init(len(token_ids), 0, 1)
        batch.n_tokens = len(token_ids)
        for i, token in enumerate(token_ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
        if api.llama_decode(context, batch):
            return None
        size = len(vocabulary()[0])
        logits = np.stack([np.ctypeslib.as_array(api.llama_get_logits_ith(context, i), (size,)) for i in range(len(token_ids))])
        api.llama_batch_free(batch)
        api.llama_free(context)
        api.llama_model_free(model)
        logits = logits.astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return chosen(table, token_ids)


def chosen(table, token_ids):
    return np.array([table[i, token_ids[i + 1]] for i in range(len(token_ids) - 1)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--llama-cpp")
    parser.add_argument("--types", default="F32,F16,Q8_0,Q4_0,Q5_1")
    parser.add_argument("--models", help="variants of tiny_shapes.py; all if it is not given")
    parser.add_argument("--keep")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    llama_cpp = LlamaCpp(options.llama_cpp) if options.llama_cpp else None
    random = np.random.default_rng(options.seed)
    failed = False
    print(f"{'model':24}{'type':6}{'mean':>10}{'largest':>10}{'llama.cpp: mean':>18}{'largest':>10}")
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or folder
        for name, variant in VARIANTS.items():
            if options.models and name not in options.models.split(","):
                continue
            for kind in options.types.split(","):
                shape = Shape(variant)
                columns = [c for name, rows, c, *_ in shape.tensors if rows is not None and rows > 1 and name.endswith(".weight")]
                if any(c % 32 for c in columns) and kind not in ("F32", "F16", "BF16"):  # blocks of 32
                    continue
                path = os.path.join(folder, f"{name}-{kind}.gguf")
                write_model(shape, gguf.GGMLQuantizationType[kind], path, random)
                token_ids = [int(i) for i in random.integers(3, 269, shape.tokens)]
                ours = octavo_logprobs(options.program, path, token_ids, shape)
                expected = chosen(Transformer(FileModel(path), shape.max_model_len).log_probabilities(token_ids), token_ids)
                difference = np.abs(ours - expected)
                line = f"{name:24}{kind:6}{difference.mean():10.1e}{difference.max():10.1e}"
                if llama_cpp and variant.get("llama_cpp", True):
                    theirs = llama_cpp.logprobs(path, token_ids, shape)
                    apart = None if theirs is None else np.abs(ours - theirs)
                    line += f"{'refused':>18}" if apart is None else f"{apart.mean():18.1e}{apart.max():10.1e}"
                print(line, flush=True)
                failed |= not difference.mean() <= BOUND
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
