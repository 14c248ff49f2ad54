#!/usr/bin/env python3
"""Writes tiny random models of every architecture with the PyPI package gguf, in several types, and compares the prompt
log-probabilities of the program with those of tiny_transformer.py and, if asked, of llama.cpp.

Needs: numpy gguf, and for llama.cpp the PyPI package llama-cpp-python (or its source in PYTHONPATH).
usage: compare_tiny_models.py OCTAVO [--llama-cpp FOLDER] [--types F32,F16,Q8_0,...] [--models NAME,...] [--kv f16] [--keep FOLDER]
  FOLDER of llama.cpp holds libllama.so. Its attention runs with float32 keys and values, whatever --kv says of the program's.
  With anything but F32 it rounds activations, and GELU it takes from a table of float16: what differs there is its doing.
  With --kv f16 tiny_transformer.py rounds keys and values alike, and a further column stands against one that does not: there
  the rounding makes a router choose another expert now and then, and a token's log-probability is another one.
Prints the mean and the largest |difference| for each; exit status 1 if a mean against tiny_transformer.py is too large. Of
layers that only guess, which the program does not show, llama.cpp's predictions stand against those of tiny_transformer.py.
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
from make_tiny_models import PREDICTING
from tiny_shapes import VARIANTS, Shape
from tiny_transformer import Transformer

BOUNDS = {"f32": 1e-4, "f16": 1e-3}  # of means against tiny_transformer.py; float16 of what lies between two is either
KEPT = {"f32": np.float64, "f16": np.float16}  # what tiny_transformer.py keeps of keys and values
FLOATS = ("ffn_gate_inp", "per_layer_model_proj", "position_embd", "shortconv.conv", "ssm_conv1d", "ssm_norm")  # in every file
BYTES = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]  # which GPT-2 spells as themselves


def vocabulary():
    others = [b for b in range(256) if b not in BYTES]
    spelling = {b: chr(b) for b in BYTES} | {b: chr(0x100 + i) for i, b in enumerate(others)}
    merges = ["Ġ t", "h e", "Ġ a", "i n", "Ġt he", "e r", "o n", "r e", "Ġ s", "o u"]
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [spelling[b] for b in range(256)] + [m.replace(" ", "") for m in merges]
    return tokens, merges


def add_vocabulary(writer, size=None):
    """size: of fewer tokens than there are bytes, or of more."""
    tokens, merges = vocabulary()
    if size is not None:
        tokens, merges = (tokens + [f"further {i}" for i in range(size)])[:size - 1] + ["".join(tokens[3:5])], [" ".join(tokens[3:5])]
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


class Refusal(SystemExit):
    """What the program says; not caught, this script's end."""


