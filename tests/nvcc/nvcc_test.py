#!/usr/bin/env python3
"""The CUDA backend compiled by nvcc and linked into the program, on a machine without a device or with its devices hidden.

usage: nvcc_test.py [--build FOLDER] [--folder FOLDER] [--architectures LIST] [--jobs N] [--gtest_output=xml:FILE] [unittest's arguments]

By default every file is compiled to PTX for one architecture, many in one, without optimising, which takes a core a minute or
two, and a second run nothing: all that nvcc itself refuses or warns of is found. 8.0 is the oldest one with every instruction
that the kernels use. Machine code, what ptxas says of it, and all architectures: tests/long/run cuda, which also runs these tests on
the program that it makes. Without nvcc, or with one that is too old, they are skipped with a sentence.
"""
import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import cuda_build  # noqa: E402
import resources  # noqa: E402
import unittest_report  # noqa: E402

MODEL = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "octavo/models/SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = ["--prompt", "The capital of France is", "--max-tokens", "8", "--temperature", "0"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=cuda_build.ROOT / "build/release", help="the build whose libraries are linked")
    parser.add_argument("--folder", type=Path, default=cuda_build.ROOT / "build/nvcc-ptx")
    parser.add_argument("--architectures", help="those of machine code, as CMake names them, between semicolons (default: PTX alone)")
    parser.add_argument("--jobs", type=int, default=1, help="other tests run beside this one")
    return parser.parse_known_args()


OPTIONS, MORE = parse_arguments()


@functools.lru_cache(maxsize=None)
def the_build():
    """(CudaBuild with the program in it, "", ""), or (None, why these tests cannot run, or else what failed)."""
    nvcc, why_not = cuda_build.find_nvcc()
    if nvcc is None:
        return None, why_not, ""
    architectures = OPTIONS.architectures.split(";") if OPTIONS.architectures else cuda_build.PTX_ALONE
    build = cuda_build.CudaBuild(OPTIONS.folder, architectures, nvcc, OPTIONS.build, OPTIONS.jobs)
    try:
        build.configure()
        build.build(["octavo"])
    except cuda_build.BuildFailed as failure:
        return None, "", str(failure)
    return build, "", ""


def octavo(program, *arguments):
    """With the devices of the machine hidden; they cannot be seen where there is no driver."""
    hidden = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    hidden.pop("OCTAVO_BACKEND", None)
    return subprocess.run([program, *arguments], env=hidden, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)


