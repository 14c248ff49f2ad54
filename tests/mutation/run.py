#!/usr/bin/env python3
"""Puts each defect of mutants.txt and program_mutants.txt into the sources, one at a time, and requires a program to notice it.

For each mutant one source file is changed in a copy outside the tree, compiled with the flags of the build (and -O1),
linked in place of the original into octavo_simulate, which runs over seeds, or into the test program that the mutant
names. A change that is marked harmless must pass unnoticed: what catches everything shows nothing. Objects and results
are kept by the hash of everything that they were made from, so that only what changed is built and run again.

usage: run.py [--check | --programs] [--build FOLDER] [--jobs N] [--only TEXT] [--gtest_output=xml:FILE]

--check builds nothing: every text to replace is there exactly once. --programs prints what must be built before.
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
FILES = ["mutants.txt", "program_mutants.txt"]
SIMULATION = ["octavo_simulate", "--seeds", str(SEEDS), "--steps", str(STEPS), "--longest-life", str(LONGEST_LIFE_S),
              "--no-shrink"]


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    unit: str  # that is compiled with it; `file` itself, if that is no header
    edits: list[tuple[str, str]]  # text that must be there exactly once, and what stands there instead
    is_harmless: bool
    noticed_by: list[str]  # program and arguments


@dataclasses.dataclass
class Verdict:
    mutant: Mutant
    is_right: bool
    text: str


def read_mutants(paths):
    """The mutants of all files; the first lines of mutants.txt say how they are written."""
    mutants = []
    for section in (one for path in paths for one in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]):
        head, *edits = section.split("\n---\n")
        name, place, *noticed_by = head.strip().split("\n")
        file, _, unit = place.partition(" in ")
        program = shlex.split(noticed_by[0].removeprefix("noticed by: ")) if noticed_by else SIMULATION
        pairs = [edit.partition("\n+++\n") for edit in edits]
        mutants.append(Mutant(name.removesuffix(" (harmless)"), file, unit or file, [(old.strip("\n"), new.strip("\n")) for old, _, new in pairs],
                              name.endswith(" (harmless)"), program))
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        sys.exit("tests/mutation: two mutants have one name: " + ", ".join({name for name in names if names.count(name) > 1}))
    return mutants


def mutated_source(root, mutant):
    """The text of the mutant's file with the defect in it; a sentence instead of a text that is not there exactly once."""
    source = (root / mutant.file).read_text()
    for old, new in mutant.edits:
        count = source.count(old)
        if count != 1:
            raise ValueError(f"{mutant.file}: the text to replace is there {count} times: bring the mutant up to date")
        source = source.replace(old, new)
    return source


def digest(*parts):
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()[:32]


@dataclasses.dataclass
class Program:
    linker: list[str]
    inputs: list[str]
    digest: str  # of all that it is made from


def compiled_with(unit):
    """The files that CMake compiles together in this one; none for a file of our own."""
    if unit.parent.name != "Unity":
        return []
    return re.findall(r'^#include "(.*)"$', unit.read_text(), flags=re.MULTILINE)


