#!/usr/bin/env python3
"""tests/long/run cuda: the CUDA backend compiled by nvcc for every architecture, and all programs with it linked.

usage: tests/long/run cuda [--record] [--jobs N] [--build FOLDER] [--folder PREFIX] [ARCHITECTURE...]

ARCHITECTURE: 75, 80, 86, 89, 90, 100 or 120; all of packaging/cuda.cmake's without one. Each is built alone, in build/nvcc-ARCHITECTURE,
and then all of them once more in one program, as it ships, in build/nvcc-all. A warning is an error. Registers and spills go
into kernels/cuda/RESOURCES.md, unless a kernel spills more than it says: that is a failure, and --record accepts it.
Interrupted and run again, it goes on. A new architecture takes a core about three minutes, all of them in one program ten.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cuda_build  # noqa: E402
import resources  # noqa: E402

RECORD = cuda_build.ROOT / "kernels/cuda/RESOURCES.md"
PROGRAMS = ["octavo", "octavo_gpu_bench", "octavo_cuda_device_tests", "octavo_cuda_engine_tests"]


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, is_right, text):
        print(text if is_right else f"FAILED: {text}", flush=True)
        self.passed += bool(is_right)
        self.failed += not is_right

    def add_report(self, path):
        """Of a GoogleTest XML report."""
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            self.failed += case.find("failure") is not None
            self.skipped += case.find("skipped") is not None
            self.passed += case.find("failure") is None and case.find("skipped") is None


def built(counts, build, targets, what):
    """Whether `targets` are there; tells of each file, and of the time."""
    print(f"== {what}", flush=True)
    began = time.monotonic()
    files = []

    def tell(line):
        if line.startswith("[0/"):
            return  # Ninja looks for new files
        files.append(line)
        print(f"   {time.monotonic() - began:4.0f} s  {re.sub(r'CMakeFiles/[^ ]*/', '', line)}", flush=True)

    try:
        build.configure()
        build.build(targets, tell)
    except cuda_build.BuildFailed as failure:
        counts.check(False, str(failure))
        return False
    counts.check(True, f"{what}: {len(files)} steps in {time.monotonic() - began:.0f} s, no warning")
    return True


def add_to_record(counts, tables, version, accepts_more):
    """Compares what was built with RESOURCES.md, and writes it there."""
    text = RECORD.read_text()
    record = resources.read_record(text)
    more = [sentence for table in tables for sentence in resources.spills_beyond(record, table)]
    counts.check(not more or accepts_more, "\n   ".join(["spills, beside those that are recorded: " + ("more" if more else "none more"), *more]))
    if more and not accepts_more:
        print(f"{RECORD.name} stays as it is (nvcc {record.version} made it); --record takes these spills into it", flush=True)
        return
    for table in tables:
        record = resources.merged(record, version, table)
    changed = resources.written(text, record)
    if changed != text:
        RECORD.write_text(changed)
    print(f"kernels/cuda/{RECORD.name} " + ("has changed" if changed != text else "is as it was"), flush=True)


def summary(kernels):
    spilling = [kernel for kernel in kernels if kernel.spilled]
    most = max(kernels, key=lambda kernel: kernel.registers)
    return (f"   {len(kernels)} kernels, {most.registers} registers at most ({most.name}), {len(spilling)} spill"
            + (f", {max(kernel.spilled for kernel in spilling)} bytes at most" if spilling else ""))


def run_programs(counts, build):
    """What each program does where there is no device, or where devices are hidden."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run([sys.executable, HERE / "nvcc_test.py", "--build", build.other, "--folder", build.folder,
                        "--architectures", ";".join(build.architectures), f"--gtest_output=xml:{report}", "NvccTest"])
        counts.add_report(report)
    hidden = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    for name in PROGRAMS[1:]:
        arguments = ["--quick"] if name == "octavo_gpu_bench" else ["--gtest_list_tests"]
        done = subprocess.run([build.program(name), *arguments], env=hidden, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if name == "octavo_gpu_bench":
            counts.check(done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1,
                         f"{name} without a device: {done.stderr.strip()}")
        else:
            num_tests = len(re.findall(r"^  \w", done.stdout, re.M))
            counts.check(done.returncode == 0 and num_tests > 0, f"{name} starts without a device and has {num_tests} tests")


def parse_arguments(shipped):
    parser = argparse.ArgumentParser(prog="tests/long/run cuda", usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE")
    parser.add_argument("--record", action="store_true", help="take spills into RESOURCES.md that are more than it says")
    parser.add_argument("--build", type=Path, help="a build of the preset release (default: build/release, which is built first)")
    parser.add_argument("--folder", type=Path, default=cuda_build.ROOT / "build/nvcc", help="what folders' names begin with")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="files at once (default: one a core)")
    arguments = parser.parse_args()
    numbers = [cuda_build.number_of(architecture) for architecture in shipped]
    for architecture in arguments.architectures:
        if architecture not in numbers:
            parser.error(f"packaging/cuda.cmake has no architecture '{architecture}'; there are {', '.join(numbers)}")
    return arguments


def release_build():
    folder = cuda_build.ROOT / "build/release"
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", "octavo"]):
        if subprocess.run(command, cwd=cuda_build.ROOT, stdout=subprocess.DEVNULL if "--build" not in command else None).returncode != 0:
            sys.exit("0 passed, 1 failed, 0 skipped")
    return folder


def main():
    shipped = cuda_build.shipped_architectures()
    arguments = parse_arguments(shipped)
    nvcc, why_not = cuda_build.find_nvcc()
    if nvcc is None:
        print(why_not)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    wanted = [each for each in shipped if not arguments.architectures or cuda_build.number_of(each) in arguments.architectures]
    other = arguments.build or release_build()

    def build_of(architectures):
        name = "all" if architectures == shipped else "-".join(map(cuda_build.number_of, architectures))
        return cuda_build.CudaBuild(Path(f"{arguments.folder}-{name}"), architectures, nvcc, other, arguments.jobs)

    counts, tables = Counts(), []
    for architecture in wanted:
        build = build_of([architecture])
        if built(counts, build, ["octavo_cuda"], f"sm_{cuda_build.number_of(architecture)}"):
            kernels = resources.parse_kernels(build.said_by_ptxas())
            print(summary(kernels), flush=True)
            tables.append(resources.table_of(kernels))
    add_to_record(counts, tables, nvcc.version, arguments.record)
    together = build_of(wanted)
    if built(counts, together, PROGRAMS, "programs for " + " ".join(map(cuda_build.number_of, wanted))):
        run_programs(counts, together)
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 0 if counts.failed == 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped: run it again to go on")
        print("0 passed, 0 failed, 1 skipped")
        sys.exit(130)
