// A remote model behind the interface of an engine, against a server that a test scripts: what is asked, what
// becomes of each piece, and every way in which it can go wrong.

#include "app/remote/remote_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/output_collector.h"
#include "tests/support/openai_server.h"

namespace octavo::app {
namespace {

using nlohmann::json;
using testing::OpenAiServer;

constexpr std::chrono::seconds kGivenUpAfter{30};

std::string delta(const std::string& content, int index = 0) {
  return json{{"choices", {{{"index", index}, {"delta", {{"content", content}}}}}}}.dump();
}
std::string thought(const std::string& content) {
  return json{{"choices", {{{"index", 0}, {"delta", {{"reasoning_content", content}}}}}}}.dump();
}
std::string end_of(const std::string& reason, int index = 0) {
  return json{{"choices", {{{"index", index}, {"delta", json::object()}, {"finish_reason", reason}}}}}.dump();
}

GenerationRequest question(const std::string& text) {
  ChatPrompt prompt;
  prompt.messages = {{.role = Role::kSystem, .content = "be brief"}, {.role = Role::kUser, .content = text}};
  GenerationRequest request{.prompt = std::move(prompt)};
  request.sampling.max_tokens = 9;
  return request;
}

// A server with one model, whose chat completions `answer` gives.
OpenAiServer::Answer with_models(OpenAiServer::Answer answer) {
  return [answer = std::move(answer)](const http::Request& request, const http::Reply& reply) {
    if (request.path.ends_with("/models")) return OpenAiServer::send_models(reply);
    answer(request, reply);
  };
}

Result<std::unique_ptr<Engine>> connect_to(const std::string& address, const std::string& model,
                                           const std::string& key = {}) {
  RemoteEngineOptions options;
  options.name = {address, model};
  options.key = key;
  return connect_remote_engine(options);
}

std::unique_ptr<Engine> connect(const OpenAiServer& server, const std::string& key = {}) {
  auto engine = connect_to(server.address(), "", key);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? *std::move(engine) : nullptr;
}

// Everything until the request has ended.
std::vector<EngineEvent> events_of(Engine& engine, RequestId id) {
  std::vector<EngineEvent> events;
  const auto give_up = std::chrono::steady_clock::now() + kGivenUpAfter;
  while (std::chrono::steady_clock::now() < give_up) {
    for (EngineEvent& event : engine.poll(std::chrono::milliseconds(50)))
      if (request_id_of(event) == id) events.push_back(std::move(event));
    if (events.empty()) continue;
    const EngineEvent& last = events.back();
    if (std::holds_alternative<RequestFinished>(last) || std::holds_alternative<RequestFailed>(last))
      return events;
  }
  ADD_FAILURE() << "the request has no end";
  return events;
}

// Adds what comes to `events` until they are enough.
void poll_until(Engine& engine, std::vector<EngineEvent>& events, const std::function<bool()>& are_enough) {
  const auto give_up = std::chrono::steady_clock::now() + kGivenUpAfter;
  while (!are_enough() && std::chrono::steady_clock::now() < give_up)
    for (EngineEvent& event : engine.poll(std::chrono::milliseconds(50))) events.push_back(std::move(event));
}

std::optional<FinishReason> end_of_output(const std::vector<EngineEvent>& events, std::int32_t output) {
  for (const EngineEvent& event : events) {
    const auto* const end = std::get_if<OutputFinished>(&event);
    if (end != nullptr && end->output_index == output) return end->finish_reason;
  }
  return std::nullopt;
}

std::string text_of(const std::vector<EngineEvent>& events, std::int32_t output = 0) {
  std::string text;
  for (const EngineEvent& event : events) {
    const auto* const tokens = std::get_if<TokensGenerated>(&event);
    if (tokens != nullptr && tokens->output_index == output) text += tokens->text;
  }
  return text;
}

std::string failure_of(const std::vector<EngineEvent>& events) {
  const auto* const failed = events.empty() ? nullptr : std::get_if<RequestFailed>(&events.back());
  return failed != nullptr ? failed->error.message : "";
}

json last_body(const OpenAiServer& server) { return json::parse(server.requests().back().body); }

TEST(RemoteEngine, ConnectsToTheServersFirstModelOrTheOneThatIsNamed) {
  OpenAiServer server(with_models({}));
  const auto engine = connect(server);
  EXPECT_EQ(engine->description().model.name, "tiny");
  EXPECT_EQ(engine->description().model.path, server.address() + "#tiny");
  EXPECT_TRUE(is_remote(engine->description()));
  EXPECT_EQ(engine->description().max_model_len, 512);
  EXPECT_EQ(engine->description().num_blocks, 0);
  EXPECT_EQ(engine->kv_snapshot(SnapshotScope::kPool), nullptr);
  const auto absent = connect_to(server.address(), "huge");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "the server has no model 'huge'; choose one of its list");
}

TEST(RemoteEngine, NobodyThereIsOneSentence) {
  std::string address;
  {
    OpenAiServer gone(with_models({}));
    address = gone.address();
  }
  const auto engine = connect_to(address, "");
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("nobody answers at"), std::string::npos);
}

