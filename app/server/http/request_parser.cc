#include "app/server/http/request_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/server/http/syntax.h"
#include "engine/base/ascii.h"
#include "engine/base/check.h"

namespace octavo::http {
namespace {

constexpr std::size_t kMaxChunkLineBytes = 256;  // size and extensions, which nobody reads

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_visible(char c) { return c > 0x20 && c < 0x7f; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

int hexadecimal_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Digits alone, and at least one; what is more than `most` gives most + 1, however long it is.
std::optional<std::size_t> parse_size(std::string_view text, int base, std::size_t most) {
  if (text.empty()) return std::nullopt;
  std::size_t size = 0;
  for (const char c : text) {
    const int digit = hexadecimal_value(c);
    if (digit >= base) return std::nullopt;
    if (size <= most) size = size * static_cast<std::size_t>(base) + static_cast<std::size_t>(digit);
    size = std::min(size, most + 1);
  }
  return size;
}

std::size_t count_headers(const Request& request, std::string_view name) {
  return static_cast<std::size_t>(std::count_if(request.headers.begin(), request.headers.end(),
                                                [&](const Header& header) { return header.name == name; }));
}

// Whether a list that commas separate names `word`, in any case.
bool lists(std::string_view list, std::string_view word) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (ascii_lower_case(trim(list.substr(0, comma))) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

RequestParser::State RequestParser::state() const {
  switch (part_) {
    case Part::kRequestLine:
    case Part::kHeaderLine: return State::kHead;
    case Part::kHeadEnd: return State::kHeadComplete;
    case Part::kFixedBody:
    case Part::kChunkSizeLine:
    case Part::kChunk:
    case Part::kChunkEndLine:
    case Part::kTrailerLine: return State::kBody;
    case Part::kEnd: return State::kComplete;
    case Part::kRefused: break;
  }
  return State::kRefused;
}

std::size_t RequestParser::read(std::string_view bytes) {
  std::size_t num_taken = 0;
  while (num_taken < bytes.size() && wants_bytes()) {
    if (is_in_line()) {
      read_line_byte(bytes[num_taken++]);
    } else {
      num_taken += read_body_bytes(bytes.substr(num_taken));
    }
  }
  return num_taken;
}

void RequestParser::read_body() {
  OCTAVO_CHECK(part_ == Part::kHeadEnd, "a body comes behind its head");
  if (is_chunked_) {
    part_ = Part::kChunkSizeLine;
  } else {
    part_ = num_missing_bytes_ > 0 ? Part::kFixedBody : Part::kEnd;
  }
}

Request RequestParser::take_request() {
  OCTAVO_CHECK(part_ == Part::kEnd, "a request is taken when it is complete");
  Request request = std::move(request_);
  *this = RequestParser(limits_);
  return request;
}

// ---- lines

// Control characters are refused as they come, so that a client that speaks something else, such as TLS, is
// told at once and not when its time is over.
void RequestParser::read_line_byte(char byte) {
  const bool is_header = part_ == Part::kHeaderLine || part_ == Part::kTrailerLine;
  if (is_header && ++num_header_bytes_ > limits_.header_bytes) return refuse_long_line();
  if (is_after_carriage_return_ != (byte == '\n')) return refuse(400, "Lines must end with CR LF.");
  is_after_carriage_return_ = byte == '\r';
  if (byte == '\n') return end_line();
  if (byte == '\r') return;
  if (is_control_character(byte)) return refuse(400, "The head of the request has a control character.");
  if (line_.size() == max_line_bytes()) return refuse_long_line();
  line_.push_back(byte);
}

std::size_t RequestParser::max_line_bytes() const {
  switch (part_) {
    case Part::kRequestLine: return limits_.request_line_bytes;
    case Part::kHeaderLine:
    case Part::kTrailerLine: return limits_.header_bytes;
    default: return kMaxChunkLineBytes;
  }
}

void RequestParser::refuse_long_line() {
  const std::string sentence_end = " longer than " + std::to_string(max_line_bytes()) + " bytes.";
  switch (part_) {
    case Part::kRequestLine: return refuse(414, "The request line is" + sentence_end);
    case Part::kHeaderLine:
    case Part::kTrailerLine: return refuse(431, "The headers are" + sentence_end);
    default: return refuse(400, "The line of a chunk's size is" + sentence_end);
  }
}

void RequestParser::end_line() {
  const std::string line = std::exchange(line_, {});
  switch (part_) {
    case Part::kRequestLine: return end_request_line(line);
    case Part::kHeaderLine: return end_header_line(line);
    case Part::kChunkSizeLine: return end_chunk_size_line(line);
    case Part::kChunkEndLine:
      if (!line.empty()) return refuse(400, "A chunk of the body is longer than its size.");
      part_ = Part::kChunkSizeLine;
      return;
    case Part::kTrailerLine: return end_trailer_line(line);
    case Part::kHeadEnd:
    case Part::kFixedBody:
    case Part::kChunk:
    case Part::kEnd:
    case Part::kRefused: OCTAVO_CHECK(false, "these parts have no lines");
  }
}

// ---- head

void RequestParser::end_request_line(std::string_view line) {
  // One empty line may come first: old clients send one behind a body.
  if (line.empty() && !std::exchange(has_skipped_empty_line_, true)) return;
  const std::size_t first_space = line.find(' ');
  const std::size_t last_space = line.rfind(' ');
  if (first_space == std::string_view::npos || first_space == last_space)
    return refuse(400, "The request line must be a method, a path and a version.");
  const std::string_view method = line.substr(0, first_space);
  if (!is_token(method)) return refuse(400, "The method is not one of HTTP.");
  is_head_method_ = method == "HEAD";
  request_.method = is_head_method_ ? "GET" : std::string(method);
  part_ = Part::kHeaderLine;
  set_version(line.substr(last_space + 1));
  if (part_ != Part::kRefused) set_target(line.substr(first_space + 1, last_space - first_space - 1));
}

void RequestParser::set_version(std::string_view version) {
  const bool is_version = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
                          version[6] == '.' && is_digit(version[7]);
  if (!is_version) return refuse(400, "The request line must end with the version of HTTP.");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return refuse(505, "The server speaks HTTP/1.1 and HTTP/1.0.");
  is_http_1_1_ = version == "HTTP/1.1";
  keeps_alive_ = is_http_1_1_;
}

void RequestParser::set_target(std::string_view target) {
  if (!target.starts_with('/')) return refuse(400, "The path must begin with a slash.");
  if (!std::all_of(target.begin(), target.end(), is_visible))
    return refuse(400, "The path has a character that must be percent-encoded.");
  const std::size_t question_mark = target.find('?');
  request_.path = target.substr(0, question_mark);
  if (question_mark != std::string_view::npos) request_.query = target.substr(question_mark + 1);
}

void RequestParser::end_header_line(std::string_view line) {
  if (line.empty()) return end_head();
  Header header;
  if (!read_header(line, header)) return;
  if (request_.headers.size() >= limits_.num_headers)
    return refuse(431, "The request has more than " + std::to_string(limits_.num_headers) + " headers.");
  request_.headers.push_back(std::move(header));
}

bool RequestParser::read_header(std::string_view line, Header& header) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (is_blank(line.front())) {
    refuse(400, "A header must not go on in the next line.");
  } else if (colon == std::string_view::npos) {
    refuse(400, "A header has no colon.");
  } else if (!is_token(name)) {
    refuse(400, "The name of a header has a space or another character that is not allowed.");
  } else {
    header = {ascii_lower_case(name), std::string(trim(line.substr(colon + 1)))};
  }
  return part_ != Part::kRefused;
}

void RequestParser::end_head() {
  part_ = Part::kHeadEnd;
  check_connection();
  check_host();  // each from here on may refuse; the first refusal stays
  check_encodings();
  check_body_length();
  check_expectation();
}

void RequestParser::check_connection() {
  for (const Header& header : request_.headers)
    if (header.name == "connection" && lists(header.value, "close")) keeps_alive_ = false;
}

void RequestParser::check_host() {
  const std::size_t num_hosts = count_headers(request_, "host");
  if (num_hosts > 1) return refuse(400, "The request has more than one Host header.");
  if (num_hosts == 0 && is_http_1_1_) return refuse(400, "The request has no Host header.");
}

void RequestParser::check_encodings() {
  for (const Header& header : request_.headers) {
    if (header.name == "content-encoding" && ascii_lower_case(header.value) != "identity")
      return refuse(415, "The body must not be compressed.");
    if (header.name != "transfer-encoding") continue;
    if (is_chunked_ || ascii_lower_case(header.value) != "chunked" || !is_http_1_1_)
      return refuse(400, "The only transfer coding is chunked, once, with HTTP/1.1.");
    is_chunked_ = true;
  }
}

void RequestParser::check_body_length() {
  const std::size_t num_lengths = count_headers(request_, "content-length");
  if (num_lengths == 0) return;
  if (num_lengths > 1) return refuse(400, "The request has more than one Content-Length header.");
  if (is_chunked_) return refuse(400, "The request has both Content-Length and Transfer-Encoding.");
  const auto length = parse_size(request_.header("content-length"), 10, limits_.body_bytes);
  if (!length) return refuse(400, "Content-Length is not a number.");
  if (*length > limits_.body_bytes) return refuse_too_large_body();
  num_missing_bytes_ = *length;
}

void RequestParser::check_expectation() {
  if (!request_.has_header("expect") || !is_http_1_1_) return;  // RFC 9110, 10.1.1: ignored from HTTP/1.0
  if (ascii_lower_case(request_.header("expect")) != "100-continue")
    return refuse(417, "The server can meet no other expectation than 100-continue.");
  expects_continue_ = is_chunked_ || num_missing_bytes_ > 0;
}

// ---- body

std::size_t RequestParser::read_body_bytes(std::string_view bytes) {
  const std::size_t count = std::min(bytes.size(), num_missing_bytes_);
  request_.body.append(bytes.substr(0, count));
  num_missing_bytes_ -= count;
  if (num_missing_bytes_ == 0) part_ = part_ == Part::kChunk ? Part::kChunkEndLine : Part::kEnd;
  return count;
}

void RequestParser::end_chunk_size_line(std::string_view line) {
  const std::string_view digits = trim(line.substr(0, line.find(';')));
  const std::size_t most = limits_.body_bytes - request_.body.size();
  const auto size = parse_size(digits, 16, most);
  if (!size) return refuse(400, "The size of a chunk is not a number.");
  if (*size > most) return refuse_too_large_body();
  num_missing_bytes_ = *size;
  part_ = *size > 0 ? Part::kChunk : Part::kTrailerLine;
}

// Trailers are checked like headers and dropped: nobody who looked at the head has seen them.
void RequestParser::end_trailer_line(std::string_view line) {
  if (line.empty()) {
    part_ = Part::kEnd;
    return;
  }
  Header dropped;
  if (!read_header(line, dropped)) return;
  if (request_.headers.size() + ++num_trailers_ > limits_.num_headers)
    refuse(431, "The request has more than " + std::to_string(limits_.num_headers) + " headers.");
}

void RequestParser::refuse(int status, std::string sentence) {
  if (part_ == Part::kRefused) return;
  part_ = Part::kRefused;
  keeps_alive_ = false;
  refusal_ = {status, std::move(sentence)};
}

void RequestParser::refuse_too_large_body() {
  refuse(413, "The body is larger than " + std::to_string(limits_.body_bytes) + " bytes.");
}

}  // namespace octavo::http
