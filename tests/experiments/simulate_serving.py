#!/usr/bin/env python3
"""Two of the experiments of `octavo experiment`, recomputed: an event loop of its own, which shares no code with the engine.

    python3 tests/experiments/simulate_serving.py [SHARE]

OPT-13B on one A100 of 40 GB, ShareGPT, seed 1, SHARE (default 1) of 1,200 seconds of arrivals. Prints one JSON object: figure 12's
sustained rates and figure 13's requests in the batch, of paging and of Orca's managers. Rules: Kwon et al. 2023 (arXiv:2309.06180),
sections 4.5 and 6.1; what a step takes: the comments of engine/experiments/simulated_hardware.h. Lengths and arrivals come from the
same counter-based generator (engine/base/rng.h), written anew, so that long tails do not hide a difference. A minute for SHARE 1.
"""
import heapq
import json
import math
import pathlib
import sys

SLOTS, MAX_LEN, BLOCK, MOST_ROWS, KNEE = 983 * 16, 2_048, 16, 2_560, 0.5
MASK = (1 << 64) - 1
BINS = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "sharegpt_length_quantiles.json").read_text())["bins"]


def mix(value):
    """SplitMix64's finaliser."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def combine(seed, value):
    return mix(seed ^ mix(value))


def uniforms(seed):
    base, n = combine(seed, 0), 0
    while True:
        yield (combine(base, n) >> 11) / 2**53
        n += 1


def quantile(values, p):
    place = p * (len(values) - 1)
    low = int(place)
    return math.floor(values[low] + (place - low) * (values[low + 1] - values[low]) + 0.5)


def sharegpt(u):
    while True:
        one = BINS[int(next(u) * len(BINS))]
        prompt = max(1, quantile(one["input_quantiles"], next(u)))
        output = max(1, quantile(one["output_quantiles"], next(u)))
        if prompt + output < MAX_LEN:
            return prompt, output


def step_seconds(rows, sampled, context, pairs):
    """13e9 weights of two bytes; 819,200 bytes of keys and values a token; 1,555 GB/s, 312 TFLOP/s."""
    linear = max(26e9 / (1555e9 * 0.8), 26e9 * rows / (312e12 * 0.6))
    attention = context * (1 + 0.04 + 3 / BLOCK) * 819_200 / (1555e9 * 0.68) + pairs * 819_200 / (312e12 * 0.6)
    return linear + attention + 2e-3 + 0.28e-3 * sampled


class Request:
    def __init__(self, arrival, prompt, output):
        self.arrival, self.prompt, self.output = arrival, prompt, output
        self.known, self.computed = prompt, 0  # tokens


class Paged:
    """Blocks one by one; the last to come gives way, and is computed again."""

    def __init__(self):
        self.total = SLOTS // BLOCK

    def blocks(self, request):
        return -(-request.known // BLOCK)

    def make_room(self, running, waiting):
        used, preempted = sum(map(self.blocks, running)), False
        while used > self.total:
            last = running.pop()
            used -= self.blocks(last)
            last.computed = 0
            waiting.insert(0, last)
            preempted = True
        self.used = used
        return preempted

    def start(self, request, running):
        need = self.blocks(request)
        if running and self.used + need > self.total - math.ceil(self.total / 100):
            return False
        self.used += need
        return True

    def end(self, request):
        pass


class Orca:
    """A chunk of a power of two of blocks from the start on: buddies, the lowest address first."""

    def __init__(self, estimate):
        self.estimate, self.free, self.taken, at = estimate, {1 << k: [] for k in range(8)}, {}, 0
        for size in sorted(self.free, reverse=True):
            while at + size <= SLOTS // BLOCK:
                self.free[size].append(at)
                at += size

    def make_room(self, running, waiting):
        return False

    def start(self, request, running):
        tokens = min(request.prompt + self.estimate(request.output), MAX_LEN)
        size = 1 << (-(-tokens // BLOCK) - 1).bit_length()
        have = next((s for s in sorted(self.free) if s >= size and self.free[s]), None)
        if have is None:
            return False
        at = heapq.heappop(self.free[have])
        while have > size:
            have //= 2
            heapq.heappush(self.free[have], at + have)
        self.taken[request] = at, size
        return True

    def end(self, request):
        at, size = self.taken.pop(request)
        while size < 128 and at ^ size in self.free[size]:
            self.free[size].remove(at ^ size)
            heapq.heapify(self.free[size])
            at, size = at & ~size, size * 2
        heapq.heappush(self.free[size], at)


def serve(memory, rate, seconds, seed=1):
    """Normalised latency, and requests in the batch: the mean over the steps of the second half of the arrivals."""
    gaps, lengths = uniforms(combine(seed, 1)), uniforms(combine(seed, 2))
    gap = lambda: -math.log1p(-next(gaps)) / rate
    now, arrival, running, waiting = 0.0, gap(), [], []
    latency, ended, batch_sum, batch_steps = 0.0, 0, 0, 0
    while now < 1.25 * seconds:
        if not running and not waiting:
            if arrival >= seconds:
                break
            now = max(now, arrival)
        while arrival < seconds and arrival <= now:
            waiting.append(Request(arrival, *sharegpt(lengths)))
            arrival += gap()
        preempted = memory.make_room(running, waiting)
        rows = sampled = context = pairs = 0
        decoding = [r for r in running if r.known - r.computed == 1 and r.known > r.prompt]
        rows = sampled = len(decoding)
        context = sum(r.known for r in decoding)
        work = [(r, 1) for r in decoding]

        def chunk(request):
            nonlocal rows, sampled, context, pairs
            count = min(MOST_ROWS - rows, request.known - request.computed)
            work.append((request, count))
            rows += count
            sampled += request.computed + count == request.known
            context += request.computed + (count == 1)
            pairs += count * request.computed + count * (count + 1) // 2 if count > 1 else 0

        for request in running:
            if request not in decoding and rows < MOST_ROWS:
                chunk(request)
        while waiting and not preempted and rows < MOST_ROWS and memory.start(waiting[0], running):
            running.append(waiting.pop(0))
            chunk(running[-1])
        if 0.5 * seconds <= now < seconds:
            batch_sum += len(running)
            batch_steps += 1
        now += step_seconds(rows, sampled, context, pairs)
        for request, count in work:
            request.computed += count
            if request.computed == request.known:
                request.known += 1
                if request.known == request.prompt + request.output:
                    memory.end(request)
                    running.remove(request)
                    latency += (now - request.arrival) / request.output
                    ended += 1
    left = running + waiting
    latency += sum((now - r.arrival) / r.output for r in left)
    return latency / max(1, ended + len(left)), batch_sum / max(1, batch_steps)


def sustained(make_memory, low, high, seconds):
    """Halves the interval until 2 % are left, then by a straight line."""
    at = {rate: serve(make_memory(), rate, seconds)[0] for rate in (low, high)}
    while at[low] >= KNEE or at[high] < KNEE:
        low, high = (low / 2, low) if at[low] >= KNEE else (high, high * 2)
        at = {rate: serve(make_memory(), rate, seconds)[0] for rate in (low, high)}
    while high / low > 1.02:
        middle = (low + high) / 2
        at[middle] = serve(make_memory(), middle, seconds)[0]
        low, high = (middle, high) if at[middle] < KNEE else (low, middle)
    return low + (high - low) * (KNEE - at[low]) / (at[high] - at[low])


def main():
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    systems = {"paged": Paged, "Orca (Oracle)": lambda: Orca(lambda output: output),
               "Orca (Pow2)": lambda: Orca(lambda output: 1 << (output - 1).bit_length()),
               "Orca (Max)": lambda: Orca(lambda output: MAX_LEN)}
    batched = {name: serve(make(), 2.0, 3_600 * share)[1] for name, make in systems.items()}
    rates = {name: sustained(make, low, 1.4 * low, 1_200 * share)
             for (name, make), low in zip(systems.items(), (1.6, 0.9, 0.7, 0.5))}
    print(json.dumps({"figure-12": rates, "figure-13": batched}))


if __name__ == "__main__":
    main()
