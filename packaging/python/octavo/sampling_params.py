"""How tokens are drawn: the fields of vLLM that the engine has. Others are a TypeError."""
from dataclasses import asdict, dataclass
from typing import Dict, List, Optional, Union

from . import _engine


@dataclass
class SamplingParams:
    n: int = 1
    best_of: Optional[int] = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: Optional[int] = None
    stop: Union[None, str, List[str]] = None
    stop_token_ids: Optional[List[int]] = None
    bad_words: Optional[List[str]] = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    max_tokens: Optional[int] = 16  # None: as many as there is room for
    min_tokens: int = 0
    logprobs: Optional[int] = None  # alternatives of each token; None: not even its own
    prompt_logprobs: Optional[int] = None
    logit_bias: Optional[Dict[int, float]] = None
    allowed_token_ids: Optional[List[int]] = None

    def __post_init__(self):
        if isinstance(self.stop, str):
            self.stop = [self.stop]
        if self.logit_bias is not None:
            self.logit_bias = {int(token): float(bias) for token, bias in self.logit_bias.items()}
        _engine.validate_sampling({**self._for_engine(1), "seed": None})

    def _for_engine(self, most_tokens: int) -> dict:
        values = asdict(self)
        if self.max_tokens is None:
            values["max_tokens"] = max(1, most_tokens)
        for name in ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"):
            values[name] = float(values[name])
        return values


@dataclass
class BeamSearchParams:
    beam_width: int
    max_tokens: int
    ignore_eos: bool = False
    temperature: float = 0.0  # beams are not drawn
    length_penalty: float = 1.0
    include_stop_str_in_output: bool = False

    def _for_engine(self, most_tokens: int) -> dict:
        return {"beam_width": self.beam_width, "max_tokens": self.max_tokens, "ignore_eos": self.ignore_eos,
                "length_penalty": float(self.length_penalty), "include_stop_str_in_output": self.include_stop_str_in_output}
