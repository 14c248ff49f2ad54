#!/usr/bin/env python3
"""What packaging/python makes of vLLM's names, on a stand-in of the compiled engine: options, warnings, refusals, chats and texts.

usage: names_test.py [--gtest_output=xml:FILE] [unittest's arguments]
"""
import sys
import types
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging/python"), str(ROOT / "tests/support")]

import unittest_report  # noqa: E402


class StandIn:
    """Keeps what it is given; every request answers "ab" at once."""
    weight_type = "F16"

    def __init__(self, options):
        self.options, self.submitted, self.news = options, [], []

    def description(self):
        return {"vocabulary_size": 100, "context_length": 64, "max_model_len": 64, "bos_token_id": None, "eos_token_id": 2,
                "chat_template": "{{ messages }}", "weight_type": self.weight_type, "notice": "",
                "sampling_advice": {"temperature": 0.5, "top_k": 40}}

    def submit(self, kind, prompt, params):
        self.submitted.append((kind, prompt, params))
        request_id = len(self.submitted)
        self.news += [(request_id, 0, "ab", [7, 8]), (request_id, -1, "", [])]
        return request_id

    def submit_text(self, text, params):
        return self.submit("text", text, params)

    def submit_tokens(self, token_ids, params):
        return self.submit("tokens", token_ids, params)

    def submit_chat(self, chat, params):
        return self.submit("chat", chat, params)

    def poll(self, seconds):
        news, self.news = self.news, []
        return news

    def take_answer(self, request_id):
        output = {"index": 0, "text": "ab", "token_ids": [7, 8], "logprobs": [-1.0, -2.0], "top_logprobs": [[(9, -3.0)], [(9, -4.0)]],
                  "cumulative_logprob": -3.0, "finish_reason": "stop", "stop_reason": None}
        return {"prompt_token_ids": [1], "prompt_logprobs": [], "prompt_top_logprobs": [], "num_cached_tokens": 0, "seed": 1,
                "outputs": [output]}

    def encode(self, text, add_special_tokens):
        return [len(text), int(add_special_tokens)]

    def decode(self, token_ids, skip_special):
        return f"{token_ids}{'' if skip_special else '!'}"

    def encode_chat(self, chat):
        return [chat]

    def render_chat(self, chat):
        return f"{len(chat['messages'])} messages"


engine = types.ModuleType("octavo._engine")
engine.Engine = StandIn
engine.validate_sampling = lambda params: None
sys.modules["octavo._engine"] = engine

from octavo import LLM, BeamSearchParams, GuidedDecodingParams, SamplingParams, StructuredOutputsParams  # noqa: E402
from octavo import vllm_names  # noqa: E402

USER = {"role": "user", "content": "Hi"}


class Quiet(unittest.TestCase):
    def said_by(self, call):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call()
        for one in said:
            self.assertEqual(one.filename, __file__, "a warning names the line of the caller")
        return [str(one.message) for one in said]

    def assert_refused(self, kind, call, *parts):
        with self.assertRaises(kind) as caught:
            call()
        for part in parts:
            self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class LlmTest(Quiet):
    def test_every_name_of_vllm_that_asks_for_nothing_passes_in_silence(self):
        for table in (vllm_names.LLM_WITHOUT_MEANING, {name: usual for name, (usual, _) in vllm_names.LLM_REFUSED.items()}):
            for name, usual in table.items():
                for value in usual:
                    self.assertEqual(self.said_by(lambda: LLM("m", **{name: value})), [], name)

    def test_what_changes_no_answer_is_one_warning(self):
        said = self.said_by(lambda: LLM("m", trust_remote_code=True, cpu_offload_gb=4, tokenizer="other"))
        self.assertEqual(len(said), 2)
        self.assertIn("trust_remote_code=True, cpu_offload_gb=4 mean nothing", said[0])
        self.assertIn("tokenizer='other' is ignored", said[1])
        self.assertEqual(self.said_by(lambda: LLM("m", tokenizer="m")), [])

    def test_what_would_change_answers_is_refused_by_name(self):
        wanted = {"revision": "refs/pr/1", "load_format": "dummy", "hf_overrides": {"rope_theta": 1}, "enable_lora": True, "task": "embed",
                  "logits_processors": [print], "logprobs_mode": "processed_logits", "chat_template": "x"}
        for name, value in wanted.items():
            self.assert_refused(ValueError, lambda: LLM("m", **{name: value}), f"{name}=")
        self.assert_refused(TypeError, lambda: LLM("m", colour="red"), "colour")
        self.assert_refused(ValueError, lambda: LLM("m", generation_config="/folder"), "generation_config")

    def test_options_reach_the_engine(self):
        llm = LLM("m", num_gpu_blocks_override=50, kv_cache_memory_bytes=64 << 20, swap_space=2, quantization="Q4_K")
        self.assertEqual(llm._engine.options, {"model": "m", "num_kv_blocks": 50, "kv_cache_memory": 64, "swap_space": 2.0,
                                               "quantization": "Q4_K"})

    def test_a_kind_of_checkpoint_is_what_it_says_itself(self):
        self.assertEqual(LLM("m", quantization="awq")._engine.options, {"model": "m"})
        self.assert_refused(ValueError, lambda: LLM("m", quantization="fp8"), "fp8", "Q8_0")

    def test_the_advice_of_the_makers_is_followed_unless_told_otherwise(self):
        self.assertEqual(LLM("m").get_default_sampling_params(), SamplingParams(temperature=0.5, top_k=40))
        self.assertEqual(LLM("m", generation_config="vllm").get_default_sampling_params(), SamplingParams())
        given = LLM("m", override_generation_config={"temperature": 0.9, "max_new_tokens": 5, "pad_token_id": 0})
        self.assertEqual(given.get_default_sampling_params(), SamplingParams(temperature=0.9, top_k=40, max_tokens=5))


