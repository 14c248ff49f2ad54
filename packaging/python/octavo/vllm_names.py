"""vLLM's arguments that this engine does not have: what is taken with a warning, and what is refused.

Each has the values that ask for nothing, which pass in silence. What would change no answer is ignored, with one warning for
a call; what would change answers is a ValueError that says what to do; a name that vLLM does not have is a TypeError.
"""
import warnings

# ---- LLM

LLM_WITHOUT_MEANING = {
    "tokenizer_mode": ("auto",), "skip_tokenizer_init": (False,), "trust_remote_code": (False,), "code_revision": (None, "main"),
    "allowed_local_media_path": ("",), "allowed_media_domains": (None,), "download_dir": (None,), "hf_token": (None,),
    "config_format": ("auto", "hf"), "served_model_name": (None,), "model_impl": ("auto", "vllm"), "ignore_patterns": (None,),
    "safetensors_load_strategy": (None, "lazy"), "model_loader_extra_config": (None, {}), "use_tqdm_on_load": (True, False),
    "max_parallel_loading_workers": (None,), "tokenizer_pool_size": (0,), "tokenizer_pool_type": ("ray",),
    "tokenizer_pool_extra_config": (None,), "cpu_offload_gb": (0,), "max_seq_len_to_capture": (8192,),
    "max_context_len_to_capture": (None,), "cudagraph_capture_sizes": (None,), "cuda_graph_sizes": (None, []),
    "max_cudagraph_capture_size": (None,), "compilation_config": (None, {}), "optimization_level": (None,), "additional_config": (None, {}),
    "attention_backend": (None,), "attention_config": (None, {}), "kernel_config": (None, {}), "disable_custom_all_reduce": (False,),
    "disable_async_output_proc": (False,), "disable_log_stats": (True, False), "disable_log_requests": (True, False),
    "enable_chunked_prefill": (None, True), "max_num_partial_prefills": (1,), "max_long_partial_prefills": (1,),
    "long_prefill_token_threshold": (0,), "disable_chunked_mm_input": (False,), "disable_hybrid_kv_cache_manager": (None, False),
    "disable_sliding_window": (False,), "disable_cascade_attn": (True, False), "prefix_caching_hash_algo": (None, "builtin", "sha256"),
    "scheduler_delay_factor": (0,), "scheduling_policy": ("fcfs",), "scheduler_cls": (None,), "num_scheduler_steps": (1,),
    "multi_step_stream_outputs": (True,), "num_lookahead_slots": (0,), "async_scheduling": (None, True, False), "stream_interval": (1,),
    "use_v2_block_manager": (True,), "worker_use_ray": (False,), "worker_cls": ("auto",), "worker_extension_cls": ("",),
    "distributed_executor_backend": (None,), "ray_workers_use_nsight": (False,), "pipeline_parallel_size": (1,),
    "data_parallel_size": (1,), "decode_context_parallel_size": (1,), "enable_expert_parallel": (False,), "max_logprobs": (20,),
    "limit_mm_per_prompt": (None, {}), "mm_processor_kwargs": (None, {}), "mm_processor_cache_gb": (4,), "media_io_kwargs": (None, {}),
    "disable_mm_preprocessor_cache": (False,), "interleave_mm_strings": (False,), "skip_mm_profiling": (False,),
    "structured_outputs_config": (None, {}), "guided_decoding_backend": ("auto", "xgrammar"), "reasoning_parser": (None, ""),
    "speculative_config": (None, {}), "speculative_model": (None,), "num_speculative_tokens": (None,), "otlp_traces_endpoint": (None,),
    "collect_detailed_traces": (None,), "show_hidden_metrics_for_version": (None,), "kv_cache_metrics": (False,),
    "profiler_config": (None, {}), "kv_transfer_config": (None, {}), "kv_events_config": (None, {}), "calculate_kv_scales": (None, False),
    "pooler_config": (None, {}), "override_pooler_config": (None, {}), "enable_sleep_mode": (False,), "max_loras": (1,),
    "max_lora_rank": (16,), "max_cpu_loras": (None,), "lora_dtype": ("auto",), "lora_extra_vocab_size": (256,),
    "fully_sharded_loras": (False,),
}
_MERGE = "merge it into the model first"
_FOLDER = "download that revision and give its folder as model"
LLM_REFUSED = {
    "revision": ((None, "main"), _FOLDER), "tokenizer_revision": ((None, "main"), _FOLDER),
    "load_format": (("auto", "safetensors", "gguf", "hf", "fastsafetensors", "runai_streamer"), "weights are read from safetensors and GGUF files"),
    "hf_config_path": ((None,), "the folder's own config.json is read"), "hf_overrides": ((None, {}), "change the folder's config.json"),
    "rope_scaling": ((None, {}), "change the folder's config.json"), "rope_theta": ((None,), "change the folder's config.json"),
    "enable_lora": ((False,), _MERGE), "enable_lora_bias": ((False,), _MERGE), "lora_modules": ((None, {}, []), _MERGE),
    "enable_prompt_adapter": ((False,), _MERGE), "enable_prompt_embeds": ((False,), "give texts or token ids"),
    "task": (("auto", "generate"), "this engine generates"), "runner": (("auto", "generate"), "this engine generates"),
    "convert": (("auto", "none"), "this engine generates"), "logits_processors": ((None, []), "give SamplingParams logit_bias or bad_words"),
    "logits_processor_pattern": ((None,), "give SamplingParams logit_bias or bad_words"),
    "logprobs_mode": (("raw_logprobs",), "log-probabilities are the model's own"),
    "chat_template": ((None,), "the model's own template is used"), "enable_return_routed_experts": ((False,), "leave it out"),
}

