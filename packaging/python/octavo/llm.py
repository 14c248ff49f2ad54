"""LLM: a model, and everything that is asked of it, under vLLM's names."""
import collections
import threading
import warnings
from dataclasses import fields
from typing import Dict, Iterator, List, Optional, Sequence, Union

from . import _engine
from .chats import chat_of
from .outputs import CompletionOutput, RequestOutput, request_output_of
from .sampling_params import BeamSearchParams, SamplingParams
from .tokenizer import Tokenizer
from .vllm_names import CALL_REFUSED, CALL_WITHOUT_MEANING, LLM_REFUSED, LLM_WITHOUT_MEANING, settle

_POLL_SECONDS = 0.1  # how soon Ctrl+C is noticed

# vLLM's, and the engine's own.
_OPTIONS = {"device", "threads", "dtype", "kv_cache_dtype", "preemption_mode", "block_size", "num_kv_blocks", "kv_cache_memory",
            "gpu_memory_utilization", "swap_space", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching",
            "tensor_parallel_size", "enforce_eager", "quantization"}
# What a checkpoint says of itself, so that naming it changes nothing.
_PACKED = {"awq", "awq_marlin", "gptq", "gptq_marlin", "gptq_marlin_24", "squeezellm", "compressed-tensors", "mxfp4", "fp8", "modelopt",
           "modelopt_fp4", "gguf"}
# Of vLLM, with another name here.
_OTHER_NAMES = {"num_gpu_blocks_override": ("num_kv_blocks", int), "kv_cache_memory_bytes": ("kv_cache_memory", lambda count: count >> 20)}


