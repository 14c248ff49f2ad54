#!/usr/bin/env python3
"""Quantises rows of floats by gguf.quants and writes a hash of the bytes for each type: what
tests/kernels/quantize_test.cc compares with. The floats are made by the same generator on both sides.

Usage: python3 tests/golden/make_quantize.py > tests/golden/quantize.json
Needs: numpy, gguf
"""

import json

import gguf
import numpy as np
from gguf import quants

from make_quantised import Numbers, fnv1a


def numbers(count):
    """Sums of four uniform numbers, scaled by block; a block of zeros, one of equal numbers, one with an outlier."""
    generator = Numbers(2026)
    raw = np.array([sum(generator.next() >> 8 for _ in range(4)) for _ in range(count)], dtype=np.int64)
    values = ((raw - 2 * 2**24).astype(np.float32) / np.float32(2**24)).reshape(-1, 32)
    values *= (np.float32(2.0) ** np.array([-(generator.next() % 8) for _ in range(len(values))],
                                           dtype=np.float32))[:, None]
    values[1] = 0
    values[2] = np.float32(0.5)
    values[3, 7] = np.float32(40)
    return values.reshape(-1)


def main():
    values = numbers(64 * 256)
    types = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
    result = {name: fnv1a(quants.quantize(values, gguf.GGMLQuantizationType[name]).tobytes()) for name in types}
    result["values"] = fnv1a(values.tobytes())
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
