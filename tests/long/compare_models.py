#!/usr/bin/env python3
"""Holds `octavo compare-models` to an independent program, token by token.

    tests/long/compare_models.py OCTAVO [--work FOLDER] [--text FILE] [--types Q4_0,Q2_K] [--context N] ...

Two coarser files of the default model are made by llama.cpp's llama-quantize, which is built in FOLDER from the source package
that tests/bench/peers pins. The oracle is tests/golden/tiny_transformer.py on what the PyPI package gguf dequantises, in
float64, with windows, divergence and means written down once more below: it shares with the product the token ids and nothing
else. The product multiplies floats (--activation-dtype f32, --kv-cache-dtype f32), since its rounded activations are another
arithmetic. Of every token the divergence, both probabilities and the likeliest tokens must agree, and of the text all means.

Everything stays in FOLDER, and is used again. Exit status 1 when anything differs.
"""
import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE.parent / "golden")]

from peers import builds  # noqa: E402

PACKAGES = ["numpy==2.4.6", "gguf==0.19.0"]
RELATIVE = 1e-3   # of every figure
# Of 576 columns there are no K-types: llama.cpp makes Q4_0 of them, and by itself Q3_K of the only tensors that have more.
TENSOR_TYPES = {"Q2_K": ("--tensor-type", "ffn_down=q2_k")}
TIE = 1e-4        # nats: favourites so close together may change places


def default_model():
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "octavo" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def execute(command, what):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{what} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def llama_tool(work, name):
    flags, _ = builds.LLAMA_BUILDS["build"]
    return builds.cmake_build(builds.fetch_llama_source(work), "build", ("-DLLAMA_BUILD_EXAMPLES=OFF", *flags), (name,)) / name


def coarser(source, kind, work):
    target = work / f"{source.stem}-as-{kind}.gguf"
    if not target.exists():
        execute([llama_tool(work, "llama-quantize"), "--allow-requantize", *TENSOR_TYPES.get(kind, ()), source, target.with_suffix(".part"), kind, os.cpu_count()], "llama-quantize")
        target.with_suffix(".part").rename(target)
    return target


# ---- the oracle


def windows(num_tokens, context):
    """(begin, end, first that is scored): half a context apart, and each token scored in the first window that reads it."""
    scored, begin = 1, 0
    while scored < num_tokens:
        end = min(begin + context, num_tokens)
        yield begin, end, scored
        scored, begin = end, begin + context // 2


def log_probabilities(model, token_ids, context):
    """Row i: of what comes at token i + 1, given its window."""
    import numpy as np
    from compare_tiny_models import FileModel
    from tiny_transformer import Transformer
    transformer = Transformer(FileModel(str(model)))
    rows = []
    for begin, end, first in windows(len(token_ids), context):
        rows.append(transformer.log_probabilities(token_ids[begin:end])[first - begin - 1 : end - begin - 1])
    return np.concatenate(rows)


class Oracle:
    def __init__(self, a, b, token_ids):
        """a, b: natural logarithms, [tokens - 1, vocabulary]"""
        import numpy as np
        p = np.exp(a)
        chosen = np.array(token_ids[1:])
        rows = np.arange(len(chosen))
        self.kl = (p * (a - b)).sum(-1)
        self.logprob_a, self.logprob_b = a[rows, chosen], b[rows, chosen]
        self.top_a, self.top_b = a.argmax(-1), b.argmax(-1)
        self.lead = [np.diff(np.partition(x, -2)[:, -2:])[:, 0] for x in (a, b)]  # of the favourite
        self.rank_a = (a > self.logprob_a[:, None]).sum(-1) + 1
        self.rank_b = (b > self.logprob_b[:, None]).sum(-1) + 1
        change = np.exp(self.logprob_b) - np.exp(self.logprob_a)
        nll_a, nll_b = -self.logprob_a, -self.logprob_b
        in_order = np.sort(self.kl)
        self.summary = {
            "mean_kl": self.mean(self.kl),
            "median_kl": in_order[math.ceil(0.5 * len(in_order)) - 1],
            "high_kl": in_order[math.ceil(0.99 * len(in_order)) - 1],
            "worst_kl": in_order[-1],
            "same_top": self.mean((self.top_a == self.top_b).astype(float)),
            "perplexity_a": self.perplexity(nll_a),
            "perplexity_b": self.perplexity(nll_b),
            "log_perplexity_ratio": self.mean(nll_b - nll_a),
            "mean_probability_change": self.mean(change),
            "rms_probability_change": math.sqrt((change**2).mean()),
        }

    @staticmethod
    def mean(values):
        return {"value": values.mean(), "standard_error": values.std(ddof=1) / math.sqrt(len(values))}

    @staticmethod
    def perplexity(nll):
        value = math.exp(nll.mean())
        return {"value": value, "standard_error": value * nll.std(ddof=1) / math.sqrt(len(nll))}


