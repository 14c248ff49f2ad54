"""The peers, made from their packages outside the repository, and the model in other formats. What exists is used again."""
import dataclasses
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from .machine import Failure

LLAMA_PACKAGE, LLAMA_VERSION = "llama-cpp-python", "0.3.36"
LLAMA_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
OPENVINO_PACKAGE = "openvino-genai==2026.4.1.0"

COMMON_FLAGS = ("-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_CURL=OFF")
LLAMA_TOOLS = ("llama-bench", "llama-batched-bench", "llama-quantize", "llama-perplexity")
LLAMA_BUILDS = {  # folder -> flags, programs
    "build": (("-DGGML_NATIVE=ON", "-DGGML_OPENMP=ON"), LLAMA_TOOLS),
    "build-own-threads": (("-DGGML_NATIVE=ON", "-DGGML_OPENMP=OFF"), ("llama-bench", "llama-batched-bench")),
    "build-server": (("-DGGML_NATIVE=ON", "-DGGML_OPENMP=ON", "-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"),
                     ("llama-server",)),
    "build-avx2": (("-DGGML_NATIVE=OFF", "-DGGML_AVX512=OFF"), ("llama-bench",)),
}
IK_TOOLS = ("llama-bench", "llama-batched-bench")


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def run(command, log, folder=None):
    say("  $ " + " ".join(map(str, command)))
    with open(log, "ab") as output:
        if subprocess.run([*map(str, command)], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT).returncode:
            raise Failure(f"`{' '.join(map(str, command))}` failed; {log} says why")


def file_sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_llama_source(work):
    """llama.cpp's source, which comes inside the source package of llama-cpp-python."""
    tree = work / f"llama_cpp_python-{LLAMA_VERSION}" / "vendor" / "llama.cpp"
    if tree.exists():
        return tree
    archive = work / f"llama_cpp_python-{LLAMA_VERSION}.tar.gz"
    if not archive.exists():
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", LLAMA_PACKAGE, "-d", work, f"{LLAMA_PACKAGE}=={LLAMA_VERSION}"],
            work / "pip.log")
    if file_sha256(archive) != LLAMA_SHA256:
        raise Failure(f"{archive} is not the package that is pinned here; delete it and try again")
    say(f"unpacking {archive}")
    with tarfile.open(archive) as package:
        package.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else package.extractall(work)
    return tree


def cmake_build(tree, folder, flags, programs):
    """Folder with the programs; built only if one is missing."""
    where = tree / folder / "bin"
    if all((where / program).exists() for program in programs):
        return where
    say(f"building {', '.join(programs)} in {tree / folder}")
    log = tree / f"{folder}.log"
    run(["cmake", "-S", tree, "-B", tree / folder, "-G", "Ninja", *COMMON_FLAGS, *flags], log)
    run(["ninja", "-C", tree / folder, *programs], log)
    return where


def python_environment(folder, packages, module):
    """The interpreter of a virtual environment that can import `module`."""
    python = folder / "bin" / "python"
    if python.exists() and subprocess.run([python, "-c", f"import {module}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return python
    say(f"installing {', '.join(packages)} into {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.parent / f"{folder.name}.log"
    run([sys.executable, "-m", "venv", folder], log)
    run([python, "-m", "pip", "install", "--disable-pip-version-check", *packages], log)
    return python


def ik_tree(folder):
    if not (folder / "CMakeLists.txt").exists() and not (folder / "build" / "bin" / "llama-bench").exists():
        raise Failure(f"--ik-llama-cpp {folder} holds no source of ik_llama.cpp")
    return folder


@dataclasses.dataclass
class Peers:
    """Where each peer's programs are. None: not measured."""
    work: Path
    llama: Path | None
    ik: Path | None
    openvino: Path | None  # an interpreter

    def llama_bin(self, folder="build"):
        flags, programs = LLAMA_BUILDS[folder]
        return cmake_build(self.llama, folder, ("-DLLAMA_BUILD_EXAMPLES=OFF", *flags), programs)

    def ik_bin(self):
        return cmake_build(self.ik, "build", ("-DGGML_NATIVE=ON",), IK_TOOLS)

    def in_format(self, model, name):
        """The model with its matrices in this type, for speed only: what was rounded once is rounded again."""
        source = Path(model)
        if re.search(rf"\b{name}\b", source.name):
            return source
        target = self.work / "models" / f"{source.stem}-{source.stat().st_size}-as-{name}.gguf"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            half = target.with_suffix(".part")
            run([self.llama_bin() / "llama-quantize", "--allow-requantize", source, half, name, os.cpu_count()], self.work / "quantize.log")
            half.rename(target)
        return target

    def random_model(self, script, name):
        """A 1-billion-parameter model with random weights of this type."""
        target = self.work / "models" / f"random-1b-{name}.gguf"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            run([sys.executable, script, "--type", name, target], self.work / "random.log")
        return target


def prepare(work, llama, ik, openvino, wanted):
    """`wanted` of llama.cpp, ik_llama.cpp, openvino; folders that are given are used, the others made in `work`."""
    work.mkdir(parents=True, exist_ok=True)
    peers = Peers(work, None, None, None)
    if "llama.cpp" in wanted:
        peers.llama = llama or fetch_llama_source(work)
    if "ik_llama.cpp" in wanted and ik is not None:
        peers.ik = ik_tree(ik)
    if "openvino" in wanted:
        peers.openvino = python_environment(openvino or work / "openvino", [OPENVINO_PACKAGE], "openvino_genai")
    return peers
