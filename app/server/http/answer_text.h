// Answers as bytes: whole, or a head, chunks and an end (RFC 9112, sections 6 and 7). Whatever a header says,
// it stays one line.
//
// Thread: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/server/http/message.h"

namespace octavo::http {

// What the request says about the form of its answer.
struct AnswerForm {
  bool has_body = true;       // not for HEAD
  bool allows_chunks = true;  // not for HTTP/1.0: the end of the connection is the end of the answer
  bool keeps_alive = true;    // the connection, for the next request
};

// For a client that waits with its body until somebody has seen the head.
inline constexpr std::string_view kContinueText = "HTTP/1.1 100 Continue\r\n\r\n";

std::string whole_answer_text(const Response& response, const AnswerForm& form);

std::string answer_head_text(int status, const std::vector<Header>& headers, const AnswerForm& form);
// May be empty: where the answer has no body, and for an empty piece, which would end the chunks.
std::string answer_piece_text(std::string piece, int status, const AnswerForm& form);
std::string answer_end_text(int status, const AnswerForm& form);

}  // namespace octavo::http