def octavo_logprobs(program, path, token_ids, shape, kv):
    request = {"prompt_token_ids": token_ids, "sampling": {"max_tokens": 1}}
    command = [program, "generate", "--json", "--model", path, "--device", "cpu", "--activation-dtype", "f32",
               "--kv-cache-dtype", kv, "--prompt-logprobs", "--requests-file", "-"]
    if shape.max_model_len:
        command += ["--max-model-len", str(shape.max_model_len)]
    done = subprocess.run(command, input=json.dumps(request) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise Refusal((done.stderr + done.stdout[-500:]).strip())
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
        """None: it refuses the file."""
        model = self.load(path, with_guessing=False)
        if not model:
            return None
        context = self.context(model, token_ids, shape)
        table = self.decode(context, token_ids, first=0)
        self.api.llama_free(context)
        self.api.llama_model_free(model)
        return None if table is None else chosen(table, token_ids)

    def predictions(self, path, token_ids, shape):
        """Of the first layer behind the model's own: of each token but the first two, what it knows two tokens before."""
        from llama_cpp import llama_cpp_ext
        model = self.load(path, with_guessing=True)
        if not model:
            return None
        context = self.context(model, token_ids, shape)
        llama_cpp_ext.llama_set_embeddings_nextn(context, True, False)
        guessing = self.context(model, token_ids, shape, guesses_for=context)
        table = None
        if guessing and self.decode(context, token_ids, first=0) is not None:
            rows = np.ctypeslib.as_array(llama_cpp_ext.llama_get_embeddings_nextn(context), (len(token_ids), shape.width))
            table = self.decode(guessing, token_ids[1:], first=1, rows=np.ascontiguousarray(rows[:-1]))
        for each in (guessing, context):
            self.api.llama_free(each)
        self.api.llama_model_free(model)
        return None if table is None else chosen(table, token_ids[1:])

    def load(self, path, with_guessing):
        params = self.api.llama_model_default_params()
        params.load_mtp = with_guessing
        return self.api.llama_model_load_from_file(path.encode(), params)

    def context(self, model, token_ids, shape, guesses_for=None):
        params = self.api.llama_context_default_params()
        params.n_ctx = max(shape.max_model_len or shape.context_length, len(token_ids))
        params.n_batch = params.n_ubatch = max(64, len(token_ids))
        params.type_k = params.type_v = 0  # float32
        params.flash_attn_type = 0         # off
        if guesses_for:
            params.ctx_type, params.ctx_other = 1, guesses_for
        return self.api.llama_init_from_model(model, params)

    def decode(self, context, token_ids, first, rows=None):
        """Log-probabilities of what follows each token, of which the first stands at position `first`; `rows`: beside tokens."""
        api = self.api
        batch = api.llama_batch_init(len(token_ids), 0, 1)
        batch.n_tokens = len(token_ids)
        for i, token in enumerate(token_ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, first + i, 1, 0, 1
        if rows is not None:
            batch.embd = rows.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        failed = api.llama_decode(context, batch)
        batch.embd = None  # which is not the batch's to free
        api.llama_batch_free(batch)
        if failed:
            return None
        size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(api.llama_get_model(context)))
        logits = np.stack([np.ctypeslib.as_array(api.llama_get_logits_ith(context, i), (size,)) for i in range(len(token_ids))])
        logits = logits.astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def chosen(table, token_ids):
    return np.array([table[i, token_ids[i + 1]] for i in range(len(token_ids) - 1)])


def column(ours, theirs):
    if theirs is None:
        return f"{'refused':>18}"
    apart = np.abs(ours - theirs)
    return f"{apart.mean():18.1e}{apart.max():10.1e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--llama-cpp")
    parser.add_argument("--types", default="F32,F16,Q8_0,Q4_0,Q5_1")
    parser.add_argument("--models", help="variants of tiny_shapes.py; all if it is not given")
    parser.add_argument("--kv", choices=KEPT, default="f32", help="type of the program's keys and values")
    parser.add_argument("--keep")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    llama_cpp = LlamaCpp(options.llama_cpp) if options.llama_cpp else None
    random = np.random.default_rng(options.seed)
    failed = False
    headings = ([] if options.kv == "f32" else ["exact: mean"]) + (["llama.cpp: mean"] if llama_cpp else [])
    print(f"{'model':28}{'type':6}{'mean':>10}{'largest':>10}" + "".join(f"{h:>18}{'largest':>10}" for h in headings))
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
                ours = octavo_logprobs(options.program, path, token_ids, shape, options.kv)
                oracle = Transformer(FileModel(path), shape.max_model_len, KEPT[options.kv])
                difference = np.abs(ours - chosen(oracle.log_probabilities(token_ids), token_ids))
                line = f"{name:28}{kind:6}{difference.mean():10.1e}{difference.max():10.1e}"
                if options.kv != "f32":
                    exact = Transformer(FileModel(path), shape.max_model_len)
                    line += column(ours, chosen(exact.log_probabilities(token_ids), token_ids))
                if llama_cpp and variant.get("llama_cpp", True):
                    line += column(ours, llama_cpp.logprobs(path, token_ids, shape))
                print(line, flush=True)
                failed |= not difference.mean() <= BOUNDS[options.kv]
                if llama_cpp and shape.predicted and shape.architecture in PREDICTING:
                    expected = chosen(oracle.predictions(token_ids, []), token_ids[1:])
                    print(f"{'  its guesses':54}" + column(expected, llama_cpp.predictions(path, token_ids, shape)), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
