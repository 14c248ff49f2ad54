#!/usr/bin/env python3
"""Downloads that are killed: `octavo models get` against the stand-in of a hub, kill -9 at random times.

After every kill no file under a name that other programs read is incomplete; in the end every one is complete and right.
The process never has more than --most-mib resident, code and libraries among them.
Usage: downloads.py PROGRAM STAND_IN [--downloads N] [--seed S]
"""
import argparse
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def complete_files(cache):
    """Blobs and links as another program finds them."""
    for path in cache.rglob("*"):
        if path.parent.name == "blobs" and ".octavo." not in path.name:
            yield path
        elif "snapshots" in path.parts and path.is_symlink():
            yield path


def broken_files(cache, right):
    for path in complete_files(cache):
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "nothing"
        if digest not in right:
            yield f"{path}: {digest}"


def memory_mib(pid):
    """Of a process so far: the peak of what is resident, and what of it is the process's own, not read from files."""
    try:
        lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return tuple(int(lines[key].split()[0]) / 1024 for key in ("VmHWM", "RssAnon"))
    except (OSError, KeyError):  # it has ended
        return 0.0, 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("stand_in")
    parser.add_argument("--downloads", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=96)
    parser.add_argument("--most-mib", type=float, default=32)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="octavo-downloads-"))
    failures, kills, most_mib, own_mib = [], 0, 0.0, 0.0
    try:
        files = []
        for name, size in (("large-Q8_0.gguf", options.megabytes << 20), ("small-Q4_0.gguf", 300_000)):
            path = folder / name
            path.write_bytes(chance.randbytes(size))
            files.append(path)
        right = {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        stand_in = subprocess.Popen(
            [options.stand_in, "--bytes-per-s", "60000000", "--cut-after", "20000000", *map(str, files)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = stand_in.stdout.readline().strip()
        environment = dict(os.environ, HF_ENDPOINT=address, HF_HOME=str(folder / "hf"), HOME=str(folder))
        for gone in ("HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"):
            environment.pop(gone, None)
        cache = folder / "hf" / "hub"
        for number in range(options.downloads):
            name = files[number % 4 == 3].name
            shutil.rmtree(cache, ignore_errors=True)
            for attempt in range(60):
                process = subprocess.Popen(
                    [options.program, "models", "get", "--unchecked", f"test/model:{name}"],
                    env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                lives_on = attempt >= 4
                ends = time.monotonic() + (300 if lives_on else chance.uniform(0.02, 1.0))
                while process.poll() is None and time.monotonic() < ends:
                    resident, own = memory_mib(process.pid)
                    most_mib, own_mib = max(most_mib, resident), max(own_mib, own)
                    time.sleep(0.02)
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                error = process.communicate()[1]
                failures += broken_files(cache, right)
                if process.returncode == 0:
                    break
                if process.returncode != -signal.SIGKILL:
                    failures.append(f"download {number}: status {process.returncode}: {error}")
                    break
            snapshots = list(cache.rglob(name))
            if len(snapshots) != 1 or hashlib.sha256(snapshots[0].read_bytes()).hexdigest() not in right:
                failures.append(f"download {number}: {name} is not there in the end")
            if failures:
                break
        stand_in.stdin.close()
        stand_in.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not 0 < most_mib <= options.most_mib:
        failures.append(f"memory: {most_mib:.1f} MiB resident, not within {options.most_mib}")
    for failure in failures:
        print(failure)
    print(f"{number + 1} downloads, {kills} kills, at most {most_mib:.1f} MiB resident, {own_mib:.1f} of them its own, "
          f"seed {options.seed}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
