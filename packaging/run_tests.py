"""Runs the test programs of build/release, one after another, and adds up what they report.

usage: run_tests.py ROOT [FOLDER...]

Each program gets ten minutes. A program that crashes, hangs or reports nothing counts as one failed test. A virtual
display is started for them all and stopped at the end.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SECONDS_PER_PROGRAM = 600
SCRIPTS = {"mutation": "tests/mutation/run.py", "bench": "tests/bench/self_test.py"}  # take --gtest_output like the others
NOT_HERE = {"long"}  # tests/long/run


def start_display():
    """Returns (process, name) of a virtual display with a number that nobody uses."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write_end), "-noreset", "-screen", "0", "1920x1200x24", "-nolisten", "tcp"],
        pass_fds=[write_end], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        number = pipe.readline().strip()
    return process, f":{number}"


def count(report):
    """(passed, failed, skipped, names of failed tests) of a GoogleTest XML report."""
    passed = failed = skipped = 0
    failures = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        if case.find("failure") is not None:
            failed += 1
            failures.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped, failures


def run(program, folder, environment, scratch):
    """Runs one program; returns what `count` returns."""
    report = scratch / f"{folder}.xml"
    log = scratch / f"{folder}.log"
    started = time.monotonic()
    with open(log, "wb") as output:
        try:
            status = subprocess.run([*program, f"--gtest_output=xml:{report}"], stdout=output, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, env=environment, timeout=SECONDS_PER_PROGRAM).returncode
        except subprocess.TimeoutExpired:
            status = f"no end after {SECONDS_PER_PROGRAM} s"
    try:
        passed, failed, skipped, failures = count(report)
    except (OSError, ElementTree.ParseError):
        passed, failed, skipped, failures = 0, 1, 0, [f"{folder}: the program ended without a report ({status})"]
    if status != 0 and failed == 0:
        failed, failures = 1, [f"{folder}: exit status {status} although no test failed"]
    print(f"{folder}: {passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - started:.1f} s", flush=True)
    if failed:
        sys.stdout.write(log.read_text(errors="replace")[-8000:] + "\n")
        for name in failures:
            print(f"failed: {name}", flush=True)
    return passed, failed, skipped


def main():
    root = pathlib.Path(sys.argv[1])
    wanted = set(sys.argv[2:])
    programs = {path.name[len("octavo_"):-len("_tests")]: [path]
                for path in sorted((root / "build/release/tests").glob("octavo_*_tests")) if os.access(path, os.X_OK)}
    programs |= {name: [sys.executable, root / script] for name, script in SCRIPTS.items()}
    unknown = wanted - programs.keys()
    if unknown:
        sys.exit(f"packaging/test: there are no tests called {', '.join(sorted(unknown))}; there are {', '.join(programs)}")
    folders = [name for name in programs if (name in wanted if wanted else name not in NOT_HERE)]
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory(prefix="octavo-tests-") as scratch:
        display, name = start_display()
        try:
            environment = dict(os.environ, DISPLAY=name, XDG_CONFIG_HOME=f"{scratch}/config", LIBGL_ALWAYS_SOFTWARE="1")
            environment.pop("WAYLAND_DISPLAY", None)
            for folder in folders:
                for i, value in enumerate(run(programs[folder], folder, environment, pathlib.Path(scratch))):
                    totals[i] += value
        finally:
            display.terminate()
            display.wait()
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(0 if failed == 0 and passed > 0 else 1)


if __name__ == "__main__":
    main()
