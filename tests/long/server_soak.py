#!/usr/bin/env python3
"""`octavo serve` under load for as long as one likes: random calls of every protocol at once, clients that leave, and
clients that are killed. Every answer equals the one to the same call alone; at the end the pool is whole.

usage: server_soak.py OCTAVO [--seconds SECONDS] [--clients CLIENTS] [--crowd CLIENTS] [--seed SEED] [--layers N]

Meant for builds with sanitizers (tests/long/run server_soak): any report of theirs fails the run. The pool is too small for all
clients, so that requests wait, are preempted and evict each other. The model is the default one, of which the first two layers
are kept (--layers): with a sanitizer all thirty take minutes for an answer, and few clients would ever meet. Needs PyPI's gguf.
"""
import argparse
import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import gguf

DEFAULT_MODEL = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"),
                             "octavo/models/SmolLM2-135M-Instruct.Q4_1.gguf")
KEY = "a-key-of-this-test"
WORDS = "rain sun river stone bread music night garden train letter window ocean".split()
TOOLS = [{"type": "function", "function": {"name": name, "description": f"Tells the {name}.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}}}} for name in ("clock", "weather")]
REPORT = re.compile(r"ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:")


def calls(seed, number):
    """Calls of every protocol, as (path, body): each has one answer."""
    choose = random.Random(seed)
    made = []
    for i in range(number):
        system = "You help. " + " ".join(choose.choices(WORDS, k=choose.choice([4, 60])))
        question = " ".join(choose.choices(WORDS, k=choose.randrange(2, 20)))
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        most = choose.choice([2, 9, 48])
        drawn = {"temperature": choose.choice([0, 0.8, 1.3]), "seed": choose.randrange(2**64)}
        kind = i % 8
        if kind == 0:
            call = ("/v1/completions", {"prompt": question, "max_tokens": most, "n": choose.randrange(1, 4), **drawn})
        elif kind == 1:
            call = ("/v1/completions", {"prompt": question, "max_tokens": most, "use_beam_search": True, "n": 2, "best_of": 3})
        elif kind == 2:
            call = ("/v1/completions", {"prompt": question, "max_tokens": 1, "echo": True, "logprobs": 2, "temperature": 0})
        elif kind == 3:
            call = ("/v1/chat/completions", {"messages": messages, "max_tokens": most, "n": 2, **drawn})
        elif kind == 4:
            call = ("/v1/chat/completions", {"messages": messages, "max_tokens": most, "tools": TOOLS, **drawn})
        elif kind == 5:
            call = ("/v1/messages", {"model": None, "messages": messages[1:], "system": system, "max_tokens": most,
                                     "diagnostics": {"previous_message_id": "msg_other"}, **drawn})
        elif kind == 6:
            call = ("/v1/responses", {"input": question, "instructions": system, "max_output_tokens": most, **drawn})
        else:
            call = ("/v1/chat/completions", {"messages": messages, "max_tokens": most, "logprobs": True, "top_logprobs": 2,
                                             **drawn})
        made.append(call)
    return made


def without_names(value):
    """What an answer says, without what differs from call to call."""
    if isinstance(value, dict):
        told = {"id", "created", "created_at", "call_id", "item_id", "usage", "metadata"}
        return {key: without_names(inner) for key, inner in value.items() if key not in told}
    return [without_names(inner) for inner in value] if isinstance(value, list) else value


def text_of_stream(path, text):
    """The text and calls that the events of a stream add up to, by choice."""
    told = {}

    def add(place, piece):
        told[place] = told.get(place, "") + (piece or "")

    for line in text.splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line[6:])
        if "error" in event and event["error"]:
            raise AssertionError(f"{path}: {event['error']}")
        for choice in event.get("choices", []):
            index = choice["index"]
            if "text" in choice:
                add((index, "text"), choice["text"])
            for name in ("content", "reasoning_content"):
                add((index, name), choice.get("delta", {}).get(name))
            for call in choice.get("delta", {}).get("tool_calls", []):
                add((index, "call", call["index"]), call["function"].get("name", "") + call["function"]["arguments"])
        delta = event.get("delta")
        if isinstance(delta, str):
            add((event["output_index"], event["type"]), delta)
        elif isinstance(delta, dict):
            add((event.get("index"), delta.get("type")), delta.get("text") or delta.get("thinking") or delta.get("partial_json"))
    return {place: text for place, text in told.items() if text}


def write_first_layers(source, target, num_layers):
    """The model file `source` without its other layers."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = num_layers if name.endswith(".block_count") else field.contents()
        writer.add_key_value(name, value, field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        layer = re.match(r"blk\.(\d+)\.", tensor.name)
        if layer is None or int(layer.group(1)) < num_layers:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Server:
    def __init__(self, octavo, model):
        # A pool that holds the longest request and little beside it: the rest waits, and what grows is preempted.
        command = [octavo, "serve", model, "--port", "0", "--api-key", KEY, "--max-model-len", "512", "--num-kv-blocks", "34",
                   "--max-num-seqs", "16", "--log-requests"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines, self.port = [], None
        self.is_ready = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.is_ready.wait(600) or self.port is None:
            raise SystemExit("octavo serve does not start:\n" + "".join(self.lines[-20:]))

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"listening on http://127.0.0.1:(\d+)", line):
                self.port = int(found.group(1))
                self.is_ready.set()
        self.is_ready.set()

    def ask(self, path, body=None, timeout=900):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "User-Agent": "soak"}
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def metric(self, name):
        text = self.ask("/metrics")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + "{"))

    def request_bytes(self, path, body):
        text = json.dumps(body)
        return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()


def leave(server, choose, path, body):
    """Asks, reads a little of the stream or nothing, and is gone: closed, reset, or killed with its process."""
    bytes_ = server.request_bytes(path, body)
    how = choose.choice(["close", "reset", "kill", "half"])
    if how == "kill":
        child = subprocess.Popen([sys.executable, "-c", "import socket, sys, time\n"
                                  f"s = socket.create_connection(('127.0.0.1', {server.port}))\n"
                                  "s.sendall(sys.stdin.buffer.read())\nprint(len(s.recv(10)), flush=True)\ntime.sleep(99)"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdin.write(bytes_)
        child.stdin.close()
        time.sleep(choose.random())
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        return
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(bytes_ if how != "half" else bytes_[:choose.randrange(1, len(bytes_))])
        if how == "close":
            connection.settimeout(5)
            with contextlib.suppress(TimeoutError):  # who has waited for long leaves, too
                connection.recv(100)
        time.sleep(choose.random() * 0.2)
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octavo")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--crowd", type=int, default=2, help="clients with long answers, which are not compared")
    parser.add_argument("--calls", type=int, default=32, help="different calls, each asked alone first")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--layers", type=int, default=2)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = tempfile.TemporaryDirectory(prefix="octavo-soak-")  # until the program ends
    model_file = f"{folder.name}/first-layers.gguf"
    write_first_layers(DEFAULT_MODEL, model_file, options.layers)
    server = Server(options.octavo, model_file)
    model = json.loads(server.ask("/v1/models")[1])["data"][0]["id"]
    asked = [(path, {**body, "model": model}) for path, body in calls(options.seed, options.calls)]

    def whole(path, body):
        status, text = server.ask(path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return without_names(json.loads(text))

    def streamed(path, body):
        status, text = server.ask(path, {**body, "stream": True})
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return text_of_stream(path, text)

    def may_stream(path, body):
        return not body.get("echo") and not body.get("use_beam_search")

    alone = [(whole(path, body), streamed(path, body) if may_stream(path, body) else None) for path, body in asked]
    print(f"{len(alone)} calls were answered alone", flush=True)
    end = time.monotonic() + options.seconds
    failures, counts, lock = [], {"compared": 0, "left": 0}, threading.Lock()

    def live(number):
        choose = random.Random(options.seed * 1000 + number)
        while time.monotonic() < end and not failures:
            index = choose.randrange(len(asked))
            path, body = asked[index]
            try:
                if choose.random() < 0.3:
                    leave(server, choose, path, {**body, "max_tokens": 200, "stream": may_stream(path, body)}
                          if "max_tokens" in body else body)
                    name = "left"
                else:
                    streams = alone[index][1] is not None and choose.random() < 0.5
                    answer = streamed(path, body) if streams else whole(path, body)
                    if answer != alone[index][1 if streams else 0]:
                        raise AssertionError(f"{path} {json.dumps(body)}\nalone {alone[index]}\nnow {answer}")
                    name = "compared"
                if choose.random() < 0.02:
                    server.ask(choose.choice(["/octavo/requests", "/metrics", "/v1/models", "/tokenizer_info"]))
                with lock:
                    counts[name] += 1
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{path}: {error!r}")
            except AssertionError as error:
                failures.append(str(error))

    # Answers that nobody compares, long enough to take the others' blocks: these are what preempts.
    def crowd(number):
        choose = random.Random(options.seed * 1000 + options.clients + number)
        while time.monotonic() < end and not failures:
            body = {"model": model, "prompt": " ".join(choose.choices(WORDS, k=8)), "max_tokens": 400, "ignore_eos": True,
                    "temperature": 0.8, "seed": choose.randrange(2**64)}
            try:
                whole("/v1/completions", body)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                failures.append(f"a long answer: {error!r}")

    clients = [threading.Thread(target=live, args=(i,)) for i in range(options.clients)]
    clients += [threading.Thread(target=crowd, args=(i,)) for i in range(options.crowd)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()

    # What a client that left asked for may only now come to the engine, after its prompt was read.
    deadline = time.monotonic() + 120
    usage = None
    while server.process.poll() is None and not failures and usage != 0 and time.monotonic() < deadline:
        time.sleep(0.2)
        is_idle = server.metric("vllm:num_requests_running") == server.metric("vllm:num_requests_waiting") == 0
        usage = server.metric("vllm:kv_cache_usage_perc") if is_idle else None
    if usage != 0 and not failures:
        failures.append(f"the pool is not whole: usage {usage}")
    preempted = server.metric("vllm:num_preemptions_total") if server.process.poll() is None else None
    if preempted == 0 and options.seconds >= 300:
        failures.append("nothing was preempted: the pool was never too small")
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(300)
    time.sleep(0.5)
    reports = [line for line in server.lines if REPORT.search(line)]
    if status != 0 or reports:
        failures.append(f"octavo serve ended with status {status}:\n" + "".join(server.lines[-60:]))
    if any(KEY in line for line in server.lines):
        failures.append("the key stands in the log")
    print(f"{counts['compared']} answers equalled the ones alone, {counts['left']} clients left, {preempted} preemptions")
    for failure in failures[:3]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
