#!/usr/bin/env python3
"""Puts each defect of mutants.txt into the engine, one at a time, and requires the simulation to notice it.

For each mutant one source file is changed in a copy outside the tree, compiled with the flags of the build (and -O1),
linked into octavo_simulate in place of the original, and run over seeds. A change that is marked harmless must pass
unnoticed: what catches everything shows nothing. Objects and results are kept by the hash of everything that they were
made from, so that only what changed is built and run again.

usage: run.py [--build FOLDER] [--jobs N] [--only TEXT] [--gtest_output=xml:FILE]
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEEDS, STEPS = 3000, 1_000_000  # an unnoticed mutant runs until it has done either
LONGEST_LIFE_S = 5
SECONDS_PER_MUTANT = 120


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    edits: list[tuple[str, str]]  # text that must be there exactly once, and what stands there instead
    is_harmless: bool


@dataclasses.dataclass
class Verdict:
    mutant: Mutant
    is_right: bool
    text: str


def read_mutants(path):
    """The mutants of a file; its first lines say how it is written."""
    mutants = []
    for section in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
        head, *edits = section.split("\n---\n")
        name, _, file = head.partition("\n")
        pairs = [edit.partition("\n+++\n") for edit in edits]
        mutants.append(Mutant(name.removesuffix(" (harmless)"), file.strip(),
                              [(old.strip("\n"), new.strip("\n")) for old, _, new in pairs], name.endswith(" (harmless)")))
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: two mutants have one name")
    return mutants


def mutated_source(root, mutant):
    """The text of the mutant's file with the defect in it; a sentence instead of a text that is not there exactly once."""
    source = (root / mutant.file).read_text()
    for old, new in mutant.edits:
        count = source.count(old)
        if count != 1:
            raise ValueError(f"{mutant.file}: the text to replace is there {count} times: bring mutants.txt up to date")
        source = source.replace(old, new)
    return source


def digest(*parts):
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()[:32]


