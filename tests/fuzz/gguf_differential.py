#!/usr/bin/env python3
"""Mutated GGUF files through Octavo and through PyPI gguf: who takes which, and whether both read the same values.

Needs: pip install gguf numpy.  Usage: gguf_differential.py PATH/octavo_gguf_dump [COUNT [SEED]]

Octavo refuses much that gguf takes, on purpose: DIFFERENCES says what and why. Anything else is printed, and the exit
status is 1.
"""
import collections
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import logging  # noqa: E402

logging.disable(logging.CRITICAL)
from gguf import GGUFReader, GGUFValueType  # noqa: E402

# What Octavo's sentence holds -> why gguf may take the file all the same.
DIFFERENCES = {
    "appears twice": "gguf keeps the second key under another name, and never compares tensors' names",
    "is empty": "gguf takes empty keys",
    "has no name": "gguf takes tensors without a name",
    "must be at": "gguf follows any offset: holes, overlaps, the same bytes twice",
    "is outside the file": "gguf maps what is there; a tensor of which nothing is read may be short",
    "booleans must be 0 or 1": "numpy takes every byte for a boolean",
    "array of arrays": "gguf reads nested arrays; no model has any",
    "dimensions; 1 to 4": "gguf takes any number of dimensions",
    "has a dimension of": "gguf takes dimensions of zero, and beyond 2^40",
    "cannot divide into blocks": "gguf divides and drops the rest",
    "general.alignment": "gguf takes every alignment but zero, and every type",
    "bytes; at most": "gguf has no caps on lengths",
    "claims": "gguf stops where the file ends; a count that nothing stands behind need not matter to it",
    "the file ends within": "numpy slices beyond the end give fewer bytes, which gguf takes for shorter texts",
    "more elements than 64 bits": "gguf's products are numpy's, which wrap",
    "which is unknown": "gguf knows types of its own numbering that were retired",
    "value type": "gguf looks a type up only where it needs it",
    "more bytes than 64 bits": "gguf's products are numpy's, which wrap",
    "big-endian": "gguf swaps bytes; Octavo runs on little-endian machines only",
}
# What gguf says -> why Octavo may take the file all the same.
LENIENCIES = {
    "utf-8": "gguf decodes names and texts; Octavo keeps the bytes and shows them escaped",
    "is not a valid GGUFValueType": "inside an array that nobody reads",
    "is not a valid GGMLQuantizationType": "a type of a later version of ggml",
    "cannot reshape": "numpy counts a tensor's bytes by its own rule where a row is shorter than a block",
}


def fnv1a(data, value=0xCBF29CE484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def fingerprint(field):
    kinds = field.types
    if kinds[0] == GGUFValueType.ARRAY:
        if len(kinds) > 1 and kinds[-1] == GGUFValueType.STRING:
            value = fnv1a(b"")
            for index in field.data:
                text = bytes(field.parts[index])
                value = fnv1a(text, fnv1a(f"{len(text)}:".encode(), value))
            return f"S{value:016x}"
        return ""
    part = field.parts[field.data[0]]
    if kinds[0] == GGUFValueType.STRING:
        return f"s{fnv1a(bytes(part)):016x}"
    number = part[0]
    if kinds[0] == GGUFValueType.BOOL:
        return f"b{int(number)}"
    if kinds[0] == GGUFValueType.FLOAT32:
        return "fnan" if np.isnan(number) else f"f{int(np.float32(number).view(np.uint32)):016x}"
    if kinds[0] == GGUFValueType.FLOAT64:
        return ""  # Octavo rounds it to a float
    return f"i{int(number)}"


def read_with_gguf(path):
    reader = GGUFReader(path)
    keys = {name.encode("utf-8", "surrogateescape").hex(): fingerprint(field)
            for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    tensors = [[tensor.name.encode().hex(), int(tensor.tensor_type), [int(n) for n in tensor.shape], int(tensor.data_offset), int(tensor.n_bytes)]
               for tensor in reader.tensors]
    return keys, tensors


class TooSlow(Exception):
    """gguf walks some malformed arrays element by element."""


def give_up(_signal, _frame):
    raise TooSlow("no end after a second")


def inputs_of(path):
    with open(path, "rb") as batch:
        while head := batch.read(4):
            yield batch.read(struct.unpack("<I", head)[0])


def main():
    dump = sys.argv[1]
    count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000, sys.argv[3] if len(sys.argv) > 3 else "1"
    signal.signal(signal.SIGALRM, give_up)
    tally, reasons, unexplained = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        batch, path = os.path.join(folder, "batch"), os.path.join(folder, "m.gguf")
        subprocess.run([dump, "make", str(count), seed, batch], check=True)
        ours_lines = subprocess.run([dump, "read", batch], check=True, capture_output=True).stdout.splitlines()
        for index, (data, line) in enumerate(zip(inputs_of(batch), ours_lines, strict=True)):
            ours = json.loads(line)
            with open(path, "wb") as file:
                file.write(data)
            signal.setitimer(signal.ITIMER_REAL, 1.0)
            try:
                theirs, problem = read_with_gguf(path), None
            except Exception as error:  # noqa: BLE001: whatever it raises is a refusal
                theirs, problem = None, f"{type(error).__name__}: {error}"
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            if theirs is None and "error" in ours:
                tally["both refuse"] += 1
            elif theirs is None:
                known = next((text for text in LENIENCIES if text in problem), None)
                tally["only gguf refuses"] += 1
                reasons[f"only gguf: {known or problem[:80]}"] += 1
                if known is None:
                    unexplained.append((index, problem))
            elif "error" in ours:
                known = next((text for text in DIFFERENCES if text in ours["error"]), None)
                tally["only Octavo refuses"] += 1
                reasons[f"only Octavo: {known or ours['error'][:80]}"] += 1
                if known is None:
                    unexplained.append((index, ours["error"]))
            else:
                tally["both take"] += 1
                keys, tensors = theirs
                same_keys = keys.keys() == ours["keys"].keys() and all(
                    not keys[name] or not ours["keys"][name] or keys[name] == ours["keys"][name] for name in keys)
                if not same_keys or tensors != ours["tensors"]:
                    unexplained.append((index, "both take it and read different values"))
    for what, number in sorted(tally.items()):
        print(f"{number:8d}  {what}")
    for what, number in reasons.most_common():
        print(f"{number:8d}    {what}")
    for index, what in unexplained[:20]:
        print(f"unexplained: file {index} of seed {seed}: {what}")
    print(f"{count} files, {len(unexplained)} unexplained")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
