#!/usr/bin/env python3
"""Writes gguf.json: what PyPI gguf reads from the default model, and the sizes of every type that ggml stores.

Needs: pip install gguf numpy.  Usage: make_gguf.py SmolLM2-135M-Instruct.Q4_1.gguf > gguf.json
"""
import json
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGUFReader
from gguf.quants import dequantize

NEVER_STORED = {"Q8_1", "Q8_K"}  # types of intermediate results

reader = GGUFReader(sys.argv[1])
contents = {key: field.contents() for key, field in reader.fields.items()}


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def string_list(key):
    joined = b"".join(len(s.encode()).to_bytes(8, "little") + s.encode() for s in contents[key])
    return {"count": len(contents[key]), "first": contents[key][:40], "last": contents[key][-20:], "fnv1a": fnv1a(joined)}


tensors = []
for tensor in reader.tensors:
    row_bytes = tensor.data.reshape(-1, tensor.data.shape[-1])[-1:]
    last_row = dequantize(row_bytes, tensor.tensor_type).astype(np.float32).reshape(-1)
    tensors.append({
        "name": tensor.name, "type": tensor.tensor_type.name, "shape": [int(n) for n in tensor.shape],
        "offset": int(tensor.data_offset), "bytes": int(tensor.n_bytes),
        "last_row_bits": [int(bits) for bits in last_row[:4].view(np.uint32)],
    })

print(json.dumps({
    "version": int(contents["GGUF.version"]), "num_keys": int(contents["GGUF.kv_count"]),
    "data_offset": int(reader.data_offset), "alignment": int(reader.alignment),
    "scalars": {key: value for key, value in contents.items()
                if not isinstance(value, list) and not key.startswith("GGUF.")},
    "tokens": string_list("tokenizer.ggml.tokens"), "merges": string_list("tokenizer.ggml.merges"),
    "token_types": {"sum": sum(contents["tokenizer.ggml.token_type"]),
                    "special": [i for i, kind in enumerate(contents["tokenizer.ggml.token_type"]) if kind != 1]},
    "num_parameters": sum(int(np.prod(tensor.shape)) for tensor in reader.tensors),
    "tensors": tensors,
    "type_sizes": [[int(kind), kind.name, *sizes] for kind, sizes in GGML_QUANT_SIZES.items() if kind.name not in NEVER_STORED],
}, ensure_ascii=True))