class CallTest(Quiet):
    def setUp(self):
        self.llm = LLM("m")

    def asked(self):
        return self.llm._engine.submitted[-1]

    def test_generate_takes_what_means_nothing_and_refuses_the_rest(self):
        self.assertEqual(self.said_by(lambda: self.llm.generate("a", use_tqdm=True, lora_request=None)), [])
        self.assertEqual(len(self.said_by(lambda: self.llm.generate("a", priority=[1]))), 1)
        self.assert_refused(ValueError, lambda: self.llm.generate("a", lora_request=object()), "lora_request")
        self.assert_refused(ValueError, lambda: self.llm.beam_search("a", BeamSearchParams(2, 4), lora_request=object()), "lora_request")
        self.assert_refused(TypeError, lambda: self.llm.generate("a", colour=1), "colour")

    def test_a_chat_says_how_its_prompt_ends(self):
        self.llm.chat([USER], None, True)
        self.assertEqual((self.asked()[1]["add_generation_prompt"], self.asked()[1]["continue_final_message"]), (True, False))
        self.llm.chat([USER], add_generation_prompt=False)
        self.assertEqual((self.asked()[1]["add_generation_prompt"], self.asked()[1]["continue_final_message"]), (False, False))
        begun = [USER, {"role": "assistant", "content": "Well,"}]
        self.llm.chat(begun, add_generation_prompt=False, continue_final_message=True)
        self.assertEqual((self.asked()[1]["add_generation_prompt"], self.asked()[1]["continue_final_message"]), (False, True))
        self.assert_refused(ValueError, lambda: self.llm.chat(begun, continue_final_message=True), "add_generation_prompt=False")
        self.assert_refused(ValueError, lambda: self.llm.chat([USER], chat_template="x"), "chat_template")

    def test_a_chat_may_be_written_as_clients_of_openai_write_it(self):
        call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
        self.llm.chat([{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]},
                       {"role": "assistant", "content": None, "tool_calls": [call]},
                       {"role": "tool", "content": "2", "tool_call_id": "c"}], tools=[{"type": "function"}],
                      chat_template_kwargs={"enable_thinking": False})
        chat = self.asked()[1]
        self.assertEqual([message["content"] for message in chat["messages"]], ["Hi\nyou", "", "2"])
        self.assertEqual(chat["messages"][1]["tool_calls"], [{"id": "c", "name": "add", "arguments": '{"a": 1}'}])
        self.assertEqual(chat["messages"][2]["tool_call_id"], "c")
        self.assertEqual((chat["tools"], chat["template_values"]), ('[{"type": "function"}]', {"enable_thinking": False}))
        picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
        self.assert_refused(ValueError, lambda: self.llm.chat([picture]), "image_url")

    def test_alternatives_that_were_chosen_have_no_rank(self):
        likeliest = self.llm.generate("a", SamplingParams(logprobs=1))[0].outputs[0].logprobs[0]
        self.assertEqual((likeliest[9].rank, likeliest[7].rank), (1, None))
        chosen = self.llm.generate("a", SamplingParams(logprob_token_ids=[9]))[0].outputs[0].logprobs[0]
        self.assertEqual((chosen[9].logprob, chosen[9].rank), (-3.0, None))
        self.assertIsNone(self.llm.generate("a")[0].outputs[0].logprobs)


