#!/usr/bin/env python3
"""The agent's case in the real window: two prompts of 8,000 tokens that differ in one line of the system prompt.

usage: agent_case.py OCTAVO [--tokens N] [--output FOLDER]

Starts the window on a display of its own (Xvfb) with its server switched on and the default model, asks both prompts
over HTTP, and checks that the list names the token, both texts, the seconds and the advice. Opens the newest request
with the keyboard and the pointer (xdotool) and writes what is shown to FOLDER/agent-case-*.png (ImageMagick), for
people to look at. Needs Xvfb, xdotool and import.
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

KEY = "octavo-key-of-this-test"
WORDS = "Tools are called by name and answer as JSON. Read a file before you change it. Keep answers short. ".split()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Window:
    """The program on a display of its own."""

    def __init__(self, octavo, work, size=(1600, 1000)):
        self.port = free_port()
        config = work / "config" / "octavo"
        config.mkdir(parents=True)
        (config / "server-key").write_text(KEY + "\n")
        (config / "settings.json").write_text(json.dumps({
            "version": 1, "width": size[0], "height": size[1], "theme": "dark",
            "server": {"starts_with_window": True, "port": self.port, "needs_key": True, "allowed_hosts": [],
                       "allowed_origins": []}}))
        self.server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", f"{size[0]}x{size[1]}x24"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.display = ":" + self.server.stdout.readline().strip()  # one that nobody has
        # Chats live in a folder of this test; the models stay where they are.
        models = pathlib.Path(os.environ.get("XDG_DATA_HOME", pathlib.Path.home() / ".local/share")) / "octavo/models"
        data = work / "data" / "octavo"
        data.mkdir(parents=True)
        if models.exists():
            (data / "models").symlink_to(models)
        self.environment = dict(os.environ, DISPLAY=self.display, XDG_CONFIG_HOME=str(work / "config"),
                                XDG_DATA_HOME=str(work / "data"), LIBGL_ALWAYS_SOFTWARE="1")
        self.environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        self.program = subprocess.Popen([octavo, "--new-window"], env=self.environment, cwd=work)

    def ask(self, method, path, body=None, timeout=900):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {KEY}", "User-Agent": "claude-cli/2.1 (this test)"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def wait_until_ready(self):
        for _ in range(600):
            if self.program.poll() is not None:
                sys.exit(f"the window ended with status {self.program.returncode}")
            try:
                if self.ask("GET", "/health", timeout=5)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        sys.exit("the server of the window does not answer")

    def keys(self, *keys):
        for key in keys:
            subprocess.run(["xdotool", "key", key], env=self.environment, check=True)
            time.sleep(0.5)

    def click(self, x, y):
        subprocess.run(["xdotool", "mousemove", str(x), str(y), "click", "1"], env=self.environment, check=True)
        time.sleep(1.5)

    def point(self, x, y):
        subprocess.run(["xdotool", "mousemove", str(x), str(y)], env=self.environment, check=True)

    def picture(self, path):
        subprocess.run(["import", "-window", "root", str(path)], env=self.environment, check=True)
        print(path)

    def close(self):
        for process in (self.program, self.server):
            process.terminate()
        for process in (self.program, self.server):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def system_prompt(window, tokens, clock):
    """A text of about so many tokens whose third line tells the time."""
    head = f"You are an agent in a terminal.\nYou work in the folder that you were started in.\nNow: {clock}\n"
    status, counted = window.ask("POST", "/tokenize", {"prompt": " ".join(WORDS * 20)})
    assert status == 200, counted
    repeats = int((tokens - 80) / counted["count"] * 20)
    return head + " ".join(WORDS * repeats)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("tests/output"))
    options = parser.parse_args()
    for program in ("Xvfb", "xdotool", "import"):
        if shutil.which(program) is None:
            print(f"{program} is missing\n0 passed, 0 failed, 1 skipped")
            return 0
    options.output.mkdir(parents=True, exist_ok=True)
    octavo = str(pathlib.Path(options.octavo).resolve())
    with tempfile.TemporaryDirectory() as work:
        window = Window(octavo, pathlib.Path(work))
        try:
            window.wait_until_ready()
            for clock in ("2026-11-27 19:02:07", "2026-11-27 19:03:41"):
                status, answer = window.ask("POST", "/v1/chat/completions", {
                    "messages": [{"role": "system", "content": system_prompt(window, options.tokens, clock)},
                                 {"role": "user", "content": "Which tools are there?"}],
                    "max_tokens": 16, "temperature": 0})
                assert status == 200, answer
                print(clock, answer["usage"])
            time.sleep(1)
            newest = window.ask("GET", "/octavo/requests")[1]["data"][0]
            difference = newest["difference"]
            print(json.dumps(difference, indent=1))
            window.keys("ctrl+3")
            window.click(405, 35)  # the page of requests
            window.picture(options.output / "agent-case-list.png")
            window.click(560, 178)  # the newest request
            window.point(1200, 300)  # what is told of a row under the pointer covers others
            time.sleep(3)
            window.picture(options.output / "agent-case-difference.png")
            assert newest["prompt"]["tokens"] > options.tokens * 0.9, newest["prompt"]
            assert difference["cause"]["name"] == "differs", difference
            mine = "".join(difference["mine"].values())
            theirs = "".join(difference["theirs"].values())
            assert re.search(r"19:03:41", mine) and re.search(r"19:02:07", theirs), (mine, theirs)
            assert difference["lost_tokens"] > options.tokens * 0.8, difference
            assert 0 < difference["lost_seconds"] * 1000 <= newest["ttft_ms"], newest
            assert "date or a time" in difference["advice"], difference
        finally:
            window.close()
    print("1 passed, 0 failed, 0 skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
