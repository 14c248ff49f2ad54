// What a client sends, as bytes: to requests, or to a refusal. The first byte decides where the rest is cut.
#include <string>
#include <string_view>
#include <vector>

#include "app/server/http/answer_text.h"
#include "app/server/http/request_parser.h"
#include "app/server/http/syntax.h"
#include "tests/fuzz/target.h"

namespace octavo::fuzz {
namespace {

using http::Header;
using http::Request;
using http::RequestParser;

// Small enough that inputs reach every one of them.
http::Limits small_limits() {
  http::Limits limits;
  limits.request_line_bytes = 60;
  limits.header_bytes = 200;
  limits.num_headers = 8;
  limits.body_bytes = 100;
  return limits;
}

constexpr std::string_view kDictionary[] = {"GET / HTTP/1.1\r\n",
                                            "POST /v1?a=b HTTP/1.1\r\n",
                                            "HEAD / HTTP/1.0\r\n",
                                            "Host: a\r\n",
                                            "Content-Length: 5\r\n",
                                            "Content-Length: 18446744073709551616\r\n",
                                            "Transfer-Encoding: chunked\r\n",
                                            "Content-Encoding: identity\r\n",
                                            "Connection: a, close\r\n",
                                            "Expect: 100-continue\r\n",
                                            "\r\n",
                                            "\r\n\r\n",
                                            "hello",
                                            "5\r\nhello\r\n",
                                            "0\r\n\r\n",
                                            "0\r\nA: b\r\n\r\n",
                                            "a;b=c\r\n",
                                            "ffffffffffffffff\r\n",
                                            "-1",
                                            ":",
                                            ": ",
                                            " ",
                                            "\t",
                                            "\n",
                                            "\r",
                                            "%0d%0a",
                                            "\x7f",
                                            "\xff"};

// All that was said of the bytes; the same for the same bytes, however they are cut.
struct Conversion {
  std::vector<Request> requests;
  int refused_status = 0;
};

bool is_one_line(std::string_view text) {
  for (const char c : text)
    if (http::is_control_character(c)) return false;
  return true;
}

void check_request(const Request& request, const http::Limits& limits) {
  require(http::is_token(request.method) && request.method != "HEAD", "a method is a token, and HEAD is GET");
  require(request.path.starts_with('/') && is_one_line(request.path) && is_one_line(request.query),
          "a path begins with a slash and is one line");
  require(request.path.find_first_of(" \t?") == std::string::npos, "a path ends before the query");
  require(request.path.size() + request.query.size() <= limits.request_line_bytes, "a path has a limit");
  require(request.headers.size() <= limits.num_headers, "headers have a limit");
  require(request.body.size() <= limits.body_bytes, "a body has a limit");
  std::size_t num_header_bytes = 0;
  for (const Header& header : request.headers) {
    require(http::is_token(header.name) && is_one_line(header.value), "a header is one line");
    num_header_bytes += header.name.size() + header.value.size();
  }
  require(num_header_bytes <= limits.header_bytes, "headers have a limit together");
}

// Feeds pieces of `num_bytes`, at least one each.
Conversion convert(std::string_view bytes, std::size_t num_bytes) {
  const http::Limits limits = small_limits();
  RequestParser parser(limits);
  Conversion conversion;
  while (true) {
    switch (parser.state()) {
      case RequestParser::State::kHeadComplete: parser.read_body(); continue;
      case RequestParser::State::kComplete:
        conversion.requests.push_back(parser.take_request());
        check_request(conversion.requests.back(), limits);
        continue;
      case RequestParser::State::kRefused:
        require(parser.refusal().status >= 400 && parser.refusal().status < 600, "a refusal has a status");
        require(is_one_line(parser.refusal().sentence) && !parser.refusal().sentence.empty(),
                "a refusal is one printable line");
        require(!parser.keeps_alive(), "no request is looked for behind a refusal");
        conversion.refused_status = parser.refusal().status;
        return conversion;
      case RequestParser::State::kHead:
      case RequestParser::State::kBody: break;
    }
    if (bytes.empty()) return conversion;
    const std::size_t taken = parser.read(bytes.substr(0, num_bytes));
    require(taken > 0, "bytes that are wanted are taken");
    bytes.remove_prefix(taken);
  }
}

bool same(const Request& a, const Request& b) {
  if (a.headers.size() != b.headers.size()) return false;
  for (std::size_t i = 0; i < a.headers.size(); ++i)
    if (a.headers[i].name != b.headers[i].name || a.headers[i].value != b.headers[i].value) return false;
  return a.method == b.method && a.path == b.path && a.query == b.query && a.body == b.body;
}

bool same(const Conversion& a, const Conversion& b) {
  if (a.requests.size() != b.requests.size() || a.refused_status != b.refused_status) return false;
  for (std::size_t i = 0; i < a.requests.size(); ++i)
    if (!same(a.requests[i], b.requests[i])) return false;
  return true;
}

// Whatever a handler puts in a header, the head that is written has the lines that it should have.
void check_answer(std::string_view text) {
  const http::Response response = {.headers = {{std::string(text), "value"}, {"name", std::string(text)}},
                                   .body = "body"};
  const std::string answer = http::whole_answer_text(response, {});
  const std::size_t head_end = answer.find("\r\n\r\n");
  require(head_end != std::string::npos && answer.substr(head_end + 4) == "body",
          "an answer's head ends where its body begins");
  std::size_t num_lines = 0;
  for (std::size_t at = 0; at < head_end; at = answer.find("\r\n", at) + 2) ++num_lines;
  const std::size_t most = http::is_token(text) ? 6 : 5;  // with the status, and the server's own three
  require(num_lines >= 5 && num_lines <= most, "no header makes another, and a good one stays");
}

void run(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const std::string_view bytes(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const Conversion whole = convert(bytes, bytes.size());
  require(same(convert(bytes, 1), whole), "bytes one by one give the same as all at once");
  require(same(convert(bytes, 1 + input[0] % 64), whole), "pieces give the same as all at once");
  check_answer(bytes);
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  mutate_text(input, max_size, random, kDictionary, mutate_bytes);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> seeds;
  for (const std::string_view text : {"\x03GET /a?b HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.0\r\n\r\n",
                                      "\x07POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
                                      "\x05POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                      "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n"})
    seeds.emplace_back(text.begin(), text.end());
  return seeds;
}

}  // namespace

const Target kHttpTarget = {"http", 1024, run, mutate, seeds};

}  // namespace octavo::fuzz
