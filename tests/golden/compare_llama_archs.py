#!/usr/bin/env python3
"""Files that llama.cpp itself made, of its test-llama-archs, in the program and in llama.cpp: every key that it knows stands in
them, and every optional tensor, with random values. What is not computed must be refused by name.

Needs: numpy gguf, and the PyPI package llama-cpp-python (or its source in PYTHONPATH).
usage: test-llama-archs -s SEED -d 0.3 -o FILES; compare_llama_archs.py OCTAVO FILES --llama-cpp FOLDER [--only NAME,...] [--keep FOLDER]
  FOLDER of llama.cpp holds libllama.so. Both read a copy with a vocabulary that the program knows, without the tensors and keys of
  OMITTED and SWITCHES, all of which the program refuses by name, and with positive divisors of frequencies.
Prints the mean and the largest |difference| of the prompt's log-probabilities, their spread, or the sentence of a refusal.
Architectures that the program does not know are named at the end. Exit status 1 if a mean is above 0.002: GELU llama.cpp looks up
in a table of float16.
"""
import argparse
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
from compare_tiny_models import LlamaCpp, Refusal, add_vocabulary, column, octavo_logprobs

BOUND = 2e-3
TOKENS = 100  # three windows

# What stands in no published file: scales of matrices whose type has none, the head of a model that ranks, and in some families a
# second form of what is read, biases of queries that their gates stand among, or what llama.cpp reads and leaves at that (the
# program applies it).
OMITTED = (".scale", ".input_scale", "cls.output.weight", "cls.output.bias")
ALSO_OMITTED = {"falcon-h1": ("rope_freqs.weight", "attn_output.bias"), "qwen35": ("attn_q.bias",), "qwen35moe": ("attn_q.bias",),
                "qwen3next": ("attn_q.bias", "ssm_in.weight")}
# With it llama.cpp turns other pairs than in the models of these names.
SWITCHES = ("ernie4_5.rope.dimension_sections", "glm4.rope.dimension_sections", "glm4moe.rope.dimension_sections")


def is_omitted(architecture, name):
    return name.endswith(OMITTED + ALSO_OMITTED.get(architecture, ()))


def copy_with_vocabulary(source, target):
    reader = gguf.GGUFReader(source)
    keys = {name: field for name, field in reader.fields.items() if not name.startswith(("GGUF.", "tokenizer."))}
    architecture = keys.pop("general.architecture").contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in keys.items():
        value, is_list = field.contents(), field.types[0] == gguf.GGUFValueType.ARRAY
        if name not in SWITCHES and (not is_list or len(value) > 0):  # the package writes no empty list
            writer.add_key_value(name, value, field.types[0], field.types[-1] if is_list else None)
    add_vocabulary(writer, len(reader.fields["tokenizer.ggml.tokens"].contents()))
    for tensor in reader.tensors:
        divides = tensor.name.startswith("rope_")
        if not is_omitted(architecture, tensor.name):
            writer.add_tensor(tensor.name, 1 + np.abs(tensor.data) if divides else tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("files", type=Path)
    parser.add_argument("--llama-cpp", required=True)
    parser.add_argument("--only", help="names of files without .gguf")
    parser.add_argument("--keep")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    llama_cpp = LlamaCpp(options.llama_cpp)
    random = np.random.default_rng(options.seed)
    shape = SimpleNamespace(max_model_len=None, context_length=256)
    failed, unknown = False, []
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(options.files.glob("*.gguf")):
            if options.only and file.stem not in options.only.split(","):
                continue
            path = str(Path(options.keep or folder) / file.name)
            copy_with_vocabulary(file, path)
            token_ids = [int(i) for i in random.integers(3, 128, TOKENS)]
            try:
                ours = octavo_logprobs(options.program, path, token_ids, shape, "f32")
            except Refusal as refusal:
                if '"general.architecture" is' in str(refusal):
                    unknown.append(file.stem)
                else:
                    print(f"{file.stem:24} {refusal}", flush=True)
                continue
            theirs = llama_cpp.logprobs(path, token_ids, shape)
            print(f"{file.stem:24}{column(ours, theirs)}   spread {ours.std():.3f}", flush=True)
            failed |= theirs is not None and not np.abs(ours - theirs).mean() <= BOUND
    print("not known: " + ", ".join(unknown))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
