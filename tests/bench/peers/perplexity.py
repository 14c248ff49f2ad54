"""Perplexity of the same windows of the same text in Octavo and in llama-perplexity.

llama-perplexity reads the file without its last newline, cuts the tokens into windows of `context` with nothing
overlapping and the rest dropped, replaces each window's first token by BOS where the model adds one, and scores the tokens
after the middle one: positions context / 2 + 1 to context - 1, each from everything before it in its window.
"""
import json
import math
import re

from . import machine


def windows(token_ids, context, bos):
    """`bos`: the token that begins every window, or None."""
    found = []
    for begin in range(0, len(token_ids) - context + 1, context):
        window = list(token_ids[begin : begin + context])
        if bos is not None:
            window[0] = bos
        found.append(window)
    return found


def perplexity(log_probabilities, context):
    """Of windows' log-probabilities, each a list of `context` numbers of which the first is None."""
    scored = [value for window in log_probabilities for value in window[context // 2 + 1 : context]]
    return math.exp(-sum(scored) / len(scored))


def tokenize(octavo, *source):
    command = [octavo.program, "tokenize", "--json", "--model", octavo.model, *source]
    return json.loads(machine.execute(command, octavo.cores).out)["token_ids"]


def of_octavo(octavo, text, work, context, flags):
    """(perplexity, windows) with these engine flags."""
    bos = tokenize(octavo, "")  # nothing, or what the model puts before every text
    requests = work / "windows.jsonl"
    requests.write_text("".join(json.dumps({"prompt_token_ids": window}) + "\n"
                                for window in windows(tokenize(octavo, "--prompt-file", text), context, bos[0] if bos else None)))
    answer = json.loads(machine.execute([octavo.program, "generate", "--json", "--model", octavo.model, "--threads", octavo.threads,
                                         "--requests-file", requests, "--prompt-logprobs", "--temperature", 0, "--max-tokens", 1, *flags],
                                        octavo.cores, octavo.environment).out)
    return perplexity([request["prompt_logprobs"] for request in answer["requests"]], context), len(answer["requests"])


def of_llama(program, model, text, threads, cores, work, context):
    done = machine.execute([program, "-m", model, "-f", text, "-c", context, "-b", max(2048, context), "-t", threads, "-fa", "on"], cores, folder=work)
    return read_llama(done.out + done.err)


def read_llama(out):
    """(perplexity, windows) of "[1]5.1,[2]6.2,... Final estimate: PPL = 6.2 +/- 0.1"."""
    final = re.search(r"Final estimate: PPL = ([0-9.]+)", out)
    if not final:
        raise machine.Failure(f"llama-perplexity gave no estimate: {out.strip()[-300:]}")
    return float(final.group(1)), max(int(number) for number in re.findall(r"\[(\d+)\][0-9.]", out))
