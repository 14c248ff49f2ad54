#!/usr/bin/env python3
"""A published benchmark of servers, guidellm of PyPI, against `octavo serve` on the default model: every request is answered.

usage: guidellm_load.py OCTAVO [--work FOLDER] [--requests N]

For each of the protocols that it speaks: N requests, eight at a time, streamed; its report has N successes, nothing failed or
incomplete, and as many tokens as were asked for. Installs guidellm into ~/.cache/octavo/guidellm (--work) the first time: with
torch, which it wants, some gigabytes.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from clients import KEY, Server

PACKAGE = "guidellm==0.8.1"
OUTPUT_TOKENS = 24
FORMATS = ["/v1/completions", "/v1/chat/completions", "/v1/responses"]


def command_line(folder, server, form, options):
    data, report = folder / "prompts.jsonl", folder / f"report-{form.replace('/', '-')}.json"
    words = "rain sun river stone bread music night garden".split()
    data.write_text("".join(json.dumps({"prompt": f"Text {i}: " + " ".join(words[(i + j) % 8] for j in range(40)),
                                        "output_tokens_count": OUTPUT_TOKENS}) + "\n" for i in range(options.requests)))
    backend = dict(kind="openai_http", target=server.url, api_key=KEY, request_format=form, http2=False)
    return report, [str(options.work / "bin/guidellm"), "run", "--backend", json.dumps(backend),
                    "--profile", json.dumps(dict(kind="concurrent", streams=[8])),
                    "--constraint", json.dumps(dict(kind="max_requests", count=options.requests)),
                    "--data", json.dumps(dict(kind="json_file", path=str(data))),
                    "--output", json.dumps(dict(kind="json", path=str(report))), "--disable-progress"]


def told(form, metrics, num_requests):
    """Prints a line of figures; returns what is wrong with them, or nothing."""
    totals, tokens = metrics["request_totals"], metrics["output_token_count"]["successful"]
    median = {name: metrics[name]["successful"]["median"] for name in ("time_to_first_token_ms", "inter_token_latency_ms")}
    print(f"{form:24}{totals['successful']} of {totals['total']} answered, {metrics['requests_per_second']['successful']['mean']:.2f} "
          f"requests/s, {tokens['median']:.0f} tokens each, first token {median['time_to_first_token_ms']:.0f} ms, between tokens "
          f"{median['inter_token_latency_ms']:.1f} ms", flush=True)
    if totals["successful"] != num_requests or totals["total"] != num_requests:
        return f"{num_requests} were to be answered: {totals}"
    return "" if tokens["min"] == tokens["max"] == OUTPUT_TOKENS else f"{OUTPUT_TOKENS} tokens were asked for"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path.home() / ".cache/octavo/guidellm")
    parser.add_argument("--requests", type=int, default=64)
    options = parser.parse_args()
    if not (options.work / "bin/guidellm").exists():
        subprocess.run([sys.executable, "-m", "venv", options.work], check=True)
        subprocess.run([options.work / "bin/pip", "install", "--quiet", PACKAGE], check=True)
    passed = failed = 0
    server = Server(options.octavo)
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            report, command = command_line(pathlib.Path(folder), server, form, options)
            done = subprocess.run(command, env=dict(os.environ, HF_HUB_OFFLINE="1"), capture_output=True, text=True, check=False)
            problem = done.stdout[-3000:] + done.stderr[-3000:]
            if done.returncode == 0 and report.exists():
                problem = told(form, json.loads(report.read_text())["benchmarks"][0]["metrics"], options.requests)
            if problem:
                print(f"{form}: {problem}", flush=True)
            passed, failed = passed + (not problem), failed + bool(problem)
    server.stop()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
