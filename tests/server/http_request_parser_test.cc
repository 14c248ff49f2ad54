#include "app/server/http/request_parser.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {
namespace {

// What a parser made of some bytes. Two of them are the same when all that it said is.
struct Parsed {
  std::vector<std::string> requests;
  std::string refusal;  // "" when there is none; else status and sentence
};

bool operator==(const Parsed& a, const Parsed& b) {
  return a.requests == b.requests && a.refusal == b.refusal;
}

std::string rendered(const Request& request, bool is_head_method, bool keeps_alive) {
  std::string text = request.method + " " + request.path + " ?" + request.query;
  if (is_head_method) text += " (HEAD)";
  if (!keeps_alive) text += " (closes)";
  for (const Header& header : request.headers) text += "\n" + header.name + "=" + header.value;
  return text + "\n" + request.body;
}

class ParserRun {
 public:
  explicit ParserRun(const Limits& limits) : parser_(limits) {}

  void feed(std::string_view bytes) {
    while (true) {
      bytes.remove_prefix(parser_.read(bytes));
      switch (parser_.state()) {
        case RequestParser::State::kHeadComplete: parser_.read_body(); continue;
        case RequestParser::State::kComplete: take(); continue;
        case RequestParser::State::kRefused: return;
        case RequestParser::State::kHead:
        case RequestParser::State::kBody:
          EXPECT_TRUE(bytes.empty()) << "it wants bytes and leaves some";
          return;
      }
    }
  }

  Parsed parsed() {
    if (parser_.state() == RequestParser::State::kRefused)
      parsed_.refusal = std::to_string(parser_.refusal().status) + " " + parser_.refusal().sentence;
    return parsed_;
  }

 private:
  void take() {
    const bool is_head_method = parser_.is_head_method(), keeps_alive = parser_.keeps_alive();
    parsed_.requests.push_back(rendered(parser_.take_request(), is_head_method, keeps_alive));
  }

