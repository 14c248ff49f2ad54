#!/usr/bin/env python3
"""Writes dequantize.json: blocks of every tensor type that Octavo reads, and what PyPI gguf makes of them.

Needs: pip install gguf numpy.  Usage: make_dequantize.py > dequantize.json
Scales are random finite halves (of MXFP4 random exponents); every other byte of a block is random, so that all bits of a layout take part.
gguf has no definition of Q1_0 and Q2_0: the two below say what ggml's dequantize_row_q1_0 and dequantize_row_q2_0 do.
"""
import json

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

# Byte offsets of the half-precision scales within a block.
SCALE_OFFSETS = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
    Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.MXFP4: [],
    Type.IQ1_S: [0], Type.IQ1_M: [], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0], Type.IQ3_XXS: [0],
    Type.IQ3_S: [0], Type.TQ1_0: [52], Type.TQ2_0: [64], Type.NVFP4: [],
}
random = np.random.default_rng(20240607)


def finite_halves(count):
    """Half of them of a magnitude as in models, half of any finite magnitude, subnormals and both zeros included."""
    usual = random.normal(0, 0.02, count).astype(np.float16)
    anything = random.integers(0, 0x7C00, count).astype(np.uint16) | (random.integers(0, 2, count) << 15).astype(np.uint16)
    halves = np.where(random.integers(0, 2, count) == 1, usual, anything.view(np.float16))
    halves[: min(2, count)] = np.array([0.0, -0.0], np.float16)[: min(2, count)]
    return halves


def make_blocks(kind, num_blocks):
    block_elements, block_bytes = GGML_QUANT_SIZES[kind]
    if kind == Type.F32:
        values = random.normal(0, 1, num_blocks).astype(np.float32)
        values[:3] = [0.0, -0.0, 1e-42]
        return values.view(np.uint8).reshape(num_blocks, 4)
    if kind == Type.F16:
        return finite_halves(num_blocks).view(np.uint8).reshape(num_blocks, 2)
    if kind == Type.BF16:
        words = random.normal(0, 1, num_blocks).astype(np.float32).view(np.uint32) >> 16
        return words.astype(np.uint16).view(np.uint8).reshape(num_blocks, 2)
    blocks = random.integers(0, 256, (num_blocks, block_bytes)).astype(np.uint8)
    for offset in SCALE_OFFSETS[kind]:
        blocks[:, offset : offset + 2] = finite_halves(num_blocks).view(np.uint8).reshape(num_blocks, 2)
    if kind == Type.MXFP4:  # its scale is an exponent: the denormal ones, the largest finite one, those of models
        blocks[:, 0] = random.integers(110, 130, num_blocks)
        blocks[:5, 0] = [0, 1, 2, 3, 252]
    if kind == Type.IQ1_M:  # the nibbles of its half stand on top of four words
        halves = finite_halves(num_blocks).view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = (blocks[:, 49 + 2 * i] & 15) | ((halves >> (4 * i)) & 15).astype(np.uint8) << 4
    if kind == Type.NVFP4:  # zeros and what stands for zero, with and without the bit that does not count
        blocks[0, :4], blocks[1, :4] = [0, 0x7F, 0x80, 0xFF], [1, 0x87, 0x7E, 0x38]
    return blocks


def case(name, number, block_elements, blocks, values):
    assert np.isfinite(values).all()
    return {
        "name": name, "type": number, "block_elements": block_elements, "block_bytes": blocks.shape[1],
        "bytes": blocks.tobytes().hex(), "float_bits": values.reshape(-1).view("<u4").astype("<u4").tobytes().hex(),
    }


def few_bits_case(name, number, block_elements, value_of):
    """Numbers of a few bits behind a half, the lowest bits first."""
    count = 1 if name == "Q1_0" else 2
    blocks = random.integers(0, 256, (6, 2 + block_elements * count // 8)).astype(np.uint8)
    halves = finite_halves(len(blocks))
    blocks[:, :2] = halves.view(np.uint8).reshape(-1, 2)
    shifts = np.arange(0, 8, count, dtype=np.uint8)
    bits = (blocks[:, 2:, None] >> shifts) & np.uint8((1 << count) - 1)
    scales = halves.astype(np.float32)[:, None]
    return case(name, number, block_elements, blocks, value_of(bits.reshape(len(blocks), -1), scales))


cases = []
for kind in [Type.F32, Type.F16, Type.BF16, *SCALE_OFFSETS]:
    block_elements, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = make_blocks(kind, {1: 64, 32: 16, 64: 8, 256: 5}[block_elements])
    values = dequantize(blocks.reshape(-1), kind).astype(np.float32, copy=False)
    cases.append(case(kind.name, int(kind), block_elements, blocks, values))
cases.append(few_bits_case("Q1_0", 41, 128, lambda bits, scales: np.where(bits == 1, scales, -scales)))
cases.append(few_bits_case("Q2_0", 42, 64, lambda bits, scales: (bits.astype(np.float32) - 1) * scales))
print(json.dumps({"cases": cases}, indent=0))