class LLM:
    """Loads a model: a file, a folder, or a name such as "lmsys/vicuna-7b-v1.3" that lies in the cache of the hub.

    Any thread may call it. An error is a ValueError, FileNotFoundError, MemoryError, OSError or RuntimeError with one sentence.
    """

    def __init__(self, model: str = "", *, tokenizer: Optional[str] = None, seed: Optional[int] = None, generation_config: str = "auto",
                 override_generation_config: Optional[dict] = None, **options):
        settle("LLM", {name: value for name, value in options.items() if name not in _OPTIONS | set(_OTHER_NAMES)}, LLM_WITHOUT_MEANING,
               LLM_REFUSED, stacklevel=2)
        if tokenizer not in (None, model):
            warnings.warn(f"LLM: tokenizer={tokenizer!r} is ignored; the model's own is used", stacklevel=2)
        if generation_config not in ("auto", "vllm"):
            raise ValueError(f"LLM does not have generation_config={generation_config!r}: give 'auto', 'vllm' or override_generation_config")
        options = {name: value for name, value in options.items() if name in _OPTIONS or name in _OTHER_NAMES}
        for name, (own, convert) in _OTHER_NAMES.items():
            if (value := options.pop(name, None)) is not None:
                options[own] = convert(value)
        packed = options.pop("quantization") if options.get("quantization") in _PACKED else None
        for name in ("gpu_memory_utilization", "swap_space"):
            if options.get(name) is not None:
                options[name] = float(options[name])
        self._seed = seed
        self._engine = _engine.Engine({"model": str(model), **options})
        self._description = self._engine.description()
        if packed == "fp8" and self._description["weight_type"] in ("F32", "F16", "BF16"):
            raise ValueError("LLM: quantization='fp8' is for a checkpoint that is in FP8 already; Q8_0 makes other weights 8 bits wide")
        self._tokenizer = Tokenizer(self._engine, self._description)
        advice = self._description["sampling_advice"] if generation_config == "auto" else {}
        self._default_sampling = {**advice, **_sampling_of(override_generation_config or {})}
        self._polling = threading.Lock()
        self._news: Dict[int, collections.deque] = {}  # of each running request, what nobody read yet
        self._decoded: Dict[int, str] = {}
        if self._description["notice"]:
            warnings.warn(self._description["notice"], stacklevel=2)

    # ---- answers

    def generate(self, prompts, sampling_params: Union[None, SamplingParams, Sequence[SamplingParams]] = None,
                 prompt_token_ids=None, **vllm) -> List[RequestOutput]:
        """All prompts together; answers in their order. A prompt is a text, in which special tokens count as such, a list of
        token ids, {"prompt": text} or {"prompt_token_ids": ids}. Ctrl+C ends them all."""
        settle("LLM.generate", vllm, CALL_WITHOUT_MEANING, CALL_REFUSED, stacklevel=2)
        if prompts is None:
            prompts = prompt_token_ids
        prompts = _listed(prompts)
        params = self._params_for(sampling_params, len(prompts))
        return self._run([self._submit(prompt, one) for prompt, one in zip(prompts, params)])

    def chat(self, messages, sampling_params: Union[None, SamplingParams, Sequence[SamplingParams]] = None, use_tqdm: bool = False, *,
             add_generation_prompt: bool = True, continue_final_message: bool = False, tools: Optional[List[dict]] = None,
             chat_template_kwargs: Optional[dict] = None, **vllm) -> List[RequestOutput]:
        """One chat, or a list of chats: lists of {"role": ..., "content": ...}, through the model's template.

        With continue_final_message=True and add_generation_prompt=False the last message is the beginning of the answer.
        """
        settle("LLM.chat", vllm, CALL_WITHOUT_MEANING, CALL_REFUSED, stacklevel=2)
        chats = [messages] if messages and isinstance(messages[0], dict) else list(messages)
        params = self._params_for(sampling_params, len(chats))
        made = [chat_of(chat, add_generation_prompt=add_generation_prompt, continue_final_message=continue_final_message, tools=tools,
                        template_values=chat_template_kwargs) for chat in chats]
        return self._run([self._submit_chat(chat, one) for chat, one in zip(made, params)])

    def beam_search(self, prompts, params: BeamSearchParams, **vllm) -> List[RequestOutput]:
        """As generate(): as many outputs as beams, the best first."""
        settle("LLM.beam_search", vllm, CALL_WITHOUT_MEANING, CALL_REFUSED, stacklevel=2)
        return self._run([self._submit(prompt, params) for prompt in _listed(prompts)])

    def stream(self, prompt, sampling_params: Optional[SamplingParams] = None) -> Iterator[RequestOutput]:
        """The answer so far, whenever it has grown; the last has finished = True. Leaving the loop, or close(), cancels."""
        return self._stream(self._submit(prompt, self._params_for(sampling_params, 1)[0]))

    def stream_chat(self, messages, sampling_params: Optional[SamplingParams] = None) -> Iterator[RequestOutput]:
        """As stream(), of a chat."""
        chat = chat_of(messages, add_generation_prompt=True, continue_final_message=False)
        return self._stream(self._submit_chat(chat, self._params_for(sampling_params, 1)[0]))

    def abort(self, request_id: Union[str, int]) -> None:
        """Ends a request; its answer has what there is, with finish_reason "abort". From any thread."""
        self._engine.cancel(int(request_id))

    # ---- tokens

    def get_tokenizer(self, lora_request=None) -> Tokenizer:
        settle("LLM.get_tokenizer", {"lora_request": lora_request}, {}, CALL_REFUSED, stacklevel=2)
        return self._tokenizer

    def encode(self, text: str, add_special_tokens: bool = True) -> List[int]:
        """Special tokens in the text count as such, as in Hugging Face's tokenizers."""
        return self._tokenizer.encode(text, add_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self._tokenizer.decode(token_ids, skip_special_tokens)

    def get_default_sampling_params(self) -> SamplingParams:
        """What the makers of the model advise, where they do, and override_generation_config over it."""
        return SamplingParams(**self._default_sampling)

    @property
    def description(self) -> dict:
        """The model, and what the engine was built with."""
        return dict(self._description)

    # ---- inside

    def _params_for(self, params, count: int) -> list:
        if params is None:
            params = self.get_default_sampling_params()
        if isinstance(params, (SamplingParams, BeamSearchParams)):
            return [params] * count
        params = list(params)
        if len(params) != count:
            raise ValueError(f"there are {len(params)} sampling_params for {count} prompts")
        return params

    def _values(self, params) -> dict:
        values = params._for_engine(self._description["max_model_len"])
        if values.get("seed") is None and self._seed is not None and "beam_width" not in values:
            values["seed"] = self._seed
        return values

    def _submit(self, prompt, params):
        if isinstance(prompt, dict):
            prompt = prompt["prompt"] if "prompt" in prompt else prompt["prompt_token_ids"]
        if isinstance(prompt, str):
            return self._started(lambda: self._engine.submit_text(prompt, self._values(params)), prompt, params)
        return self._started(lambda: self._engine.submit_tokens([int(token) for token in prompt], self._values(params)), None, params)

    def _submit_chat(self, chat, params):
        return self._started(lambda: self._engine.submit_chat(chat, self._values(params)), None, params)

    def _started(self, submit, prompt, params):
        with self._polling:  # or its first news could come before its place
            request_id = submit()
            self._news[request_id] = collections.deque()
        return request_id, prompt, params

    def _token_text(self, token_id: int) -> str:
        if token_id not in self._decoded:
            self._decoded[token_id] = self._engine.decode([token_id], False)
        return self._decoded[token_id]

    def _wait(self, request_id: int):
        """The next news of a request: (output, text, token_ids), or None at its end. Whoever waits hands out what others wait for."""
        mine = self._news[request_id]
        while not mine:
            if not self._polling.acquire(timeout=_POLL_SECONDS):
                continue
            try:
                if not mine:
                    for other, output, text, token_ids in self._engine.poll(_POLL_SECONDS):
                        if other in self._news:
                            self._news[other].append(None if output < 0 else (output, text, token_ids))
            finally:
                self._polling.release()
        return mine.popleft()

    def _answer(self, request_id, prompt, params) -> RequestOutput:
        with self._polling:
            self._news.pop(request_id, None)
            answer = self._engine.take_answer(request_id)
        return request_output_of(request_id, prompt, answer, params, self._token_text)

    def _end(self, started) -> None:
        """Cancels what runs, and forgets it."""
        running = [one for one in started if one[0] in self._news]
        for request_id, _, _ in running:
            self._engine.cancel(request_id)
        for one in running:
            while self._wait(one[0]) is not None:
                pass
            try:
                self._answer(*one)
            except Exception:  # it failed, and nobody asks any more
                pass

    def _run(self, started) -> List[RequestOutput]:
        try:
            answers, problem = [], None
            for one in started:
                while self._wait(one[0]) is not None:
                    pass
                try:
                    answers.append(self._answer(*one))
                except Exception as error:
                    problem = problem or error
            if problem is not None:
                raise problem
            return answers
        except BaseException:
            self._end(started)
            raise

    def _stream(self, started) -> Iterator[RequestOutput]:
        request_id, prompt, params = started
        outputs: Dict[int, CompletionOutput] = {}
        try:
            while (news := self._wait(request_id)) is not None:
                index, text, token_ids = news
                output = outputs.setdefault(index, CompletionOutput(index, "", []))
                output.text += text
                output.token_ids = output.token_ids + list(token_ids)
                yield RequestOutput(str(request_id), prompt, [], None, [outputs[i] for i in sorted(outputs)], False)
            yield self._answer(*started)
        finally:
            self._end([started])


def _listed(prompts) -> list:
    if isinstance(prompts, (str, dict)):
        return [prompts]
    prompts = list(prompts)
    return [prompts] if prompts and isinstance(prompts[0], int) else prompts


def _sampling_of(generation_config: dict) -> dict:
    """A generation_config of Hugging Face as SamplingParams: max_new_tokens is max_tokens, and what is no field of these says nothing."""
    known = {one.name for one in fields(SamplingParams)}
    renamed = {"max_tokens" if name == "max_new_tokens" else name: value for name, value in generation_config.items()}
    return {name: value for name, value in renamed.items() if name in known}
