"""How tokens are drawn: the fields of vLLM that the engine has. For others see vllm_names."""
import functools
import json
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Optional, Union

from . import _engine
from .vllm_names import SAMPLING_REFUSED, SAMPLING_WITHOUT_MEANING, settle


@dataclass
class StructuredOutputsParams:
    """The form that an output must have: one of these. GuidedDecodingParams is its former name."""
    json: Union[None, str, dict] = None  # a JSON schema
    regex: Optional[str] = None
    choice: Optional[List[str]] = None
    grammar: Optional[str] = None
    json_object: Optional[bool] = None  # any object
    structural_tag: Union[None, str, dict] = None

    def __post_init__(self):
        if len(self._said()) != 1:
            raise ValueError(f"structured_outputs must say one form of {', '.join(one.name for one in fields(self))}")

    def _said(self) -> Dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) not in (None, False)}

    def _for_engine(self):
        (kind, value), = self._said().items()
        if kind in ("json", "structural_tag") and not isinstance(value, str):
            value = json.dumps(value)
        return kind, [] if kind == "json_object" else [str(one) for one in value] if kind == "choice" else [value]


GuidedDecodingParams = StructuredOutputsParams


def _takes_names_of_vllm(cls):
    own = cls.__init__

    @functools.wraps(own)
    def __init__(self, *args, guided_decoding=None, **values):
        if guided_decoding is not None:
            values.setdefault("structured_outputs", guided_decoding)
        known = {one.name for one in fields(cls)}
        settle("SamplingParams", {name: value for name, value in values.items() if name not in known}, SAMPLING_WITHOUT_MEANING,
               SAMPLING_REFUSED, stacklevel=2)
        own(self, *args, **{name: value for name, value in values.items() if name in known})

    cls.__init__ = __init__
    return cls


@_takes_names_of_vllm
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
    logprob_token_ids: Optional[List[int]] = None
    skip_special_tokens: bool = True  # whether texts leave out control tokens; the one that ends an output is never text
    logit_bias: Optional[Dict[int, float]] = None
    allowed_token_ids: Optional[List[int]] = None
    structured_outputs: Optional[StructuredOutputsParams] = None

    def __post_init__(self):
        if isinstance(self.stop, str):
            self.stop = [self.stop]
        if self.logit_bias is not None:
            self.logit_bias = {int(token): float(bias) for token, bias in self.logit_bias.items()}
        if isinstance(self.structured_outputs, dict):
            self.structured_outputs = StructuredOutputsParams(**self.structured_outputs)
        _engine.validate_sampling({**self._for_engine(1), "seed": None})

    def _for_engine(self, most_tokens: int) -> dict:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.max_tokens is None:
            values["max_tokens"] = max(1, most_tokens)
        for name in ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"):
            values[name] = float(values[name])
        if self.structured_outputs is not None:
            values["structured_outputs"] = self.structured_outputs._for_engine()
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
