"""One measurement of one engine: the command, where it runs, and how its answer is read.

Every engine measures the same shapes by the same definitions: prefill is computed prompt tokens over the time until the
last first token, decode is tokens after the first over the rest of the time, a turn is the time to its first token. Random
tokens, greedy, end of sequence ignored. llama.cpp's programs leave out sampling and the queue of requests; Octavo's and
OpenVINO's figures contain them.
"""
import dataclasses
import json
import re

from . import machine


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    figure: str  # "decode" or "prefill" in tokens/s, "turn" in ms
    prompt_tokens: int
    output_tokens: int = 1
    sequences: int = 1
    shared: bool = False  # the whole prompt is common to all sequences
    cached_tokens: int = 0

    @property
    def unit(self):
        return "ms" if self.figure == "turn" else "tokens/s"

    @property
    def context(self):
        return self.cached_tokens + self.prompt_tokens + self.output_tokens


@dataclasses.dataclass(frozen=True)
class Sample:
    value: float
    details: dict
    disturbed: str | None


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Something that is measured in turns with others. `read` maps what the program printed to (value, details)."""
    label: str
    command: tuple
    read: object
    cores: tuple
    environment: dict = dataclasses.field(default_factory=dict)
    folder: object = None

    def measure(self):
        done = machine.execute(self.command, self.cores, self.environment, self.folder)
        try:
            value, details = self.read(done)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise machine.Failure(f"{self.label} printed something unexpected ({error!r}): {done.out.strip()[-300:]}") from error
        return Sample(value, details, done.disturbed)


class Octavo:
    def __init__(self, program, model, threads, cores, environment=None):
        self.program, self.model, self.threads, self.cores = program, model, threads, tuple(cores)
        self.environment = environment or {}

    def with_model(self, model):
        return Octavo(self.program, model, self.threads, self.cores, self.environment)

    def with_instruction_set(self, name):
        return Octavo(self.program, self.model, self.threads, self.cores, {"OCTAVO_CPU_ISA": name})

    def contestant(self, label, workload, activation=None, more=()):
        # A prompt of the shared tokens and one own: as many tokens as in the peer's prompt are shared.
        command = [self.program, "bench", "speed", "--json", "--model", self.model, "--threads", self.threads, "--repeat", 1,
                   "--prompt-tokens", workload.prompt_tokens + workload.shared, "--output-tokens", workload.output_tokens,
                   "--sequences", workload.sequences, "--cached-tokens", workload.cached_tokens,
                   "--shared-prefix-tokens", workload.prompt_tokens if workload.shared else 0]
        command += ["--activation-dtype", activation] if activation else []
        return Contestant(label, (*map(str, command), *more), lambda done: self.read(workload, done.out), self.cores, self.environment)

    @staticmethod
    def read(workload, out):
        report = json.loads(out)
        result = report["results"][0]
        value = result[{"decode": "decode_tokens_per_s", "prefill": "prefill_tokens_per_s", "turn": "ttft_ms"}[workload.figure]]
        return value, {"machine": report["machine"], "result": result}


@dataclasses.dataclass(frozen=True)
class Variant:
    """How a program of the llama.cpp family is started: its build, its file, its flags."""
    folder: str = "build"
    model_format: str = "Q4_1"
    flash: bool = True
    ubatch: int = 512
    poll: int = 50
    unified: bool = False
    repack: bool = True  # llama.cpp: --repack; ik_llama.cpp: -rtr

    def text(self, own_threads):
        words = [self.model_format, f"fa={int(self.flash)}", f"ub={self.ubatch}", f"repack={int(self.repack)}"]
        words += [f"own threads, poll={self.poll}"] if own_threads else []
        words += ["kvu"] if self.unified else []
        return ", ".join(words)


class LlamaCpp:
    """llama-bench for one sequence, llama-batched-bench for several."""
    name = "llama.cpp"

    def __init__(self, bin_of, file_of, threads, cores, work):
        self.bin_of, self.file_of = bin_of, file_of  # folder of a build -> its programs; format -> file
        self.threads, self.cores, self.work = threads, tuple(cores), work

    def with_file(self, model):
        return type(self)(self.bin_of, lambda unused: model, self.threads, self.cores, self.work)

    def text(self, variant):
        return variant.text(variant.folder == "build-own-threads")

    def contestant(self, label, workload, variant):
        command = self.batched(workload, variant) if workload.sequences > 1 else self.single(workload, variant)
        read = self.read_batched if workload.sequences > 1 else self.read_single
        # ik_llama.cpp prints its table among its messages.
        return Contestant(label, tuple(map(str, command)), lambda done: read(workload, done.out + "\n" + done.err), self.cores, {}, self.work)

    def common(self, program, variant):
        return [self.bin_of(variant.folder) / program, "-m", self.file_of(variant.model_format), "-t", self.threads,
                "-b", max(2048, variant.ubatch), "-ub", variant.ubatch]

    def single(self, workload, variant):
        command = self.common("llama-bench", variant) + ["-r", 1, "-o", "json", "-fa", int(variant.flash), "--poll", variant.poll,
                                                         "--repack", int(variant.repack)]
        if workload.figure == "decode":
            return command + ["-p", 0, "-n", workload.output_tokens - 1, "-d", workload.prompt_tokens]
        return command + ["-p", workload.prompt_tokens, "-n", 0, "-d", workload.cached_tokens]

    def batched(self, workload, variant):
        cells = workload.sequences * -(-workload.context // 256) * 256  # split evenly, each sequence rounded up
        if workload.shared and variant.unified:
            cells = workload.prompt_tokens + workload.sequences * workload.output_tokens + 256
        command = self.common("llama-batched-bench", variant) + ["-c", cells, "-npp", workload.prompt_tokens, "-ntg", workload.output_tokens - 1,
                                                                 "-npl", workload.sequences]
        return command + self.batched_flags(workload, variant)

    def batched_flags(self, workload, variant):
        flags = ["-fa", "on" if variant.flash else "off", "-kvu" if variant.unified else "-no-kvu", "--poll", variant.poll]
        return flags + (["-pps"] if workload.shared else []) + ([] if variant.repack else ["--no-repack"])

    @staticmethod
    def read_single(workload, out):
        entry = json.JSONDecoder().raw_decode(out[re.search(r"^\[", out, re.MULTILINE).start():])[0][-1]
        nanoseconds = entry["samples_ns"][0]
        if workload.figure == "turn":
            return nanoseconds * 1e-6, {"build": entry["build_commit"]}
        tokens = workload.prompt_tokens if workload.figure == "prefill" else workload.output_tokens - 1
        return tokens / nanoseconds * 1e9, {"build": entry["build_commit"]}

    @staticmethod
    def read_batched(workload, out):
        """The last row of its table: | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |"""
        rows = [line.strip().strip("|").split("|") for line in out.splitlines() if re.match(r"\|\s*\d", line.strip())]
        cells = [float(cell) for cell in rows[-1]]
        return cells[7 if workload.figure == "decode" else 5], {"all_tokens_per_s": cells[9]}

    def choices(self, workload, first):
        """What is searched: lists of alternatives to `first`, each the fields of Variant that it changes."""
        found = [[{"flash": False}]]
        if workload.figure != "decode" or workload.sequences > 1:
            found.append([{"ubatch": 256}, {"ubatch": 1024}])
        return found + self.own_choices(workload, first)

    @staticmethod
    def own_choices(workload, first):
        found = [[{"folder": "build-own-threads", "poll": poll} for poll in (50, 100, 0)]]  # OpenMP waits as it likes
        if workload.sequences > 1:
            found.append([{"unified": True}])
        if first.model_format not in ("Q4_1", "Q8_0", "F16"):  # nothing is repacked in those
            found.append([{"repack": False}])
        return found


class IkLlamaCpp(LlamaCpp):
    """ik_llama.cpp: the older programs, own flags; one unified store of keys and values."""
    name = "ik_llama.cpp"

    def text(self, variant):
        return f"{variant.model_format}, fa={int(variant.flash)}, ub={variant.ubatch}, rtr={int(variant.repack)}"

    def single(self, workload, variant):
        command = self.common("llama-bench", variant) + ["-r", 1, "-o", "json", "-fa", int(variant.flash), "-rtr", int(variant.repack)]
        if workload.figure == "decode":
            return command + ["-p", 0, "-n", 0, "-gp", f"{workload.prompt_tokens},{workload.output_tokens - 1}"]
        return command + ["-p", workload.prompt_tokens, "-n", 0]

    def batched_flags(self, workload, variant):
        flags = ["-fa", "on" if variant.flash else "off"]
        return flags + (["-pps"] if workload.shared else []) + (["-rtr"] if variant.repack else [])

    @staticmethod
    def own_choices(workload, first):
        return [[{"repack": False}]]


BACKENDS = (("--backend", "paged"), ("--backend", "paged", "--split-fuse"), ("--backend", "sdpa"))


class OpenVino:
    name = "OpenVINO GenAI"

    def __init__(self, python, script, model, threads, cores):
        self.python, self.script, self.model, self.threads, self.cores = python, script, model, threads, tuple(cores)

    def contestant(self, label, workload, backend):
        command = [self.python, self.script, "--model", self.model, "--threads", self.threads, "--prompt-tokens", workload.prompt_tokens,
                   "--output-tokens", workload.output_tokens, "--sequences", workload.sequences, *backend]
        return Contestant(label, tuple(map(str, command)), lambda done: self.read(workload, done.out), self.cores)

    @staticmethod
    def read(workload, out):
        result = json.loads(out.strip().splitlines()[-1])
        return result[f"{workload.figure}_tokens_per_s"], result

    @staticmethod
    def text(backend):
        return " ".join(backend).replace("--backend ", "").replace("--", "")

    @staticmethod
    def backends(workload):
        return [backend for backend in BACKENDS if "sdpa" not in backend or workload.sequences == 1]