TEST(RemoteEngine, PathsNameAddressAndModel) {
  EXPECT_TRUE(is_remote_model("http://a/v1#m"));
  EXPECT_FALSE(is_remote_model("/home/me/http.gguf"));
  const auto name = parse_remote_model("http://127.0.0.1:8000/v1#org/model#2");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->address, "http://127.0.0.1:8000/v1");
  EXPECT_EQ(name->model, "org/model#2");
  EXPECT_EQ(remote_model_path(*name), "http://127.0.0.1:8000/v1#org/model#2");
  EXPECT_FALSE(parse_remote_model("http://"));
}

TEST(RemoteEngine, AQuestionBecomesAChatCompletionAndTheStreamAnAnswer) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(
        reply,
        {delta(""), delta("Par"), delta("is \xe2\x82\xac"), end_of("stop"),
         R"({"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16}}})",
         "[DONE]"});
  }));
  const auto engine = connect(server, "sesame");
  GenerationRequest request = question("capital?");
  request.sampling.seed = 42;
  request.sampling.temperature = 0.5;
  request.sampling.stop = {"\n"};
  const RequestId id = engine->submit(request);
  const auto events = events_of(*engine, id);
  EXPECT_EQ(text_of(events), "Paris \xe2\x82\xac");
  EXPECT_TRUE(std::holds_alternative<RequestAccepted>(events.front()));
  EXPECT_EQ(std::get<RequestAccepted>(events.front()).seed, 42u);
  const auto& metrics = std::get<RequestFinished>(events.back()).metrics;
  EXPECT_EQ(metrics.prompt.num_hit_cached, 16);
  EXPECT_EQ(metrics.prompt.num_computed, 4);
  EXPECT_GE(metrics.e2e_us, metrics.ttft_us);
  const json body = last_body(server);
  EXPECT_EQ(body["model"], "tiny");
  EXPECT_EQ(body["messages"].dump(),
            R"([{"content":"be brief","role":"system"},{"content":"capital?","role":"user"}])");
  EXPECT_EQ(body["seed"], 42);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["stop"].dump(), R"(["\n"])");
  EXPECT_EQ(body["stream"], true);
  for (const char* const absent : {"top_k", "min_p", "repetition_penalty", "logprobs", "n", "ignore_eos"})
    EXPECT_FALSE(body.contains(absent)) << absent << " may be refused where nobody knows it";
  EXPECT_EQ(server.requests().back().header("authorization"), "Bearer sesame");
}

TEST(RemoteEngine, ATextIsContinuedAsItIs) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply,
                         {R"({"choices":[{"index":0,"text":" Paris","finish_reason":"length"}]})", "[DONE]"});
  }));
  const auto engine = connect(server);
  GenerationRequest request{.prompt = TextPrompt{.text = "The capital of France is"}};
  request.sampling.logprobs = 3;
  EXPECT_EQ(text_of(events_of(*engine, engine->submit(request))), " Paris");
  EXPECT_EQ(server.requests().back().path, "/v1/completions");
  EXPECT_EQ(last_body(server)["prompt"], "The capital of France is");
  EXPECT_EQ(last_body(server)["logprobs"], 3);
}

TEST(RemoteEngine, WithoutUsageNothingIsGuessedOfThePrompt) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {delta("a"), end_of("length"), "[DONE]"});
  }));
  const auto engine = connect(server);
  const auto events = events_of(*engine, engine->submit(question("?")));
  EXPECT_EQ(std::get<RequestFinished>(events.back()).metrics.prompt, PromptAccount());
  EXPECT_TRUE(std::get<RequestAccepted>(events.front()).prompt_token_ids.empty());
}

TEST(RemoteEngine, ThinkingComesInTheMarksThatAnswersHaveHere) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply,
                         {thought("let me"), thought(" see"), delta("Four"), delta("."), end_of("stop")});
  }));
  const auto engine = connect(server);
  EXPECT_EQ(text_of(events_of(*engine, engine->submit(question("2+2")))),
            "<think>\nlet me see\n</think>\n\nFour.");
}

