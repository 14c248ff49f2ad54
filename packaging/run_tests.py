"""Runs the test programs of build/release, three at a time, and adds up what they report.

usage: run_tests.py ROOT [FOLDER...]

Each program gets twenty minutes, since two others run beside it. A program that crashes, hangs or reports nothing
counts as one failed test. Programs that run at the same time have a virtual display each; no test depends on how fast it
runs.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SECONDS_PER_PROGRAM = 1200
MOST_OF_A_FAILURE = 3000  # characters of what a failed test said
PROGRAMS_AT_ONCE = 3  # of two cores: the windowed ones wait for frames half of their time
LONGEST_FIRST = ["ui", "demonstrations", "kernels", "engine"]  # then the others; the second uses both cores
SCRIPTS = {"mutation": ["tests/mutation/run.py", "--check"], "bench": ["tests/bench/self_test.py"],
           "nvcc": ["tests/nvcc/nvcc_test.py"], "python": ["tests/python/names_test.py"]}  # take --gtest_output like the others
NOT_HERE = {"long", "emulation", "cuda", "hip", "nvcc"}  # unless they are asked for: tests/long/run


def start_display():
    """Returns (process, name) of a virtual display with a number that nobody uses."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write_end), "-noreset", "-screen", "0", "2560x1440x24", "-nolisten", "tcp"],
        pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        number = pipe.readline().strip()
    return process, f":{number}"


def count(report):
    """(passed, failed, skipped, failed tests with what they said, why tests were skipped) of a GoogleTest XML report."""
    passed = failed = skipped = 0
    failures, reasons = [], set()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        said = [failure.text or failure.get("message", "") for failure in case.iter("failure")]
        if said:
            failed += 1
            failures.append("\n".join([f"{case.get('classname')}.{case.get('name')}", *said])[:MOST_OF_A_FAILURE])
        elif case.find("skipped") is not None:
            skipped += 1
            reasons.add(case.find("skipped").get("message", "").strip().split("\n")[-1])
        else:
            passed += 1
    return passed, failed, skipped, failures, sorted(reasons)


def run(program, folder, environment, scratch):
    """Runs one program; returns how many tests passed, failed and were skipped, and what to print about it."""
    report = scratch / f"{folder}.xml"
    log = scratch / f"{folder}.log"
    started = time.monotonic()
    with open(log, "wb") as output:
        try:
            status = subprocess.run([*program, f"--gtest_output=xml:{report}"], stdout=output, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, env=environment, timeout=SECONDS_PER_PROGRAM).returncode
        except subprocess.TimeoutExpired:
            status = f"timed out after {SECONDS_PER_PROGRAM} s"
    last_words = log.read_text(errors="replace")[-8000:]  # of a program that does not report what failed
    try:
        passed, failed, skipped, failures, reasons = count(report)
    except (OSError, ElementTree.ParseError):
        passed, failed, skipped, reasons = 0, 1, 0, []
        failures = [f"{folder}: the program ended without a report ({status})\n{last_words}"]
    if status != 0 and failed == 0:
        failed, failures = 1, [f"{folder}: exit status {status} although no test failed\n{last_words}"]
    seconds = time.monotonic() - started
    lines = [f"{folder}: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.1f} s"]
    lines += [f"skipped: {reason}" for reason in reasons]
    lines += [f"failed: {failure}" for failure in failures]
    return passed, failed, skipped, "\n".join(lines)


def run_on_display(program, folder, scratch):
    """The same, on a virtual display of its own."""
    display, name = start_display()
    try:
        environment = dict(os.environ, DISPLAY=name, XDG_CONFIG_HOME=f"{scratch}/{folder}-config", LIBGL_ALWAYS_SOFTWARE="1")
        environment.pop("WAYLAND_DISPLAY", None)
        return run(program, folder, environment, scratch)
    finally:
        display.terminate()
        display.wait()


def main():
    root = pathlib.Path(sys.argv[1])
    wanted = set(sys.argv[2:])
    programs = {path.name[len("octavo_"):-len("_tests")]: [path]
                for path in sorted((root / "build/release/tests").glob("octavo_*_tests")) if os.access(path, os.X_OK)}
    programs |= {name: [sys.executable, root / script, *arguments] for name, (script, *arguments) in SCRIPTS.items()}
    unknown = wanted - programs.keys()
    if unknown:
        sys.exit(f"packaging/test: no tests called {', '.join(sorted(unknown))}; choose from {', '.join(programs)}")
    folders = [name for name in programs if (name in wanted if wanted else name not in NOT_HERE)]
    folders.sort(key=lambda name: (LONGEST_FIRST + [name]).index(name))
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory(prefix="octavo-tests-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(PROGRAMS_AT_ONCE) as pool:
        running = [pool.submit(run_on_display, programs[folder], folder, pathlib.Path(scratch)) for folder in folders]
        for ended in concurrent.futures.as_completed(running):
            *counts, text = ended.result()
            print(text, flush=True)
            totals = [total + value for total, value in zip(totals, counts)]
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(0 if failed == 0 and passed > 0 else 1)


if __name__ == "__main__":
    main()
