#!/usr/bin/env python3
"""Finds what stands in two places: runs of 12 or more equal words in two Markdown files of the repository, or twice in one.

    tests/long/documents.py [FOLDER]     # the repository, or another folder; exit status 1 when anything is found

Words are compared without case, punctuation and Markdown's marks. Tables of tests/bench/results, where rows of two dates have
the same labels, and tables that a program makes ("<!-- made by") are left out. --self-test checks the search itself.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LENGTH = 12
WORD = re.compile(r"[A-Za-z0-9_]+(?:['.\-/][A-Za-z0-9_]+)*")


def markdown_files(root):
    """What git knows; in a folder that is no repository, all."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [str(p.relative_to(root)) for p in root.rglob("*.md")]
    return sorted(name for name in names if name and (root / name).is_file())


def words_of(root, name):
    """(word, line) for every word of a file."""
    is_of_figures = name.startswith("tests/bench/results/")
    for number, line in enumerate((root / name).read_text().splitlines(), 1):
        if line.startswith("<!-- made by"):
            is_of_figures = True
        elif line.startswith("<!-- up to here"):
            is_of_figures = False
        if is_of_figures and line.startswith("|"):
            continue
        for word in WORD.findall(line):
            yield word.lower(), number


def repeated_runs(root):
    """(file and line, file and line, words) of each longest run that stands twice."""
    seen = {}  # the words of a run: where it stood first
    runs = []
    for name in markdown_files(root):
        words = list(words_of(root, name))
        covered = 0  # words before this one are part of a run that was reported
        for start in range(len(words) - LENGTH + 1):
            key = tuple(word for word, _ in words[start:start + LENGTH])
            first = seen.setdefault(key, (name, start, words))
            if first[0] == name and start - first[1] < LENGTH or start < covered:
                continue  # itself, or what overlaps it
            length = LENGTH
            other_words, other_start = first[2], first[1]
            while start + length < len(words) and other_start + length < len(other_words) and \
                    words[start + length][0] == other_words[other_start + length][0]:
                length += 1
            covered = start + length
            runs.append((f"{first[0]}:{other_words[other_start][1]}", f"{name}:{words[start][1]}",
                         " ".join(word for word, _ in words[start:start + length])))
    return runs


def self_test():
    sentence = "one two three four five six seven eight nine ten eleven twelve thirteen"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "a.md").write_text(f"# A\n\nSome words before. {sentence}.\n")
        (root / "b.md").write_text("# B\n\n" + sentence.replace(" six", "\n**Six**,") + "!\n")
        (root / "c.md").write_text("one two three four five six seven eight nine ten eleven, and then another word\n")
        runs = repeated_runs(root)
    assert runs == [("a.md:3", "b.md:3", sentence)], runs
    print("the search finds what it should")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    runs = repeated_runs(root)
    for first, second, words in runs:
        print(f"{first} and {second}: {words}")
    print(f"{len(runs)} repeated runs of {LENGTH} or more words in {len(markdown_files(root))} files")
    return 1 if runs else 0


if __name__ == "__main__":
    sys.exit(main())