TEST(RemoteEngine, WhatWasThoughtIsNotSentBack) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {delta("x"), end_of("stop")});
  }));
  const auto engine = connect(server);
  ChatPrompt prompt;
  prompt.messages = {{.role = Role::kUser, .content = "q"},
                     {.role = Role::kAssistant, .content = "<think>\nhm\n</think>\n\nFour."},
                     {.role = Role::kUser, .content = "sure?"}};
  events_of(*engine, engine->submit({.prompt = prompt}));
  EXPECT_EQ(last_body(server)["messages"][1]["content"], "Four.");
  prompt.messages.pop_back();
  prompt.continue_answer = true;
  events_of(*engine, engine->submit({.prompt = prompt}));
  EXPECT_EQ(last_body(server)["messages"][1]["content"], "<think>\nhm\n</think>\n\nFour.")
      << "it goes on there";
  EXPECT_EQ(last_body(server)["continue_final_message"], true);
}

TEST(RemoteEngine, SeveralAnswersAreKeptApart) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {delta("a", 0), delta("x", 1), delta("y", 1), end_of("stop", 1),
                                 delta("b", 0), delta("lost", 7), end_of("length", 0), "[DONE]"});
  }));
  const auto engine = connect(server);
  GenerationRequest request = question("?");
  request.sampling.n = 2;
  const auto events = events_of(*engine, engine->submit(request));
  EXPECT_EQ(text_of(events, 0), "ab");
  EXPECT_EQ(text_of(events, 1), "xy");
  std::map<std::int32_t, FinishReason> ends;
  for (const EngineEvent& event : events)
    if (const auto* end = std::get_if<OutputFinished>(&event)) ends[end->output_index] = end->finish_reason;
  EXPECT_EQ(ends,
            (std::map<std::int32_t, FinishReason>{{0, FinishReason::kLength}, {1, FinishReason::kStop}}));
  EXPECT_EQ(last_body(server)["n"], 2);
}

TEST(RemoteEngine, AServerThatKnowsNoNumberOfAnswersIsAskedForEach) {
  std::atomic<int> turn = 0;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {delta("answer " + std::to_string(turn++)), end_of("stop"), "[DONE]"});
  }));
  const auto engine = connect(server);
  GenerationRequest request = question("?");
  request.sampling.n = 3;
  request.sampling.seed = 10;
  const auto events = events_of(*engine, engine->submit(request));
  EXPECT_EQ(failure_of(events), "");
  for (std::int32_t output = 0; output < 3; ++output)
    EXPECT_EQ(text_of(events, output), "answer " + std::to_string(output));
  EXPECT_EQ(turn, 3);
  EXPECT_EQ(last_body(server)["seed"], 12) << "the same seed would give the same answer";
  EXPECT_FALSE(last_body(server).contains("n"));
}

TEST(RemoteEngine, LogProbabilitiesBecomeTokens) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    const json best = {{"token", " Par"}, {"logprob", -0.25}, {"bytes", nullptr}};
    const json other = {{"token", " Lon"}, {"logprob", -2.0}, {"bytes", nullptr}};
    const json first = {
        {"token", " Par"}, {"logprob", -0.25}, {"bytes", {32, 80, 97, 114}}, {"top_logprobs", {best, other}}};
    const json second = {{"token", "is"}, {"logprob", -0.5}, {"top_logprobs", json::array()}};
    const json choice = {
        {"index", 0}, {"delta", {{"content", " Paris"}}}, {"logprobs", {{"content", {first, second}}}}};
    OpenAiServer::stream(reply, {json{{"choices", {choice}}}.dump(), end_of("stop"), "[DONE]"});
  }));
  const auto engine = connect(server);
  GenerationRequest request = question("?");
  request.sampling.logprobs = 2;
  const auto events = events_of(*engine, engine->submit(request));
  const auto& tokens = std::get<TokensGenerated>(events.at(1));
  ASSERT_EQ(tokens.token_ids.size(), 2u);
  EXPECT_EQ(engine->tokenizer().decode(tokens.token_ids, true), " Paris");
  EXPECT_FLOAT_EQ(tokens.logprobs[0], -0.25f);
  ASSERT_EQ(tokens.top_logprobs[0].size(), 2u);
  EXPECT_EQ(tokens.top_logprobs[0][0].token_id, tokens.token_ids[0]) << "the same bytes are the same token";
  EXPECT_EQ(engine->tokenizer().token_bytes(tokens.top_logprobs[0][1].token_id), " Lon");
  EXPECT_EQ(last_body(server)["top_logprobs"], 2);
}

