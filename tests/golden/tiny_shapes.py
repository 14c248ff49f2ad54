"""Tiny models of every architecture: metadata and the list of tensors that a converter would write. For make_tiny_models.py
and compare_tiny_models.py.
"""

VOCABULARY = 269  # of tests/support/gguf_writer.h: 3 special tokens, 256 bytes, 10 merges


def long_factors(count, most):
    return [1.0 + (most - 1.0) * i / (count - 1) for i in range(count)]


# Where the norm before the feed-forward layer is called post_attention_norm.
NAMED_BY_ATTENTION = ("gpt-oss", "glm4moe", "qwen35", "qwen35moe", "qwen3next", "seed_oss")

# Whose norms centre rows, and which of these have no bias; whose norms do not, and have one; whose branches are normalised before
# they are added; whose branches read rows as they are.
LAYER_NORMS = ("cohere2", "command-r", "gpt2", "opt", "stablelm", "starcoder2")
WITHOUT_NORM_BIASES = ("cohere2", "command-r")
RMS_NORMS_WITH_BIASES = ("phimoe",)
POST_NORMS = ("exaone4", "gemma2", "gemma3", "gemma4", "glm4", "muse-glimmer", "olmo2")
WITHOUT_INPUT_NORMS = ("exaone4", "olmo2")

# More tokens than any program takes at once where it takes recurrent layers in chunks.
LONG = dict(context_length=128, tokens=80)

# Whose recurrent layers are of Mamba-2, and whose short convolutions.
STATE_SPACES = ("falcon-h1", "granitehybrid", "nemotron_h", "nemotron_h_moe")
SHORT_CONVOLUTIONS = ("lfm2", "lfm2moe")

# With latent attention.
LATENT = ("deepseek2", "mistral4")

