#!/usr/bin/env python3
"""The Python package: builds its wheel, installs it into an environment of its own and runs vLLM's calls: tests/long/run python.

    python_package.py [--wheel FILE]     an existing wheel instead of a build

The default model stands in for the repositories that the calls name, in a cache of the hub in a temporary folder.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]

CALLS = {
    "as written for Vicuna": """
        outputs = LLM(model="lmsys/vicuna-7b-v1.3").generate(["Hello, my name is", "The capital of France is"])
        assert [output.prompt for output in outputs] == ["Hello, my name is", "The capital of France is"]
        assert all(output.finished and output.outputs[0].text and output.prompt_token_ids for output in outputs)
        assert all(output.outputs[0].finish_reason in ("stop", "length") for output in outputs)
    """,
    "as written for Llama 2": """
        llm = LLM(model="meta-llama/Llama-2-7b-chat-hf", gpu_memory_utilization=0.9, max_model_len=752)
        output, = llm.generate("Oi, pode me ajudar?")
        assert llm.description["max_model_len"] == 752 and output.outputs[0].text
    """,
    "one prompt alone gives what it gives among others": """
        llm, params = LLM(), SamplingParams(temperature=0, max_tokens=12)
        alone = [llm.generate(prompt, params)[0].outputs[0].token_ids for prompt in ("Hello, my name is", "The capital of France is")]
        assert [output.outputs[0].token_ids for output in llm.generate(["Hello, my name is", "The capital of France is"], params)] == alone
    """,
    "log-probabilities": """
        output, = LLM().generate("The capital of France is", SamplingParams(temperature=0, max_tokens=5, logprobs=3, prompt_logprobs=2))
        answer = output.outputs[0]
        assert len(answer.logprobs) == len(answer.token_ids) == 5
        for token, row in zip(answer.token_ids, answer.logprobs):
            assert len(row) == 3 and row[token].rank == 1 and row[token].logprob <= 0
        assert abs(answer.cumulative_logprob - sum(row[token].logprob for token, row in zip(answer.token_ids, answer.logprobs))) < 1e-3
        assert output.prompt_logprobs[0] is None and len(output.prompt_logprobs) == len(output.prompt_token_ids)
        assert all(token in row for token, row in zip(output.prompt_token_ids[1:], output.prompt_logprobs[1:]))
        assert LLM().generate("a", SamplingParams(max_tokens=2))[0].outputs[0].logprobs is None
    """,
    "encode, decode, chat, stop strings and samples": """
        llm = LLM()
        assert llm.decode(llm.encode("Hello, how are you?")) == "Hello, how are you?"
        assert llm.generate([llm.encode("One two three")], SamplingParams(max_tokens=1))[0].prompt is None
        answer = llm.chat([{"role": "user", "content": "Say hello."}], SamplingParams(temperature=0, max_tokens=20))[0].outputs[0]
        assert answer.text
        stopped = llm.generate("1 2 3 4 5 6", SamplingParams(temperature=0, max_tokens=30, stop=" 9"))[0].outputs[0]
        assert stopped.finish_reason == "length" or (stopped.stop_reason == " 9" and " 9" not in stopped.text)
        samples = llm.generate("Once", SamplingParams(n=3, seed=5, max_tokens=8))[0].outputs
        assert [sample.index for sample in samples] == [0, 1, 2] and len({sample.text for sample in samples}) > 1
    """,
    "the tokenizer": """
        tokenizer = LLM().get_tokenizer()
        assert (tokenizer.eos_token, tokenizer.bos_token, len(tokenizer)) == ("<|im_end|>", "<|im_start|>", 49152)
        chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        text = "<|im_start|>system\\nBe brief.<|im_end|>\\n<|im_start|>user\\nHi<|im_end|>\\n"
        assert tokenizer.apply_chat_template(chat, tokenize=False) == text
        assert tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == text + "<|im_start|>assistant\\n"
        begun = chat + [{"role": "assistant", "content": "Well,"}]
        going_on = tokenizer.apply_chat_template(begun, tokenize=False, continue_final_message=True)
        assert going_on == text + "<|im_start|>assistant\\nWell,"
        for prompt, ids in ((text, tokenizer.apply_chat_template(chat)),
                            (going_on, tokenizer.apply_chat_template(begun, continue_final_message=True))):
            assert tokenizer.encode(prompt) == ids and tokenizer.decode(ids) == prompt
        assert "<|im_end|>" not in tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True)
        try:
            tokenizer.apply_chat_template(chat, mood=1.5)
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert "mood" in str(error)
    """,
    "special tokens stay in texts when asked": """
        llm, params = LLM(), dict(temperature=0, max_tokens=40, allowed_token_ids=[1, 2, 28])  # <|im_start|>, <|im_end|>, a comma
        shown = llm.generate("Hello", SamplingParams(skip_special_tokens=False, ignore_eos=True, logit_bias={28: -100}, **params))[0].outputs[0]
        hidden = llm.generate("Hello", SamplingParams(ignore_eos=True, logit_bias={28: -100}, **params))[0].outputs[0]
        assert shown.token_ids == hidden.token_ids and hidden.text == ""
        assert shown.text == llm.decode(shown.token_ids, skip_special_tokens=False)
    """,
    "prompts of chats end as asked": """
        llm, greedy = LLM(), SamplingParams(temperature=0, max_tokens=6)
        tokenizer = llm.get_tokenizer()
        chat = [{"role": "user", "content": "Count: one, two,"}]
        begun = chat + [{"role": "assistant", "content": "One, two,"}]
        for messages, ends in ((chat, dict(add_generation_prompt=True)), (chat, dict(add_generation_prompt=False)),
                               (begun, dict(add_generation_prompt=False, continue_final_message=True))):
            output, = llm.chat(messages, greedy, **ends)
            assert output.prompt_token_ids == tokenizer.apply_chat_template(messages, **ends), ends
            same, = llm.generate([output.prompt_token_ids], greedy)
            assert same.outputs[0].text == output.outputs[0].text
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert llm.generate(text, greedy)[0].prompt_token_ids == llm.chat(chat, greedy)[0].prompt_token_ids
        parts = [{"role": "user", "content": [{"type": "text", "text": "Count: one, two,"}]}]
        assert llm.chat(parts, greedy)[0].prompt_token_ids == llm.chat(chat, greedy)[0].prompt_token_ids
        tools = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}}}]
        assert "add" in tokenizer.decode(llm.chat(chat, greedy, tools=tools)[0].prompt_token_ids)
        try:
            llm.chat(chat, greedy, add_generation_prompt=False, continue_final_message=True)
            raise AssertionError("nothing was raised")
        except ValueError:
            pass
    """,
    "an output has the form that it must have": """
        import json
        from octavo import StructuredOutputsParams
        llm = LLM()
        schema = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["age"]}
        def text(form):
            return llm.generate("Bob is", SamplingParams(max_tokens=40, structured_outputs=form))[0].outputs[0].text
        assert text(StructuredOutputsParams(choice=["yes", "no"])) in ("yes", "no")
        assert 0 <= json.loads(text(StructuredOutputsParams(json=schema)))["age"] <= 9
        assert text(StructuredOutputsParams(regex="[ab]{3}")).strip("ab") == ""
        try:
            text(StructuredOutputsParams(regex="("))
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert "\\n" not in str(error)
    """,
    "weights become smaller when asked": """
        assert LLM(quantization="Q4_K").description["weight_type"]
        try:
            LLM(quantization="bitsandbytes")
            raise AssertionError("nothing was raised")
        except ValueError as error:
            assert "Q4_K" in str(error)
    """,
    "streams and cancels": """
        llm = LLM()
        params = SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)
        steps = list(llm.stream("The capital of France is", params))
        assert len(steps) > 5 and steps[-1].finished and not steps[0].finished
        assert steps[-1].outputs[0].text == llm.generate("The capital of France is", params)[0].outputs[0].text
        for step in llm.stream("Tell me", SamplingParams(max_tokens=2000, ignore_eos=True)):
            if len(step.outputs[0].token_ids) >= 3:
                llm.abort(step.request_id)
            last = step
        assert last.finished and last.outputs[0].finish_reason == "abort" and len(last.outputs[0].token_ids) < 2000
        for step in llm.stream("Tell me", SamplingParams(max_tokens=2000, ignore_eos=True)):
            break
        assert llm.generate("And now", SamplingParams(max_tokens=2))[0].finished
    """,
    "Ctrl+C ends everything, and the engine goes on": """
        import os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins without it
        llm = LLM()
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            llm.generate(["Tell me a long story"] * 4, SamplingParams(max_tokens=7000, ignore_eos=True))
            raise AssertionError("it was not interrupted")
        except KeyboardInterrupt:
            pass
        assert time.monotonic() - began < 10
        assert llm.generate("a", SamplingParams(max_tokens=2))[0].finished
    """,
    "other threads run while the engine works": """
        import threading
        llm, count, done = LLM(), 0, threading.Event()
        def work():
            llm.generate("Tell me", SamplingParams(max_tokens=60, ignore_eos=True))
            done.set()
        threading.Thread(target=work).start()
        while not done.wait(0.001):
            count += 1
        assert count > 20, count
        texts = {}
        threads = [threading.Thread(target=lambda i=i: texts.update({i: llm.generate(f"Number {i}", SamplingParams(max_tokens=5))})) for i in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert all(texts[i][0].prompt == f"Number {i}" for i in range(6))
    """,
    "errors are exceptions with a sentence": """
        def raises(kind, call, part):
            try:
                call()
            except kind as error:
                assert type(error) is kind and part in str(error) and "\\n" not in str(error), repr(error)
                return
            raise AssertionError("nothing was raised")
        raises(FileNotFoundError, lambda: LLM(model="nobody/nothing"), "nobody/nothing")
        raises(FileNotFoundError, lambda: LLM(model="/no/such/file.gguf"), "/no/such/file.gguf")
        raises(TypeError, lambda: SamplingParams(temprature=1), "temprature")
        raises(TypeError, lambda: LLM(colour="red"), "colour")
        raises(ValueError, lambda: SamplingParams(temperature=-1), "temperature")
        raises(ValueError, lambda: SamplingParams(top_p=2), "top_p")
        raises(ValueError, lambda: LLM(tensor_parallel_size=2), "tensor_parallel_size")
        raises(ValueError, lambda: LLM(dtype="int3"), "dtype")
        llm = LLM(max_model_len=64)
        raises(ValueError, lambda: llm.generate("word " * 500), "")
        raises(ValueError, lambda: llm.decode([10**8]), "not in the vocabulary")
        assert llm.generate("a", SamplingParams(max_tokens=2))[0].finished
        import warnings
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            LLM(trust_remote_code=True, max_model_len=64)
        assert any("trust_remote_code" in str(one.message) for one in said)
    """,
    "beams": """
        from octavo import BeamSearchParams
        output, = LLM().beam_search(["The capital of"], BeamSearchParams(beam_width=3, max_tokens=4))
        assert len(output.outputs) == 3
    """,
}


def run(command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def make_cache(folder, model):
    """The default model under the names that the calls have."""
    for name in ("lmsys--vicuna-7b-v1.3", "meta-llama--Llama-2-7b-chat-hf"):
        snapshot = folder / "hub" / f"models--{name}" / "snapshots" / "0123456789abcdef"
        snapshot.mkdir(parents=True)
        (snapshot / "model.gguf").symlink_to(model)
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("0123456789abcdef")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--wheel")
    options = options.parse_args()
    data = pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share")
    model = data / "octavo/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    if not model.exists():
        print(f"{model} is missing: run packaging/setup")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        wheel = options.wheel
        if wheel is None:
            run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", work, ROOT / "packaging/python"])
            wheel, = work.glob("*.whl")
        run([sys.executable, "-m", "venv", work / "environment"])
        python = work / "environment/bin/python"
        run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel])
        make_cache(work / "cache", model)
        environment = {**os.environ, "HF_HOME": str(work / "cache"), "PYTHONPATH": ""}
        environment.pop("HF_HUB_CACHE", None)
        failed = 0
        for name, call in CALLS.items():
            program = "from octavo import LLM, SamplingParams\n" + textwrap.dedent(call)
            result = subprocess.run([str(python), "-c", program], env=environment, cwd=work, capture_output=True, text=True, timeout=600,
                                    check=False)
            print(("ok      " if result.returncode == 0 else "FAILED  ") + name, flush=True)
            if result.returncode != 0:
                failed += 1
                print(textwrap.indent(result.stderr[-3000:], "    "))
        print(f"{len(CALLS) - failed} passed, {failed} failed, 0 skipped")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
