"""Decode speed of Hugging Face transformers on the first device, for gpu_report: the shape of Llama 3 8B, bf16, random
weights made on the device, greedy, contexts of 512, at 1, 32 and 256 sequences. One JSON object on standard output.

Runs in a virtual environment with torch and transformers. Time is that of `generate` for 33 tokens less that for one, so that
the prompt is not counted; the median of five.
"""
import json
import statistics
import time

import torch
import transformers

CONTEXT, TOKENS, ROUNDS = 512, 32, 5


def make_model():
    configuration = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, max_position_embeddings=8192, rope_theta=500000.0, tie_word_embeddings=False)
    torch.manual_seed(7)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(configuration)
    return model.eval()


def seconds_of(model, prompt, tokens):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens,
                   pad_token_id=0)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def tokens_per_s(model, sequences):
    prompt = torch.randint(0, 128256, (sequences, CONTEXT), device="cuda")
    seconds_of(model, prompt, 2)
    rounds = [seconds_of(model, prompt, TOKENS + 1) - seconds_of(model, prompt, 1) for _ in range(ROUNDS)]
    return sequences * TOKENS / statistics.median(rounds)


def main():
    model = make_model()
    with torch.inference_mode():
        figures = {sequences: tokens_per_s(model, sequences) for sequences in (1, 32, 256)}
    print(json.dumps({"versions": {"torch": torch.__version__, "transformers": transformers.__version__},
                      "decode_tokens_per_s": figures}))


main()