class TokenizerTest(Quiet):
    def setUp(self):
        self.tokenizer = LLM("m").get_tokenizer()

    def test_it_has_the_names_of_transformers(self):
        self.assertEqual((self.tokenizer.eos_token_id, self.tokenizer.eos_token), (2, "[2]!"))
        self.assertEqual((self.tokenizer.bos_token_id, self.tokenizer.bos_token), (None, None))
        self.assertEqual((len(self.tokenizer), self.tokenizer.vocab_size, self.tokenizer.model_max_length), (100, 100, 64))
        self.assertEqual(self.tokenizer.encode("abc"), [3, 1])
        self.assertEqual(self.tokenizer.encode("abc", add_special_tokens=False), [3, 0])
        self.assertEqual((self.tokenizer.decode([5]), self.tokenizer.decode(5, skip_special_tokens=True)), ("[5]!", "[5]"))

    def test_a_template_is_applied_without_an_answers_beginning_unless_asked(self):
        chat, = self.tokenizer.apply_chat_template([USER], enable_thinking=True)
        self.assertEqual((chat["add_generation_prompt"], chat["template_values"]), (False, {"enable_thinking": True}))
        self.assertEqual(self.tokenizer.apply_chat_template([USER], tokenize=False), "1 messages")
        self.assertTrue(self.tokenizer.apply_chat_template([USER], add_generation_prompt=True)[0]["add_generation_prompt"])


class SamplingParamsTest(Quiet):
    def test_special_tokens_stay_when_asked(self):
        self.assertTrue(SamplingParams()._for_engine(1)["skip_special_tokens"])
        self.assertFalse(SamplingParams(skip_special_tokens=False)._for_engine(1)["skip_special_tokens"])

    def test_every_name_of_vllm_that_asks_for_nothing_passes_in_silence(self):
        tables = (vllm_names.SAMPLING_WITHOUT_MEANING, {name: usual for name, (usual, _) in vllm_names.SAMPLING_REFUSED.items()})
        for table in tables:
            for name, usual in table.items():
                for value in usual:
                    self.assertEqual(self.said_by(lambda: SamplingParams(**{name: value})), [], name)

    def test_others_are_one_warning_or_refused_by_name(self):
        said = self.said_by(lambda: SamplingParams(detokenize=False, extra_args={"a": 1}))
        self.assertEqual(len(said), 1)
        self.assertIn("detokenize=False, extra_args={'a': 1} mean nothing", said[0])
        for name, value in {"truncate_prompt_tokens": 5, "logits_processors": [print], "thinking_token_budget": 9, "use_beam_search": True}.items():
            self.assert_refused(ValueError, lambda: SamplingParams(**{name: value}), f"{name}=")
        self.assert_refused(TypeError, lambda: SamplingParams(temprature=1), "temprature")

    def test_the_form_of_an_output_is_said_once(self):
        schema = {"type": "object"}
        for params, kind, texts in ((StructuredOutputsParams(json=schema), "json", ['{"type": "object"}']),
                                    (StructuredOutputsParams(choice=["yes", "no"]), "choice", ["yes", "no"]),
                                    (StructuredOutputsParams(regex="a+"), "regex", ["a+"]),
                                    (StructuredOutputsParams(json_object=True), "json_object", [])):
            self.assertEqual(SamplingParams(structured_outputs=params)._for_engine(1)["structured_outputs"], (kind, texts))
        former = SamplingParams(guided_decoding=GuidedDecodingParams(regex="a+"))
        self.assertEqual(former, SamplingParams(structured_outputs={"regex": "a+"}))
        self.assert_refused(ValueError, lambda: StructuredOutputsParams(regex="a", choice=["b"]), "one form")
        self.assert_refused(ValueError, StructuredOutputsParams, "one form")


if __name__ == "__main__":
    sys.exit(unittest_report.main("python"))
