// Addresses as people type them, lists of models and refusals as servers send them.

#include "app/remote/endpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/openai_server.h"

namespace octavo::app {
namespace {

TEST(Endpoint, AddressesAreTakenAsPeopleTypeThem) {
  const struct {
    const char* typed;
    const char* address;
    const char* root;
  } cases[] = {
      {"http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"},
      {"http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"},
      {"http://127.0.0.1:8000//", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"},
      {"http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"},
      {"http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"},
      {"  localhost:11434 ", "http://localhost:11434/v1", "http://localhost:11434"},
      {"gpu-box", "http://gpu-box/v1", "http://gpu-box"},
      {"HTTPS://example.org/api/v1", "https://example.org/api/v1", "https://example.org/api"},
      {"http://h:9000/v3", "http://h:9000/v3", "http://h:9000"},
      {"http://[::1]:8000", "http://[::1]:8000/v1", "http://[::1]:8000"},
      {"http://[::1]", "http://[::1]/v1", "http://[::1]"},
  };
  for (const auto& c : cases) {
    const auto address = normal_address(c.typed);
    ASSERT_TRUE(address) << c.typed << ": " << address.error().message;
    EXPECT_EQ(*address, c.address);
    EXPECT_EQ(server_root(*address), c.root);
    EXPECT_EQ(*normal_address(*address), *address) << "once more changes nothing";
  }
}

TEST(Endpoint, WhatIsNoAddressIsRefusedInOneSentence) {
  for (const char* const typed :
       {"", "   ", "http://", "ftp://host/", "file:///etc/passwd", "http://host:99999", "http://host:80a",
        "http://host:/v1", "http://a b", "http://host/v1?key=1", "http://host/#x", "javascript://x",
        "http://ho\nst", "http://host\\@evil"}) {
    const auto address = normal_address(typed);
    ASSERT_FALSE(address) << typed;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(address.error().message.find('\n'), std::string::npos);
  }
  const auto with_password = normal_address("http://me:secret@host/v1");
  ASSERT_FALSE(with_password);
  EXPECT_EQ(with_password.error().message.find("secret"), std::string::npos);
}

TEST(Endpoint, KeysToOtherMachinesShouldBeHidden) {
  EXPECT_TRUE(is_readable_on_the_way("http://gpu-box:8000/v1"));
  EXPECT_TRUE(is_readable_on_the_way("http://10.0.0.7/v1"));
  EXPECT_FALSE(is_readable_on_the_way("https://gpu-box:8000/v1"));
  EXPECT_FALSE(is_readable_on_the_way("http://127.0.0.1:8000/v1"));
  EXPECT_FALSE(is_readable_on_the_way("http://localhost/v1"));
  EXPECT_FALSE(is_readable_on_the_way("http://[::1]:8000/v1"));
}

TEST(Endpoint, ModelsOfEveryServersForm) {
  const auto models = read_models(R"({"object":"list","data":[
      {"id":"vllm","max_model_len":4096},
      {"id":"llama.cpp","meta":{"n_ctx":2048,"n_ctx_train":8192}},
      {"id":"ollama","object":"model","owned_by":"library"},
      {"id":7},{"object":"model"},null,"text",
      {"id":"odd","max_model_len":-3,"meta":{"n_ctx":"many"}}]})");
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(*models,
            (std::vector<RemoteModel>{{"vllm", 4096}, {"llama.cpp", 2048}, {"ollama", 0}, {"odd", 0}}));
  for (const char* const body : {"", "[]", "{}", R"({"data":{}})", "<html>", "null", "7"})
    EXPECT_FALSE(read_models(body)) << body;
}

TEST(Endpoint, ARefusalSaysWhatTheServerSaid) {
  const std::string at = "http://127.0.0.1:8000/v1";
  const struct {
    int status;
    const char* body;
    const char* sentence;
  } cases[] = {
      {400, R"({"error":{"message":"max_tokens is too large","code":400}})",
       "127.0.0.1:8000 answered 400: max_tokens is too large"},
      {400, R"({"object":"error","message":"old form"})", "127.0.0.1:8000 answered 400: old form"},
      {401, R"({"error":"Unauthorized"})", "127.0.0.1:8000 answered 401: Unauthorized; check the key"},
      {404, R"({"detail":"Not Found"})",
       "127.0.0.1:8000 answered 404: Not Found; check the address and the model's name"},
      {429, "", "127.0.0.1:8000 answered 429; try again later"},
      {502, "<html><body>Bad gateway</body></html>",
       "127.0.0.1:8000 answered 502; look into the server's log"},
      {500, "plain words\nand more", "127.0.0.1:8000 answered 500: plain words; look into the server's log"},
      {400, "{\"error\":{\"message\":\"a\\u001b[31mb\\nc\"}}",
       "127.0.0.1:8000 answered 400: a\\x1b[31mb\\x0ac"},
  };
  for (const auto& c : cases) EXPECT_EQ(error_of_answer(c.status, c.body, at).message, c.sentence);
  EXPECT_EQ(error_of_answer(503, "", at).code, ErrorCode::kIo);
  EXPECT_EQ(error_of_answer(401, "", at).code, ErrorCode::kInvalidArgument);
}

TEST(Endpoint, ListsModelsWithTheKeyAndOnlyThere) {
  testing::OpenAiServer server([](const http::Request& request, const http::Reply& reply) {
    if (request.header("authorization") != "Bearer right")
      return testing::OpenAiServer::send_json(reply, R"({"error":{"message":"who are you"}})", 401);
    testing::OpenAiServer::send_models(reply, "a model");
  });
  const SteadyClock clock;
  http::Client client(clock);
  const auto models = list_models(client, {.address = server.address(), .key = "right"});
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ(*models, (std::vector<RemoteModel>{{"a model", 512}}));
  EXPECT_EQ(server.requests().back().path, "/v1/models");
  const auto refused = list_models(client, {.address = server.address(), .key = "wrong-key"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("who are you; check the key"), std::string::npos);
  EXPECT_EQ(refused.error().message.find("wrong-key"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
