"""The rows of the table. Each is a function that measures and returns lines; ROWS names them in order."""
import dataclasses
import json
import statistics

from . import machine, perplexity, rounds, search
from .claims import Line
from .engines import BACKENDS, Contestant, Variant, Workload

DECODE = Workload("decode, 1 sequence, context 64 to 192", "decode", 64, 129)
DECODE_2048 = Workload("decode, 1 sequence, context 2,048", "decode", 2048, 65)
PREFILL_512 = Workload("prefill of 512 tokens", "prefill", 512)
PREFILL_4096 = Workload("prefill of 4,096 tokens", "prefill", 4096)
BATCH = Workload("16 sequences decoding, 256 + 64 tokens, nothing shared", "decode", 256, 65, 16)
SHARED = Workload("16 sequences decoding 64 tokens, 512 shared", "decode", 512, 65, 16, shared=True)
TURN = Workload("first token of a turn, 50 new tokens on 2,048 cached", "turn", 50, cached_tokens=2048)
PROBE_2048 = Workload("prefill of 2,048 tokens", "prefill", 2048)  # stands for longer ones while flags are searched

FORMATS = ("Q4_1", "Q4_0", "Q8_0")             # among which a peer's best is looked for
OTHER_FORMATS = ("Q4_0", "Q8_0", "F16")        # the same file, requantised for speed only
FORMATS_1B = ("Q4_1", "Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "F16")
OTHER_ACTIVATIONS = ("int8", "int16", "f32")   # measured beside the default, as far as they are built
DEFAULT = "default"


class Session:
    """What all rows need: the engines, the flags found so far, how many rounds, and what was seen of the machine."""

    def __init__(self, options, peers, octavo, llama, ik, openvino, say):
        self.options, self.peers, self.octavo = options, peers, octavo
        self.llama, self.ik, self.openvino, self.say = llama, ik, openvino, say
        self.best = {}            # (peer, format, workload) -> (variant, value)
        self.measurements = []    # of every row, for the JSON file
        self.limits = {}          # best of the machine's limits that Octavo measured
        self.versions = {}
        self.activations = self.built_activations()

    # Ours ---------------------------------------------------------------------------------------------------------

    def built_activations(self):
        """"default" and those of OTHER_ACTIVATIONS that the program has and that are not the default."""
        tiny = Workload("one token", "prefill", 1)
        probe = self.octavo.contestant("", tiny).measure().details
        self.note_limits(probe["machine"])
        self.default_activation = probe["result"]["activation_dtype"]
        found = [DEFAULT]
        for name in self.options.activations:
            if name != self.default_activation:
                try:
                    self.octavo.contestant("", tiny, name).measure()
                    found.append(name)
                except machine.Failure as failure:
                    self.say(f"--activation-dtype {name} is left out: {failure}")
        return found

    def ours(self, workload, octavo=None, activations=None, more=()):
        return [(octavo or self.octavo).contestant(self.our_label(name), workload, None if name == DEFAULT else name, more)
                for name in activations or self.activations]

    @staticmethod
    def our_label(activation):
        return f"octavo {activation}"

    def note_limits(self, found):
        for name in ("read_gb_per_s", "int8_gmac_per_s", "float_gmac_per_s"):
            self.limits[name] = max(self.limits.get(name, 0), found[name])

    # Peers --------------------------------------------------------------------------------------------------------

    def best_flags(self, peer, model_format, workload):
        """(variant, value) of a peer of the llama.cpp family; without a search the first guess, and None."""
        first, key = Variant(model_format=model_format), (peer.name, model_format, workload.name)
        if key not in self.best:
            self.best[key] = (first, None) if self.options.quick else search.best_variant(peer, workload, first, self.prober(peer, workload))
        return self.best[key]

    def best_format(self, peer, workload):
        """The variant with the best file and flags. Every format gets its own search."""
        if self.options.quick and self.llama:
            return self.best_flags(peer, "Q4_0", workload)[0]  # what suits both peers best, as a rule
        formats_here = FORMATS if self.llama else FORMATS[:1]  # llama.cpp's program makes the other files
        found = dict(self.best_flags(peer, name, workload) for name in formats_here)
        return search.best_of(found, workload, found.get)[0] or Variant()

    def best_backend(self, workload):
        if self.options.quick:
            return BACKENDS[0]
        return search.best_of(self.openvino.backends(workload), workload, self.prober(self.openvino, workload))[0] or BACKENDS[0]

    def prober(self, peer, workload):
        """A function from a variant to its figure, in a run without disturbance if possible; None where the program refuses it."""
        def probe(variant):
            contestant = peer.contestant(f"search: {peer.name} {peer.text(variant)}", workload, variant)
            try:
                sample = rounds.undisturbed(contestant, rounds.Series(contestant.label, contestant.command), self.options.retries)
            except machine.Failure as failure:
                self.say(f"    {contestant.label}: {failure}")
                return None
            self.say(f"    {contestant.label}: {sample.value:.1f} {workload.unit}" + (f" ({sample.disturbed})" if sample.disturbed else ""))
            return sample.value
        return probe

    def family(self, workload, probe=None, with_best=True, with_ik=True):
        """Contestants of llama.cpp on Q4_1 and on its best format, and of ik_llama.cpp on its best: name -> (contestant, text)."""
        found = {}
        for peer, wanted in ((self.llama, True), (self.ik, with_ik)):
            if peer is None or not wanted:
                continue
            if peer is self.llama:
                variant = self.best_flags(peer, "Q4_1", probe or workload)[0]
                found["llama.cpp on Q4_1"] = (variant, peer)
            if with_best:
                found[f"{peer.name} at its best"] = (self.best_format(peer, probe or workload), peer)
        return {name: (peer.contestant(name, workload, variant), peer.text(variant)) for name, (variant, peer) in found.items()}

    def with_openvino(self, found, workload):
        if self.openvino is not None:
            backend = self.best_backend(workload)
            found["OpenVINO GenAI"] = (self.openvino.contestant("OpenVINO GenAI", workload, backend), self.openvino.text(backend))
        return found

    # Rounds -------------------------------------------------------------------------------------------------------

    def measure(self, row, contestants):
        """label -> Series, and everything about it kept for the JSON file."""
        found = rounds.interleave(contestants, self.options.rounds, self.options.retries, self.say)
        for series in found.values():
            for sample in series.samples:
                if "machine" in sample.details:
                    self.note_limits(sample.details["machine"])
                if "build" in sample.details:
                    self.versions[series.label.split()[0]] = sample.details["build"]
                if "version" in sample.details:
                    self.versions["OpenVINO GenAI"] = sample.details["version"]
        self.measurements.append({"row": row, "series": {label: series.summary() for label, series in found.items()}})
        return found

    def lines(self, row, workload, found, claims, texts, any_activation=False, figure=None, activations=None):
        """One line for each claim (peer, at least, aim) whose peer was measured."""
        ours = {name: found[self.our_label(name)].median for name in activations or self.activations}
        lines = []
        for peer, at_least, aim in claims:
            if peer in found:
                noise = {label: f"{min(found[label].values):.4g} to {max(found[label].values):.4g}" for label in (self.our_label(DEFAULT), peer)}
                disturbed = sum(series.num_disturbed for series in found.values())
                lines.append(Line(row, figure or workload.name, workload.unit, ours, f"{peer} ({texts[peer]})", found[peer].median, at_least, aim,
                                  lower_is_better=workload.figure == "turn", any_activation=any_activation,
                                  note=f"{disturbed} runs disturbed" if disturbed else "", noise=noise))
        return lines

    def compare(self, row, workload, peers, claims, any_activation=False, octavo=None, figure=None, activations=None):
        contestants = self.ours(workload, octavo, activations) + [contestant for contestant, _ in peers.values()]
        found = self.measure(row, contestants)
        texts = {name: text for name, (_, text) in peers.items()}
        return found, self.lines(row, workload, found, claims, texts, any_activation, figure, activations)


def any_peer(found, workload, texts_of):
    """The name of the peer with the best median, of whatever format."""
    return search.best_of(list(texts_of), workload, lambda name: found[name].median)[0]


def read_fraction_line(session, row, figure, found, bounds):
    """Bytes that decoding had to read a second, against what the same threads could read just before and after that run."""
    results = {name: [sample.details["result"] for sample in found[session.our_label(name)].samples]
               for name in session.activations if session.our_label(name) in found}
    reads = [result["read_gb_per_s"] for of_one in results.values() for result in of_one]
    return Line(row, f"{figure}: part of what could be read ({min(reads):.0f} to {max(reads):.0f} GB/s)", "",
                {name: statistics.median(result["decode_read_fraction"] for result in of_one) for name, of_one in results.items()},
                at_least=bounds[0], aim=bounds[1])


def decode(session):
    peers = session.with_openvino(session.family(DECODE), DECODE)
    found, lines = session.compare("decode", DECODE, peers, [("llama.cpp on Q4_1", 1.6, 2.0), ("OpenVINO GenAI", 2.0, 3.0)])
    if peers:
        best = any_peer(found, DECODE, peers)
        texts = {best: "the best of any peer, " + peers[best][1]}
        lines[1:1] = session.lines("decode", DECODE, found, [(best, 1.3, 1.7)], texts)
    return lines + [read_fraction_line(session, "decode", DECODE.name, found, (0.80, 0.90))]


def decode_2048(session):
    peers = session.family(DECODE_2048, with_ik=False, with_best=False)
    found, lines = session.compare("decode-2048", DECODE_2048, peers, [("llama.cpp on Q4_1", 1.6, 2.2)])
    return lines + [read_fraction_line(session, "decode-2048", DECODE_2048.name, found, (None, None))]


def prefill_512(session):
    peers = session.with_openvino(session.family(PREFILL_512), PREFILL_512)
    claims = [("llama.cpp on Q4_1", 5, 8), ("llama.cpp at its best", 1.8, 2.5), ("ik_llama.cpp at its best", 1.4, 2.0), ("OpenVINO GenAI", 2, 3)]
    return session.compare("prefill-512", PREFILL_512, peers, claims, any_activation=True)[1]


def prefill_4096(session):
    peers = session.family(PREFILL_4096, probe=PROBE_2048, with_best=False, with_ik=False)
    return session.compare("prefill-4096", PREFILL_4096, peers, [("llama.cpp on Q4_1", 4, 7)], any_activation=True)[1]


def batch_16(session):
    peers = session.with_openvino(session.family(BATCH), BATCH)
    found, lines = session.compare("batch-16", BATCH, peers, [("llama.cpp on Q4_1", 6, 8), ("OpenVINO GenAI", 2, 3)], any_activation=True)
    if peers:
        best = any_peer(found, BATCH, peers)
        texts = {best: "the best of any peer, " + peers[best][1]}
        lines[1:1] = session.lines("batch-16", BATCH, found, [(best, 2.5, 3.5)], texts, any_activation=True)
    return lines


def shared_16(session):
    peers = session.family(SHARED, with_ik=False)
    claims = [("llama.cpp on Q4_1", 8, 12), ("llama.cpp at its best", 3, 4.5)]
    return session.compare("shared-16", SHARED, peers, claims, any_activation=True)[1]


def turn(session):
    peers = session.family(TURN, with_best=False, with_ik=False)
    return session.compare("turn", TURN, peers, [("llama.cpp on Q4_1", 3, 5)], any_activation=True)[1]


def load(session):
    """The whole process, from its start to its end, with one token: what a person waits for."""
    octavo = session.octavo
    with open(octavo.model, "rb") as file:
        while file.read(1 << 24):
            pass  # into the page cache

    def whole_process(done):
        timing = json.loads(done.out)
        return done.seconds * 1000, {"load_ms": timing["timing"]["load_ms"], "ttft_ms": timing["requests"][0]["metrics"]["ttft_ms"]}

    command = (str(octavo.program), "generate", "--json", "--model", str(octavo.model), "--threads", str(octavo.threads), "--temperature", "0",
               "--prompt", "The capital of France is", "--max-tokens", "1")
    contestants = [Contestant(session.our_label(DEFAULT), command, whole_process, octavo.cores)]
    if session.llama is not None:
        variant = Variant()
        bench = [*session.llama.common("llama-bench", variant), "-r", 1, "-o", "json", "--no-warmup", "-p", 5, "-n", 0]
        contestants.append(Contestant("llama-bench, whole process", tuple(map(str, bench)), lambda done: (done.seconds * 1000, {}), octavo.cores,
                                      {}, session.llama.work))
    found = session.measure("load", contestants)
    ours = found[session.our_label(DEFAULT)]
    inside = sorted(sample.details["load_ms"] + sample.details["ttft_ms"] for sample in ours.samples)
    peers = [Line("load", "the same of llama-bench with 5 prompt tokens", "ms", {DEFAULT: series.median})
             for label, series in found.items() if label.startswith("llama-bench")]
    return [Line("load", "load to first token, whole process, file in page cache", "ms", {DEFAULT: ours.median}, at_least=500, aim=200, lower_is_better=True,
                 note=f"by its own clock {inside[len(inside) // 2]:.0f} ms")] + peers


def memory(session):
    """Peak resident memory of a pool that is used to the last block, against file and pool."""
    octavo, blocks, prompt_tokens, output_tokens, sequences = session.octavo, 560, 512, 32, 16
    requests = session.peers.work / "memory.jsonl"
    requests.write_text("".join(json.dumps({"prompt_token_ids": [24576 + (i * 7919 + j * 104729) % 24576 for j in range(prompt_tokens)]}) + "\n"
                                for i in range(sequences)))
    done = machine.execute([octavo.program, "generate", "--json", "--model", octavo.model, "--threads", octavo.threads, "--requests-file", requests,
                            "--num-kv-blocks", blocks, "--swap-space", 0, "--temperature", 0, "--ignore-eos", "--max-tokens", output_tokens], octavo.cores)
    answer = json.loads(done.out)
    inspected = json.loads(machine.execute([octavo.program, "inspect", "--json", "--model", octavo.model], octavo.cores).out)
    needed = inspected["model"]["file_bytes"] + answer["kv"]["num_blocks"] * answer["kv"]["bytes_per_block"]
    used = answer["kv"]["peak_used_blocks"] / answer["kv"]["num_blocks"]
    return [Line("memory", f"peak resident memory / (file + KV pool), {100 * used:.0f} % of the pool used", "", {DEFAULT: done.max_rss_bytes / needed},
                 at_least=1.15, aim=1.0, lower_is_better=True, note=f"{done.max_rss_bytes / 2**20:.0f} MiB")]


def formats(session):
    """The same model in other types, for speed only."""
    lines = []
    for name in OTHER_FORMATS:
        model = session.peers.in_format(session.octavo.model, name) if session.llama else None
        if model is None:
            return lines
        octavo = session.octavo.with_model(model)
        for workload in (DECODE, PREFILL_512):
            variant = session.best_flags(session.llama, name, workload)[0]
            peers = {f"llama.cpp on {name}": (session.llama.contestant(f"llama.cpp on {name}", workload, variant), session.llama.text(variant))}
            lines += session.compare("formats", workload, peers, [(f"llama.cpp on {name}", 1.2, 1.5)], workload is PREFILL_512, octavo,
                                     f"{name}: {workload.name}")[1]
    return lines




def avx2(session):
    if session.llama is None:
        return []
    octavo, lines = session.octavo.with_instruction_set("avx2"), []
    for workload, at_least, aim in ((DECODE, 1.2, 1.5), (PREFILL_512, 2, 3)):
        candidates = [Variant(folder="build-avx2", flash=flash) for flash in (True, False)]
        variant = search.best_of(candidates, workload, session.prober(session.llama, workload))[0] or candidates[0]
        name = "llama.cpp built for AVX2"
        peers = {name: (session.llama.contestant(name, workload, variant), session.llama.text(variant))}
        lines += session.compare("avx2", workload, peers, [(name, at_least, aim)], workload is PREFILL_512, octavo, f"AVX2: {workload.name}")[1]
    return lines


def paged(session):
    """Scattered blocks against one contiguous reservation for each sequence, both through block tables, same kernels."""
    lines = []
    for workload in (DECODE_2048, dataclasses.replace(DECODE_2048, name="decode, 4 sequences, context 2,048", sequences=4)):
        one = session.octavo.contestant(session.our_label(DEFAULT), workload, None, ("--scatter-blocks",))
        blocks = str((workload.sequences + 1) * 4096 // 16)
        other = session.octavo.contestant("contiguous", workload, None,
                                          ("--memory-manager", "orca-max", "--max-model-len", "4096", "--num-kv-blocks", blocks, "--no-enable-prefix-caching"))
        found = session.measure("paged", [one, other])
        lines += session.lines("paged", workload, found, [("contiguous", 0.97, 1.0)], {"contiguous": "our own engine, orca-max"},
                               figure=f"paged, blocks scattered: {workload.name}", activations=[DEFAULT])
    return lines


def perplexity_parity(session):
    """Difference from llama.cpp in percent, below zero where Octavo predicts the text better; deterministic, so measured once."""
    text, context = session.options.text, session.options.perplexity_context
    if session.llama is None:
        return []
    program = session.llama.bin_of("build") / "llama-perplexity"
    theirs, windows = perplexity.of_llama(program, session.octavo.model, text, session.octavo.threads, session.octavo.cores, session.peers.work, context)
    session.say(f"    llama-perplexity: {theirs:.4f} over {windows} windows")
    lines = []
    for kv_type, at_least in (("f16", 0.5), ("int8", 1.0)):
        ours = {}
        for name in session.activations:
            flags = ["--kv-cache-dtype", kv_type] + ([] if name == DEFAULT else ["--activation-dtype", name])
            value, our_windows = perplexity.of_octavo(session.octavo, text, session.peers.work, context, flags)
            if our_windows != windows:
                raise machine.Failure(f"{text} gives {our_windows} windows in Octavo and {windows} in llama-perplexity: they read it differently")
            session.say(f"    octavo {name}, {kv_type} keys and values: {value:.4f} ({100 * (value / theirs - 1):+.3f} %)")
            ours[name] = value
        session.measurements.append({"row": "perplexity", "kv": kv_type, "text": str(text), "windows": windows, "llama.cpp": theirs, "octavo": ours})
        differences = {name: 100 * (value / theirs - 1) for name, value in ours.items()}
        lines.append(Line("perplexity", f"perplexity with {kv_type} keys and values, above llama.cpp's {theirs:.4f}", "%", differences, at_least=at_least, aim=0.0,
                          lower_is_better=True, note=f"{windows} windows of {context}"))
    return lines


def one_billion(session):
    """A model that no cache holds: random weights, every type."""
    lines = []
    script = session.options.random_model_script
    for name in session.options.formats_1b:
        model = session.peers.random_model(script, name)
        octavo = session.octavo.with_model(model)
        decode_1b = dataclasses.replace(DECODE, name="decode, 1 sequence", prompt_tokens=32, output_tokens=33)
        for workload in (decode_1b, PREFILL_512):
            peers = {}
            if session.llama is not None:
                engine = session.llama.with_file(model)
                variant = Variant(model_format=name)
                peers[f"llama.cpp on {name}"] = (engine.contestant(f"llama.cpp on {name}", workload, variant), engine.text(variant))
            bounds = (None, None) if workload is decode_1b else PREFILL_BOUNDS_1B.get(name, (1.2, 1.5))
            found, more = session.compare("1b", workload, peers, [(f"llama.cpp on {name}", *bounds)], workload is PREFILL_512, octavo, f"1B {name}: {workload.name}")
            lines += more
            if workload is decode_1b:
                lines.append(read_fraction_line(session, "1b", f"1B {name}: decode", found, (0.85, 0.90)))
    return lines


PREFILL_BOUNDS_1B = {"Q4_1": (5, 8), "Q4_0": (1.8, 2.5)}  # as for the default model; other types as its other formats

ROWS = {
    "decode": decode, "decode-2048": decode_2048, "prefill-512": prefill_512, "prefill-4096": prefill_4096, "batch-16": batch_16,
    "shared-16": shared_16, "turn": turn, "load": load, "memory": memory, "formats": formats, "avx2": avx2, "paged": paged,
    "perplexity": perplexity_parity, "1b": one_billion,
}