class Build:
    """What the build folder knows: how a file is compiled, and what octavo_simulate is linked from."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.cache = folder / "mutants"
        self.cache.mkdir(exist_ok=True)
        self.commands = {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            self.commands[str(pathlib.Path(entry["file"]).resolve())] = entry
        commands = subprocess.run(["ninja", "-C", str(folder), "-t", "commands", "octavo_simulate"], check=True,
                                  capture_output=True, text=True).stdout.splitlines()
        link = shlex.split(commands[-1].removeprefix(": && ").removesuffix(" && :"))
        output = link.index("-o")
        self.linker, self.inputs = link[:output], link[output + 2:]
        files = [folder / word for word in link if word.endswith((".o", ".a"))]
        self.link_digest = digest(*link, *(path.read_bytes() for path in files))

    def compile_command(self, file):
        """(compiler and flags without input and output, object of the original)."""
        entry = self.commands[str((self.root / file).resolve())]
        words = shlex.split(entry["command"])
        if words[0].endswith("ccache"):
            words = words[1:]
        output = words.index("-o")
        original = pathlib.Path(entry["directory"]) / words[output + 1]
        flags = [word for word in words[:output] if not re.fullmatch(r"-O.", word)]
        flags = [word for word in flags if word not in ("-MD", "-c") and not word.startswith(("-MT", "-MF"))]
        return flags + ["-O1", "-w"], original

    def object_of(self, mutant):
        """The compiled mutant, from the cache if nothing that it is made from has changed."""
        flags, original = self.compile_command(mutant.file)
        source = mutated_source(self.root, mutant)
        path = self.cache / (digest(source, *flags, original.read_bytes()) + ".o")
        if not path.exists():
            with tempfile.TemporaryDirectory(prefix="octavo-mutant-") as scratch:
                copy = pathlib.Path(scratch) / pathlib.Path(mutant.file).name
                copy.write_text(f'#line 1 "{mutant.file}"\n' + source)
                made = pathlib.Path(scratch) / "mutant.o"
                built = subprocess.run(flags + ["-o", str(made), "-c", str(copy)], cwd=self.folder, capture_output=True,
                                       text=True)
                if built.returncode != 0:
                    raise ValueError("does not compile: " + built.stderr.strip().splitlines()[0])
                path.write_bytes(made.read_bytes())
        path.touch()  # in use
        return path

    def result_of(self, mutant):
        """(caught, text)."""
        mutated = self.object_of(mutant)
        path = self.cache / (digest(self.link_digest, mutated.read_bytes(), SEEDS, STEPS) + ".json")
        if path.exists():
            path.touch()
            return tuple(json.loads(path.read_text()))
        with tempfile.TemporaryDirectory(prefix="octavo-mutant-") as scratch:
            program = pathlib.Path(scratch) / "octavo_simulate"
            # First, so that nothing is taken from the library that holds the original.
            subprocess.run(self.linker + [str(mutated), "-o", str(program)] + self.inputs, cwd=self.folder, check=True,
                           capture_output=True)
            result = simulate(program)
        path.write_text(json.dumps(result))
        return result

    def forget_unused(self, begin):
        for path in self.cache.iterdir():
            if path.stat().st_mtime < begin:
                path.unlink()


def simulate(program):
    """(whether the defect was noticed, where or how)."""
    arguments = ["--seeds", SEEDS, "--steps", STEPS, "--longest-life", LONGEST_LIFE_S, "--no-shrink"]
    try:
        done = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, timeout=SECONDS_PER_MUTANT)
    except subprocess.TimeoutExpired:
        return False, f"no end after {SECONDS_PER_MUTANT} s"
    caught = re.match(r"seed \d+, step \d+: .*", done.stdout)
    if done.returncode == 1 and caught:
        return True, "caught at " + caught.group(0)
    return False, f"not caught (exit status {done.returncode})"


def judge(build, mutant):
    try:
        caught, text = build.result_of(mutant)
        return Verdict(mutant, caught != mutant.is_harmless, text)
    except (ValueError, subprocess.CalledProcessError) as error:
        return Verdict(mutant, False, str(error))


def write_report(path, verdicts):
    """As GoogleTest writes it, so that packaging/test counts mutants like tests."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name="Mutants")
    for verdict in verdicts:
        case = ElementTree.SubElement(suite, "testcase", name=verdict.mutant.name, status="run", classname="Mutants")
        if not verdict.is_right:
            ElementTree.SubElement(case, "failure", message=verdict.text)
    ElementTree.ElementTree(suites).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build folder made by cmake")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the sources that it was made from")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only mutants with this in their name or file")
    parser.add_argument("--gtest_output", default="", metavar="xml:FILE")
    arguments = parser.parse_args()
    begin = time.time()
    mutants = [mutant for mutant in read_mutants(HERE / "mutants.txt") if arguments.only in mutant.name + mutant.file]
    if not mutants:
        sys.exit("tests/mutation/run.py: there is no such mutant")
    build = Build(arguments.root.resolve(), arguments.build.resolve())
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for verdict in pool.map(lambda mutant: judge(build, mutant), mutants):
            print(f"{verdict.mutant.name} ({verdict.mutant.file}): {verdict.text}", flush=True)
            verdicts.append(verdict)
    if not arguments.only:
        build.forget_unused(begin - 1)
    if arguments.gtest_output:
        write_report(arguments.gtest_output.removeprefix("xml:"), verdicts)
    wrong = [verdict.mutant.name for verdict in verdicts if not verdict.is_right]
    for name in wrong:
        print("failed: " + name)
    num_harmless = sum(verdict.mutant.is_harmless for verdict in verdicts)
    print(f"{len(verdicts) - num_harmless} defects and {num_harmless} harmless changes, {len(wrong)} judged wrongly, in "
          f"{time.time() - begin:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
