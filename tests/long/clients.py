#!/usr/bin/env python3
"""The official Python clients of OpenAI and Anthropic against `octavo serve`, and what others may not do.

usage: clients.py OCTAVO [TEST...]

Installs the clients into ~/.cache/octavo/clients (--work FOLDER) the first time. The model is the default one.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

PACKAGES = ["openai==3.57.0", "anthropic==2.14.0"]
KEY = "a-key-of-this-test"
TOOL = {"type": "function", "function": {"name": "clock", "description": "Tells the time.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}
QUESTION = [{"role": "user", "content": "Name three colours."}]


class Server:
    """`octavo serve` on a free port, until stop()."""

    def __init__(self, octavo, *options):
        self.process = subprocess.Popen([octavo, "serve", "--port", "0", "--api-key", KEY, "--max-model-len", "2048", *options],
                                        stderr=subprocess.PIPE, text=True)
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"listening on (https?)://127.0.0.1:(\d+)", line):
                self.port = int(found.group(2))
                break
        else:
            raise RuntimeError(f"octavo serve ended with status {self.process.wait()}: {said}")
        self.url = f"{found.group(1)}://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, headers=None, key=KEY, timeout=60):
        """(status, headers, text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection.request(method, path, json.dumps(body) if body is not None else None, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def metric(self, name):
        text = self.request("GET", "/metrics")[2]
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + "{"))

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


class ClientTest(unittest.TestCase):
    server = None
    octavo = None

    @classmethod
    def setUpClass(cls):
        import anthropic
        import openai

        cls.openai = openai.OpenAI(base_url=cls.server.url + "/v1", api_key=KEY, max_retries=0)
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.url, api_key=KEY, max_retries=0)
        cls.model = cls.openai.models.list().data[0].id

    def complete(self, **fields):
        return self.openai.completions.create(**{"model": self.model, "prompt": "The capital of France is",
                                                 "max_tokens": 8, "temperature": 0, **fields})

    def chat(self, **fields):
        return self.openai.chat.completions.create(**{"model": self.model, "messages": QUESTION, "max_tokens": 24,
                                                      "temperature": 0, **fields})


class SmallRoutes(ClientTest):
    def test_models_are_listed_and_found_by_name(self):
        listed = self.openai.models.list().data
        self.assertEqual(self.openai.models.retrieve(self.model).id, self.model)
        self.assertEqual(listed[0].max_model_len, 2048)
        self.assertEqual(self.anthropic.models.list().data[0].id, self.model)

    def test_health_needs_no_key_and_everything_else_does(self):
        self.assertEqual(self.server.request("GET", "/health", key=None)[0], 200)
        for path in ["/v1/models", "/metrics", "/tokenizer_info", "/octavo/requests"]:
            self.assertEqual(self.server.request("GET", path, key=None)[0], 401, path)
            self.assertEqual(self.server.request("GET", path, key="wrong")[0], 401, path)

    def test_head_is_answered_without_a_body(self):
        status, headers, text = self.server.request("HEAD", "/metrics")
        self.assertEqual((status, text), (200, ""))
        self.assertIn("version=0.0.4", headers["Content-Type"])

    def test_texts_become_tokens_and_texts_again(self):
        status, _, text = self.server.request("POST", "/tokenize", {"prompt": "Hello, world"})
        tokens = json.loads(text)
        self.assertEqual((status, tokens["count"]), (200, len(tokens["tokens"])))
        back = json.loads(self.server.request("POST", "/detokenize", {"tokens": tokens["tokens"]})[2])
        self.assertEqual(back["prompt"], "Hello, world")
        chat = json.loads(self.server.request("POST", "/tokenize", {"messages": QUESTION})[2])
        self.assertGreater(chat["count"], 10)

    def test_the_list_of_requests_says_where_prompts_part(self):
        system = "You answer at line 79 of 85. " * 30
        for end in ["Monday", "Tuesday"]:
            self.chat(messages=[{"role": "system", "content": system + end + ". " + system}, *QUESTION])
        newest = json.loads(self.server.request("GET", "/octavo/requests")[2])["data"][0]
        difference = newest["difference"]
        self.assertIn("Tuesday", difference["mine"]["token"] + difference["mine"]["after"])
        self.assertIn("Monday", difference["theirs"]["token"] + difference["theirs"]["after"])
        self.assertGreater(newest["prompt"]["computed"], 100)


