#!/usr/bin/env python3
"""Many clients of `octavo serve` at once, on the default model, and clients that are killed.

usage: crowd.py OCTAVO [--streams N] [--kills N] [--seed SEED]

1. N streams (64) of /v1/completions beside four chats of three turns: every token, with its log-probability to the last
   bit, is that of the same request alone.
2. A client that closes its connection has freed its blocks 100 ms later (the median of 20).
3. N clients (1,000) that each have a process of their own are killed while they stream or wait, eight at a time: then
   nothing runs or waits, the pool is whole (one request that needs nearly all of it is answered), and an answer is
   what it was before.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

KEY = "a-key-of-this-test"
NUM_BLOCKS, BLOCK_SIZE, MOST_TOKENS = 136, 16, 2048
WORDS = "rain sun river stone bread music night garden train letter window ocean".split()


class Server:
    def __init__(self, octavo):
        self.process = subprocess.Popen(
            [octavo, "serve", "--port", "0", "--api-key", KEY, "--max-model-len", str(MOST_TOKENS), "--num-kv-blocks",
             str(NUM_BLOCKS), "--block-size", str(BLOCK_SIZE), "--max-waiting-requests", "1024"],
            stderr=subprocess.PIPE, text=True)
        self.port, self.lines, ready = None, [], threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                if found := re.search(r"listening on http://127.0.0.1:(\d+)", line):
                    self.port = int(found.group(1))
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(600) or self.port is None:
            raise SystemExit("octavo serve does not start:\n" + "".join(self.lines[-20:]))

    def headers(self):
        return {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, self.headers())
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status != 200:
            raise AssertionError(f"{path}: {answer.status} {text}")
        return text

    def metric(self, name):
        return sum(float(line.split()[-1]) for line in self.ask("/metrics").splitlines() if line.startswith(name + "{"))

    def bytes_of(self, body):
        text = json.dumps(body)
        return (f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()

    def wait_until_idle(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting") == 0:
                return True
            time.sleep(0.05)
        return False


def streamed(server, body):
    """Each token's text and log-probability, as they came."""
    told = []
    for line in server.ask("/v1/completions", {**body, "stream": True, "logprobs": 1}).splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        for choice in json.loads(line[6:])["choices"]:
            if logprobs := choice["logprobs"]:
                told += zip(logprobs["tokens"], map(repr, logprobs["token_logprobs"]))
    if not told:
        raise AssertionError(f"no tokens: {body}")
    return told


def chat(server, turns, seed):
    """Three turns, each behind the answers before it."""
    messages, told = [{"role": "system", "content": "You help briefly."}], []
    for turn in turns:
        messages.append({"role": "user", "content": turn})
        choice = json.loads(server.ask("/v1/chat/completions", {
            "messages": messages, "max_tokens": 24, "temperature": 0.8, "seed": seed, "logprobs": True}))["choices"][0]
        told.append([(token["token"], repr(token["logprob"])) for token in choice["logprobs"]["content"]])
        messages.append({"role": "assistant", "content": choice["message"]["content"]})
    return told


def crowd(server, num_streams, choose):
    shared = " ".join(choose.choices(WORDS, k=60)) + ". "
    bodies = [{"prompt": (shared if i % 3 == 0 else "") + " ".join(choose.choices(WORDS, k=choose.randrange(2, 40))),
               "max_tokens": choose.randrange(8, 32), "temperature": choose.choice([0, 0.8, 1.2]),
               "seed": choose.randrange(2**63)} for i in range(num_streams)]
    chats = [([" ".join(choose.choices(WORDS, k=12)) for _ in range(3)], i) for i in range(4)]
    alone = [streamed(server, body) for body in bodies], [chat(server, *one) for one in chats]
    with concurrent.futures.ThreadPoolExecutor(num_streams + len(chats)) as threads:
        told_chats = [threads.submit(chat, server, *one) for one in chats]
        told = [threads.submit(streamed, server, body) for body in bodies]
        together = [one.result() for one in told], [one.result() for one in told_chats]
    for body, a, b in zip(bodies, alone[0], together[0], strict=True):
        assert a == b, f"{body}\nalone    {a}\ntogether {b}"
    for one, a, b in zip(chats, alone[1], together[1], strict=True):
        assert a == b, f"{one}\nalone    {a}\ntogether {b}"
    tokens = sum(map(len, alone[0])) + sum(len(turn) for one in alone[1] for turn in one)
    print(f"{num_streams} streams beside {len(chats)} chats: {tokens} tokens as alone, bit for bit; "
          f"{server.metric('vllm:num_preemptions_total'):.0f} preemptions", flush=True)