TEST(RemoteEngine, WhatCannotBeToldIsRefusedByName) {
  OpenAiServer server(with_models([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {delta("x"), end_of("stop")});
  }));
  const auto engine = connect(server);
  const auto refusal = [&](GenerationRequest request) {
    return failure_of(events_of(*engine, engine->submit(std::move(request))));
  };
  GenerationRequest beams = question("?");
  beams.sampling.beam_width = 4;
  EXPECT_NE(refusal(beams).find("beam search"), std::string::npos);
  GenerationRequest bias = question("?");
  bias.sampling.logit_bias = {{5, 1.0}};
  EXPECT_NE(refusal(bias).find("token ids"), std::string::npos);
  EXPECT_NE(refusal({.prompt = TokenPrompt{{1, 2}}}).find("token ids"), std::string::npos);
  GenerationRequest scored = question("?");
  scored.sampling.prompt_logprobs = 1;
  EXPECT_NE(refusal(scored).find("log-probabilities of the prompt"), std::string::npos);
  EXPECT_EQ(server.requests().size(), 1u) << "the list of models alone";
  EXPECT_FALSE(engine->tokenizer().encode("text", false, false)) << "nobody counts";
}

TEST(RemoteEngine, FailuresAreOneSentenceAndKeepWhatCame) {
  std::atomic<int> turn = 0;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    switch (turn++) {
      case 0:
        return OpenAiServer::send_json(reply,
                                       R"({"error":{"message":"This model's maximum context is 512"}})", 400);
      case 1: return OpenAiServer::stream(reply, {delta("half")});
      case 2: return OpenAiServer::stream(reply, {delta("half"), R"({"error":{"message":"out of memory"}})"});
      case 3: return OpenAiServer::stream(reply, {"no json"});
      case 4: OpenAiServer::begin_stream(reply); return reply.write("data: " + delta("cut") + "\n\n");
      default: return reply.send({.status = 500, .body = "<html>"});
    }
  }));
  const auto engine = connect(server);
  const struct {
    const char* sentence;
    const char* text;
  } cases[] = {{"answered 400: This model's maximum context is 512", ""},
               {"broke off before its end", "half"},
               {"out of memory", "half"},
               {"the server's answer", ""},
               {"closed the connection before the end", "cut"},
               {"answered 500; look into the server's log", ""}};
  for (const auto& c : cases) {
    const auto events = events_of(*engine, engine->submit(question("?")));
    EXPECT_NE(failure_of(events).find(c.sentence), std::string::npos) << failure_of(events);
    EXPECT_EQ(text_of(events), c.text);
  }
  EXPECT_EQ(turn, 6) << "none of these is asked twice";
}

TEST(RemoteEngine, ABusyServerIsAskedAgain) {
  std::atomic<int> turn = 0;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    if (turn++ < 2)
      return reply.send({.status = turn == 1 ? 429 : 503, .headers = {{"Retry-After", "0"}}, .body = "busy"});
    OpenAiServer::stream(reply, {delta("at last"), end_of("stop")});
  }));
  const auto engine = connect(server);
  EXPECT_EQ(text_of(events_of(*engine, engine->submit(question("?")))), "at last");
  EXPECT_EQ(turn, 3);
}

TEST(RemoteEngine, ACancelClosesTheConnectionAndEndsTheAnswer) {
  std::atomic<bool> has_left = false;
  std::mutex mutex;
  std::vector<http::Reply> held;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    const std::lock_guard lock(mutex);
    held.push_back(reply);
    OpenAiServer::begin_stream(reply);
    reply.write("data: " + delta("one") + "\n\n");
    reply.on_client_left([&] { has_left = true; });
  }));
  const auto engine = connect(server);
  const RequestId id = engine->submit(question("?"));
  std::vector<EngineEvent> before;
  const auto give_up = std::chrono::steady_clock::now() + kGivenUpAfter;
  poll_until(*engine, before, [&] { return !text_of(before).empty(); });
  engine->cancel(id);
  const auto events = events_of(*engine, id);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<OutputFinished>(events[0]).finish_reason, FinishReason::kAbort);
  while (!has_left && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(has_left);
  engine->cancel(id);  // nothing
}

