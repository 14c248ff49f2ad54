#!/usr/bin/env python3
"""One measurement of OpenVINO GenAI on a GGUF file, with the shapes and definitions of `octavo bench speed`.

    VENV/bin/python openvino_bench.py --model FILE --threads N --prompt-tokens P --output-tokens G --sequences S

Prints one JSON object. Run by compare_peers with the interpreter of the virtual environment that holds openvino-genai.

Backends: `paged` is its continuous batching, stepped here so that each step's end is known; `sdpa` is its other
implementation, for one sequence only, timed by its own metrics. Weights and caches as it chooses them by default.
"""
import argparse
import json
import random
import statistics
import time

import numpy
import openvino
import openvino_genai

FIRST_WORD, LAST_WORD = 24576, 49151  # the upper half of the default model's vocabulary, as `octavo bench speed`


def prompt(draw, tokens):
    return openvino.Tensor(numpy.array([[draw.randint(FIRST_WORD, LAST_WORD) for _ in range(tokens)]], dtype=numpy.int64))


def greedy(output_tokens):
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = output_tokens
    config.min_new_tokens = output_tokens
    config.ignore_eos = True
    config.do_sample = False
    return config


class Paged:
    def __init__(self, options, properties):
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_seqs = max(options.sequences, 1)
        scheduler.max_num_batched_tokens = options.max_num_batched_tokens
        scheduler.dynamic_split_fuse = options.split_fuse
        scheduler.enable_prefix_caching = False
        scheduler.cache_size = 1
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(options.model, scheduler, "CPU", properties)
        self.next_request = 0

    def run(self, prompts, output_tokens):
        """(seconds until every sequence has its first token, seconds from then to the end)"""
        begin = time.perf_counter()
        waiting = []
        for tokens in prompts:
            waiting.append(self.pipeline.add_request(self.next_request, tokens, greedy(output_tokens)))
            self.next_request += 1
        handles, first = list(waiting), None
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            waiting = [handle for handle in waiting if not handle.can_read()]
            if not waiting and first is None:
                first = time.perf_counter()
        end = time.perf_counter()
        del handles
        return first - begin, end - first


class Sdpa:
    def __init__(self, options, properties):
        self.pipeline = openvino_genai.LLMPipeline(options.model, "CPU", ATTENTION_BACKEND="SDPA", **properties)

    def run(self, prompts, output_tokens):
        metrics = self.pipeline.generate(prompts[0], greedy(output_tokens)).perf_metrics
        first = metrics.get_ttft().mean / 1000
        return first, metrics.get_tpot().mean / 1000 * (output_tokens - 1) if output_tokens > 1 else 0.0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--backend", choices=("paged", "sdpa"), default="paged")
    parser.add_argument("--split-fuse", action="store_true", help="prompts and outputs in one step (its dynamic_split_fuse)")
    parser.add_argument("--max-num-batched-tokens", type=int, default=4096)
    options = parser.parse_args()
    if options.backend == "sdpa" and options.sequences != 1:
        parser.error("--backend sdpa measures one sequence")
    return options


def main():
    options = read_options()
    begin = time.perf_counter()
    engine = {"paged": Paged, "sdpa": Sdpa}[options.backend](options, {"INFERENCE_NUM_THREADS": options.threads})
    load_s = time.perf_counter() - begin
    draw = random.Random(1)
    prefill, decode = [], []
    for repeat in range(options.repeat + 1):  # the first one warms up
        first_s, rest_s = engine.run([prompt(draw, options.prompt_tokens) for _ in range(options.sequences)], options.output_tokens)
        if repeat > 0:
            prefill.append(options.sequences * options.prompt_tokens / first_s)
            decode.append(options.sequences * (options.output_tokens - 1) / rest_s if options.output_tokens > 1 else 0.0)
    print(json.dumps({"version": openvino_genai.__version__, "load_s": load_s, "prefill_tokens_per_s": statistics.median(prefill),
                      "decode_tokens_per_s": statistics.median(decode)}))


if __name__ == "__main__":
    main()
