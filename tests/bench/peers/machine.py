"""Programs run on chosen cores, and whether anybody else used those cores meanwhile."""
import dataclasses
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MOST_STEAL = 0.01   # of the cores' time, taken by other virtual machines
MOST_OTHERS = 0.03  # of the cores' time, used by other processes
LEAST_TICKS = 3     # what the kernel's clock may miscount


class Failure(Exception):
    """One sentence: what, where, what to do."""


@dataclasses.dataclass(frozen=True)
class CoreTimes:
    """Ticks since the system started, over some cores: /proc/stat."""
    busy: int
    steal: int
    total: int

    @staticmethod
    def parse(text, cores):
        """Of the lines `cpuN user nice system idle iowait irq softirq steal ...` those whose N is in `cores`."""
        busy = steal = total = 0
        for line in text.splitlines():
            name, *numbers = line.split()
            if not name.startswith("cpu") or name == "cpu" or int(name[3:]) not in cores:
                continue
            user, nice, system, idle, iowait, irq, softirq, stolen = (int(number) for number in numbers[:8])
            busy += user + nice + system + irq + softirq
            steal += stolen
            total += user + nice + system + idle + iowait + irq + softirq + stolen
        return CoreTimes(busy, steal, total)

    @staticmethod
    def now(cores):
        return CoreTimes.parse(Path("/proc/stat").read_text(), cores)


def disturbance(before, after, own_cpu_seconds):
    """None, or why what ran between the two did not have the cores to itself."""
    total = max(after.total - before.total, 1)
    steal = after.steal - before.steal
    others = after.busy - before.busy - own_cpu_seconds * TICKS_PER_SECOND
    if steal > LEAST_TICKS and steal > MOST_STEAL * total:
        return f"other virtual machines took {100 * steal / total:.0f} % of the cores"
    if others > LEAST_TICKS and others > MOST_OTHERS * total:
        return f"other processes used {100 * others / total:.0f} % of the cores"
    return None


@dataclasses.dataclass(frozen=True)
class Execution:
    """What a program printed and cost."""
    out: str
    err: str
    seconds: float
    cpu_seconds: float
    max_rss_bytes: int
    disturbed: str | None


def default_cores(threads):
    """The first `threads` cores that this process may use, one thread of each physical core as long as there are enough."""
    usable, seen, first, rest = sorted(os.sched_getaffinity(0)), set(), [], []
    for core in usable:
        siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        group = siblings.read_text() if siblings.exists() else str(core)
        (rest if group in seen else first).append(core)
        seen.add(group)
    if len(usable) < threads:
        raise Failure(f"--threads {threads}, but this process may use {len(usable)} cores; give fewer")
    return (first + rest)[:threads]


def execute(command, cores, environment=None, folder=None):
    """Runs the program on these cores to its end. A program that fails is a Failure with the end of what it said."""
    pinned = ["taskset", "-c", ",".join(map(str, cores)), *map(str, command)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before, begin = CoreTimes.now(cores), time.perf_counter()
        try:
            process = subprocess.Popen(pinned, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                                       env=os.environ | (environment or {}))
        except OSError as error:
            raise Failure(f"{pinned[0]} cannot be started: {error}; install util-linux") from error
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds, after = time.perf_counter() - begin, CoreTimes.now(cores)
        out.seek(0), err.seek(0)
        text, complaint = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if process.returncode != 0:
        raise Failure(f"`{shlex.join(pinned)}` ended with status {process.returncode}: {(complaint or text).strip()[-600:]}")
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Execution(text, complaint, seconds, cpu_seconds, usage.ru_maxrss * 1024, disturbance(before, after, cpu_seconds))


def use_by_others(cores, seconds=2.0):
    """The share of the cores' time that is used while we do nothing."""
    before = CoreTimes.now(cores)
    time.sleep(seconds)
    after = CoreTimes.now(cores)
    return (after.busy + after.steal - before.busy - before.steal) / max(after.total - before.total, 1)


def describe(cores):
    """Lines of lscpu that say what was measured."""
    text = subprocess.run(["lscpu"], stdout=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}).stdout
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    wanted = ("Model name", "CPU(s)", "Thread(s) per core", "Core(s) per socket", "Hypervisor vendor", "L2 cache", "L3 cache")
    return {"cores": cores} | {name: fields[name] for name in wanted if name in fields}
