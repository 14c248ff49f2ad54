"""Builds the CUDA backend by nvcc in a folder of its own, beside a build without it: tests/nvcc/CMakeLists.txt.

Nothing in it is compiled twice that the other build has compiled, and nothing in that folder changes. Two at once in one
folder wait for each other; an interrupted build goes on where it stopped.
"""
import dataclasses
import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
USUAL_FOLDER = "/usr/local/cuda/bin"  # of a toolkit that is not on the PATH
PTX_ALONE = ["80-virtual"]  # as architectures


def _text_of(pattern):
    found = re.search(pattern, (ROOT / "packaging/cuda.cmake").read_text())
    assert found, f"packaging/cuda.cmake has no {pattern}"
    return found[1]


def shipped_architectures():
    """As CMake names them: ["75-real", ...]. The last one is also in the form that a driver translates."""
    return _text_of(r'set\(OCTAVO_CUDA_ARCHITECTURES "([^"]+)"').split(";")


def number_of(architecture):
    """"80" of "80-real"."""
    return architecture.split("-")[0]


def environment():
    changed = dict(os.environ)
    changed["PATH"] = os.pathsep.join([changed.get("PATH", ""), USUAL_FOLDER])
    changed.pop("OCTAVO_CUDA", None)  # packaging/test says OFF, of the other build
    return changed


@dataclasses.dataclass
class Nvcc:
    path: str
    version: str  # "13.0.88"


def find_nvcc():
    """(Nvcc, "") or (None, the sentence that says why not)."""
    path = shutil.which("nvcc", path=environment()["PATH"])
    if path is None:
        return None, f"nvcc was not found on the PATH or in {USUAL_FOLDER}: the CUDA backend was not compiled for a device"
    try:
        done = subprocess.run([path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = done.stdout
    except OSError as error:
        said = str(error)
    found = re.search(r"\bV(\d+(?:\.\d+)+)", said)
    if not found:
        return None, f"{path} does not tell its version ({said.strip()[-100:]}): the CUDA backend was not compiled for a device"
    oldest = _text_of(r"set\(octavo_oldest_cuda ([\d.]+)\)")
    if _numbers(found[1]) < _numbers(oldest):
        return None, (f"{path} is version {found[1]}, and Octavo needs {oldest} or newer: the CUDA backend was not compiled for "
                      "a device")
    return Nvcc(path, found[1]), ""


def _numbers(version):
    return tuple(int(part) for part in version.split("."))


class BuildFailed(Exception):
    """Its text ends with what the compiler said."""


@dataclasses.dataclass
class CudaBuild:
    folder: Path
    architectures: list  # as CMake names them
    nvcc: Nvcc
    other: Path = ROOT / "build/release"  # the build whose libraries are linked
    jobs: int = 1

    @property
    def is_only_read(self):
        """Whether nothing is optimised or made machine code: the quickest way to what nvcc refuses or warns of."""
        return self.architectures == PTX_ALONE

    def configure(self):
        if not (self.other / "libraries.cmake").exists():
            raise BuildFailed(f"{self.other} has not been built by the preset release: packaging/test builds it, and so does "
                              "tests/long/run cuda")
        self.folder.mkdir(parents=True, exist_ok=True)
        done = self._run(["cmake", "-G", "Ninja", "-S", HERE, "-B", self.folder, "-DCMAKE_BUILD_TYPE=Release", "-DOCTAVO_CUDA=ON",
                          f"-DCMAKE_CUDA_COMPILER={self.nvcc.path}", f"-DOCTAVO_CUDA_ARCHITECTURES={';'.join(self.architectures)}",
                          f"-DOCTAVO_READ_ONLY={'ON' if self.is_only_read else 'OFF'}", f"-DOCTAVO_BUILD={self.other.resolve()}"])
        if done.returncode != 0:
            raise BuildFailed(f"{self.folder}: CMake failed:\n" + done.stdout[-3000:])

    def build(self, targets, tell=lambda line: None):
        """Builds; `tell` gets each line of progress."""
        command = ["ninja", "-C", self.folder, "-j", str(self.jobs), *targets]
        lines = []
        with self._locked(), subprocess.Popen(list(map(str, command)), env=environment(), stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
            for line in process.stdout:
                lines.append(line)
                if re.match(r"\[\d+/\d+\]", line):
                    tell(line.strip())
        if process.returncode != 0:
            raise BuildFailed(f"{self.folder}: building {' '.join(targets)} failed:\n" + "".join(lines)[-6000:])

    def read_sources(self):
        """Names of the files of kernels/cuda that were read together (CMakeLists.txt)."""
        text = "".join(file.read_text() for file in self.folder.glob("together/*.cu"))
        return set(re.findall(r'#include ".*/([^/"]+)"', text))

    def program(self, name):
        return self.folder / name

    def said_by_ptxas(self):
        """All that was said while the files of kernels/cuda that there are were compiled."""
        logs = [self.folder / f"CMakeFiles/octavo_cuda.dir/{file.relative_to('/')}.o.log"
                for file in sorted((ROOT / "kernels/cuda").rglob("*.cu"))]
        return "".join(log.read_text(errors="replace") for log in logs)

    def _run(self, command):
        with self._locked():
            return subprocess.run(list(map(str, command)), env=environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")

    def _locked(self):
        lock = open(self.folder / "build.lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock  # closing it unlocks
