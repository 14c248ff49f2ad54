"""What a request gives, under vLLM's names."""
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Union


@dataclass
class Logprob:
    logprob: float
    rank: Optional[int] = None  # 1: the likeliest; None: not among those that were asked for
    decoded_token: Optional[str] = None


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: List[int]
    cumulative_logprob: Optional[float] = None
    logprobs: Optional[List[Dict[int, Logprob]]] = None
    finish_reason: Optional[str] = None
    stop_reason: Union[None, int, str] = None

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    request_id: str
    prompt: Optional[str]
    prompt_token_ids: List[int]
    prompt_logprobs: Optional[List[Optional[Dict[int, Logprob]]]]
    outputs: List[CompletionOutput]
    finished: bool
    num_cached_tokens: int = 0
    metrics: Optional[dict] = field(default=None, repr=False)


def _ranked(token_id, logprob, alternatives, decode, has_ranks=True):
    """The token and the alternatives by id. With `has_ranks` these are the likeliest, best first."""
    ranked = {other: Logprob(value, rank if has_ranks else None, decode(other)) for rank, (other, value) in enumerate(alternatives, 1)}
    if token_id not in ranked:
        ranked[token_id] = Logprob(logprob, None, decode(token_id))
    return ranked


def completion_of(output: dict, params, decode) -> CompletionOutput:
    rows, chosen = None, getattr(params, "logprob_token_ids", None)
    if chosen or getattr(params, "logprobs", None) is not None:
        tops = output["top_logprobs"] or [[] for _ in output["token_ids"]]
        rows = [_ranked(token, logprob, top, decode, has_ranks=not chosen)
                for token, logprob, top in zip(output["token_ids"], output["logprobs"], tops)]
    return CompletionOutput(output["index"], output["text"], list(output["token_ids"]), output["cumulative_logprob"], rows,
                            output["finish_reason"], output["stop_reason"])


def request_output_of(request_id: int, prompt: Optional[str], answer: dict, params, decode) -> RequestOutput:
    prompt_logprobs = None
    if getattr(params, "prompt_logprobs", None) is not None:
        tops = answer["prompt_top_logprobs"] or [[] for _ in answer["prompt_token_ids"]]
        prompt_logprobs = [None if logprob is None else _ranked(token, logprob, top, decode)
                           for token, logprob, top in zip(answer["prompt_token_ids"], answer["prompt_logprobs"], tops)]
    outputs = [completion_of(output, params, decode) for output in answer["outputs"]]
    return RequestOutput(str(request_id), prompt, list(answer["prompt_token_ids"]), prompt_logprobs, outputs, True,
                         answer["num_cached_tokens"])