// The server cannot be told; what it still sends of that answer is thrown away.
TEST(RemoteEngine, OneAnswerOfSeveralIsCancelledAndTheOthersGoOn) {
  std::mutex mutex;
  std::optional<http::Reply> held;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    const std::lock_guard lock(mutex);
    held = reply;
    OpenAiServer::begin_stream(reply);
    reply.write("data: " + delta("a", 0) + "\n\ndata: " + delta("x", 1) + "\n\n");
  }));
  const auto engine = connect(server);
  GenerationRequest request = question("?");
  request.sampling.n = 2;
  const RequestId id = engine->submit(request);
  std::vector<EngineEvent> events;
  poll_until(*engine, events, [&] { return !text_of(events, 1).empty(); });
  engine->cancel_output(id, 7);  // nothing
  engine->cancel_output(id, 0);
  poll_until(*engine, events, [&] { return end_of_output(events, 0).has_value(); });
  EXPECT_EQ(end_of_output(events, 0), FinishReason::kAbort);
  {
    const std::lock_guard lock(mutex);
    held->write("data: " + delta("lost", 0) + "\n\ndata: " + delta("y", 1) +
                "\n\ndata: " + end_of("stop", 0) + "\n\ndata: " + end_of("stop", 1) + "\n\ndata: [DONE]\n\n");
    held->end();
  }
  poll_until(*engine, events, [&] { return std::holds_alternative<RequestFinished>(events.back()); });
  EXPECT_EQ(text_of(events, 0), "a");
  EXPECT_EQ(text_of(events, 1), "xy");
  EXPECT_EQ(end_of_output(events, 1), FinishReason::kStop);
}

TEST(RemoteEngine, AnAnswerThatIsCancelledIsNotAskedForOneByOne) {
  std::atomic<int> turn = 0;
  std::mutex mutex;
  std::optional<http::Reply> held;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    const std::lock_guard lock(mutex);
    if (turn == 0) held = reply;
    OpenAiServer::begin_stream(reply);
    reply.write("data: " + delta("answer " + std::to_string(turn)) + "\n\n");
    if (turn++ == 0) return;
    reply.write("data: " + end_of("stop") + "\n\ndata: [DONE]\n\n");
    reply.end();
  }));
  const auto engine = connect(server);
  GenerationRequest request = question("?");
  request.sampling.n = 3;
  request.sampling.seed = 10;
  const RequestId id = engine->submit(request);
  std::vector<EngineEvent> events;
  poll_until(*engine, events, [&] { return !text_of(events).empty(); });
  engine->cancel_output(id, 1);
  poll_until(*engine, events, [&] { return end_of_output(events, 1).has_value(); });
  {
    const std::lock_guard lock(mutex);
    held->write("data: " + end_of("stop") + "\n\ndata: [DONE]\n\n");
    held->end();
  }
  for (EngineEvent& event : events_of(*engine, id)) events.push_back(std::move(event));
  EXPECT_EQ(failure_of(events), "");
  EXPECT_EQ(text_of(events, 0), "answer 0");
  EXPECT_EQ(text_of(events, 1), "");
  EXPECT_EQ(text_of(events, 2), "answer 1");
  EXPECT_EQ(turn, 2);
  EXPECT_EQ(last_body(server)["seed"], 12);
}

TEST(RemoteEngine, StoppingEndsEveryRequestOnce) {
  std::mutex mutex;
  std::vector<http::Reply> held;
  OpenAiServer server(with_models([&](const http::Request&, const http::Reply& reply) {
    const std::lock_guard lock(mutex);
    held.push_back(reply);
  }));
  const auto engine = connect(server);
  std::map<RequestId, int> ends;
  for (int i = 0; i < 10; ++i) ends[engine->submit(question("?"))] = 0;
  engine->stop();
  ends[engine->submit(question("too late"))] = 0;
  for (const EngineEvent& event : engine->poll(std::chrono::seconds(1))) {
    if (std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event))
      ++ends[request_id_of(event)];
  }
  EXPECT_EQ(ends.size(), 11u);
  for (const auto& [id, count] : ends) EXPECT_EQ(count, 1) << id.value;
  engine->stop();  // nothing
}

TEST(RemoteEngine, SixtyFourAnswersStreamTogether) {
  OpenAiServer server(with_models([](const http::Request& request, const http::Reply& reply) {
    const std::string text = json::parse(request.body)["messages"].back()["content"];
    OpenAiServer::stream(reply, {delta("answer to "), delta(text), end_of("stop"), "[DONE]"});
  }));
  const auto engine = connect(server);
  OutputCollector answers;
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 64; ++i) requests.push_back(question(std::to_string(i)));
  for (const RequestId id : engine->submit_all(requests)) answers.expect(id, 1);
  const auto give_up = std::chrono::steady_clock::now() + kGivenUpAfter;
  while (!answers.done() && std::chrono::steady_clock::now() < give_up)
    for (const EngineEvent& event : engine->poll(std::chrono::milliseconds(50))) answers.add(event);
  ASSERT_TRUE(answers.done());
  const auto outputs = answers.take();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(outputs[i].outputs[0].text, "answer to " + std::to_string(i));
}

}  // namespace
}  // namespace octavo::app