# ---- comparing


class Check:
    def __init__(self):
        self.failures = []
        self.largest = {}  # figure: (relative difference, where)

    def near(self, figure, where, ours, expected, absolute=0.0):
        apart = abs(ours - expected)
        relative = max(0.0, apart - absolute) / abs(expected) if expected else apart
        self.largest[figure] = max(self.largest.get(figure, (0.0, "")), (relative, where))
        if not relative <= RELATIVE:
            self.failures.append(f"{figure} of {where}: {ours:.9g}, expected {expected:.9g}")

    def same(self, figure, where, ours, expected):
        if ours != expected:
            self.failures.append(f"{figure} of {where}: {ours}, expected {expected}")


def compare(ours, oracle, check):
    for i, token in enumerate(ours["tokens"]):
        where = f"token {token['index']}"
        check.same("index", where, token["index"], i + 1)
        check.near("KL divergence", where, token["kl"], oracle.kl[i])
        for name, logprobs, ranks, tops, leads in (("a", oracle.logprob_a, oracle.rank_a, oracle.top_a, oracle.lead[0]),
                                                   ("b", oracle.logprob_b, oracle.rank_b, oracle.top_b, oracle.lead[1])):
            check.near("probability", f"{where}, {name}", math.exp(token[name]["logprob"]), math.exp(logprobs[i]))
            check.near("rank", f"{where}, {name}", token[name]["rank"], int(ranks[i]), absolute=2)  # neighbours change places
            if leads[i] > TIE:
                check.same("favourite", f"{where}, {name}", token[name]["top"][0]["token_id"], int(tops[i]))
        if min(oracle.lead[0][i], oracle.lead[1][i]) > TIE:
            check.same("agreement", where, token["same_top"], bool(oracle.top_a[i] == oracle.top_b[i]))
    check.same("number of tokens", "the text", len(ours["tokens"]), len(oracle.kl))
    for name, expected in oracle.summary.items():
        found = ours["summary"][name]
        if isinstance(expected, dict):
            for part in expected:
                check.near(f"{name}, {part}", "the text", found[part], expected[part])
        else:
            check.near(name, "the text", found, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/octavo-compare-models"))
    parser.add_argument("--model", type=Path, default=default_model())
    parser.add_argument("--text", type=Path, default=HERE.parent.parent / "ARCHITECTURE.md")
    parser.add_argument("--bytes", type=int, default=4000, help="of the text, from its beginning")
    parser.add_argument("--types", default="Q4_0,Q2_K")
    parser.add_argument("--context", type=int, default=256)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    python = builds.python_environment(options.work / "python", PACKAGES, "numpy, gguf")
    if Path(sys.executable) != python:
        os.execv(python, [str(python), *map(str, sys.argv)])
    text = options.work / "text.txt"
    text.write_bytes(options.text.read_bytes()[: options.bytes].decode(errors="ignore").encode())
    failed = False
    of_a = None
    for kind in options.types.split(","):
        model = coarser(options.model, kind, options.work)
        ours = json.loads(execute([options.octavo, "compare-models", options.model, model, "--text", text, "--context", options.context,
                                   "--activation-dtype", "f32", "--kv-cache-dtype", "f32", "--json"], "octavo"))
        if of_a is None:
            of_a = log_probabilities(options.model, ours["token_ids"], options.context)
        oracle = Oracle(of_a, log_probabilities(model, ours["token_ids"], options.context), ours["token_ids"])
        check = Check()
        compare(ours, oracle, check)
        print(f"{kind}: {len(ours['tokens'])} tokens, mean KL {oracle.summary['mean_kl']['value']:.6f}, favourites alike "
              f"{oracle.summary['same_top']['value']:.4f}, perplexity {oracle.summary['perplexity_a']['value']:.4f} and "
              f"{oracle.summary['perplexity_b']['value']:.4f}; the smallest KL is {oracle.kl.min():.2e}")
        for figure, (relative, where) in check.largest.items():
            print(f"  {figure}: {relative:.1e} apart at most, {where}")
        for failure in check.failures[:20]:
            print(f"  DIFFERS: {failure}")
        failed |= bool(check.failures)
    print("0 passed, 1 failed, 0 skipped" if failed else "1 passed, 0 failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