# What differs from the defaults of Shape; metadata by suffix, None where a key is left out.
VARIANTS = {
    # As GLM-4.7-Flash and DeepSeek V3.
    "deepseek2": dict(architecture="deepseek2", layers=3, untied=True, predicted=1,
                      latent=dict(size=24, rotary=8, unrotated=12, values=14, rank=40),
                      experts=dict(count=8, used=2, hidden=32, dense=1, shared_count=1, selection_bias=True),
                      keys={"rope.freq_base": 1000000.0, "expert_gating_func": 2, "expert_weights_norm": True,
                            "expert_weights_scale": 1.8}),
    "deepseek2_groups": dict(architecture="deepseek2", layers=2, heads=6, untied=True,
                             latent=dict(size=32, rotary=16, unrotated=32, values=32, rank=64),
                             experts=dict(count=12, used=4, hidden=32, dense=0, shared_count=2, selection_bias=True),
                             keys={"expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 2.5,
                                   "expert_group_count": 4, "expert_group_used_count": 2, "rope.scaling.type": "yarn",
                                   "rope.scaling.factor": 40.0, "rope.scaling.original_context_length": 16,
                                   "rope.scaling.yarn_log_multiplier": 0.1}),
    # As DeepSeek V2 Lite: queries without a rank, experts by softmax, their weights as they are.
    "deepseek2_lite": dict(architecture="deepseek2", layers=2, untied=True,
                           latent=dict(size=32, rotary=4, unrotated=32, values=32, rank=0),
                           experts=dict(count=8, used=3, hidden=32, dense=1, shared_count=2),
                           keys={"expert_gating_func": 1, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                                 "rope.scaling.original_context_length": 16, "rope.scaling.yarn_log_multiplier": 0.0707}),
    # As files from before 2025-04: the heads' matrices as one, and nothing says how routers score.
    "deepseek2_joint": dict(architecture="deepseek2", layers=2, kv_heads=4, untied=True,
                            latent=dict(size=32, rotary=8, unrotated=12, values=16, rank=32, joint=True),
                            experts=dict(count=6, used=2, hidden=32, dense=1, shared_count=1)),
    "deepseek2_odd_sizes": dict(architecture="deepseek2", layers=2, width=52, hidden=44, heads=3, untied=True,
                                latent=dict(size=19, rotary=6, unrotated=5, values=23, rank=13),
                                experts=dict(count=7, used=2, hidden=23, dense=1, shared_count=1, selection_bias=True, packed=True),
                                keys={"expert_gating_func": 2, "attention.layer_norm_rms_epsilon": 0.015625,
                                      "attention.temperature_scale": 0.5, "attention.temperature_length": 10}),
    # What llama.cpp does not do: no layer has experts; YaRN stretches queries and keys and leaves scores as they are.
    "deepseek2_without_experts": dict(architecture="deepseek2", layers=2, llama_cpp=False,
                                      latent=dict(size=24, rotary=8, unrotated=8, values=16, rank=24),
                                      keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
                                            "rope.scaling.original_context_length": 12}),
    "mistral4": dict(architecture="mistral4", layers=2, untied=True,
                     latent=dict(size=24, rotary=8, unrotated=8, values=16, rank=24),
                     experts=dict(count=8, used=2, hidden=32, dense=0, shared_count=1),
                     keys={"attention.temperature_scale": 0.5, "attention.temperature_length": 12, "expert_gating_func": 1,
                           "expert_weights_norm": True, "rope.scaling.type": "yarn", "rope.scaling.factor": 16.0,
                           "rope.scaling.original_context_length": 12, "rope.scaling.yarn_log_multiplier": 0.1}),
    "gemma": dict(architecture="gemma", head_dim=24),
    "gemma2": dict(architecture="gemma2", layers=3, head_dim=24,
                   keys={"attention.sliding_window": 8, "attn_logit_softcapping": 2.5, "final_logit_softcapping": 6.0}),
    "gemma2_defaults": dict(architecture="gemma2"),
    "gemma3": dict(architecture="gemma3", layers=7, head_dim=24,
                   keys={"attention.sliding_window": 8, "rope.freq_base": 1000000.0, "rope.scaling.type": "linear",
                         "rope.scaling.factor": 8.0}),
    "gemma3_without_window": dict(architecture="gemma3", keys={"rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    "gemma3_odd_sizes": dict(architecture="gemma3", layers=6, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                             keys={"attention.sliding_window": 5}),
    # As the 12B and 31B models: heads of two sizes and numbers, values from keys where a layer sees all.
    "gemma4": dict(architecture="gemma4", layers=6, head_dim=48, local_head_dim=24, kv_heads=[2, 2, 1, 2, 2, 1],
                   values_from_keys=True, output_scales=True,
                   keys={"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, False] * 2,
                         "rope.freq_base": 1000000.0, "rope.freq_base_swa": 10000.0, "final_logit_softcapping": 6.0}),
    # As E2B: the last layers read the keys and values of others, and are twice as wide; every layer has its part of the second
    # embedding.
    "gemma4_embedded": dict(architecture="gemma4", layers=7, head_dim=32, local_head_dim=16, shared=3, layer_embedding=32,
                            hidden=[96] * 4 + [192] * 3, output_scales=True,
                            keys={"attention.sliding_window": 8,
                                  "attention.sliding_window_pattern": [True, False, True, False, True, True, False],
                                  "rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    # As 26B-A4B.
    "gemma4_experts": dict(architecture="gemma4", layers=3, head_dim=32, local_head_dim=16, kv_heads=[4, 4, 2],
                           values_from_keys=True, output_scales=True, experts=dict(count=8, used=2, hidden=32, packed=True),
                           keys={"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, False],
                                 "rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    "gemma4_odd_sizes": dict(architecture="gemma4", layers=5, width=52, hidden=44, heads=3, kv_heads=1, head_dim=40, untied=True,
                             local_head_dim=18, shared=2, layer_embedding=10,
                             keys={"attention.sliding_window": 5,
                                   "attention.sliding_window_pattern": [False, True, False, True, False],
                                   "rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    "gemma4_local_part": dict(architecture="gemma4", layers=3, head_dim=32, local_head_dim=24,
                              keys={"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, True, False],
                                    "rope.dimension_count_swa": 14, "rope.freq_base": 1000000.0, "final_logit_softcapping": 6.0}),
    # What llama.cpp does not do: the owner of a kind is not one of the two layers before the shared ones, and a file without
    # final_logit_softcapping has none.
    "gemma4_shared_apart": dict(architecture="gemma4", layers=6, kv_heads=[2, 2, 4, 4, 2, 4], head_dim=16, local_head_dim=16,
                                shared=2, output_scales=True, experts=dict(count=5, used=3, hidden=24), layer_embedding=8,
                                llama_cpp=False,
                                keys={"attention.sliding_window": 6,
                                      "attention.sliding_window_pattern": [True, True, False, False, True, False],
                                      "rope.freq_base": 1000000.0}),
    "cohere2": dict(architecture="cohere2", layers=5, keys={"attention.sliding_window": 8, "logit_scale": 0.25}),
    "cohere2_odd_sizes": dict(architecture="cohere2", layers=3, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                              query_key_value_biases=True,
                              keys={"attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True, True],
                                    "rope.dimension_count": 10, "logit_scale": 1.5, "attention.layer_norm_epsilon": 0.015625}),
    "command-r": dict(architecture="command-r", query_key_value_biases=True,
                      keys={"logit_scale": 0.0625, "rope.freq_base": 8000000.0, "rope.scaling.type": "none"}),
    "command-r_head_norms": dict(architecture="command-r", layers=3, width=54, hidden=44, heads=3, kv_heads=1, head_dim=18, norms_apart=True,
                                 llama_cpp=False,  # which wants them by the number of layers
                                 keys={"attention.layer_norm_epsilon": 0.015625}),
    "exaone4": dict(architecture="exaone4", layers=3, head_norms=True, divisors=True, keys={"rope.freq_base": 1000000.0}),
    "exaone4_windows": dict(architecture="exaone4", layers=5, width=54, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True,
                            predicted=1, head_norms=True, llama_cpp=False,  # whose windows follow from 64 layers
                            keys={"attention.sliding_window": 6, "attention.layer_norm_rms_epsilon": 0.015625}),
    "exaone4_many_layers": dict(architecture="exaone4", layers=64, width=32, hidden=32, heads=4, kv_heads=2, head_dim=8, head_norms=True),
    "gpt2": dict(architecture="gpt2", heads=4, kv_heads=None, biases=True),
    "gpt2_odd_sizes": dict(architecture="gpt2", width=57, hidden=71, heads=3, kv_heads=None, biases=True),
    "opt": dict(architecture="opt", heads=4, kv_heads=None, biases=True, llama_cpp=False),
    "opt_odd_sizes": dict(architecture="opt", width=57, hidden=71, heads=3, kv_heads=None, biases=True, llama_cpp=False),
    "hunyuan-dense": dict(architecture="hunyuan-dense", head_dim=24, head_norms=True, keys={"rope.freq_base": 11158840.0}),
    "hunyuan-dense_odd_sizes": dict(architecture="hunyuan-dense", width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True,
                                    query_key_value_biases=True, head_norms=True,
                                    keys={"rope.scaling.alpha": 50.0, "attention.layer_norm_rms_epsilon": 0.015625}),
    "llama4": dict(architecture="llama4", layers=5, head_dim=24, untied=True, chunk=12,
                   experts=dict(count=8, used=1, hidden=32, shared=32, step=2),
                   keys={"rope.freq_base": 500000.0, "attention.layer_norm_rms_epsilon": 1e-5, "expert_gating_func": 2}),
    "llama4_odd_sizes": dict(architecture="llama4", layers=4, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, chunk=7, divisors=True,
                             query_key_value_biases=True, experts=dict(count=5, used=2, hidden=23, shared=23, step=1),
                             keys={"attention.sliding_window": 32, "attention.sliding_window_pattern": [True, False, True, True],
                                   "attention.layer_norm_rms_epsilon": 0.015625}),
    "llama4_without_head_norms": dict(architecture="llama4", layers=4, chunk=16, experts=dict(count=128, used=1, hidden=8, shared=8, step=2)),
    "llama4_without_chunks": dict(architecture="llama4", layers=4, llama_cpp=False,  # which ends the program
                                  experts=dict(count=6, used=1, hidden=32, shared=32, step=2),
                                  keys={"attention.sliding_window": 0}),
    "muse-glimmer": dict(architecture="muse-glimmer", layers=5, head_dim=24, untied=True, head_norms=3.875,
                         keys={"attention.sliding_window": 8, "rope.freq_base": 500000.0, "attention.layer_norm_rms_epsilon": 1e-5,
                               "logit_scale": 0.3922318, "final_logit_softcapping": 2.0}),
    "muse-glimmer_odd_sizes": dict(architecture="muse-glimmer", layers=3, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True,
                                   head_norms=True,
                                   keys={"attention.sliding_window": 5, "attention.sliding_window_pattern": [True, False, True],
                                         "rope.freq_base_swa": 1000.0, "attention.layer_norm_rms_epsilon": 0.25, "logit_scale": 1.5,
                                         "final_logit_softcapping": 3.0}),
    "olmo2": dict(architecture="olmo2", untied=True, row_norms=True, keys={"rope.freq_base": 500000.0}),
    "olmo2_windows": dict(architecture="olmo2", layers=5, untied=True, row_norms=True,
                          keys={"attention.sliding_window": 8, "rope.freq_base": 500000.0, "rope.scaling.type": "yarn",
                                "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 16}),
    "olmo2_odd_sizes": dict(architecture="olmo2", layers=3, width=54, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True, row_norms=True,
                            keys={"attention.sliding_window": 5, "attention.sliding_window_pattern": [False, True, True],
                                  "attention.layer_norm_rms_epsilon": 0.015625}),
    "llama_with_window": dict(architecture="llama", untied=True, keys={"attention.sliding_window": 11}),
    "phi3": dict(architecture="phi3", untied=True, keys={"rope.dimension_count": 16, "attention.sliding_window": 0}),
    "phi3_with_window": dict(architecture="phi3", heads=4, kv_heads=4, untied=True,
                             keys={"rope.dimension_count": 12, "attention.sliding_window": 9}),
    "phi3_long": dict(architecture="phi3", untied=True, long_rope=True,
                      keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 32,
                            "rope.scaling.attn_factor": 1.1}),
    "phi3_long_within": dict(architecture="phi3", untied=True, long_rope=True, max_model_len=56,
                             keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 56,
                                   "rope.scaling.attn_factor": 1.1}),
    # As Phi-3.5-MoE: its window is as long as its context.
    "phimoe": dict(architecture="phimoe", untied=True, long_rope=True, query_key_value_biases=True, output_bias=True, head_bias=True,
                   experts=dict(count=8, used=2, hidden=None),
                   keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": 1.1,
                         "attention.sliding_window": 64, "attention.layer_norm_rms_epsilon": 1e-5}),
    "phimoe_within": dict(architecture="phimoe", layers=3, untied=True, long_rope=True, max_model_len=56, query_key_value_biases=True,
                          output_bias=True, head_bias=True, experts=dict(count=8, used=2, hidden=None),
                          keys={"rope.dimension_count": 16, "rope.scaling.original_context_length": 56,
                                "rope.scaling.attn_factor": 1.1}),
    "phimoe_odd_sizes": dict(architecture="phimoe", layers=3, width=54, hidden=23, heads=3, kv_heads=1, head_dim=18, untied=True,
                             query_key_value_biases=True, output_bias=True, head_bias=True, experts=dict(count=7, used=3, hidden=None),
                             keys={"rope.dimension_count": 10, "attention.layer_norm_rms_epsilon": 0.015625}),
    "mistral3": dict(architecture="mistral3", head_dim=24, untied=True,
                     keys={"attention.temperature_scale": 0.5, "rope.freq_base": 1000000.0, "rope.scaling.type": "yarn",
                           "rope.scaling.factor": 16.0, "rope.scaling.original_context_length": 12,
                           "rope.scaling.yarn_log_multiplier": 1.0, "rope.scaling.yarn_beta_fast": 32.0,
                           "rope.scaling.yarn_beta_slow": 1.0}),
    "mistral3_half_dampened": dict(architecture="mistral3",
                                   keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                                         "rope.scaling.original_context_length": 16, "rope.scaling.yarn_log_multiplier": 0.5}),
    "mistral3_with_experts": dict(architecture="mistral3", experts=dict(count=8, used=2, hidden=None),
                                  keys={"attention.temperature_scale": 0.25, "rope.scaling.original_context_length": 16}),
    "qwen2": dict(architecture="qwen2", keys={"rope.freq_base": 1000000.0}, query_key_value_biases=True),
    "qwen2_untied": dict(architecture="qwen2", untied=True, query_key_value_biases=True),
    "qwen2_yarn": dict(architecture="qwen2", query_key_value_biases=True,
                       keys={"rope.freq_base": 10000.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                             "rope.scaling.original_context_length": 16}),
    "qwen3": dict(architecture="qwen3", head_dim=24, keys={"rope.freq_base": 1000000.0}),
    "qwen3moe": dict(architecture="qwen3moe", head_dim=24, experts=dict(count=8, used=3, hidden=32),
                     keys={"rope.freq_base": 1000000.0}),
    "qwen3moe_odd_sizes": dict(architecture="qwen3moe", width=52, heads=3, kv_heads=1, head_dim=18, untied=True,
                               experts=dict(count=7, used=2, hidden=23)),
    "qwen3moe_packed": dict(architecture="qwen3moe", head_dim=24, experts=dict(count=5, used=4, hidden=32, packed=True)),
    "llama_with_experts": dict(architecture="llama", untied=True, experts=dict(count=6, used=2, hidden=None)),
    "llama_with_shared_expert": dict(architecture="llama", experts=dict(count=5, used=1, hidden=None, shared=64)),
    "glm4moe": dict(architecture="glm4moe", layers=3, head_dim=24, untied=True, query_key_value_biases=True, head_norms=True,
                    experts=dict(count=8, used=3, hidden=32, dense=1, shared_count=2, selection_bias=True),
                    keys={"rope.dimension_count": 12, "expert_gating_func": 2, "expert_weights_norm": True,
                          "expert_weights_scale": 2.5}),
    "glm4moe_groups": dict(architecture="glm4moe", layers=2, untied=True,
                           experts=dict(count=12, used=4, hidden=32, dense=0, shared_count=1, selection_bias=True),
                           keys={"expert_group_count": 4, "expert_group_used_count": 2}),
    "glm4moe_predicts": dict(architecture="glm4moe", layers=2, predicted=1, untied=True,
                             experts=dict(count=6, used=2, hidden=32, dense=1, shared_count=1, selection_bias=True)),
    "olmoe": dict(architecture="olmoe", kv_heads=4, untied=True, row_norms=True, experts=dict(count=8, used=3, hidden=None)),
    "olmoe_grouped": dict(architecture="olmoe", untied=True, row_norms=True, experts=dict(count=8, used=3, hidden=None)),
    "gpt-oss": dict(architecture="gpt-oss", layers=4, head_dim=24, untied=True, biases=True, sinks=True, swiglu_scale=4.0,
                    experts=dict(count=8, used=3, hidden=32, biases=True),
                    keys={"attention.sliding_window": 8, "rope.freq_base": 150000.0, "rope.scaling.type": "yarn",
                          "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}),
    "gpt-oss_odd_sizes": dict(architecture="gpt-oss", layers=2, width=52, heads=6, kv_heads=2, head_dim=18, untied=True, biases=True,
                              sinks=True, swiglu_scale=4.0, experts=dict(count=5, used=4, hidden=27, biases=True),
                              keys={"attention.sliding_window": 5}),
    "falcon-h1": dict(architecture="falcon-h1", head_dim=24, untied=True, **LONG,
                      recurrent=dict(groups=2, heads=6, head_dim=16, state=24, bias=True, norm=True),
                      keys={"rope.freq_base": 100000000000.0}),
    "falcon-h1_odd_sizes": dict(architecture="falcon-h1", layers=3, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                                recurrent=dict(groups=1, heads=5, head_dim=13, state=10, width=3, bias=True),
                                keys={"rope.dimension_count": 18, "attention.layer_norm_rms_epsilon": 0.015625}),
    "ernie4_5": dict(architecture="ernie4_5", head_dim=24, keys={"rope.freq_base": 500000.0}),
    "granite": dict(architecture="granite",
                    keys={"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.09375, "logit_scale": 8.0}),
    "granite_odd_sizes": dict(architecture="granite", width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True, biases=True,
                              keys={"embedding_scale": 0.0, "residual_scale": 0.5, "attention.scale": 0.0, "logit_scale": 0.375}),
    "granite_unrotated": dict(architecture="granite", keys={"residual_scale": 1.75, "logit_scale": 3.0, "rope.scaling.finetuned": False}),
    "granitehybrid": dict(architecture="granitehybrid", layers=4, **LONG,
                          recurrent=dict(layers=[True, False, True, True], groups=2, heads=8, head_dim=16, state=24, bias=True, norm=True),
                          keys={"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.09375, "logit_scale": 8.0,
                                "rope.scaling.finetuned": False}),
    "granitehybrid_odd_sizes": dict(architecture="granitehybrid", layers=3, width=52, hidden=44, heads=2, kv_heads=1, head_dim=26,
                                    untied=True, query_key_value_biases=True,
                                    recurrent=dict(layers=[False, True, True], groups=4, heads=4, head_dim=26, state=10, width=3,
                                                   bias=True, norm=True),
                                    keys={"residual_scale": 1.75, "attention.layer_norm_rms_epsilon": 0.015625}),
    "granitehybrid_with_experts": dict(architecture="granitehybrid", layers=3, untied=True,
                                       recurrent=dict(layers=[True, True, False], groups=1, heads=4, head_dim=32, state=16, bias=True,
                                                      norm=True),
                                       experts=dict(count=8, used=3, hidden=None, shared=32),
                                       keys={"embedding_scale": 6.0, "residual_scale": 0.22, "attention.scale": 0.03125,
                                             "logit_scale": 0.75, "rope.scaling.finetuned": False}),
    "granitemoe": dict(architecture="granitemoe", untied=True, experts=dict(count=8, used=3, hidden=None, shared=32),
                       keys={"embedding_scale": 6.0, "residual_scale": 0.22, "attention.scale": 0.03125, "logit_scale": 0.75}),
    "lfm2": dict(architecture="lfm2", layers=4, **LONG, recurrent=dict(layers=[True, True, False, True], width=3),
                 keys={"rope.freq_base": 1000000.0}),
    "lfm2_odd_sizes": dict(architecture="lfm2", layers=3, width=54, hidden=44, heads=3, kv_heads=1, untied=True,
                           recurrent=dict(layers=[False, True, True], width=4),
                           keys={"attention.sliding_window": 7, "attention.layer_norm_rms_epsilon": 0.015625}),
    "lfm2moe": dict(architecture="lfm2moe", layers=4, recurrent=dict(layers=[True, False, True, True], width=3),
                    experts=dict(count=8, used=3, hidden=32, dense=1, selection_bias=True),
                    keys={"rope.freq_base": 1000000.0, "expert_gating_func": 2}),
    "lfm2moe_odd_sizes": dict(architecture="lfm2moe", layers=3, width=54, hidden=44, heads=3, kv_heads=3, untied=True,
                              recurrent=dict(layers=[False, True, False], width=2),
                              experts=dict(count=7, used=2, hidden=23, dense=2, selection_bias=True),
                              keys={"expert_gating_func": 2}),
    "minicpm": dict(architecture="minicpm", layers=3, untied=True, query_key_value_biases=True,
                    keys={"embedding_scale": 7.0, "residual_scale": 0.25, "logit_scale": 2.25}),
    "minicpm_before_keys": dict(architecture="minicpm", layers=3, width=96, heads=6, untied=True),
    "minicpm_with_experts": dict(architecture="minicpm", untied=True, experts=dict(count=8, used=2, hidden=None),
                                 keys={"embedding_scale": 12.0, "residual_scale": 0.3, "logit_scale": 0.75}),
    "nemotron_h": dict(architecture="nemotron_h", layers=6, head_dim=24, untied=True, **LONG,
                       recurrent=dict(pattern="M-M*-M", groups=2, heads=6, head_dim=16, state=24, bias=True, norm=True),
                       keys={"attention.layer_norm_rms_epsilon": None, "attention.layer_norm_epsilon": 1e-5}),
    "nemotron_h_odd_sizes": dict(architecture="nemotron_h", layers=5, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                                 query_key_value_biases=True, output_bias=True, feed_forward_biases=True,
                                 recurrent=dict(pattern="*-M-M", groups=5, heads=5, head_dim=13, state=7, width=2, bias=True, norm=True),
                                 keys={"attention.layer_norm_rms_epsilon": 0.015625, "attention.layer_norm_epsilon": 0.25}),
    "nemotron_h_without_biases": dict(architecture="nemotron_h", layers=3, llama_cpp=False,  # where it ends the program
                                      recurrent=dict(pattern="M*-", groups=1, heads=4, head_dim=16, state=16, norm=True),
                                      keys={"attention.layer_norm_rms_epsilon": 1e-6, "attention.layer_norm_epsilon": 1e-6}),
    "nemotron_h_moe": dict(architecture="nemotron_h_moe", layers=6, head_dim=24, untied=True, **LONG,
                           recurrent=dict(pattern="MEM*EM", groups=2, heads=6, head_dim=16, state=24, bias=True, norm=True),
                           experts=dict(count=8, used=3, hidden=32, shared=64, selection_bias=True),
                           keys={"attention.layer_norm_epsilon": 1e-5, "expert_weights_norm": True, "expert_weights_scale": 2.5,
                                 "expert_group_count": 1}),
    "nemotron_h_moe_latent": dict(architecture="nemotron_h_moe", layers=5, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, predicted=1,
                                  recurrent=dict(pattern="*EME*", groups=5, heads=5, head_dim=13, state=7, width=2, bias=True, norm=True),
                                  experts=dict(count=7, used=2, hidden=23, shared=31, selection_bias=True, latent=20),
                                  keys={"attention.layer_norm_rms_epsilon": 0.015625, "attention.layer_norm_epsilon": 0.25,
                                        "moe_latent_size": 20}),
    "glm4": dict(architecture="glm4", head_dim=24, untied=True, query_key_value_biases=True, keys={"rope.dimension_count": 12}),
    "glm4_odd_sizes": dict(architecture="glm4", width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True,
                           keys={"rope.dimension_count": 10}),
    "qwen35": dict(architecture="qwen35", layers=4, head_dim=24, **LONG,
                   recurrent=dict(key_heads=2, value_heads=4, key_dim=16, value_dim=16),
                   keys={"rope.dimension_count": 12, "rope.freq_base": 10000000.0}),
    "qwen35_odd_sizes": dict(architecture="qwen35", layers=3, width=52, hidden=44, heads=3, kv_heads=1, head_dim=18, untied=True,
                             predicted=1, **LONG,
                             recurrent=dict(layers=[True, False, True], key_heads=2, value_heads=6, key_dim=10, value_dim=10, width=3),
                             keys={"rope.dimension_count": 6, "attention.layer_norm_rms_epsilon": 0.015625}),
    "qwen35_equal_heads": dict(architecture="qwen35", layers=3, heads=4, kv_heads=4, untied=True,
                               recurrent=dict(interval=3, key_heads=3, value_heads=3, key_dim=8, value_dim=12),
                               keys={"rope.dimension_count": 8}),
    "qwen35moe": dict(architecture="qwen35moe", layers=3, head_dim=24, untied=True, predicted=1, own_head=True, **LONG,
                      recurrent=dict(layers=[True, True, False], key_heads=2, value_heads=4, key_dim=16, value_dim=16),
                      experts=dict(count=8, used=2, hidden=32, shared=64, gated=True),
                      keys={"rope.dimension_count": 12, "rope.freq_base": 10000000.0, "feed_forward_length": None}),
    "qwen35moe_packed": dict(architecture="qwen35moe", width=52, hidden=44, heads=3, kv_heads=1, head_dim=18,
                             recurrent=dict(interval=2, key_heads=2, value_heads=6, key_dim=12, value_dim=12),
                             experts=dict(count=7, used=3, hidden=23, packed=True, gated=True),
                             keys={"rope.dimension_count": 6}),
    "qwen3next": dict(architecture="qwen3next", layers=4, head_dim=24, untied=True, **LONG,
                      recurrent=dict(key_heads=2, value_heads=4, key_dim=16, value_dim=16),
                      experts=dict(count=8, used=2, hidden=32, shared=64, gated=True),
                      keys={"rope.dimension_count": 6, "rope.freq_base": 10000000.0}),
    "qwen3next_packed": dict(architecture="qwen3next", layers=2, width=52, hidden=44, heads=6, kv_heads=2, head_dim=18, untied=True,
                             predicted=1,
                             recurrent=dict(layers=[True, False], key_heads=2, value_heads=6, key_dim=12, value_dim=12, packed=True),
                             experts=dict(count=8, used=2, hidden=23, shared=31, gated=True, packed=True),
                             keys={"rope.dimension_count": 6}),
    "seed_oss": dict(architecture="seed_oss", head_dim=24, untied=True, query_key_value_biases=True,
                     keys={"rope.freq_base": 10000000.0}),
    "smollm3": dict(architecture="smollm3", layers=5, keys={"rope.freq_base": 5000000.0}),
    "stablelm": dict(architecture="stablelm", untied=True, query_key_value_biases=True,
                     keys={"rope.dimension_count": 4, "use_parallel_residual": True}),
    "stablelm_side_by_side": dict(architecture="stablelm", untied=True, norms_apart=True, side_by_side=True,
                                  query_key_value_biases=True,
                                  keys={"rope.dimension_count": 4, "use_parallel_residual": True, "attention.layer_norm_epsilon": 0.015625}),
    "starcoder2": dict(architecture="starcoder2", biases=True, keys={"rope.freq_base": 100000.0}),
    "starcoder2_odd_sizes": dict(architecture="starcoder2", width=57, hidden=71, heads=3, kv_heads=1, head_dim=18, biases=True),
}


class Shape:
    """One variant: `keys` is all of its metadata, `tensors` (name, rows or None, columns, centre, scale) in file order."""

    def __init__(self, variant):
        self.architecture = variant["architecture"]
        self.has_layer_norms = self.architecture in LAYER_NORMS
        self.has_norm_biases = self.has_layer_norms and self.architecture not in WITHOUT_NORM_BIASES or self.architecture in RMS_NORMS_WITH_BIASES
        self.has_post_norms = self.architecture in POST_NORMS
        self.packs_gate = self.architecture in ("glm4", "phi3")
        self.layers = variant.get("layers", 2)
        self.heads, self.kv_heads = variant.get("heads", 4), variant.get("kv_heads", 2)
        self.width, self.hidden = variant.get("width", 64), variant.get("hidden", 96)
        self.context_length, self.tokens = variant.get("context_length", 64), variant.get("tokens", 48)
        self.head_dim = variant.get("head_dim", self.width // self.heads)
        self.local_head_dim = variant.get("local_head_dim")
        self.num_shared = variant.get("shared", 0)
        self.layer_embedding = variant.get("layer_embedding", 0)
        self.variant = variant
        self.max_model_len = variant.get("max_model_len")
        self.chunk = variant.get("chunk")  # of llama4, whose files do not say; only where the test can
        self.experts = variant.get("experts")
        self.predicted = variant.get("predicted", 0)
        self.recurrent = variant.get("recurrent")
        self.latent = variant.get("latent")
        self.is_gated = self.architecture in ("qwen35", "qwen35moe", "qwen3next")  # what attention gives
        if self.experts and self.experts["hidden"] is None:
            self.experts = self.experts | {"hidden": self.hidden}
        self.keys = self._keys()
        self.tensors = list(self._tensors())

    def of_layer(self, values, layer):
        """A number, or a list of one for each layer."""
        return values[layer] if isinstance(values, list) else values

    def is_local(self, layer):
        return self.local_head_dim is not None and self.keys["attention.sliding_window_pattern"][layer]

    def head_dim_of(self, layer):
        return self.local_head_dim if self.is_local(layer) else self.head_dim

    def has_experts(self, layer):
        if self.experts is None or (layer + 1) % self.experts.get("step", 1) != 0:
            return False
        return layer >= self.experts.get("dense", 0)

    def stand_side_by_side(self):
        return self.architecture in ("cohere2", "command-r") or self.variant.get("side_by_side", False)

    def is_recurrent(self, layer):
        if self.recurrent is None or layer >= self.layers:  # never one that only guesses
            return False
        if "pattern" in self.recurrent:
            return self.recurrent["pattern"][layer] == "M"
        if self.architecture == "falcon-h1":
            return True
        if "layers" in self.recurrent:
            return self.recurrent["layers"][layer]
        return (layer + 1) % self.recurrent.get("interval", 4) != 0

    def has_attention(self, layer):
        if self.recurrent and "pattern" in self.recurrent:
            return self.pattern_at(layer) in "*+"
        return self.architecture == "falcon-h1" or not self.is_recurrent(layer)

    def has_feed_forward(self, layer):
        return not self.recurrent or "pattern" not in self.recurrent or self.pattern_at(layer) in "-E+"

    def pattern_at(self, layer):
        return (self.recurrent["pattern"] + "+" * self.predicted)[layer]  # layers that only guess have attention and experts

    def _keys_by_layer(self):
        """Of families whose recurrent layers are those without heads."""
        r = self.recurrent
        if self.architecture in SHORT_CONVOLUTIONS:
            keys = {"shortconv.l_cache": r["width"]}
        else:
            keys = {"ssm.conv_kernel": r.get("width", 4), "ssm.state_size": r["state"], "ssm.group_count": r["groups"],
                    "ssm.time_step_rank": r["heads"], "ssm.inner_size": r["heads"] * r["head_dim"]}
        if self.architecture != "falcon-h1":
            keys["attention.head_count_kv"] = [self.kv_heads if self.has_attention(i) else 0 for i in range(self.layers + self.predicted)]
        if "pattern" in r:
            hidden = self.experts["hidden"] if self.experts else self.hidden
            keys["feed_forward_length"] = [hidden if self.has_feed_forward(i) else 0 for i in range(self.layers + self.predicted)]
        return keys

    def _recurrent_keys(self):
        r = self.recurrent
        keys = {"ssm.conv_kernel": r.get("width", 4), "ssm.state_size": r["key_dim"], "ssm.group_count": r["key_heads"],
                "ssm.time_step_rank": r["value_heads"], "ssm.inner_size": r["value_heads"] * r["value_dim"]}
        if "layers" in r:
            keys["attention.recurrent_layers"] = r["layers"] + [False] * self.predicted
        if "interval" in r:
            keys["full_attention_interval"] = r["interval"]
        if self.architecture != "qwen3next":
            pairs = self.variant["keys"]["rope.dimension_count"] // 2
            keys["rope.dimension_sections"] = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0]
        return keys

    def _keys(self):
        keys = {"block_count": self.layers, "context_length": self.context_length, "embedding_length": self.width,
                "feed_forward_length": self.hidden, "attention.head_count": self.heads}
        if self.experts:
            keys |= self._expert_keys()
        if self.is_gated:
            keys |= self._recurrent_keys()
        if self.predicted:
            keys |= {"block_count": self.layers + self.predicted, "nextn_predict_layers": self.predicted}
        if self.kv_heads is not None:
            keys["attention.head_count_kv"] = self.kv_heads
        if self.recurrent and not self.is_gated:
            keys |= self._keys_by_layer()
        if self.latent:
            keys |= self._latent_keys()
        elif self.head_dim != self.width // self.heads:
            keys["attention.key_length"] = keys["attention.value_length"] = self.head_dim
        if self.architecture == "gemma4":
            keys |= {"attention.key_length": self.head_dim, "attention.value_length": self.head_dim,
                     "attention.key_length_swa": self.local_head_dim, "attention.value_length_swa": self.local_head_dim,
                     "attention.shared_kv_layers": self.num_shared, "rope.dimension_count": self.head_dim,
                     "rope.dimension_count_swa": self.local_head_dim,
                     "embedding_length_per_layer_input": self.layer_embedding}
        if self.has_layer_norms:
            keys["attention.layer_norm_epsilon"] = 1e-5
        else:
            keys["attention.layer_norm_rms_epsilon"] = 1e-6
        keys |= self.variant.get("keys", {})
        return {suffix: value for suffix, value in keys.items() if value is not None}

    def _latent_keys(self):
        a = self.latent
        head, kept = a["unrotated"] + a["rotary"], a["size"] + a["rotary"]
        keys = {"attention.q_lora_rank": a["rank"], "attention.kv_lora_rank": a["size"], "rope.dimension_count": a["rotary"]}
        if a.get("joint"):
            return keys | {"attention.key_length": head, "attention.value_length": a["values"]}
        return keys | {"attention.head_count_kv": 1, "attention.key_length": kept, "attention.value_length": a["size"],
                       "attention.key_length_mla": head, "attention.value_length_mla": a["values"]}

    def _expert_keys(self):
        e = self.experts
        keys = {"expert_count": e["count"], "expert_used_count": e["used"]}
        if e["hidden"] != self.hidden:
            keys["expert_feed_forward_length"] = e["hidden"]
        if e.get("dense"):
            keys["leading_dense_block_count"] = e["dense"]
        if "shared_count" in e:
            keys["expert_shared_count"] = e["shared_count"]
        if "step" in e:
            keys["interleave_moe_layer_step"] = e["step"]
        elif "shared" in e:
            keys["expert_shared_feed_forward_length"] = e["shared"]
        return keys

    def _expert_tensors(self, prefix):
        """Matrices of all experts, one behind the other, have their number as a sixth entry."""
        e, width = self.experts, self.width
        count, hidden = e["count"], e["hidden"]
        yield from self._linear(prefix + "ffn_gate_inp", count, width)
        if self.architecture == "gemma4":
            yield prefix + "ffn_gate_inp.scale", None, width, 6.0, 2.0
            yield prefix + "ffn_down_exps.scale", None, count, 1.0, 0.25
            for name in ("pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):
                yield from self._norm(prefix + name)
        if e.get("selection_bias"):
            yield prefix + "exp_probs_b.bias", None, count, 0.0, 0.5
        parts = [("ffn_gate_exps", hidden, width), ("ffn_up_exps", hidden, width), ("ffn_down_exps", width, hidden)]
        if e.get("packed"):
            parts[:2] = [("ffn_gate_up_exps", 2 * hidden, width)]
        if self.architecture == "nemotron_h_moe":
            latent = e.get("latent", width)
            parts = [("ffn_up_exps", hidden, latent), ("ffn_down_exps", latent, hidden)]
        if "latent" in e:
            yield from self._linear(prefix + "ffn_latent_down", e["latent"], width)
            yield from self._linear(prefix + "ffn_latent_up", width, e["latent"])
        for name, rows, columns in parts:
            scale = self.variant.get("swiglu_scale", 1.0) if name != "ffn_down_exps" else 1.0
            yield prefix + name + ".weight", count * rows, columns, 0.0, 2.0 * scale * columns**-0.5, count
            if e.get("biases"):
                yield prefix + name + ".bias", count, rows, 0.0, 0.25, 1
        if e.get("gated"):
            yield prefix + "ffn_gate_inp_shexp.weight", None, width, 0.0, 0.25
        shared = e.get("shared", self.hidden if e.get("gated") else e.get("shared_count", 0) * hidden)
        if shared:
            for name, rows, columns in (("ffn_gate_shexp", shared, width), ("ffn_up_shexp", shared, width),
                                        ("ffn_down_shexp", width, shared)):
                if name == "ffn_gate_shexp" and self.architecture == "nemotron_h_moe":
                    continue
                yield prefix + name + ".weight", rows, columns, 0.0, 2.0 * columns**-0.5

    def _short_convolution_tensors(self, prefix):
        yield from self._linear(prefix + "shortconv.in_proj", 3 * self.width, self.width)
        yield prefix + "shortconv.conv.weight", self.width, self.recurrent["width"], 0.0, 1.0
        yield from self._linear(prefix + "shortconv.out_proj", self.width, self.width)

    def _state_space_tensors(self, prefix):
        r, width = self.recurrent, self.width
        heads, groups, columns = r["heads"], r["groups"], r["heads"] * r["head_dim"]
        channels = columns + 2 * groups * r["state"]
        yield from self._linear(prefix + "ssm_in", columns + channels + heads, width)
        yield prefix + "ssm_conv1d.weight", channels, r.get("width", 4), 0.0, 1.0
        if r.get("bias"):
            yield prefix + "ssm_conv1d.bias", None, channels, 0.0, 0.5
        yield prefix + "ssm_dt.bias", None, heads, 0.0, 1.0
        yield prefix + "ssm_a", heads, 1, -0.28125, 0.25
        yield prefix + "ssm_d", heads, 1, 1.0, 0.5
        if r.get("norm"):
            yield prefix + "ssm_norm.weight", groups, columns // groups, 1.0, 0.125
        yield from self._linear(prefix + "ssm_out", width, columns)

    def _recurrent_tensors(self, prefix):
        if self.architecture in STATE_SPACES:
            yield from self._state_space_tensors(prefix)
        elif self.architecture in SHORT_CONVOLUTIONS:
            yield from self._short_convolution_tensors(prefix)
        else:
            yield from self._delta_net_tensors(prefix)

    def _delta_net_tensors(self, prefix):
        r, width = self.recurrent, self.width
        heads, columns = r["value_heads"], r["value_heads"] * r["value_dim"]
        channels = 2 * r["key_heads"] * r["key_dim"] + columns
        if r.get("packed"):
            yield from self._linear(prefix + "ssm_in", channels + columns, width)
        else:
            yield from self._linear(prefix + "attn_qkv", channels, width)
            yield from self._linear(prefix + "attn_gate", columns, width)
        yield prefix + "ssm_conv1d.weight", channels, r.get("width", 4), 0.0, 1.0
        yield prefix + "ssm_dt.bias", None, heads, 0.0, 1.0
        yield prefix + "ssm_a", None, heads, -0.28125, 0.25
        if self.architecture == "qwen3next":
            yield from self._linear(prefix + "ssm_ba", 2 * heads, width)
        else:
            yield from self._linear(prefix + "ssm_beta", heads, width)
            yield from self._linear(prefix + "ssm_alpha", heads, width)
        yield from self._norm(prefix + "ssm_norm", r["value_dim"])
        yield from self._linear(prefix + "ssm_out", width, columns)

    def _latent_tensors(self, prefix):
        """Matrices of all heads, one behind the other, have their number as a sixth entry."""
        a, width, heads = self.latent, self.width, self.heads
        queries, inner = heads * (a["unrotated"] + a["rotary"]), a["rank"] or width
        if a["rank"]:
            yield from self._linear(prefix + "attn_q_a", a["rank"], width)
            yield from self._norm(prefix + "attn_q_a_norm", a["rank"])
        yield from self._linear(prefix + ("attn_q_b" if a["rank"] else "attn_q"), queries, inner)
        yield from self._linear(prefix + "attn_kv_a_mqa", a["size"] + a["rotary"], width)
        yield from self._norm(prefix + "attn_kv_a_norm", a["size"])
        scale = 2.0 * a["size"]**-0.5
        if a.get("joint"):
            yield prefix + "attn_kv_b.weight", heads * (a["unrotated"] + a["values"]), a["size"], 0.0, scale
        else:
            yield prefix + "attn_k_b.weight", heads * a["size"], a["unrotated"], 0.0, scale, heads
            yield prefix + "attn_v_b.weight", heads * a["values"], a["size"], 0.0, scale, heads
        yield from self._linear(prefix + "attn_output", width, heads * a["values"])

    def _attention_tensors(self, layer):
        v, width, prefix, head_dim = self.variant, self.width, f"blk.{layer}.", self.head_dim_of(layer)
        query, key = self.heads * head_dim, (self.of_layer(self.kv_heads, layer) or self.heads) * head_dim
        is_shared = layer >= self.layers + self.predicted - self.num_shared
        if self.architecture in ("gpt2", "phi3"):
            yield from self._linear(prefix + "attn_qkv", query + 2 * key, width)
        else:
            for name, rows in (("attn_q", 2 * query if self.is_gated else query), ("attn_k", key), ("attn_v", key)):
                is_key = name == "attn_v" and v.get("values_from_keys") and not self.is_local(layer)
                if is_key or (is_shared and name != "attn_q"):
                    continue
                yield from self._linear(prefix + name, rows, width, v.get("query_key_value_biases"))
        if self.architecture == "gemma4":  # no other scale of the scores
            yield prefix + "attn_q_norm.weight", None, head_dim, 0.5, 0.125
            if not is_shared:
                yield from self._norm(prefix + "attn_k_norm", head_dim)
        if self.architecture in ("qwen3", "gemma3", "qwen3moe", "lfm2", "lfm2moe") or self.is_gated or v.get("head_norms"):
            yield prefix + "attn_q_norm.weight", None, self.head_dim, float(v.get("head_norms") or 1.0), 0.125
            yield from self._norm(prefix + "attn_k_norm", self.head_dim)
        if v.get("norms_apart"):
            yield prefix + "attn_q_norm.weight", self.heads, self.head_dim, 1.0, 0.125
            yield prefix + "attn_k_norm.weight", self.kv_heads, self.head_dim, 1.0, 0.125
        if self.architecture == "muse-glimmer":
            yield from self._linear(prefix + "attn_gate", query, width)
        if v.get("row_norms"):
            yield from self._norm(prefix + "attn_q_norm", query)
            yield from self._norm(prefix + "attn_k_norm", key)
        yield from self._linear(prefix + "attn_output", width, query, v.get("output_bias"))

    def _predicting_tensors(self, prefix):
        yield from self._norm(prefix + "nextn.enorm")
        yield from self._norm(prefix + "nextn.hnorm")
        yield from self._linear(prefix + "nextn.eh_proj", self.width, 2 * self.width)
        if self.variant.get("own_head"):
            yield prefix + "nextn.embed_tokens.weight", VOCABULARY, self.width, 0.0, 1.0
            yield from self._norm(prefix + "nextn.shared_head_norm")
            yield from self._linear(prefix + "nextn.shared_head_head", VOCABULARY, self.width)
        elif self.architecture == "nemotron_h_moe":
            yield from self._norm(prefix + "nextn.shared_head_norm")
            yield from self._norm(prefix + "post_attention_norm")

    def _norm(self, name, size=None):
        yield name + ".weight", None, size or self.width, 1.0, 0.125
        if self.has_norm_biases:
            yield name + ".bias", None, size or self.width, 0.0, 0.25

    def _linear(self, name, rows, columns, biases=False):
        yield name + ".weight", rows, columns, 0.0, 2.0 * columns**-0.5
        if biases or self.variant.get("biases"):
            yield name + ".bias", None, rows, 0.0, 0.25

    def _tensors(self):
        v, width = self.variant, self.width
        yield "token_embd.weight", VOCABULARY, width, 0.0, 1.0
        if self.architecture in ("gpt2", "opt"):
            yield "position_embd.weight", self.context_length, width, 0.0, 0.5
        if self.layer_embedding:
            parts = self.layers * self.layer_embedding
            yield "per_layer_token_embd.weight", VOCABULARY, parts, 0.0, 0.5
            yield "per_layer_model_proj.weight", parts, width, 0.0, 2.0 * width**-0.5
            yield from self._norm("per_layer_proj_norm", self.layer_embedding)
        by_attention = self.architecture in NAMED_BY_ATTENTION
        for layer in range(self.layers + self.predicted):
            prefix = f"blk.{layer}."
            hidden = self.of_layer(self.hidden, layer)
            if self.architecture not in WITHOUT_INPUT_NORMS:
                yield from self._norm(prefix + "attn_norm")
            if self.latent:
                yield from self._latent_tensors(prefix)
            elif self.has_attention(layer):
                yield from self._attention_tensors(layer)
            if self.is_recurrent(layer):
                yield from self._recurrent_tensors(prefix)
            if self.recurrent and "pattern" in self.recurrent:
                if layer >= self.layers:
                    yield from self._predicting_tensors(prefix)
                if self.has_feed_forward(layer) and self.experts:
                    yield from self._expert_tensors(prefix)
                elif self.has_feed_forward(layer):
                    yield from self._linear(prefix + "ffn_up", hidden, width, v.get("feed_forward_biases"))
                    yield from self._linear(prefix + "ffn_down", width, hidden, v.get("feed_forward_biases"))
                continue
            if self.has_post_norms:
                yield from self._norm(prefix + "post_attention_norm")
            if v.get("sinks"):
                yield prefix + "attn_sinks.weight", None, self.heads, 0.0, 4.0
            if self.architecture == "falcon-h1":  # as its converter names it
                yield prefix + "ffn_norm", None, width, 1.0, 0.125
            elif not self.stand_side_by_side() and self.architecture not in WITHOUT_INPUT_NORMS:
                yield from self._norm(prefix + ("post_attention_norm" if by_attention else "ffn_norm"))
            if layer >= self.layers:
                yield from self._predicting_tensors(prefix)
            if self.has_experts(layer):
                yield from self._expert_tensors(prefix)
                if self.architecture != "gemma4":
                    continue
            if self.architecture not in ("gpt2", "opt", "starcoder2") and not self.packs_gate:
                yield from self._linear(prefix + "ffn_gate", hidden, width)
            yield from self._linear(prefix + "ffn_up", 2 * hidden if self.packs_gate else hidden, width)
            yield from self._linear(prefix + "ffn_down", width, hidden)
            if self.has_post_norms:
                yield from self._norm(prefix + "post_ffw_norm")
            if self.layer_embedding:
                yield from self._linear(prefix + "inp_gate", self.layer_embedding, width)
                yield from self._linear(prefix + "proj", width, self.layer_embedding)
                yield from self._norm(prefix + "post_norm")
            if v.get("output_scales"):
                yield prefix + "layer_output_scale.weight", None, 1, 0.875, 0.25
        yield from self._norm("token_embd_norm" if self.architecture in SHORT_CONVOLUTIONS else "output_norm")
        if v.get("untied"):
            yield "output.weight", VOCABULARY, width, 0.0, 2.0 * width**-0.5
        if v.get("head_bias"):
            yield "output.bias", None, VOCABULARY, 0.0, 0.5

    def long_rope(self):
        """{name: factors}"""
        if not self.variant.get("long_rope"):
            return {}
        count = self.keys["rope.dimension_count"] // 2
        return {"rope_factors_long.weight": long_factors(count, 6.0), "rope_factors_short.weight": long_factors(count, 1.75)}

    def rope_freqs(self):
        """{name: divisors}: of gemma4 a quarter of each head turns; of others as llama 3."""
        if self.variant.get("divisors"):
            return {"rope_freqs.weight": long_factors(self.keys.get("rope.dimension_count", self.head_dim) // 2, 8.0)}
        if self.architecture != "gemma4":
            return {}
        turning = self.head_dim // 8
        return {"rope_freqs.weight": [1.0] * turning + [1e30] * (self.head_dim // 2 - turning)}

    def tables(self):
        """{name: numbers} of the tensors that are no weights."""
        return self.long_rope() | self.rope_freqs()
