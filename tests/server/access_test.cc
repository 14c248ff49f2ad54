#include "app/server/access.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace octavo::app {
namespace {

AccessRules rules_with_key() { return {.port = 8000, .key = "right"}; }

http::Request head_of(std::vector<http::Header> headers, std::string method = "GET") {
  bool has_host = false;
  for (const http::Header& header : headers) has_host |= header.name == "host";
  if (!has_host) headers.push_back({"host", "localhost:8000"});
  return {.method = std::move(method), .path = "/v1/models", .headers = std::move(headers)};
}

int status_of(const AccessRules& rules, const http::Request& head, bool needs_key = true) {
  const auto error = refusal(rules, head, needs_key);
  return error ? error->status : 200;
}

TEST(Access, OnlyNamesOfThisMachineAreAnswered) {
  const AccessRules rules{.port = 8000};
  for (const char* host : {"localhost", "localhost:8000", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"})
    EXPECT_EQ(status_of(rules, head_of({{"host", host}})), 200) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "localhost:8001", "127.0.0.1:80000", "10.0.0.1:8000",
        "[::2]:8000", "localhost:8000:8000", "[::1", "127.0.0.1.evil.example"})
    EXPECT_EQ(status_of(rules, head_of({{"host", host}})), 421) << host;
}

TEST(Access, ANameCanBeAllowedAndAnAddressWhereOthersReachIt) {
  AccessRules rules{.port = 8000, .allowed_hosts = {"box.example"}};
  EXPECT_EQ(status_of(rules, head_of({{"host", "Box.Example:443"}})), 200);
  EXPECT_EQ(status_of(rules, head_of({{"host", "10.0.0.1:8000"}})), 421);
  rules.is_loopback = false;
  EXPECT_EQ(status_of(rules, head_of({{"host", "10.0.0.1:8000"}})), 200);
  EXPECT_EQ(status_of(rules, head_of({{"host", "10.0.0.1.evil.example:8000"}})), 421);
}

TEST(Access, WebPagesAreRefusedUnlessTheyAreAllowed) {
  AccessRules rules = rules_with_key();
  for (const char* origin : {"https://evil.example", "null", "", "http://localhost:3000"}) {
    const http::Request head = head_of({{"origin", origin}, {"authorization", "Bearer right"}});
    EXPECT_EQ(status_of(rules, head), 403) << origin;
    EXPECT_TRUE(origin_headers(rules, head).empty());
  }
  rules.allowed_origins = {"http://localhost:3000"};
  const http::Request asked = head_of({{"origin", "http://localhost:3000"}}, "OPTIONS");
  EXPECT_EQ(status_of(rules, asked), 200) << "a browser asks without the key";
  EXPECT_EQ(origin_headers(rules, asked).front().value, "http://localhost:3000");
  EXPECT_EQ(status_of(rules, head_of({{"origin", "http://localhost:3000"}})), 401);
  EXPECT_EQ(status_of(rules, head_of({{"origin", "http://localhost:3001"}}, "OPTIONS")), 403);
}

TEST(Access, TheKeyComesInEitherHeader) {
  const AccessRules rules = rules_with_key();
  for (const http::Header& header : {http::Header{"authorization", "Bearer right"},
                                     {"authorization", "bEARER right"},
                                     {"x-api-key", "right"}})
    EXPECT_EQ(status_of(rules, head_of({header})), 200) << header.value;
  for (const http::Header& header : {http::Header{"authorization", "Bearer wrong"},
                                     {"authorization", "Bearer righ"},
                                     {"authorization", "Bearer rightt"},
                                     {"authorization", "Bearer rightright"},
                                     {"authorization", "Basic right"},
                                     {"authorization", "right"},
                                     {"authorization", "Bearer "},
                                     {"x-api-key", ""}})
    EXPECT_EQ(status_of(rules, head_of({header})), 401) << header.value;
  EXPECT_EQ(status_of(rules, head_of({}), /*needs_key=*/false), 200);
  EXPECT_EQ(status_of({.port = 8000}, head_of({{"x-api-key", "any"}})), 200) << "no key is asked for";
}

TEST(Access, AFormCannotPost) {
  const AccessRules rules{.port = 8000};
  const auto post = [&](std::vector<http::Header> headers) {
    return status_of(rules, head_of(std::move(headers), "POST"));
  };
  EXPECT_EQ(post({{"content-type", "application/json"}, {"content-length", "2"}}), 200);
  EXPECT_EQ(post({{"content-type", "Application/JSON; charset=utf-8"}, {"content-length", "2"}}), 200);
  EXPECT_EQ(post({{"content-type", "text/plain"}, {"content-length", "2"}}), 415);
  EXPECT_EQ(post({{"content-type", "application/x-www-form-urlencoded"}}), 415);
  EXPECT_EQ(post({{"content-length", "2"}}), 415);
  EXPECT_EQ(post({{"transfer-encoding", "chunked"}}), 415);
  EXPECT_EQ(post({{"content-length", "0"}}), 200) << "nothing is sent";
}

TEST(Access, EqualIsEqual) {
  EXPECT_TRUE(are_equal_in_constant_time("", ""));
  EXPECT_TRUE(are_equal_in_constant_time("abc", "abc"));
  for (const auto& [given, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"abd", "abc"}, {"ab", "abc"}, {"abcabc", "abc"}, {"", "abc"}, {"abc", ""}})
    EXPECT_FALSE(are_equal_in_constant_time(given, wanted)) << given << " " << wanted;
}

}  // namespace
}  // namespace octavo::app
