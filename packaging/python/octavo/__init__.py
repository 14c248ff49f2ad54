"""Octavo's engine for Python, with the names of vLLM."""
from .llm import LLM
from .outputs import CompletionOutput, Logprob, RequestOutput
from .sampling_params import BeamSearchParams, GuidedDecodingParams, SamplingParams, StructuredOutputsParams
from .tokenizer import Tokenizer

__all__ = ["LLM", "SamplingParams", "BeamSearchParams", "StructuredOutputsParams", "GuidedDecodingParams", "Tokenizer", "RequestOutput",
           "CompletionOutput", "Logprob"]
__version__ = "0.1.0"
