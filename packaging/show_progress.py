"""Reads what Ninja prints and says on standard error how far the build is: one line for each tenth of the work.

usage: show_progress.py PLAN JOBS < NINJA'S OUTPUT

PLAN is a file with the output of `ninja -n` for the same targets. How long files take is known from compile_seconds.txt: the
share of the work that is done, and with the time that it took, what the rest will take.
"""
import pathlib
import re
import sys
import time

# The first beginning of a source's path that fits. What lies elsewhere is somebody else's library.
PARTS = [("kernels/", "kernels"), ("engine/", "engine"), ("ui/", "window"), ("app/window/", "window"), ("app/", "program"),
         ("tests/", "tests")]
STEP = re.compile(r"\[\d+/\d+\] Building \S+ object (\S+)")  # linking and the rest takes no time to speak of
LEAST_SECONDS = 20  # of which it is worth telling


def source_of(line):
    """The path in the tree, or in the build, of what a line of Ninja's is about; None for other lines."""
    match = STEP.match(line)
    if not match:
        return None
    path = re.sub(r"CMakeFiles/[^/]*\.dir/", "", match.group(1))
    return re.sub(r"\.o$", "", path.replace("__/", ""))


def part_of(source):
    return next((name for prefix, name in PARTS if source.startswith(prefix)), "libraries")


def read_seconds():
    lines = pathlib.Path(__file__).with_name("compile_seconds.txt").read_text().splitlines()
    return [(prefix, float(seconds)) for prefix, seconds in (line.split() for line in lines if not line.startswith("#"))]


def seconds_of(source, known):
    return next((seconds for prefix, seconds in known if source.startswith(prefix)), 1.7)


def in_words(names):
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def duration(seconds):
    if seconds < 50:
        return "less than a minute"
    minutes = max(1, round(seconds / 60))
    return f"about {minutes} minute{'s' if minutes > 1 else ''}"


class Progress:
    def __init__(self, plan, known, jobs):
        self.known = known
        self.left = {}  # part: how many of its files
        for source in plan:
            self.left[part_of(source)] = self.left.get(part_of(source), 0) + 1
        self.total = sum(seconds_of(source, known) for source in plan) or 1.0
        self.expected = self.total / jobs
        self.done = 0.0
        self.told = 0
        self.began = time.monotonic()

    def announcement(self):
        return f"{in_words(list(self.left))} to build, {duration(self.expected)}"

    def add(self, source):
        """What to say now that this is built, or None."""
        self.done += seconds_of(source, self.known)
        self.left[part_of(source)] = self.left.get(part_of(source), 1) - 1
        tenth = int(10 * self.done / self.total)
        if tenth <= self.told or tenth >= 10:
            return None
        self.told = tenth
        finished = [part for part, count in self.left.items() if count <= 0]
        rest = (time.monotonic() - self.began) * (self.total - self.done) / self.done
        words = [f"{10 * tenth} %", *([f"{in_words(finished)} done"] if finished else []), f"{duration(rest)} left"]
        return ", ".join(words)


def main():
    known = read_seconds()
    plan = [source for source in map(source_of, pathlib.Path(sys.argv[1]).read_text().splitlines()) if source]
    progress = Progress(plan, known, int(sys.argv[2]))
    is_worth_it = progress.expected >= LEAST_SECONDS

    def say(text):
        if text and is_worth_it:
            print(f"octavo build: {text}", file=sys.stderr, flush=True)

    say(progress.announcement() if plan else None)
    for line in sys.stdin:
        source = source_of(line)
        say(progress.add(source) if source else None)


if __name__ == "__main__":
    main()
