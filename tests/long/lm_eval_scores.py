#!/usr/bin/env python3
"""lm-evaluation-harness (`local-completions`) against `octavo serve`, on a task of our own, and the same sums of
`octavo generate --prompt-logprobs`: equal to 1e-4, each of them, and the same choices are best.

usage: lm_eval_scores.py OCTAVO

Installs lm-eval into ~/.cache/octavo/lm-eval (--work FOLDER) the first time: the requests are its own, with its batches,
its tokenizer from our /tokenizer_info and /tokenize (`tokenizer_backend=remote`). The model is the default one.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import clients

PACKAGE = "lm-eval[api]==0.4.13"
BOUND = 1e-4
QUESTIONS = [
    ("The capital of France is", ["Paris", "Rome", "a river", "called the capital"], 0),
    ("Water boils at a temperature of", ["100 degrees Celsius", "three metres", "a Tuesday"], 0),
    ("Two plus three is", ["five", "seven", "nine hundred and twelve", "blue"], 0),
    ("Question: Which animal barks?\nAnswer:", ["a dog", "a cat", "a spoon"], 0),
    ("Grüße aus Köln, sagte der", ["Mann", "Löffel 🥄", "und"], 0),
    ("def add(a, b):\n    return", ["a + b", "a - b", "None\n\nimport os"], 0),
    ("Monday, Tuesday, Wednesday,", ["Thursday", "Sunday", "Thursday, Friday, Saturday and Sunday"], 0),
    ("The quick brown fox jumps over the lazy", ["dog", "dogs", "dog. " * 30], 0)]


def task(folder):
    data = folder / "questions.jsonl"
    data.write_text("".join(json.dumps({"question": question, "choices": choices, "answer": answer}) + "\n"
                            for question, choices, answer in QUESTIONS))
    (folder / "octavo_questions.yaml").write_text(json.dumps({  # JSON is YAML, too
        "task": "octavo_questions", "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test", "output_type": "multiple_choice",
        "doc_to_text": "{{question}}", "doc_to_choice": "choices", "doc_to_target": "answer",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]}))


def scores_of_lm_eval(python, server, model, folder):
    """(context, continuation) -> log-likelihood, as lm-eval has them."""
    arguments = {"model": model, "base_url": f"{server.url}/v1/completions", "tokenizer_backend": "remote",
                 "auth_token": clients.KEY, "num_concurrent": 4, "tokenized_requests": True, "max_length": 2048}
    subprocess.run([python, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args",
                    ",".join(f"{name}={value}" for name, value in arguments.items()), "--tasks", "octavo_questions",
                    "--include_path", folder, "--batch_size", "1", "--log_samples", "--output_path", folder / "out"],
                   check=True, env=dict(os.environ, OPENAI_API_KEY=clients.KEY, HF_HUB_OFFLINE="1",
                                        HF_DATASETS_CACHE=str(folder / "datasets")), stdout=subprocess.DEVNULL)
    told = {}
    for path in (folder / "out").rglob("samples_*.jsonl"):
        for line in path.read_text().splitlines():
            sample = json.loads(line)
            for request, answer in zip(sample["arguments"].values(), sample["resps"], strict=True):
                told[request["arg_0"], request["arg_1"]] = float(answer[0][0])
    return told


def scores_of_generate(octavo, server, pairs):
    """The same by another way: the whole text as a prompt, and the log-probabilities of its last tokens."""

    def ids(text):
        return json.loads(server.request("POST", "/tokenize", {"prompt": text})[2])["tokens"]

    wholes = [context + continuation for context, continuation in pairs]
    told = {}
    for (context, continuation), whole in zip(pairs, wholes):
        made = subprocess.run([octavo, "generate", "--prompt", whole, "--max-tokens", "1", "--temperature", "0",
                               "--prompt-logprobs", "0", "--json"], stdout=subprocess.PIPE, check=True)
        logprobs = json.loads(made.stdout)["requests"][0]["prompt_logprobs"][1:]
        num_scored = len(ids(whole)) - len(ids(context))
        told[context, continuation] = sum(logprobs[-num_scored:])
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octavo")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path.home() / ".cache/octavo/lm-eval")
    parser.add_argument("--python", help="one that has lm-eval (default: an environment that is made)")
    options = parser.parse_args()
    python = options.python
    if python is None:
        python = options.work / "bin/python3"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", options.work], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], check=True)
    server = clients.Server(options.octavo)
    try:
        model = json.loads(server.request("GET", "/v1/models")[2])["data"][0]["id"]
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work)
            task(folder)
            theirs = scores_of_lm_eval(python, server, model, folder)
        ours = scores_of_generate(options.octavo, server, list(theirs))
    finally:
        server.stop()
    wanted = sum(len(choices) for _, choices, _ in QUESTIONS)
    worst = max(abs(theirs[pair] - ours[pair]) for pair in theirs)
    print(f"{len(theirs)} of {wanted} log-likelihoods, of {min(theirs.values()):.3f} to {max(theirs.values()):.3f}: "
          f"at most {worst:.2e} apart")
    passed = len(theirs) == wanted and worst <= BOUND
    for pair in theirs:
        if abs(theirs[pair] - ours[pair]) > BOUND:
            print(f"  FAILED {pair}: lm-eval {theirs[pair]}, generate {ours[pair]}")
    print(f"{int(passed)} passed, {int(not passed)} failed, 0 skipped")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
