// What people on the network and web pages have tried against servers of this kind, rule by rule: each is
// refused, and the next client is served. Time limits and crowds: http_server_test.cc, tls_test.cc.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/service_fixture.h"

namespace octavo::app {
namespace {

struct Attack {
  std::string rule;
  std::string bytes;   // PORT: the server's
  std::string status;  // of the answer; empty: the connection just ends
};

const std::string kGood = "Host: localhost:PORT\r\nAuthorization: Bearer right\r\n";
const std::string kJson = "Content-Type: application/json\r\n";

std::string post(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path + " HTTP/1.1\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}
std::string get(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n";
}

std::vector<Attack> attacks() {
  const std::string key = "Authorization: Bearer right\r\n";
  const std::string call = R"({"prompt": "a"})";
  return {
      {"1 rebinding: another name points here", get("/v1/models", "Host: evil.example\r\n" + key), "421"},
      {"1 rebinding: a name below ours", get("/v1/models", "Host: localhost.evil.example\r\n" + key), "421"},
      {"1 rebinding: .local names", get("/v1/models", "Host: printer.local\r\n" + key), "421"},
      {"1 rebinding: private addresses", get("/v1/models", "Host: 192.168.0.7\r\n" + key), "421"},
      {"1 rebinding: another port", get("/v1/models", "Host: localhost:1\r\n" + key), "421"},
      {"1 rebinding: /health as well", get("/health", "Host: evil.example\r\n"), "421"},
      {"1 no Host", get("/health", ""), "400"},
      {"1 two Hosts", get("/health", "Host: localhost\r\nHost: evil.example\r\n"), "400"},
      {"2 a web page asks", get("/v1/models", kGood + "Origin: http://evil.example\r\n"), "403"},
      {"2 a page without an origin", get("/v1/models", kGood + "Origin: null\r\n"), "403"},
      {"2 a page asks for health", get("/health", "Host: localhost\r\nOrigin: http://evil.example\r\n"),
       "403"},
      {"2 preflight", "OPTIONS /v1/completions HTTP/1.1\r\n" + kGood + "Origin: http://evil.example\r\n\r\n",
       "403"},
      {"3 a form", post("/v1/completions", call, kGood + "Content-Type: text/plain\r\n"), "415"},
      {"3 a form with fields",
       post("/v1/completions", call, kGood + "Content-Type: application/x-www-form-urlencoded\r\n"), "415"},
      {"3 a file", post("/v1/completions", call, kGood + "Content-Type: multipart/form-data; boundary=a\r\n"),
       "415"},
      {"4 no key", get("/v1/models", "Host: localhost\r\n"), "401"},
      {"4 another key", get("/metrics", "Host: localhost\r\nAuthorization: Bearer wrong\r\n"), "401"},
      {"4 the beginning of the key", get("/v1/models", "Host: localhost\r\nAuthorization: Bearer righ\r\n"),
       "401"},
      {"4 the key and more", get("/v1/models", "Host: localhost\r\nAuthorization: Bearer rightright\r\n"),
       "401"},
      {"4 the key in the address", get("/v1/models?key=right&api_key=right", "Host: localhost\r\n"), "401"},
      {"4 no key for a path that is none", get("/slots", "Host: localhost\r\n"), "401"},
      {"5 a long address", get("/" + std::string(9000, 'a'), kGood), "414"},
      {"5 many headers",
       get(
           "/health", kGood +
                          [] {
                            std::string all;
                            for (int i = 0; i < 101; ++i) all += "a" + std::to_string(i) + ": b\r\n";
                            return all;
                          }()),
       "431"},
      {"5 a large header", get("/health", kGood + "A: " + std::string(40'000, 'a') + "\r\n"), "431"},
      {"5 a body that says it is too large",
       "POST /v1/completions HTTP/1.1\r\n" + kGood + kJson + "Content-Length: 999999999999\r\n\r\n", "413"},
      {"5 two lengths",
       "POST /v1/completions HTTP/1.1\r\n" + kGood + kJson +
           "Content-Length: 3\r\nContent-Length: 15\r\n\r\n" + call,
       "400"},
      {"5 a negative length",
       "POST /v1/completions HTTP/1.1\r\n" + kGood + kJson + "Content-Length: -1\r\n\r\n", "400"},
      {"5 a length and chunks",
       "POST /v1/completions HTTP/1.1\r\n" + kGood + kJson +
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"5 a bomb", post("/v1/completions", call, kGood + kJson + "Content-Encoding: gzip\r\n"), "415"},
      {"5 a line break in an address stays text", get("/%0d%0aSet-Cookie:%20a=b", kGood), "404"},
      {"5 line feeds without returns", "GET /health HTTP/1.1\nHost: localhost\n\n", "400"},
      {"5 a space before the colon", get("/health", kGood + "A : b\r\n"), "400"},
      {"5 a folded header", get("/health", kGood + "A: b\r\n c\r\n"), "400"},
      {"9 a path upwards", get("/../../etc/passwd", kGood), "404"},
      {"9 a path upwards, encoded", get("/v1/models/..%2F..%2Fetc%2Fpasswd", kGood), "404"},
      {"9 a proxy", "GET http://evil.example/ HTTP/1.1\r\n" + kGood + "\r\n", "400"},
      {"9 a tunnel", "CONNECT evil.example:443 HTTP/1.1\r\n" + kGood + "\r\n", "400"},
      {"9 slots", post("/slots/0?action=save", R"({"filename": "a"})", kGood + kJson), "404"},
      {"9 props", get("/props", kGood), "404"},
      {"9 tools of a server", post("/tools", "{}", kGood + kJson), "404"},
      {"9 another model by its file",
       post("/v1/completions", R"({"prompt": "a", "model": "/etc/passwd"})", kGood + kJson), "404"},
      {"9 a template of the client's",
       post("/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": "a"}], "chat_template": "{{ 1 }}"})", kGood + kJson),
       "400"},
      {"9 invocations", post("/invocations", call, kGood + kJson), "404"},
      {"many choices", post("/v1/completions", R"({"prompt": "a", "n": 100000})", kGood + kJson), "400"},
      {"many candidates", post("/v1/completions", R"({"prompt": "a", "best_of": 100000})", kGood + kJson),
       "400"},
      {"a number that is none",
       post("/v1/completions", R"({"prompt": "a", "temperature": 1e999})", kGood + kJson), "400"},
      {"a deep body", post("/v1/completions", std::string(100'000, '['), kGood + kJson), "400"},
      {"bytes that are no text", post("/v1/completions", "{\"prompt\": \"\xff\xfe\"}", kGood + kJson), "400"},
  };
}

TEST_F(ServiceTest, AttacksAreRefusedRuleByRule) {
  start();
  answer_all("Rain.");
  for (const Attack& attack : attacks()) {
    SCOPED_TRACE(attack.rule);
    std::string bytes = attack.bytes;
    for (std::size_t at = bytes.find("PORT"); at != std::string::npos; at = bytes.find("PORT"))
      bytes.replace(at, 4, std::to_string(server_->port()));
    http::HttpClient client;
    ASSERT_TRUE(client.connect(server_->port()));
    client.send(bytes);
    const std::string answer = client.read_answer();
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 " + attack.status) << answer;
    EXPECT_EQ(answer.find("Access-Control-"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("\r\nSet-Cookie"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("right"), std::string::npos) << "no part of the key: " << answer;
    EXPECT_EQ(status_of(ask("GET", "/health")), "200") << "the next client is served";
  }
  EXPECT_TRUE(engine_.requests().empty()) << "nothing was computed for any of them";
  for (const std::string& line : lines()) EXPECT_EQ(line.find("right"), std::string::npos) << line;
}

// Two in one packet are both answered, and neither hides in the other.
TEST_F(ServiceTest, ARequestInTheBodyOfAnotherIsItsBody) {
  start();
  answer_all("Rain.");
  const std::string hidden = request_text("GET", "/version", "");
  http::HttpClient client;
  ASSERT_TRUE(client.connect(server_->port()));
  ASSERT_TRUE(client.send(request_text("POST", "/v1/completions", hidden)));
  EXPECT_EQ(status_of(client.read_answer()), "400");
  ASSERT_TRUE(client.send(request_text("GET", "/health", "") + request_text("GET", "/health", "")));
  EXPECT_EQ(status_of(client.read_answer()), "200");
  EXPECT_EQ(status_of(client.read_answer()), "200");
}

}  // namespace
}  // namespace octavo::app
