#!/usr/bin/env python3
"""The paper's comparison, simulated apart from the engine: counts only, nothing shared with the C++ code.

    python3 tests/experiments/simulate_paper.py [SEED]

prints the figures that tests/experiments/published.h holds as data. Rules: Kwon et al. 2023 (arXiv:2309.06180), sections 4.5
and 6.1. An endless queue, first come first served; in a step every running request gets one token per output. Plain
Python, three minutes.
"""
import json
import math
import pathlib
import random
import sys

SLOTS, MAX_LEN, WARM_UP, MEASURED = 983 * 16, 2_048, 4_000, 400_000
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
BINS = json.loads((GOLDEN / "sharegpt_length_quantiles.json").read_text())["bins"]
SEARCHES = json.loads((GOLDEN / "beam_parents.json").read_text())["searches"]


def quantile(values, p):
    place = p * (len(values) - 1)
    low = int(place)
    return round(values[low] + (place - low) * (values[low + 1] - values[low]))


def sharegpt(rng):
    while True:
        one = rng.choice(BINS)
        prompt, output = (quantile(one[key + "_quantiles"], rng.random()) for key in ("input", "output"))
        if prompt + output < MAX_LEN:
            return prompt, output


def alpaca(rng):
    """The paper's means; the shapes are ours, see README.md."""
    weibull = lambda mean, shape: rng.weibullvariate(mean / math.gamma(1 + 1 / shape), shape)
    return max(1, math.ceil(weibull(19.31 - 0.5, 1.4))), max(1, math.ceil(weibull(58.45 - 0.5, 0.9)))


def power_of_two(number):
    return 1 << (number - 1).bit_length()


class Buddies:
    """Free chunks by size as sorted lists of addresses; cut as Orca's baseline: largest first, from 0."""

    def __init__(self, blocks, largest=128):
        self.largest, self.free, at = largest, {1 << k: [] for k in range(largest.bit_length())}, 0
        for size in sorted(self.free, reverse=True):
            while at + size <= blocks:
                self.free[size].append(at)
                at += size

    def take(self, size):
        have = next((s for s in sorted(self.free) if s >= size and self.free[s]), None)
        if have is None:
            return None
        at = self.free[have].pop(0)
        while have > size:
            have //= 2
            self.free[have] = sorted(self.free[have] + [at + have])
        return at

    def give_back(self, at, size):
        while size < self.largest and at ^ size in self.free[size]:
            self.free[size].remove(at ^ size)
            at, size = at & ~size, size * 2
        self.free[size] = sorted(self.free[size] + [at])


def contiguous(estimate, rng):
    """Per cent of slots: tokens, reserved, internal, unreserved; and requests in the batch."""
    buddies, running, head, sums = Buddies(SLOTS // 16), [], sharegpt(rng), [0.0] * 5
    for step in range(WARM_UP + MEASURED):
        while True:
            size = min(head[0] + estimate(head[1]), MAX_LEN)
            chunk = power_of_two(-(-size // 16))
            at = buddies.take(chunk)
            if at is None:
                break
            running.append([head[0], head[0] + head[1], size, at, chunk])
            head = sharegpt(rng)
        if step >= WARM_UP:
            held = [sum(r[0] for r in running), sum(r[1] - r[0] for r in running), sum(r[2] - r[1] for r in running)]
            for i, value in enumerate(held + [SLOTS - sum(held)]):
                sums[i] += 100 * value / SLOTS
            sums[4] += len(running)
        for r in running:
            r[0] += 1
            if r[0] == r[1]:
                buddies.give_back(r[3], r[4])
        running = [r for r in running if r[0] < r[1]]
    return [value / MEASURED for value in sums]


def paged(size, rng, lengths=sharegpt, outputs=1):
    """Per cent of slots that hold tokens; requests in the batch; per cent of blocks saved by sharing the prompt."""
    total = SLOTS // size
    count = lambda r: r[0] // size + outputs * (-(-r[1] // size) - r[0] // size)  # blocks of a request, its prompt's once
    prompt_only = lambda r: -(-r[0] // size) * (r[1] == r[0])  # taken once, before the others are forked
    running, waiting, sums = [], [], [0.0] * 3  # a request: prompt, tokens so far, tokens at its end
    for step in range(WARM_UP + MEASURED):
        used, preempted = sum(map(count, running)), False
        while used > total:
            waiting.insert(0, running.pop())
            used, preempted = used - count(waiting[0]), True
        while not preempted:
            if not waiting:
                prompt, output = lengths(rng)
                waiting.append([prompt, prompt, prompt + output])
            need = count(waiting[0])
            if running and used + need > total - total / 100:  # the paper's watermark: 1 %
                break
            running.append(waiting.pop(0))
            used += need
        if step >= WARM_UP:
            tokens = sum(r[0] // size * size + outputs * (r[1] - r[0] // size * size) for r in running)
            logical = sum(outputs * -(-r[1] // size) for r in running)  # a prompt counts for each output from the start
            physical = sum(prompt_only(r) or count(r) for r in running)
            for i, value in enumerate((100 * tokens / (total * size), len(running), logical / physical)):
                sums[i] += value
        for r in running:
            r[1] += 1
        running = [r for r in running if r[1] < r[2]]
    return sums[0] / MEASURED, sums[1] / MEASURED, 100 * (1 - MEASURED / sums[2])


def beams(width, rng, lengths, requests=1_500, size=16):
    """Per cent of blocks saved by beams whose parents are those of the recorded searches, each request alone."""
    searches = [one["parents"] for one in SEARCHES if one["width"] == width]
    logical = physical = 0
    for request in range(requests):
        (prompt, output), search = lengths(rng), searches[request % len(searches)]
        tails = [[("prompt",)] * (prompt % size > 0)]  # of each beam, the names of its blocks past the full prompt blocks
        logical += -(-prompt // size)
        physical += -(-prompt // size)
        for step in range(output - 1):
            parents = search[step if step < len(search) else 1 + (step - 1) % (len(search) - 1)]
            tails = [list(tails[int(parent)]) for parent in parents]
            fresh = (prompt + step) % size == 0
            readers = [tail[-1] if tail else None for tail in tails]
            for beam, tail in enumerate(tails):
                if fresh:
                    tail.append((step, beam))
                elif readers.count(tail[-1]) > 1:
                    readers[beam] = tail[-1] = (step, beam)  # copied; the last reader writes in place
            logical += width * (prompt // size + len(tails[0]))
            physical += prompt // size + len({name for tail in tails for name in tail})
    return 100 * (1 - physical / logical)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print("contiguous: tokens, reserved, internal, unreserved, batched requests")
    for name, estimate in ("Max", lambda _: MAX_LEN), ("Pow2", power_of_two), ("Oracle", lambda output: output):
        print(f"{name:8}", *(f"{value:6.1f}" for value in contiguous(estimate, random.Random(seed))), flush=True)
    print("paged: block size, tokens, batched requests")
    for size in 1, 8, 16, 32, 64, 128, 256:
        print(f"{size:8}", *(f"{value:6.1f}" for value in paged(size, random.Random(seed))[:2]), flush=True)
    print("block size 16, outputs: blocks saved by parallel sampling, by beams; Alpaca, ShareGPT")
    for outputs in 2, 4, 6:
        sampled = (paged(16, random.Random(seed), lengths, outputs)[2] for lengths in (alpaca, sharegpt))
        searched = (beams(outputs, random.Random(seed), lengths) for lengths in (alpaca, sharegpt))
        print(f"{outputs:8}", *(f"{value:6.1f}" for pair in (sampled, searched) for value in pair), flush=True)


if __name__ == "__main__":
    main()
