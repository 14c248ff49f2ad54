#!/usr/bin/env python3
"""Lengths of Alpaca's pairs as the paper's authors count them: alpaca_length_quantiles.json.

    python make_alpaca_lengths.py alpaca_data.json vocab.json merges.txt alpaca_length_quantiles.json

alpaca_data.json is the public file of Stanford Alpaca, of which the first 1,805 pairs are taken; vocab.json and merges.txt are
GPT-2's, which OPT uses with one token more at the start of each text. Needs tokenizers from PyPI.
"""
import json
import sys

from tokenizers import ByteLevelBPETokenizer

PAIRS, BINS, INPUT_QUANTILES, OUTPUT_QUANTILES = 1_805, 16, 5, 33


def quantiles(values, number):
    values, result = sorted(values), []
    for i in range(number):
        place = i / (number - 1) * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        result.append(round(values[low] + (place - low) * (values[high] - values[low])))
    return result


def main(data, vocabulary, merges, target):
    tokenizer = ByteLevelBPETokenizer(vocabulary, merges)
    count = lambda text: 1 + len(tokenizer.encode(text).ids)
    with open(data, encoding="utf-8") as file:
        entries = json.load(file)[:PAIRS]
    prompt = lambda entry: entry["instruction"] + ("\n" + entry["input"] if entry["input"] else "")
    pairs = sorted(((count(prompt(entry)), count(entry["output"])) for entry in entries if entry["output"]), key=lambda pair: pair[0])
    mean = lambda which: round(sum(pair[which] for pair in pairs) / len(pairs), 2)
    bins = []
    for k in range(BINS):
        some = pairs[len(pairs) * k // BINS:len(pairs) * (k + 1) // BINS]
        bins.append({"input_quantiles": quantiles([a for a, _ in some], INPUT_QUANTILES),
                     "output_quantiles": quantiles([b for _, b in some], OUTPUT_QUANTILES)})
    what = (f"Lengths in OPT tokens of the first {len(pairs):,} pairs of Stanford Alpaca's public data that have an output: "
            f"{BINS} equally likely bins by input length; per bin {INPUT_QUANTILES} quantiles of the input and "
            f"{OUTPUT_QUANTILES} of the output length.")
    table = {"what": what, "sampling": "as of sharegpt_length_quantiles.json", "mean_input": mean(0), "mean_output": mean(1),
             "bins": bins}
    with open(target, "w", encoding="utf-8") as file:
        json.dump(table, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