def leave(server):
    """Seconds until the blocks of a client that closes its connection are free."""
    taken = []
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(server.bytes_of({"prompt": "Once", "max_tokens": 1500, "ignore_eos": True, "stream": True}))
            seen = b""
            while seen.count(b"data: ") < 5:
                seen += client.recv(4096)
        left = time.monotonic()
        while server.metric("vllm:kv_cache_usage_perc") > 0:
            assert time.monotonic() - left < 10, "the blocks of a client that left stay taken"
        taken.append(time.monotonic() - left)
    median = statistics.median(taken)
    print(f"a client that leaves: blocks free after {median * 1000:.0f} ms (median of {len(taken)}, "
          f"at most {max(taken) * 1000:.0f} ms)", flush=True)
    assert median < 0.1, taken


def killed_client(port, data, pipe):
    """In a process of its own: asks, and reads for ever."""
    try:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(data)
            os.write(pipe, b"a")
            while client.recv(4096):
                pass
    except OSError:
        pass
    os._exit(0)


def kill(server, num_kills, choose):
    probe = {"prompt": "The capital of France is", "max_tokens": 24, "temperature": 0}
    before = streamed(server, probe)
    started, running, num_killed, num_streaming = 0, [], 0, 0
    begin = time.monotonic()
    while num_killed < num_kills:
        while len(running) < 8 and started < num_kills:
            started += 1
            body = {"prompt": " ".join(choose.choices(WORDS, k=choose.choice([3, 30, 300]))),
                    "max_tokens": choose.randrange(100, 800), "ignore_eos": True, "n": choose.choice([1, 1, 3]),
                    "temperature": 1, "stream": choose.random() < 0.7}
            read_end, write_end = os.pipe()
            process = os.fork()
            if process == 0:
                killed_client(server.port, server.bytes_of(body), write_end)
            os.close(write_end)
            running.append((time.monotonic() + choose.random() * 0.4, process, read_end))
        running.sort()
        due, process, read_end = running.pop(0)
        time.sleep(max(0.0, due - time.monotonic()))
        os.kill(process, signal.SIGKILL)
        status = os.waitpid(process, 0)[1]
        num_streaming += os.read(read_end, 1) == b"a"
        os.close(read_end)
        num_killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):  # it had its whole answer
            started -= 1
    seconds = time.monotonic() - begin
    assert num_streaming > num_kills * 0.9, f"only {num_streaming} had asked"
    assert server.wait_until_idle(10), "requests of killed clients go on"
    usage = server.metric("vllm:kv_cache_usage_perc")
    assert usage == 0, f"the pool is not whole: {usage}"
    # A request that needs the whole pool but for what admission leaves free.
    most = MOST_TOKENS - 64
    whole = json.loads(server.ask("/v1/completions", {
        "prompt": [choose.randrange(1000, 40000) for _ in range(most)], "max_tokens": 48, "ignore_eos": True}))["usage"]
    assert (whole["prompt_tokens"], whole["completion_tokens"]) == (most, 48), whole
    assert streamed(server, probe) == before, "an answer is another than before"
    print(f"{num_killed} clients killed in {seconds:.0f} s ({num_streaming} had asked): nothing runs, the pool is whole, "
          f"a request of {most} tokens was answered", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octavo")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    choose = random.Random(options.seed)
    server = Server(options.octavo)
    passed, failed = 0, 0
    parts = [lambda: crowd(server, options.streams, choose), lambda: leave(server),
             lambda: kill(server, options.kills, choose)]
    for part in parts:
        try:
            part()
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAILED {error}", file=sys.stderr)
    server.process.send_signal(signal.SIGTERM)
    if (status := server.process.wait(60)) != 0:
        failed += 1
        print(f"FAILED octavo serve ended with status {status}:\n" + "".join(server.lines[-20:]), file=sys.stderr)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
