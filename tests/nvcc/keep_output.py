"""Runs a compiler and keeps all that it said in OBJECT.log; says it again only where the compiler failed.

usage: keep_output.py COMMAND... -o OBJECT...
"""
import os
import subprocess
import sys


def main():
    command = sys.argv[1:]
    log = command[command.index("-o") + 1] + ".log"
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.stdout.buffer.write(done.stdout)
        return done.returncode
    with open(log + ".part", "wb") as file:
        file.write(done.stdout)
    os.replace(log + ".part", log)
    return 0


if __name__ == "__main__":
    sys.exit(main())