  RequestParser parser_;
  Parsed parsed_;
};

Parsed parse_whole(std::string_view bytes, const Limits& limits = {}) {
  ParserRun run(limits);
  run.feed(bytes);
  return run.parsed();
}

Parsed parse_by_byte(std::string_view bytes, const Limits& limits = {}) {
  ParserRun run(limits);
  for (std::size_t i = 0; i < bytes.size(); ++i) run.feed(bytes.substr(i, 1));
  return run.parsed();
}

std::string post(const std::string& headers, const std::string& rest) {
  return "POST /v1 HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + rest;
}

TEST(RequestParser, ReadsARequestWithItsParts) {
  const Parsed parsed = parse_whole(
      "POST /v1/models/org%2Fname?beta=true&x=? HTTP/1.1\r\nHOST: localhost:8000\r\n"
      "X-Blank: \t two  words \t\r\nEmpty:\r\nContent-Length: 4\r\n\r\n{\"\xff\n");
  EXPECT_EQ(parsed.refusal, "");
  ASSERT_EQ(parsed.requests.size(), 1u);
  EXPECT_EQ(parsed.requests[0],
            "POST /v1/models/org%2Fname ?beta=true&x=?\nhost=localhost:8000\nx-blank=two  words\nempty=\n"
            "content-length=4\n{\"\xff\n");
}

TEST(RequestParser, GivesHeadAsGetAndSaysSo) {
  EXPECT_EQ(parse_whole("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n").requests,
            std::vector<std::string>{"GET /metrics ? (HEAD)\nhost=a\n"});
}

TEST(RequestParser, KeepsConnectionsUnlessAClientSaysCloseOrSpeaks1_0) {
  const auto first = [](const std::string& bytes) { return parse_whole(bytes).requests.at(0); };
  EXPECT_EQ(first("GET / HTTP/1.1\r\nHost: a\r\n\r\n").find("(closes)"), std::string::npos);
  EXPECT_NE(first("GET / HTTP/1.1\r\nHost: a\r\nConnection: x,  Close\r\n\r\n").find("(closes)"),
            std::string::npos);
  EXPECT_NE(first("GET / HTTP/1.0\r\n\r\n").find("(closes)"), std::string::npos);
}

TEST(RequestParser, ReadsChunksWithExtensionsAndTrailers) {
  const Parsed parsed = parse_whole(post("Transfer-Encoding: Chunked\r\n",
                                         "4;name=value;x\r\nab\r\n\r\n00A ; y\r\n0123456789\r\n0\r\n"
                                         "X-Sum: 1\r\nHost: other\r\n\r\n"));
  EXPECT_EQ(parsed.refusal, "");
  EXPECT_EQ(parsed.requests,
            std::vector<std::string>{"POST /v1 ?\nhost=a\ntransfer-encoding=Chunked\nab\r\n0123456789"});
}

TEST(RequestParser, ReadsRequestsThatComeTogether) {
  const std::string bytes = post("Content-Length: 2\r\n", "ab") + "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n" +
                            post("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n") +
                            "\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n";
  const Parsed parsed = parse_whole(bytes);
  EXPECT_EQ(parsed.refusal, "");
  ASSERT_EQ(parsed.requests.size(), 4u);
  EXPECT_EQ(parsed.requests[1], "GET /2 ?\nhost=a\n");
  EXPECT_EQ(parsed.requests[3], "GET /4 ?\nhost=a\n");
}

TEST(RequestParser, WaitsForTheBodyUntilSomebodyHasSeenTheHead) {
  RequestParser parser(Limits{});
  const std::string head = post("Content-Length: 2\r\nExpect: 100-Continue\r\n", "");
  EXPECT_EQ(parser.read(head + "ab"), head.size());
  ASSERT_EQ(parser.state(), RequestParser::State::kHeadComplete);
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(parser.head().path, "/v1");
  parser.read_body();
  EXPECT_EQ(parser.read("ab"), 2u);
  EXPECT_EQ(parser.state(), RequestParser::State::kComplete);
  EXPECT_EQ(parser.take_request().body, "ab");
}

struct Refused {
  const char* what;
  std::string bytes;
  int status;
};

std::vector<Refused> refused_requests() {
  const auto line = [](const std::string& text) { return text + "\r\nHost: a\r\n\r\n"; };
  const auto header = [](const std::string& text) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + text + "\r\n\r\n";
  };
  return {
      {"no version", line("GET /"), 400},
      {"two words", line("GET HTTP/1.1"), 400},
      {"two spaces", line("GET  / HTTP/1.1"), 400},
      {"a space in the path", line("GET /a b HTTP/1.1"), 400},
      {"a tab in the path", line("GET /a\tb HTTP/1.1"), 400},
      {"a space behind the version", line("GET / HTTP/1.1 "), 400},
      {"no method", line(" / HTTP/1.1"), 400},
      {"a method that is none", line("G(T / HTTP/1.1"), 400},
      {"no slash", line("GET a HTTP/1.1"), 400},
      {"another host's address", line("GET http://b/ HTTP/1.1"), 400},
      {"bytes beyond ASCII", line("GET /\xc3\xa9 HTTP/1.1"), 400},
      {"a version that is none", line("GET / HTTP/1.x"), 400},
      {"a small version", line("GET / http/1.1"), 400},
      {"two empty lines", "\r\n\r\n" + line("GET / HTTP/1.1"), 400},
      {"version 2", line("PRI * HTTP/2.0"), 505},
      {"version 1.2", line("GET / HTTP/1.2"), 505},
      {"TLS", std::string("\x16\x03\x01", 3), 400},
      {"no carriage return", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"a bare carriage return", header("A: b\rC: d"), 400},
      {"two carriage returns", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400},
      {"NUL in a value", header(std::string("A: b\0c", 6)), 400},
      {"NUL in a path", line(std::string("GET /\0 HTTP/1.1", 15)), 400},
      {"a control character", header("A: b\x1b[2J"), 400},
      {"delete", header("A: \x7f"), 400},
      {"no colon", header("A"), 400},
      {"no name", header(": a"), 400},
      {"a space before the colon", header("A : b"), 400},
      {"a space in a name", header("A B: c"), 400},
      {"a name beyond ASCII", header("\xc3\xa9: c"), 400},
      {"a header that goes on", header("A: b\r\n c"), 400},
      {"a tab at once", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", header("Host: a"), 400},
      {"two lengths", header("Content-Length: 1\r\nContent-Length: 1"), 400},
      {"a list of lengths", header("Content-Length: 1, 1"), 400},
      {"a negative length", header("Content-Length: -1"), 400},
      {"a signed length", header("Content-Length: +1"), 400},
      {"a length in base 16", header("Content-Length: 0x1"), 400},
      {"an empty length", header("Content-Length:"), 400},
      {"a length and chunks", header("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400},
      {"chunks and a length", header("Transfer-Encoding: chunked\r\nContent-Length: 1"), 400},
      {"another coding", header("Transfer-Encoding: gzip, chunked"), 400},
      {"identity", header("Transfer-Encoding: identity"), 400},
      {"chunks twice", header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
      {"chunks of 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"compression", header("Content-Encoding: gzip"), 415},
      {"another expectation", header("Expect: tea"), 417},
      {"a large body", header("Content-Length: 101"), 413},
      {"a very large body", header("Content-Length: 99999999999999999999999999999999"), 413},
      {"a chunk without size", post("Transfer-Encoding: chunked\r\n", "\r\n"), 400},
      {"a chunk of size g", post("Transfer-Encoding: chunked\r\n", "g\r\n"), 400},
      {"a negative chunk", post("Transfer-Encoding: chunked\r\n", "-1\r\n"), 400},
      {"a chunk that is longer", post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n"), 400},
      {"a long line of a chunk", post("Transfer-Encoding: chunked\r\n", "1;" + std::string(300, 'x')), 400},
      {"a large chunk", post("Transfer-Encoding: chunked\r\n", "65\r\n"), 413},
      {"a very large chunk", post("Transfer-Encoding: chunked\r\n", "fffffffffffffffffffffffff\r\n"), 413},
      {"many chunks", post("Transfer-Encoding: chunked\r\n", "3c\r\n" + std::string(60, 'x') + "\r\n29\r\n"),
       413},
      {"a trailer that is none", post("Transfer-Encoding: chunked\r\n", "0\r\nA B: c\r\n"), 400},
      {"many trailers", post("Transfer-Encoding: chunked\r\n", "0\r\nA:\r\nB:\r\nC:\r\nD:\r\n"), 431},
      {"a long path", "GET /" + std::string(60, 'a'), 414},
      {"a long value", "GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(200, 'a'), 431},
      {"many headers", header("A: b\r\nC: d\r\nE: f\r\nG: h\r\nI: j"), 431},
  };
}

Limits small_limits() {
  Limits limits;
  limits.request_line_bytes = 50;
  limits.header_bytes = 150;
  limits.num_headers = 5;
  limits.body_bytes = 100;
  return limits;
}

TEST(RequestParser, RefusesWithTheStatusOfEachFault) {
  for (const Refused& refused : refused_requests()) {
    const Parsed parsed = parse_whole(refused.bytes, small_limits());
    EXPECT_EQ(parsed.requests.size(), 0u) << refused.what;
    EXPECT_EQ(parsed.refusal.substr(0, 3), std::to_string(refused.status)) << refused.what << parsed.refusal;
    EXPECT_TRUE(parsed.refusal.ends_with(".")) << refused.what;
  }
}

TEST(RequestParser, StaysRefusedWhateverComes) {
  const std::string good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const Refused& refused : refused_requests()) {
    const Parsed parsed = parse_whole(refused.bytes, small_limits());
    EXPECT_EQ(parse_whole(refused.bytes + good, small_limits()), parsed) << refused.what;
  }
}

TEST(RequestParser, RefusesAtTheFirstByteTooMany) {
  const auto status = [](const std::string& bytes) {
    return parse_whole(bytes, small_limits()).refusal.substr(0, 3);
  };
  const std::string line = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(status(std::string(50, 'a')), "");
  EXPECT_EQ(status(std::string(51, 'a')), "414");
  EXPECT_EQ(status(line + std::string(150, 'a')), "");
  EXPECT_EQ(status(line + std::string(151, 'a')), "431");
  EXPECT_EQ(status(post("Content-Length: 101\r\n", "")), "413") << "announced, and nothing of it has come";
  EXPECT_EQ(status(post("Transfer-Encoding: chunked\r\n", "65\r\n")), "413");
}

TEST(RequestParser, TakesExactlyWhatTheLimitsAllow) {
  const std::string line = "GET /" + std::string(36, 'a') + " HTTP/1.1";
  ASSERT_EQ(line.size(), 50u);
  EXPECT_EQ(parse_whole(line + "\r\nHost: a\r\n\r\n", small_limits()).requests.size(), 1u);
  const std::string headers = "Host: a\r\nA: " + std::string(134, 'a') + "\r\n\r\n";
  ASSERT_EQ(headers.size(), 150u);
  EXPECT_EQ(parse_whole("GET / HTTP/1.1\r\n" + headers, small_limits()).requests.size(), 1u);
  EXPECT_EQ(parse_whole("GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", small_limits())
                .requests.size(),
            1u);
  EXPECT_EQ(
      parse_whole(post("Content-Length: 0100\r\n", std::string(100, 'x')), small_limits()).requests.size(),
      1u);
  EXPECT_EQ(
      parse_whole(post("Transfer-Encoding: chunked\r\n", "3c\r\n" + std::string(60, 'x') + "\r\n28\r\n" +
                                                             std::string(40, 'x') + "\r\n0\r\n\r\n"),
                  small_limits())
          .requests.size(),
      1u);
}

TEST(RequestParser, TheSameComesOfSingleBytes) {
  for (const Refused& refused : refused_requests()) {
    EXPECT_EQ(parse_by_byte(refused.bytes, small_limits()), parse_whole(refused.bytes, small_limits()))
        << refused.what;
  }
}

// Requests that are whole, refused, and spoilt somewhere, cut at random places.
TEST(RequestParser, TheSameComesHoweverTheBytesAreCut) {
  constexpr unsigned kSeed = 20'250'102;
  std::mt19937 random(kSeed);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  std::vector<std::string> parts = {
      post("Content-Length: 5\r\n", "hello"), "GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n",
      post("Transfer-Encoding: chunked\r\n", "3;x\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n"),
      "HEAD / HTTP/1.0\r\n\r\n"};
  for (const Refused& refused : refused_requests()) parts.push_back(refused.bytes);
  std::size_t num_requests = 0, num_refused = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::string bytes;
    for (std::size_t i = 1 + below(4); i > 0; --i)
      bytes += parts[below(2) == 0 ? below(4) : below(parts.size())];
    if (below(3) == 0) bytes[below(bytes.size())] = static_cast<char>(below(256));
    ParserRun run(small_limits());
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::size_t count = std::min(rest.size(), 1 + below(1 + below(60)));
      run.feed(rest.substr(0, count));
      rest.remove_prefix(count);
    }
    const Parsed whole = parse_whole(bytes, small_limits());
    ASSERT_EQ(run.parsed(), whole) << "seed " << kSeed << ", round " << round << ":\n" << bytes;
    num_requests += whole.requests.size();
    num_refused += whole.refusal.empty() ? 0 : 1;
  }
  EXPECT_GT(num_requests, 1'000u);
  EXPECT_GT(num_refused, 300u);
}

}  // namespace
}  // namespace octavo::http