class Completions(ClientTest):
    def test_the_published_example_has_the_published_shape(self):
        status, _, text = self.server.request("POST", "/v1/completions", {
            "model": self.model, "prompt": "San Francisco is a", "max_tokens": 7, "temperature": 0})
        answer = json.loads(text)
        self.assertEqual(status, 200)
        self.assertRegex(answer["id"], r"^cmpl-[0-9a-f]{32}$")
        self.assertEqual(answer["object"], "text_completion")
        choice = answer["choices"][0]
        self.assertEqual(set(choice), {"index", "text", "logprobs", "finish_reason", "stop_reason", "prompt_logprobs"})
        self.assertEqual((choice["finish_reason"], choice["stop_reason"], choice["logprobs"]), ("length", None, None))
        self.assertEqual(answer["usage"]["completion_tokens"], 7)
        self.assertEqual(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"] + 7)

    def test_the_text_is_that_of_generate(self):
        made = subprocess.run([self.octavo, "generate", "--prompt", "The capital of France is", "--max-tokens", "8",
                               "--temperature", "0", "--json"], stdout=subprocess.PIPE, check=True)
        expected = json.loads(made.stdout)["requests"][0]["outputs"][0]["text"]
        self.assertEqual(self.complete().choices[0].text, expected)
        self.assertEqual("".join(piece.choices[0].text for piece in self.complete(stream=True)), expected)

    def test_sixteen_tokens_unless_more_are_asked_for(self):
        answer = self.openai.completions.create(model=self.model, prompt="Once upon a time", temperature=0)
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_lists_and_samples_are_numbered(self):
        answer = self.complete(prompt=["One", "Two"], n=2, temperature=0.8, seed=5)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(answer.usage.completion_tokens, 32)

    def test_a_prompt_is_scored_without_generating(self):
        answer = self.complete(max_tokens=0, echo=True, logprobs=1)
        logprobs = answer.choices[0].logprobs
        self.assertEqual(answer.choices[0].text, "The capital of France is")
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertEqual(len(logprobs.tokens), answer.usage.prompt_tokens)
        for token_logprob, top in zip(logprobs.token_logprobs[1:], logprobs.top_logprobs[1:]):
            self.assertLessEqual(token_logprob, max(top.values()))
            self.assertIn(token_logprob, top.values())

    def test_a_stop_text_is_not_shown_and_named(self):
        whole = self.complete(max_tokens=24).choices[0].text
        stop = whole[10:14]
        stopped = self.complete(max_tokens=24, stop=[stop]).choices[0]
        self.assertEqual((stopped.text, stopped.finish_reason, stopped.stop_reason),
                         (whole[:whole.index(stop)], "stop", stop))

    def test_usage_comes_last_when_it_is_asked_for(self):
        pieces = list(self.complete(stream=True, stream_options={"include_usage": True}))
        self.assertEqual((pieces[-1].choices, pieces[-1].usage.completion_tokens), ([], 8))


class Chats(ClientTest):
    def test_a_stream_is_the_answer(self):
        whole = self.chat().choices[0].message.content
        pieces = list(self.chat(stream=True))
        self.assertEqual(pieces[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(piece.choices[0].delta.content or "" for piece in pieces), whole)

    def test_the_stream_helper_follows(self):
        with self.openai.chat.completions.stream(model=self.model, messages=QUESTION, temperature=0) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_completion().choices[0].finish_reason, "stop")

    def test_log_probabilities_of_tokens(self):
        content = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        text = b"".join(bytes(token.bytes) for token in content).decode()
        self.assertTrue(text.startswith(self.chat().choices[0].message.content))
        self.assertTrue(all(len(token.top_logprobs) == 3 for token in content))

    def test_a_seed_repeats_an_answer(self):
        answers = {self.chat(temperature=1, seed=7).choices[0].message.content for _ in range(2)}
        self.assertEqual(len(answers), 1)

    def test_the_second_turn_reuses_the_first(self):
        first = self.chat(messages=[{"role": "user", "content": "Tell me of rivers. " * 20}])
        second = self.chat(messages=[{"role": "user", "content": "Tell me of rivers. " * 20},
                                     {"role": "assistant", "content": first.choices[0].message.content},
                                     {"role": "user", "content": "And of lakes?"}])
        self.assertGreater(second.usage.prompt_tokens_details.cached_tokens, 80)

    def test_what_cannot_be_done_is_refused_by_name(self):
        import openai

        for fields in [{"tool_choice": "required"}, {"n": 1000}, {"temperature": -1},
                       {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}}]:
            with self.assertRaises(openai.BadRequestError) as refused:
                self.chat(**fields)
            self.assertIn(list(fields)[0], str(refused.exception))

    def test_answers_are_parsed_into_the_classes_of_the_client(self):
        import pydantic
        from typing import Literal

        class Visit(pydantic.BaseModel):
            day: Literal["Monday", "Tuesday"]
            hour: int = pydantic.Field(ge=8, le=17)

        class Plan(pydantic.BaseModel):
            place: str = pydantic.Field(max_length=20)
            visits: list[Visit] = pydantic.Field(max_length=2)
            note: str | None = pydantic.Field(max_length=20)

        ask = {"model": self.model, "temperature": 1, "seed": 3}
        chat = self.openai.chat.completions.parse(messages=QUESTION, max_tokens=300, response_format=Plan, **ask)
        self.assertIsInstance(chat.choices[0].message.parsed, Plan)
        del ask["seed"]
        answer = self.openai.responses.parse(input="Plan a visit.", max_output_tokens=300, text_format=Plan, **ask)
        self.assertIsInstance(answer.output_parsed, Plan)
        with self.openai.chat.completions.stream(messages=QUESTION, max_tokens=300, response_format=Plan, **ask) as stream:
            self.assertIsInstance(stream.get_final_completion().choices[0].message.parsed, Plan)
        schema = {"type": "json_schema", "schema": Visit.model_json_schema()}
        for body in [{"output_config": {"format": schema}}, {"output_format": schema}]:
            message = self.anthropic.messages.create(model=self.model, max_tokens=100, messages=QUESTION, extra_body=body)
            Visit.model_validate_json(message.content[0].text)

    def test_forms_of_vllm_and_llama_cpp(self):
        grammar = 'root ::= "a"{2} [bc] # GBNF, too'
        for field, pattern in [({"structured_outputs": {"regex": "[ab]{3}"}}, "[ab]{3}"),
                               ({"structured_outputs": {"choice": ["up", "down"]}}, "up|down"),
                               ({"structured_outputs": {"grammar": grammar}}, "aa[bc]"),
                               ({"structured_outputs": {"json_object": True}}, r"\{[^]*"),
                               ({"guided_regex": "[0-9]{2}-[0-9]"}, "[0-9]{2}-[0-9]"),
                               ({"guided_choice": ["yes", "no"]}, "yes|no"),
                               ({"guided_json": {"type": "boolean"}}, "true|false"),
                               ({"guided_grammar": grammar}, "aa[bc]"), ({"grammar": grammar}, "aa[bc]")]:
            pattern = pattern.replace("[^]", r"[\s\S]")
            texts = [self.complete(prompt="a", max_tokens=60, temperature=1, extra_body=field).choices[0].text,
                     self.chat(max_tokens=60, temperature=1, extra_body=field).choices[0].message.content]
            for text in texts:
                self.assertRegex(text, f"^({pattern})$", field)
        import openai

        for field in [{"guided_regex": "(a"}, {"grammar": "root ::= missing"}]:
            with self.assertRaises(openai.BadRequestError):
                self.chat(extra_body=field)

    def test_calls_that_must_be_made(self):
        named = {"type": "function", "function": {"name": "clock"}}
        for choice in ["required", named]:
            for stream in [False, True]:
                with self.subTest(choice=choice, stream=stream):
                    ask = {"tools": [TOOL], "tool_choice": choice, "max_tokens": 200, "parallel_tool_calls": False}
                    if stream:
                        pieces = [piece.choices[0] for piece in self.chat(stream=True, **ask)]
                        calls = [call for piece in pieces for call in piece.delta.tool_calls or []]
                        name, arguments = calls[0].function.name, "".join(call.function.arguments or "" for call in calls)
                    else:
                        message = self.chat(**ask).choices[0].message
                        self.assertEqual(len(message.tool_calls), 1)
                        name, arguments = message.tool_calls[0].function.name, message.tool_calls[0].function.arguments
                    self.assertEqual(name, "clock")
                    self.assertIsInstance(json.loads(arguments)["place"], str)
        for choice in ["required", {"type": "function", "name": "clock"}]:
            tool = {"type": "function", **TOOL["function"]}
            answer = self.openai.responses.create(model=self.model, input="What time is it in Rome?", tools=[tool],
                                                  tool_choice=choice, max_output_tokens=200, temperature=0)
            self.assertEqual([item.type for item in answer.output][0], "function_call")
            self.assertIsInstance(json.loads(answer.output[0].arguments)["place"], str)
        for choice in [{"type": "any"}, {"type": "tool", "name": "clock"}]:
            message = self.anthropic.messages.create(
                model=self.model, max_tokens=200, messages=QUESTION, tool_choice=choice, extra_body={"temperature": 0},
                tools=[{"name": "clock", "input_schema": TOOL["function"]["parameters"]}])
            self.assertEqual((message.stop_reason, message.content[0].type), ("tool_use", "tool_use"))
            self.assertIsInstance(message.content[0].input["place"], str)

    def test_tools_and_what_they_said_are_part_of_the_prompt(self):
        plain = self.chat().usage.prompt_tokens
        offered = self.chat(tools=[TOOL]).usage.prompt_tokens
        self.assertGreater(offered, plain + 30)
        self.assertEqual(self.chat(tools=[TOOL], tool_choice="none").usage.prompt_tokens, offered)  # the same blocks
        call = {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"place": "Rome"}'}}
        history = [*QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]},
                   {"role": "tool", "tool_call_id": "call_1", "content": "It is noon."}]
        self.assertGreater(self.chat(messages=history, tools=[TOOL]).usage.prompt_tokens, plain + 40)
        answer = self.anthropic.messages.create(
            model=self.model, max_tokens=8, tools=[{"name": "clock", "input_schema": {"type": "object"}}], messages=[
                *QUESTION, {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"place": "Rome"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "It is noon."}]}])
        self.assertGreater(answer.usage.output_tokens, 0)
        tools = [{"name": "clock", "description": "Tells the time.", "input_schema": TOOL["function"]["parameters"]}]
        told = self.anthropic.messages.create(model=self.model, max_tokens=1, tools=tools, messages=QUESTION).usage
        counted = self.anthropic.messages.count_tokens(model=self.model, tools=tools, messages=QUESTION).input_tokens
        self.assertEqual(counted, told.input_tokens + told.cache_read_input_tokens)

    def test_many_at_once_answer_as_alone(self):
        prompts = [f"Number {i}: the sea is" for i in range(64)]
        alone = [self.complete(prompt=prompt, max_tokens=6).choices[0].text for prompt in prompts[:8]]

        def ask(prompt):
            return "".join(piece.choices[0].text for piece in self.complete(prompt=prompt, max_tokens=6, stream=True))

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            together = list(pool.map(ask, prompts))
        self.assertEqual(together[:8], alone)

    def test_who_leaves_frees_the_blocks(self):
        for stream in [True, False]:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": "Once", "max_tokens": 1900, "ignore_eos": True, "stream": stream}),
                {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
            end = time.monotonic() + 20
            while self.server.metric("vllm:num_requests_running") == 0 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(self.server.metric("vllm:num_requests_running"), 1)
            connection.close()
            left = time.monotonic()
            while self.server.metric("vllm:num_requests_running") > 0:
                self.assertLess(time.monotonic() - left, 5)


class OtherProtocols(ClientTest):
    def test_responses_and_their_stream(self):
        answer = self.openai.responses.create(model=self.model, input="Name three colours.", temperature=0,
                                              max_output_tokens=24)
        with self.openai.responses.stream(model=self.model, input="Name three colours.", temperature=0) as stream:
            types = [event.type for event in stream]
            final = stream.get_final_response()
        self.assertEqual((types[0], types[-1]), ("response.created", "response.completed"))
        self.assertTrue(final.output_text.startswith(answer.output_text))
        self.assertEqual(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens)

    def test_messages_and_their_stream(self):
        fields = {"model": self.model, "max_tokens": 24, "messages": QUESTION}
        answer = self.anthropic.messages.create(**fields)
        self.assertEqual((answer.role, answer.content[0].type), ("assistant", "text"))
        with self.anthropic.messages.stream(**fields) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(final.content[0].text, text)
        self.assertIn(final.stop_reason, ["end_turn", "max_tokens"])
        counted = self.anthropic.messages.count_tokens(model=self.model, messages=QUESTION).input_tokens
        self.assertEqual(counted, answer.usage.input_tokens + answer.usage.cache_read_input_tokens)

    def test_failures_are_what_each_client_knows(self):
        import anthropic
        import openai

        with self.assertRaises(openai.NotFoundError) as refused:
            self.chat(model="another")
        self.assertIn(self.model, str(refused.exception))
        with self.assertRaises(anthropic.NotFoundError):
            self.anthropic.messages.create(model="another", max_tokens=4, messages=QUESTION)
        long = [{"role": "user", "content": "many words " * 4000}]
        for stream in [False, True]:
            with self.assertRaises(openai.BadRequestError) as refused:
                self.chat(messages=long, stream=stream)
            self.assertEqual(refused.exception.code, "context_length_exceeded")
        with self.assertRaises(anthropic.BadRequestError) as refused:
            self.anthropic.messages.create(model=self.model, max_tokens=4, messages=long)
        self.assertIn("prompt is too long", str(refused.exception))
        with self.assertRaises(openai.BadRequestError):
            self.openai.embeddings.create(model=self.model, input="a", dimensions=7)
        with self.assertRaises(openai.AuthenticationError):
            self.openai.with_options(api_key="wrong").models.list()


class Embeddings(ClientTest):
    TEXTS = ["A cat sits on the mat.", "A kitten lies on a rug.", "Stock prices fell by four percent."]

    def vectors(self, **fields):
        made = self.openai.embeddings.create(model=self.model, **fields)
        return [one.embedding for one in sorted(made.data, key=lambda one: one.index)], made

    def test_a_list_is_what_its_texts_are_alone_in_both_encodings(self):
        floats, made = self.vectors(input=self.TEXTS, encoding_format="float")
        self.assertEqual(made.object, "list")
        self.assertEqual(made.usage.prompt_tokens, made.usage.total_tokens)
        self.assertGreater(made.usage.prompt_tokens, 10)
        packed, _ = self.vectors(input=self.TEXTS)  # this client asks for base64 then, and unpacks it
        for index, text in enumerate(self.TEXTS):
            self.assertEqual(self.vectors(input=text, encoding_format="float")[0][0], floats[index])
            for a, b in zip(floats[index], packed[index], strict=True):
                self.assertAlmostEqual(a, b, places=6)
            self.assertAlmostEqual(sum(x * x for x in floats[index]), 1.0, places=5)

    def test_what_means_the_same_is_nearer(self):
        cat, kitten, stocks = self.vectors(input=self.TEXTS, extra_body={"pooling": "mean"})[0]
        product = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True))
        self.assertGreater(product(cat, kitten), product(cat, stocks))

    def test_the_way_of_pooling_is_told(self):
        self.assertEqual(self.vectors(input="a")[1].model_extra["pooling"], "last")
        self.assertEqual(self.vectors(input="a", extra_body={"pooling": "mean"})[1].model_extra["pooling"], "mean")
        model = self.openai.models.list().data[0].model_extra["embeddings"]
        self.assertEqual(model["dimensions"], len(self.vectors(input="a")[0][0]))

    def test_many_inputs_in_one_call(self):
        texts = [f"Text number {number}." for number in range(600)]
        self.assertEqual(len(self.vectors(input=texts)[0]), 600)

    def test_token_ids_are_inputs_too(self):
        status, _, text = self.server.request("POST", "/tokenize", {"prompt": "A cat sits on the mat."})
        self.assertEqual(status, 200)
        ids = json.loads(text)["tokens"]
        self.assertEqual(self.vectors(input=ids, encoding_format="float")[0],
                         self.vectors(input="A cat sits on the mat.", encoding_format="float")[0])

    def test_a_prompts_progress_is_told_to_who_asks(self):
        told = []
        for chunk in self.openai.completions.create(model=self.model, prompt="word " * 1500, max_tokens=2, stream=True,
                                                    extra_body={"return_progress": True}):
            if progress := (chunk.model_extra or {}).get("prompt_progress"):
                told.append((progress["processed"], progress["total"]))
        self.assertGreater(len(told), 1)
        self.assertEqual([done for done, _ in told], sorted(done for done, _ in told))
        self.assertEqual(told[-1][0], told[-1][1])


