// Bytes to requests (RFC 9112), without a socket: what comes may be cut anywhere, and gives the same.
//
// Strict where leniency has let requests hide in requests: lines end with CR LF, lengths are said once, names
// have no spaces. Nothing is percent-decoded. A target begins with '/': nobody takes this server for a proxy.
// Memory is bounded by Limits, whatever comes: every byte is counted before it is kept.
//
// Thread: one at a time. Errors are refusals: a status, and a sentence that repeats nothing of what came.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "app/server/http/message.h"
#include "app/server/http/server.h"

namespace octavo::http {

struct Refusal {
  int status = 400;
  std::string sentence;
};

class RequestParser {
 public:
  enum class State {
    kHead,          // wants bytes of a request line or headers
    kHeadComplete,  // wants read_body(), or nothing more
    kBody,          // wants bytes of a body
    kComplete,      // wants take_request()
    kRefused,       // for good: where the next request begins cannot be known
  };

  explicit RequestParser(const Limits& limits) : limits_(limits) {}

  State state() const;

  // Takes bytes until the state wants something else; returns how many. What it leaves comes again later.
  std::size_t read(std::string_view bytes);

  // REQUIRES: state() is kHeadComplete; then it is kBody or kComplete.
  void read_body();

  // REQUIRES: state() is kComplete; then it is kHead, for the next request.
  Request take_request();

  // REQUIRES: state() is kRefused.
  const Refusal& refusal() const { return refusal_; }

  // What the head said; the body is empty until take_request. REQUIRES: the head is complete.
  const Request& head() const { return request_; }
  bool expects_continue() const { return expects_continue_; }

  // How the answer must be. Also for a refusal, as far as the head was understood.
  bool is_head_method() const { return is_head_method_; }
  bool is_http_1_1() const { return is_http_1_1_; }
  bool keeps_alive() const { return keeps_alive_; }

 private:
  // Of a request, in the order in which they come.
  enum class Part {
    kRequestLine,
    kHeaderLine,
    kHeadEnd,
    kFixedBody,
    kChunkSizeLine,
    kChunk,
    kChunkEndLine,
    kTrailerLine,
    kEnd,
    kRefused,
  };

  bool wants_bytes() const { return state() == State::kHead || state() == State::kBody; }
  bool is_in_line() const { return part_ != Part::kFixedBody && part_ != Part::kChunk; }

  void read_line_byte(char byte);
  std::size_t max_line_bytes() const;
  std::size_t read_body_bytes(std::string_view bytes);
  void end_line();

  void end_request_line(std::string_view line);
  void set_target(std::string_view target);
  void set_version(std::string_view version);
  void end_header_line(std::string_view line);
  void end_chunk_size_line(std::string_view line);
  void end_trailer_line(std::string_view line);
  bool read_header(std::string_view line, Header& header);

  void end_head();
  void check_host();
  void check_encodings();
  void check_body_length();
  void check_expectation();
  void check_connection();

  void refuse(int status, std::string sentence);
  void refuse_long_line();
  void refuse_too_large_body();

  Limits limits_;
  Part part_ = Part::kRequestLine;
  Refusal refusal_ = {};

  std::string line_ = {};  // the current one, as far as it has come
  bool is_after_carriage_return_ = false;
  bool has_skipped_empty_line_ = false;
  std::size_t num_header_bytes_ = 0;  // with trailers' and line ends
  std::size_t num_trailers_ = 0;

  Request request_ = {};
  bool is_head_method_ = false;
  bool is_http_1_1_ = true;
  bool keeps_alive_ = true;
  bool expects_continue_ = false;
  bool is_chunked_ = false;
  std::size_t num_missing_bytes_ = 0;  // of the body, or of the current chunk
};

}  // namespace octavo::http
