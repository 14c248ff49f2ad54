"""LLM: a model, and everything that is asked of it, under vLLM's names."""
import collections
import threading
import warnings
from typing import Dict, Iterator, List, Optional, Sequence, Union

from . import _engine
from .outputs import CompletionOutput, RequestOutput, request_output_of
from .sampling_params import BeamSearchParams, SamplingParams

_POLL_SECONDS = 0.1  # how soon Ctrl+C is noticed

# vLLM's, and the engine's own.
_OPTIONS = {"device", "threads", "dtype", "kv_cache_dtype", "preemption_mode", "block_size", "num_kv_blocks", "kv_cache_memory",
            "gpu_memory_utilization", "swap_space", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching",
            "tensor_parallel_size", "enforce_eager"}
# Of vLLM, with the values that change nothing here; others get a warning.
_WITHOUT_MEANING = {"tokenizer": (None,), "tokenizer_mode": ("auto",), "skip_tokenizer_init": (False,), "trust_remote_code": (False,),
                    "quantization": (None,), "revision": (None,), "tokenizer_revision": (None,), "cpu_offload_gb": (0,),
                    "max_seq_len_to_capture": (8192,), "disable_custom_all_reduce": (False,), "disable_log_stats": (True, False),
                    "enable_chunked_prefill": (None, True), "download_dir": (None,), "load_format": ("auto",), "hf_token": (None,),
                    "disable_async_output_proc": (False,), "worker_use_ray": (False,), "max_context_len_to_capture": (None,),
                    "distributed_executor_backend": (None,), "use_v2_block_manager": (True,)}


class LLM:
    """Loads a model: a file, a folder, or a name such as "lmsys/vicuna-7b-v1.3" that lies in the cache of the hub.

    Any thread may call it. An error is a ValueError, FileNotFoundError, MemoryError, OSError or RuntimeError with one sentence.
    """

    def __init__(self, model: str = "", *, seed: Optional[int] = None, **options):
        unknown = sorted(set(options) - _OPTIONS - set(_WITHOUT_MEANING))
        if unknown:
            raise TypeError(f"LLM() has no option '{unknown[0]}'")
        for name in [name for name in options if name in _WITHOUT_MEANING]:
            value = options.pop(name)
            if name == "tokenizer" and value == model:
                continue
            if value not in _WITHOUT_MEANING[name]:
                warnings.warn(f"{name}={value!r} means nothing to this engine and is ignored", stacklevel=2)
        for name in ("gpu_memory_utilization", "swap_space"):
            if options.get(name) is not None:
                options[name] = float(options[name])
        self._seed = seed
        self._engine = _engine.Engine({"model": str(model), **options})
        self._description = self._engine.description()
        self._polling = threading.Lock()
        self._news: Dict[int, collections.deque] = {}  # of each running request, what nobody read yet
        self._decoded: Dict[int, str] = {}
        if self._description["notice"]:
            warnings.warn(self._description["notice"], stacklevel=2)

    # ---- answers

    def generate(self, prompts, sampling_params: Union[None, SamplingParams, Sequence[SamplingParams]] = None,
                 use_tqdm: bool = False, prompt_token_ids=None) -> List[RequestOutput]:
        """All prompts together; answers in their order. A prompt is a text, a list of token ids, {"prompt": text} or
        {"prompt_token_ids": ids}. Ctrl+C ends them all."""
        if prompts is None:
            prompts = prompt_token_ids
        prompts = _listed(prompts)
        params = self._params_for(sampling_params, len(prompts))
        return self._run([self._submit(prompt, one) for prompt, one in zip(prompts, params)])

    def chat(self, messages, sampling_params: Union[None, SamplingParams, Sequence[SamplingParams]] = None,
             use_tqdm: bool = False) -> List[RequestOutput]:
        """One chat, or a list of chats: lists of {"role": ..., "content": ...}, through the model's template."""
        chats = [messages] if messages and isinstance(messages[0], dict) else list(messages)
        params = self._params_for(sampling_params, len(chats))
        return self._run([self._submit_chat(chat, one) for chat, one in zip(chats, params)])

    def beam_search(self, prompts, params: BeamSearchParams) -> List[RequestOutput]:
        """As generate(): as many outputs as beams, the best first."""
        return self._run([self._submit(prompt, params) for prompt in _listed(prompts)])

    def stream(self, prompt, sampling_params: Optional[SamplingParams] = None) -> Iterator[RequestOutput]:
        """The answer so far, whenever it has grown; the last has finished = True. Leaving the loop, or close(), cancels."""
        return self._stream(self._submit(prompt, self._params_for(sampling_params, 1)[0]))

    def stream_chat(self, messages, sampling_params: Optional[SamplingParams] = None) -> Iterator[RequestOutput]:
        """As stream(), of a chat."""
        return self._stream(self._submit_chat(messages, self._params_for(sampling_params, 1)[0]))

    def abort(self, request_id: Union[str, int]) -> None:
        """Ends a request; its answer has what there is, with finish_reason "abort". From any thread."""
        self._engine.cancel(int(request_id))

    # ---- tokens

    def encode(self, text: str, add_special_tokens: bool = True) -> List[int]:
        """Special tokens in the text count as such, as in Hugging Face's tokenizers."""
        return self._engine.encode(text, add_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self._engine.decode(list(token_ids), skip_special_tokens)

    def get_default_sampling_params(self) -> SamplingParams:
        """What the makers of the model advise, where they do."""
        return SamplingParams(**self._description["sampling_advice"])

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

    def _submit_chat(self, messages, params):
        pairs = [(message["role"], message["content"]) for message in messages]
        return self._started(lambda: self._engine.submit_chat(pairs, self._values(params)), None, params)

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