class Encrypted(unittest.TestCase):
    """TLS by vLLM's options, with a certificate that openssl makes."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.certificates = [cls.certificate(name) for name in ("server", "other")]
        certificate, key = cls.certificates[0]
        cls.server = Server(ClientTest.octavo, "--ssl-certfile", certificate, "--ssl-keyfile", key)
        cls.addClassCleanup(cls.server.stop)

    @classmethod
    def certificate(cls, name):
        certificate, key = (f"{cls.folder.name}/{name}.{kind}" for kind in ("pem", "key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                        certificate], check=True, stderr=subprocess.DEVNULL)
        return certificate, key

    def clients_that_trust(self, certificate):
        import anthropic
        import httpx2
        import openai

        trusted = ssl.create_default_context(cafile=certificate)
        fields = {"api_key": KEY, "max_retries": 0}
        return (openai.OpenAI(base_url=self.server.url + "/v1", http_client=httpx2.Client(verify=trusted), **fields),
                anthropic.Anthropic(base_url=self.server.url, http_client=httpx2.Client(verify=trusted), **fields))

    def test_both_clients_are_answered_and_streamed_to(self):
        self.assertTrue(self.server.url.startswith("https://"))
        openai, anthropic = self.clients_that_trust(self.certificates[0][0])
        model = openai.models.list().data[0].id
        pieces = list(openai.chat.completions.create(model=model, messages=QUESTION, max_tokens=8, stream=True))
        self.assertGreater(len(pieces), 4)
        for _ in range(3):  # on one connection
            answer = anthropic.messages.create(model=model, max_tokens=4, messages=QUESTION)
            self.assertEqual(answer.usage.output_tokens, 4)

    def test_clients_refuse_another_certificate(self):
        import openai

        other, _ = self.clients_that_trust(self.certificates[1][0])
        with self.assertRaises(openai.APIConnectionError) as refused:
            other.models.list()
        self.assertIn("CERTIFICATE_VERIFY_FAILED", repr(refused.exception.__cause__))

    def test_plain_requests_and_old_versions_get_nothing(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain:
            plain.sendall(f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
            self.assertNotIn(b" 200 ", plain.recv(4096))
        old = ssl.create_default_context(cafile=self.certificates[0][0])
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as connection:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                old.wrap_socket(connection, server_hostname="127.0.0.1").close()

    def test_a_key_of_another_certificate_is_one_sentence(self):
        (certificate, _), (_, key) = self.certificates
        with self.assertRaises(RuntimeError) as refused:
            Server(ClientTest.octavo, "--tls-certificate", certificate, "--tls-key", key)
        self.assertIn("status 2", str(refused.exception))
        self.assertIn(key, str(refused.exception))


class Agents(ClientTest):
    """Requests as agents send them (fields and headers as observed), replayed turn by turn."""

    SYSTEM = "You are an agent in a terminal. " + "Call tools by name and keep answers short. " * 20

    def raw(self, path, body, headers):
        status, _, text = self.server.request("POST", path, body, headers)
        self.assertEqual(status, 200, text)
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        return events

    def test_claude_code(self):
        # A checksum that changes with every request stands in front of its system prompt; reminders stand in the middle.
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "claude-code-20250219", "User-Agent": "claude-cli/2.1.36",
                   "X-Stainless-Lang": "js", "x-api-key": KEY, "Accept": "application/json"}
        tools = [{"name": name, "description": f"The tool {name}.", "input_schema": {
            "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            "additionalProperties": False, "$schema": "http://json-schema.org/draft-07/schema#"}} for name in ("Read", "Bash")]
        messages = []
        for turn, checksum in enumerate(["a1b2c", "d4e5f", "09876"]):
            messages.append({"role": "user", "content": [
                {"type": "text", "text": f"<system-reminder>Today is a day.</system-reminder>Step {turn}?",
                 "cache_control": {"type": "ephemeral"}}]})
            events = self.raw("/v1/messages?beta=true", {
                "model": self.model, "max_tokens": 16, "stream": True, "messages": messages, "tools": tools, "metadata": {
                    "user_id": "user_1_account__session_2"}, "thinking": {"type": "disabled"}, "temperature": 1,
                "system": [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{turn}; cc_entrypoint=cli; "
                                                    f"cch={checksum};"},
                           {"type": "text", "text": self.SYSTEM, "cache_control": {"type": "ephemeral"}}]}, headers)
            self.assertEqual((events[0]["type"], events[-1]["type"]), ("message_start", "message_stop"))
            usage = events[0]["message"]["usage"]
            if turn > 0:  # all of the system prompt, the tools and the turns before are found
                self.assertLess(usage["input_tokens"], 80, usage)
                self.assertGreater(usage["cache_read_input_tokens"], 250, usage)
            text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
            messages.append({"role": "assistant", "content": [{"type": "text", "text": text or "."}]})
            messages.append({"role": "system", "content": f"<total_tokens>{1000 - turn} tokens left</total_tokens>"})
        counted = json.loads(self.server.request("POST", "/v1/messages/count_tokens?beta=true", {
            "model": self.model, "messages": messages, "tools": tools, "system": self.SYSTEM}, headers)[2])
        self.assertGreater(counted["input_tokens"], 250)

    def test_codex(self):
        headers = {"originator": "codex_cli_rs", "User-Agent": "codex_cli_rs/0.99.0", "session_id": "s-1",
                   "Accept": "text/event-stream"}
        function = {"type": "function", "name": "shell", "description": "Runs a command.", "strict": False, "parameters": {
            "type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}},
            "required": ["command"], "additionalProperties": False}}
        tools = [function, {"type": "custom", "name": "apply_patch", "description": "d", "format": {
            "type": "grammar", "syntax": "lark", "definition": "start: \"a\""}}, {"type": "web_search"},
                 {"type": "local_shell"}, {"type": "image_generation", "output_format": "png"}]
        items = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox: on."}]}]
        for turn in range(2):  # answers have no limit but the context
            items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"Step {turn}?"}]})
            events = self.raw("/v1/responses", {
                "model": self.model, "instructions": self.SYSTEM, "input": items, "tools": tools, "tool_choice": "auto",
                "parallel_tool_calls": False, "reasoning": {"effort": "low", "summary": "auto"}, "store": False, "stream": True,
                "include": ["reasoning.encrypted_content"], "prompt_cache_key": "c-1", "client_metadata": {"a": "b"}}, headers)
            self.assertEqual(events[0]["type"], "response.created")
            self.assertIn(events[-1]["type"], ("response.completed", "response.incomplete"))
            self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
            response = events[-1]["response"]
            if turn > 0:
                cached = response["usage"]["input_tokens_details"]["cached_tokens"]
                self.assertLess(response["usage"]["input_tokens"] - cached, 160, response["usage"])
            for item in response["output"]:
                if item["type"] == "message":
                    item["content"][0]["text"] = item["content"][0]["text"][:200]
                items.append(item)
            items += [{"type": "function_call", "call_id": f"c{turn}", "name": "shell", "arguments": '{"command":["ls"]}'},
                      {"type": "function_call_output", "call_id": f"c{turn}", "output": "a.txt"}]

    def test_opencode(self):
        headers = {"User-Agent": "opencode/1.2.3 ai-sdk/provider-utils/4.0.0"}
        tools = [{"type": "function", "function": {"name": name, "description": "d", "parameters": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {
                "filePath": {"type": "string"}}, "required": ["filePath"], "additionalProperties": False}}}
                 for name in ("read", "edit", "bash")]
        messages = [{"role": "system", "content": self.SYSTEM}]
        title = {"model": self.model, "max_tokens": 16, "stream": True, "messages": [
            {"role": "system", "content": "You name chats."}, {"role": "user", "content": "Step 0?"}]}
        for turn in range(3):
            messages.append({"role": "user", "content": [{"type": "text", "text": f"Step {turn}?"}]})
            ask = {"model": self.model, "max_tokens": 16, "top_p": 1, "messages": messages, "tools": tools,
                   "tool_choice": "auto", "stream": True, "stream_options": {"include_usage": True}}
            with concurrent.futures.ThreadPoolExecutor(2) as threads:  # the title beside the first turn
                told = threads.submit(self.raw, "/v1/chat/completions", ask, headers)
                named = threads.submit(self.raw, "/v1/chat/completions", title, headers) if turn == 0 else None
                events = told.result()
                self.assertTrue(named is None or named.result())
            usage = events[-1]["usage"]
            self.assertEqual(events[-1]["choices"], [])
            if turn > 0:
                self.assertLess(usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"], 80, usage)
            text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
            messages.append({"role": "assistant", "content": text or None, "tool_calls": [
                {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": '{"filePath": "a"}'}}]})
            messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "text of a"})


class OthersOutside(ClientTest):
    def test_other_hosts_pages_and_forms_are_refused(self):
        for headers, status in [({"Host": "evil.example"}, 421), ({"Host": f"127.0.0.1:{self.server.port + 1}"}, 421),
                                ({"Origin": "https://evil.example"}, 403), ({"Origin": "null"}, 403)]:
            for path in ["/health", "/v1/models"]:
                self.assertEqual(self.server.request("GET", path, headers=headers)[0], status, headers)
        status, _, text = self.server.request("POST", "/v1/completions", {"prompt": "a"},
                                              {"Content-Type": "text/plain"})
        self.assertEqual(status, 415)
        self.assertIn("message", json.loads(text)["error"])
        status, headers, _ = self.server.request("OPTIONS", "/v1/completions", headers={"Origin": "https://a.example"})
        self.assertEqual(status, 403)
        self.assertFalse([name for name in headers if name.lower().startswith("access-control")])

    def test_wrong_paths_methods_and_bodies(self):
        self.assertEqual(self.server.request("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.server.request("GET", "/v1/completions")[0], 405)
        for body in [[], "text", {"prompt": 7}, {}]:
            self.assertEqual(self.server.request("POST", "/v1/completions", body)[0], 400, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octavo")
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--work", default="~/.cache/octavo/clients")
    options = parser.parse_args()
    work = pathlib.Path(options.work).expanduser()
    python = work / "bin/python3"
    if pathlib.Path(sys.executable).parent != python.parent:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", work], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        os.execv(python, [str(python), *sys.argv])
    ClientTest.octavo = options.octavo
    ClientTest.server = Server(options.octavo)
    try:
        program = unittest.main(argv=[sys.argv[0], "-v", *options.tests], exit=False)
    finally:
        ClientTest.server.stop()
    result = program.result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