class Build:
    """What the build folder knows: how a file is compiled, and what a program is linked from."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.cache = folder / "mutants"
        self.cache.mkdir(exist_ok=True)
        self.commands = {}
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            if re.search(r"-DOCTAVO_ISA=(?!portable)", entry["command"]):
                continue  # the portable set runs on every machine, and tests of kernels try all that run
            for file in [entry["file"], *compiled_with(pathlib.Path(entry["file"]))]:
                self.commands[str(pathlib.Path(file).resolve())] = entry
        self.programs = {}

    def program(self, name):
        """How a program is linked: what stands before its own name, and its objects and libraries."""
        if name not in self.programs:
            commands = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", name], check=True,
                                      capture_output=True, text=True).stdout.splitlines()
            link = shlex.split(commands[-1].removeprefix(": && ").removesuffix(" && :"))
            output = link.index("-o")
            files = [self.folder / word for word in link if word.endswith((".o", ".a"))]
            self.programs[name] = Program(link[:output], link[output + 2:], digest(*link, *(path.read_bytes() for path in files)))
        return self.programs[name]

    def compile_command(self, file):
        """(what is compiled, compiler and flags without input and output, object of the original)."""
        entry = self.commands.get(str((self.root / file).resolve()))
        if entry is None:
            raise ValueError(f"{file} is not compiled in this build")
        words = shlex.split(entry["command"])
        if words[0].endswith("ccache"):
            words = words[1:]
        output = words.index("-o")
        original = pathlib.Path(entry["directory"]) / words[output + 1]
        flags = [word for word in words[:output] if not re.fullmatch(r"-O.", word)]
        flags = [word for word in flags if word not in ("-MD", "-c") and not word.startswith(("-MT", "-MF"))]
        return pathlib.Path(entry["file"]), flags + ["-O1", "-w"], original

    def object_of(self, mutant):
        """The compiled mutant, from the cache if nothing that it is made from has changed."""
        unit, flags, original = self.compile_command(mutant.unit)
        source = mutated_source(self.root, mutant)
        path = self.cache / (digest(source, *flags, original.read_bytes()) + ".o")
        if not path.exists():
            with tempfile.TemporaryDirectory(prefix="octavo-mutant-") as scratch:
                copy = pathlib.Path(scratch) / mutant.file
                copy.parent.mkdir(parents=True)
                copy.write_text(f'#line 1 "{mutant.file}"\n' + source)
                if mutant.unit != mutant.file:  # who includes it finds the copy first
                    flags = [flags[0], f"-I{scratch}", *flags[1:]]
                    copy = unit
                elif unit != (self.root / mutant.file).resolve():  # with its neighbours, which stay as they are
                    together = pathlib.Path(scratch) / "together.cc"
                    together.write_text(unit.read_text().replace(f'"{(self.root / mutant.file).resolve()}"', f'"{copy}"'))
                    copy = together
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
        program = self.program(mutant.noticed_by[0])
        path = self.cache / (digest(program.digest, mutated.read_bytes(), *mutant.noticed_by) + ".json")
        if path.exists():
            path.touch()
            return tuple(json.loads(path.read_text()))
        with tempfile.TemporaryDirectory(prefix="octavo-mutant-") as scratch:
            file = pathlib.Path(scratch) / mutant.noticed_by[0]
            # First, so that nothing is taken from the library that holds the original.
            subprocess.run(program.linker + [str(mutated), "-o", str(file)] + program.inputs, cwd=self.folder, check=True,
                           capture_output=True)
            result = run(file, mutant.noticed_by[1:])
        path.write_text(json.dumps(result))
        return result

    def forget_unused(self, begin):
        for path in self.cache.iterdir():
            if path.stat().st_mtime < begin:
                path.unlink()


def run(program, arguments):
    """(whether the defect was noticed, where or how)."""
    try:
        done = subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=SECONDS_PER_MUTANT)
    except subprocess.TimeoutExpired:
        return False, f"no end after {SECONDS_PER_MUTANT} s"
    if program.name == SIMULATION[0]:
        place = re.match(r"seed \d+, step \d+: .*", done.stdout)
        is_caught = done.returncode == 1 and place
    else:
        place = re.search(r"(?<=^\[  FAILED  \] )[\w./]+", done.stdout, flags=re.MULTILINE)
        # A check of the product that ends the program names its test too: the last that began.
        is_caught = done.returncode != 0 and "[ RUN      ]" in done.stdout
        place = place or re.search(r"(?<=\[ RUN      \] )[\w./]+(?!.*\[ RUN)", done.stdout, flags=re.DOTALL)
    if is_caught:
        return True, "caught at " + place.group(0)
    return False, f"not caught (exit status {done.returncode})"


def judge(build, mutant):
    try:
        caught, text = build.result_of(mutant)
        return Verdict(mutant, caught != mutant.is_harmless, text)
    except (ValueError, subprocess.CalledProcessError) as error:
        return Verdict(mutant, False, str(error))


def applies(root, mutant):
    try:
        mutated_source(root, mutant)
        return Verdict(mutant, True, "applies")
    except (ValueError, OSError) as error:
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


def judge_all(build, mutants, jobs, keeps_all):
    begin, verdicts = time.time(), []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for verdict in pool.map(lambda mutant: judge(build, mutant), mutants):
            print(f"{verdict.mutant.name} ({verdict.mutant.file}): {verdict.text}", flush=True)
            verdicts.append(verdict)
    if not keeps_all:
        build.forget_unused(begin - 1)
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only whether every text to replace is there once")
    parser.add_argument("--programs", action="store_true", help="only print the programs that notice")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build folder made by cmake")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the sources that it was made from")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only mutants with this in their name or file")
    parser.add_argument("--gtest_output", default="", metavar="xml:FILE")
    arguments = parser.parse_args()
    begin = time.time()
    mutants = [mutant for mutant in read_mutants([HERE / name for name in FILES])
               if arguments.only in mutant.name + mutant.file]
    if not mutants:
        sys.exit("tests/mutation/run.py: there is no such mutant")
    if arguments.programs:
        return print(*sorted({mutant.noticed_by[0] for mutant in mutants}))
    root = arguments.root.resolve()
    if arguments.check:
        verdicts = [applies(root, mutant) for mutant in mutants]
        for verdict in verdicts:
            if not verdict.is_right:
                print(f"{verdict.mutant.name}: {verdict.text}")
    else:
        verdicts = judge_all(Build(root, arguments.build.resolve()), mutants, arguments.jobs, keeps_all=bool(arguments.only))
    if arguments.gtest_output:
        write_report(arguments.gtest_output.removeprefix("xml:"), verdicts)
    wrong = [verdict.mutant.name for verdict in verdicts if not verdict.is_right]
    for name in wrong:
        print("failed: " + name)
    print(f"{len(verdicts) - len(wrong)} passed, {len(wrong)} failed, 0 skipped in {time.time() - begin:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
