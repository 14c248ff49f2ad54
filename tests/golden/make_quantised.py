#!/usr/bin/env python3
"""Dequantises matrices of quantised checkpoints by numpy alone and writes what tests/model/quantised_matrix_test.cc
compares with: for each variant a hash of the float32 matrix and its first numbers.

The tensors themselves are not written: both sides make them with the same generator. What their layouts mean is
taken from the sources of AutoGPTQ 0.7.1, AutoAWQ, SqueezeLLM, compressed-tensors 0.20.0, ModelOpt and gpt-oss.

Usage: python3 tests/golden/make_quantised.py > tests/golden/quantised.json
Needs: numpy
"""

import json

import numpy as np

ROWS = 64
COLUMNS = 256


class Numbers:
    """A linear congruential generator (Knuth's MMIX constants); each number its upper 32 bits."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return self.state >> 32

    def words(self, *shape):
        count = int(np.prod(shape))
        return np.array([self.next() for _ in range(count)], dtype=np.uint32).reshape(shape)

    def bytes(self, *shape):
        return (self.words(*shape) & 255).astype(np.uint8)

    def half_scales(self, *shape):
        return (0x2400 + self.words(*shape) % 0x0C00).astype(np.uint16).view(np.float16).astype(np.float32)

    def bfloat_scales(self, *shape):
        return ((0x3C00 + self.words(*shape) % 0x0100).astype(np.uint32) << 16).view(np.float32)

    def float_scales(self, *shape):
        return (0x3C000000 + self.words(*shape) % 0x01000000).astype(np.uint32).view(np.float32)

    def permutation(self, count):
        order = list(range(count))
        for i in range(count - 1, 0, -1):
            j = self.next() % (i + 1)
            order[i], order[j] = order[j], order[i]
        return np.array(order)


def bit_string(words, bits, count):
    """Integers packed along the first axis without gaps, the lowest bits first."""
    flat = ((words[:, None, :] >> np.arange(32, dtype=np.uint32)[None, :, None]) & 1).reshape(-1, words.shape[1])
    flat = flat[: count * bits].reshape(count, bits, words.shape[1]).astype(np.int64)
    return (flat << np.arange(bits)[None, :, None]).sum(axis=1)


def scaled(scale, integers):
    return scale.astype(np.float32) * integers.astype(np.float32)


def gptq(numbers, bits, group, added, symmetric=False, ordered=False):
    size = COLUMNS if group == -1 else group
    groups = COLUMNS // size
    weights = bit_string(numbers.words(COLUMNS * bits // 32, ROWS), bits, COLUMNS)
    if symmetric:
        zeros = np.full((groups, ROWS), 2 ** (bits - 1))
    else:
        words = numbers.words(groups, ROWS * bits // 32)
        if bits == 8:
            words &= 0x7F7F7F7F
        zeros = bit_string(words.T, bits, ROWS).T + added
    scales = numbers.half_scales(groups, ROWS)
    index = np.arange(COLUMNS) // size
    if ordered:
        index = index[numbers.permutation(COLUMNS)]
    return scaled(scales[index], weights - zeros[index]).T


def awq(numbers, group, has_zeros=True):
    groups = COLUMNS // group
    places = [0, 4, 1, 5, 2, 6, 3, 7]

    def unpack(words):
        nibbles = (words[:, :, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
        return nibbles[:, :, places].reshape(words.shape[0], ROWS).astype(np.int64)

    weights = unpack(numbers.words(COLUMNS, ROWS // 8))
    zeros = unpack(numbers.words(groups, ROWS // 8)) if has_zeros else np.full((groups, ROWS), 8)
    scales = numbers.half_scales(groups, ROWS)
    index = np.arange(COLUMNS) // group
    return scaled(scales[index], weights - zeros[index]).T


def packed(numbers, bits, groups, has_zeros=False, ordered=False):
    weights = bit_string(numbers.words(ROWS, COLUMNS * bits // 32).T, bits, COLUMNS).T - 2 ** (bits - 1)
    scales = numbers.bfloat_scales(ROWS, groups)
    zeros = np.zeros((ROWS, groups), dtype=np.int64)
    if has_zeros:
        zeros = bit_string(numbers.words(ROWS * bits // 32, groups), bits, ROWS) - 2 ** (bits - 1)
    index = np.arange(COLUMNS) // (COLUMNS // groups)
    if ordered:
        index = index[numbers.permutation(COLUMNS)]
    return scaled(scales[:, index], weights - zeros[:, index])


def plain_integers(numbers):
    weights = numbers.bytes(ROWS, COLUMNS).view(np.int8)
    return scaled(numbers.float_scales(ROWS, 1), weights)


def e4m3(codes):
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    return sign * np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent.astype(float) - 10))


def finite_codes(numbers, *shape):
    codes = numbers.bytes(*shape)
    return np.where((codes & 0x7F) == 0x7F, codes & 0x87, codes)


def float8(numbers, rows, columns, scale_shape, block=None):
    weights = e4m3(finite_codes(numbers, rows, columns)).astype(np.float32)
    scales = numbers.float_scales(*scale_shape)
    if block:
        scales = scales.repeat(block, axis=0)[:rows].repeat(block, axis=1)[:, :columns]
    return scales * weights


FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)


def four_bits(pairs):
    return FOUR_BITS[np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)]


def mxfp4(numbers, experts):
    rows = ROWS * experts
    values = four_bits(numbers.bytes(rows, COLUMNS // 2))
    exponents = 120 + numbers.words(rows, COLUMNS // 32) % 12
    return values * (2.0 ** (exponents.astype(float) - 127)).astype(np.float32).repeat(32, axis=1)


def nvfp4(numbers, divides):
    values = four_bits(numbers.bytes(ROWS, COLUMNS // 2))
    scales = e4m3(numbers.words(ROWS, COLUMNS // 16) % 0x7F).astype(np.float32)
    whole = numbers.float_scales(1)
    if divides:
        whole = np.float32(1) / whole
    return values * scales.repeat(16, axis=1) * whole


def squeeze(numbers, bits, is_half, outliers=0, full_rows=0):
    places = bit_string(numbers.words(COLUMNS * bits // 32, ROWS), bits, COLUMNS).T
    table = numbers.half_scales(ROWS, 2**bits) if is_half else numbers.float_scales(ROWS, 2**bits)
    weights = np.take_along_axis(table, places, axis=1)
    for row in range(ROWS if outliers else 0):
        columns = numbers.words(outliers) % COLUMNS
        for column, value in zip(columns, numbers.float_scales(outliers)):
            weights[row, column] = np.float32(weights[row, column] + value)
    if full_rows:
        values = numbers.float_scales(COLUMNS, full_rows)
        for i in range(full_rows):
            weights[5 * i] += values[:, i]
    return weights


def variants():
    for bits in (2, 3, 4, 8):
        for group in (32, 128, -1):
            for added, version in ((1, "v1"), (0, "v2")):
                yield f"gptq-{bits}-g{group}-{version}", lambda n, b=bits, g=group, a=added: gptq(n, b, g, a)
        yield f"gptq-{bits}-g64-symmetric", lambda n, b=bits: gptq(n, b, 64, 1, symmetric=True)
        yield f"gptq-{bits}-g64-ordered", lambda n, b=bits: gptq(n, b, 64, 1, ordered=True)
    yield "gptq-4-g32-symmetric-ordered", lambda n: gptq(n, 4, 32, 1, symmetric=True, ordered=True)
    yield "gptq-4-g16-v1", lambda n: gptq(n, 4, 16, 1)
    yield "gptq-4-g16-ordered", lambda n: gptq(n, 4, 16, 1, ordered=True)
    for group in (32, 64, 128):
        yield f"awq-g{group}", lambda n, g=group: awq(n, g)
    yield "awq-g64-no-zeros", lambda n: awq(n, 64, has_zeros=False)
    for bits in (4, 8):
        for groups in (8, 2, 1):
            yield f"packed-{bits}-{groups}", lambda n, b=bits, g=groups: packed(n, b, g)
            yield f"packed-{bits}-{groups}-zeros", lambda n, b=bits, g=groups: packed(n, b, g, has_zeros=True)
    yield "packed-4-2-ordered", lambda n: packed(n, 4, 2, ordered=True)
    yield "int8", plain_integers
    yield "float8-tensor", lambda n: float8(n, ROWS, COLUMNS, (1,))
    yield "float8-channel", lambda n: float8(n, ROWS, COLUMNS, (ROWS, 1))
    yield "float8-blocks", lambda n: float8(n, 160, 256, (2, 2), block=128)
    yield "float8-cut-blocks", lambda n: float8(n, 160, 288, (2, 3), block=128)
    yield "float8-odd", lambda n: float8(n, ROWS, 100, (ROWS, 1))
    yield "mxfp4-experts", lambda n: mxfp4(n, 3)
    yield "mxfp4-packed", lambda n: mxfp4(n, 1)
    yield "nvfp4-packed", lambda n: nvfp4(n, divides=True)
    yield "nvfp4-modelopt", lambda n: nvfp4(n, divides=False)
    for bits in (3, 4):
        yield f"squeeze-{bits}-half", lambda n, b=bits: squeeze(n, b, True)
        yield f"squeeze-{bits}-float", lambda n, b=bits: squeeze(n, b, False)
        yield f"squeeze-{bits}-outliers", lambda n, b=bits: squeeze(n, b, False, outliers=5, full_rows=2)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def main():
    result = []
    for seed, (name, make) in enumerate(variants(), start=1):
        matrix = np.ascontiguousarray(make(Numbers(seed)), dtype=np.float32) + np.float32(0)  # no -0
        result.append({"name": name, "seed": seed, "shape": list(matrix.shape), "hash": fnv1a(matrix.tobytes()),
                       "first": [float(x) for x in matrix[0, :4]]})
    print("[\n" + ",\n".join(json.dumps(entry) for entry in result) + "\n]")


if __name__ == "__main__":
    main()