# ---- SamplingParams

SAMPLING_WITHOUT_MEANING = {
    "detokenize": (True,), "spaces_between_special_tokens": (True, False), "output_kind": (None,), "stream_interval": (None,),
    "skip_clone": (True, False), "flat_logprobs": (False,), "extra_args": (None, {}), "skip_reading_prefix_cache": (None, False),
    "routed_experts_prompt_start": (0,),
}
SAMPLING_REFUSED = {
    "truncate_prompt_tokens": ((None,), "shorten the prompt"), "logits_processors": ((None, []), "give logit_bias or bad_words"),
    "prompt_logprob_token_ids": ((None,), "give prompt_logprobs"), "prompt_logprob_start": ((None, 0), "give prompt_logprobs"),
    "thinking_token_budget": ((None,), "give max_tokens"), "repetition_detection": ((None,), "give repetition_penalty"),
    "trace_decode_token_ids": ((None, []), "leave it out"), "use_beam_search": ((False,), "call LLM.beam_search()"),
    "length_penalty": ((1.0,), "call LLM.beam_search()"), "early_stopping": ((False,), "call LLM.beam_search()"),
}

# ---- LLM.generate, LLM.chat and LLM.beam_search

CALL_WITHOUT_MEANING = {
    "use_tqdm": (True, False), "priority": (None,), "chat_template_content_format": ("auto", "string", "openai"),
    "mm_processor_kwargs": (None, {}), "concurrency_limit": (None,),
}
CALL_REFUSED = {
    "tokenization_kwargs": ((None, {}), "give token ids"),
    "lora_request": ((None,), _MERGE), "prompt_adapter_request": ((None,), _MERGE),
    "guided_options_request": ((None,), "give SamplingParams structured_outputs"), "chat_template": ((None,), "the model's own template is used"),
}


def settle(call: str, values: dict, without_meaning: dict, refused: dict, stacklevel: int) -> None:
    """Warns of what is ignored, and raises what is refused. `values`: what the call was given and does not have."""
    ignored = []
    for name, value in values.items():
        if name in refused:
            harmless, instead = refused[name]
            if not any(value is one or value == one for one in harmless):
                raise ValueError(f"{call} does not have {name}={value!r}: {instead}")
        elif name not in without_meaning:
            raise TypeError(f"{call} has no option '{name}'")
        elif not any(value is one or value == one for one in without_meaning[name]):
            ignored.append(f"{name}={value!r}")
    if ignored:
        warnings.warn(f"{call}: {', '.join(ignored)} {'means' if len(ignored) == 1 else 'mean'} nothing to this engine and "
                      f"{'is' if len(ignored) == 1 else 'are'} ignored", stacklevel=stacklevel + 1)