class NvccTest(unittest.TestCase):
    def setUp(self):
        self.build, why_not, failure = the_build()
        if why_not:
            self.skipTest(why_not)
        self.assertEqual(failure, "")
        self.program = self.build.program("octavo")

    def test_every_file_compiles_without_a_warning(self):
        if self.build.is_only_read:  # setUp has compiled them
            sources = {source.name for source in (cuda_build.ROOT / "kernels/cuda").rglob("*.cu")}
            self.assertEqual(self.build.read_sources(), sources)
            return
        kernels = resources.parse_kernels(self.build.said_by_ptxas())
        numbers = {cuda_build.number_of(architecture) for architecture in self.build.architectures}
        self.assertEqual({kernel.architecture for kernel in kernels}, numbers)
        self.assertGreater(len(kernels), 100 * len(numbers))

    def test_a_warning_of_either_compiler_is_an_error(self):
        for target, warning in (("octavo_device_warning", "never_used"), ("octavo_host_warning", "may change value")):
            with self.assertRaises(cuda_build.BuildFailed) as failed:
                self.build.build([target])
            self.assertIn(warning, str(failed.exception))

    def test_the_program_needs_no_library_of_cuda(self):
        done = subprocess.run(["readelf", "--dynamic", self.program], stdout=subprocess.PIPE, text=True, check=True)
        needed = [line.lower() for line in done.stdout.splitlines() if "(NEEDED)" in line]
        self.assertGreater(len(needed), 3)
        self.assertEqual([line for line in needed if "cuda" in line or "cublas" in line or "nvidia" in line], [])

    def test_it_starts_without_a_device_and_names_its_backends(self):
        done = octavo(self.program, "--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("backends: cuda cpu reference\n", done.stdout)

    def test_auto_takes_the_cpu_and_gives_the_tokens_of_a_program_without_cuda(self):
        if not MODEL.exists():
            self.skipTest(f"the default model is not installed ({MODEL})")
        outputs = []
        for program in (self.program, OPTIONS.build / "octavo"):
            done = octavo(program, "generate", "--device", "auto", "--json", *PROMPT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            answer = json.loads(done.stdout)
            outputs.append((answer["device"], answer["requests"][0]["outputs"][0]["token_ids"]))
        self.assertEqual(outputs[0][0], "cpu")
        self.assertEqual(len(outputs[0][1]), 8)
        self.assertEqual(outputs[0], outputs[1])

    def test_device_cuda_is_refused_in_one_sentence(self):
        if not MODEL.exists():
            self.skipTest(f"the default model is not installed ({MODEL})")
        done = octavo(self.program, "generate", "--device", "cuda", *PROMPT)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Aoctavo: --device: [^\n]*(no NVIDIA driver|no device)[^\n]*; use cpu\n\Z")


class FindNvccTest(unittest.TestCase):
    """Where the only nvcc is one that says VERSION."""

    def found(self, said):
        with tempfile.TemporaryDirectory() as folder:
            if said is not None:
                program = Path(folder) / "nvcc"
                program.write_text(f"#!/bin/sh\necho '{said}'\n")
                program.chmod(0o755)
            with mock.patch.dict(os.environ, PATH=folder), mock.patch.object(cuda_build, "USUAL_FOLDER", folder):
                return cuda_build.find_nvcc()

    def test_one_that_is_new_enough_is_taken(self):
        nvcc, why_not = self.found("Cuda compilation tools, release 13.10, V13.10.2")
        self.assertEqual((nvcc.version, why_not), ("13.10.2", ""))

    def test_none_one_that_is_too_old_and_one_that_is_broken_are_a_sentence_each(self):
        for said, reason in ((None, "nvcc was not found"), ("release 12.9, V12.9.86", "is version 12.9.86, and Octavo needs 13.0 or newer"),
                             ("no such toolkit", "does not tell its version")):
            nvcc, why_not = self.found(said)
            self.assertIsNone(nvcc)
            self.assertIn(reason, why_not)
            self.assertIn("was not compiled for a device", why_not)


class ResourcesTest(unittest.TestCase):
    SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN6octavo7kernels4cuda16attention_kernelINS1_5ShapeILNS0_6KvTypeE1ELi64ELNS1_13AttentionKindE1ELNS1_9HalfPartsE1EEEEEvNS1_18AttentionArgumentsEi' for 'sm_80'
ptxas info    : Function properties for _ZN6octavo7kernels4cuda16attention_kernelINS1_5ShapeILNS0_6KvTypeE1ELi64ELNS1_13AttentionKindE1ELNS1_9HalfPartsE1EEEEEvNS1_18AttentionArgumentsEi
    8 bytes stack frame, {spilled} bytes spill stores, 20 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 8 bytes cumulative stack size, 256 bytes smem, 712 bytes cmem[0]
ptxas info    : Compile time = 300.100 ms
ptxas info    : Compiling entry function '_ZN6octavo7kernels4cuda16attention_kernelINS1_5ShapeILNS0_6KvTypeE4ELi64ELNS1_13AttentionKindE1ELNS1_9HalfPartsE1EEEEEvNS1_18AttentionArgumentsEi' for 'sm_80'
ptxas info    : Function properties for _ZN6octavo7kernels4cuda16attention_kernelINS1_5ShapeILNS0_6KvTypeE4ELi64ELNS1_13AttentionKindE1ELNS1_9HalfPartsE1EEEEEvNS1_18AttentionArgumentsEi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 90 registers, used 1 barriers, 256 bytes smem, 712 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN6octavo7kernels4cuda45_GLOBAL__N__a5eb56e6_12_embedding_cu_6733228a10new_kernelEPf' for 'sm_80'
ptxas info    : Function properties for _ZN6octavo7kernels4cuda45_GLOBAL__N__a5eb56e6_12_embedding_cu_6733228a10new_kernelEPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 360 bytes cmem[0]
"""
    LINE = "attention, prefill, one part, head <= 64: f16, fp8"
    EMPTY = f"# Title\n\n{resources.BEGIN}\n{resources.END}\n\n## Next\n"

    def table(self, spilled=8):
        return resources.table_of(resources.parse_kernels(self.SAID.format(spilled=spilled)))

    def test_kernels_are_read_and_put_into_lines(self):
        self.assertEqual({label: {name: str(cell) for name, cell in cells.items()} for label, cells in self.table().items()},
                         {self.LINE: {"80": "90 to 96 / 8"}, "`new_kernel`": {"80": "12"}})

    def test_what_ptxas_says_otherwise_is_not_passed_over(self):
        with self.assertRaises(ValueError):
            resources.parse_kernels(self.SAID.format(spilled=0).replace("Used 12 registers", "Used twelve registers"))

    def test_a_record_is_what_was_written(self):
        record = resources.merged(resources.read_record(self.EMPTY), "13.0.88", self.table())
        text = resources.written(self.EMPTY, record)
        self.assertEqual(resources.read_record(text), record)
        self.assertEqual(resources.written(text, record), text)
        self.assertTrue(text.startswith("# Title\n") and text.endswith("\n\n## Next\n"))

    def test_columns_of_the_same_nvcc_stay_and_those_of_another_go(self):
        newer = {self.LINE: {"90": resources.Cell(96, 96, 0)}}
        record = resources.merged(resources.Record("", [], {}), "13.0.88", self.table())
        self.assertEqual(resources.merged(record, "13.0.88", newer).table[self.LINE].keys(), {"80", "90"})
        self.assertEqual(resources.merged(record, "13.1.0", newer).architectures, ["90"])

    def test_a_spill_beyond_the_record_is_a_sentence(self):
        record = resources.merged(resources.Record("", [], {}), "13.0.88", self.table(spilled=8))
        self.assertEqual(resources.spills_beyond(record, self.table(spilled=8)), [])
        self.assertEqual(resources.spills_beyond(record, self.table(spilled=12)),
                         [f"{self.LINE}: sm_80 spills 12 bytes, and 8 are recorded"])
        self.assertEqual(resources.spills_beyond(resources.Record("13.0.88", ["80"], {}), self.table(spilled=8)),
                         [f"{self.LINE}: sm_80 spills 8 bytes, and 0 are recorded"])


if __name__ == "__main__":
    sys.exit(unittest_report.main("nvcc", MORE))
