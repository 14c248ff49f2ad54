#include "app/server/http/answer_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

#include "app/server/http/syntax.h"
#include "engine/base/ascii.h"

namespace octavo::http {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    case 529: return "Overloaded";
    default: return "Status";  // clients go by the number
  }
}

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

// "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale (RFC 9110, section 5.6.7).
std::string date_text() {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (::gmtime_r(&now, &utc) == nullptr) return "Thu, 01 Jan 1970 00:00:00 GMT";
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                kMonths[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                utc.tm_sec);
  return text;
}

// Those that say where an answer ends are the server's alone.
bool is_servers_own(std::string_view name) {
  const std::string lower = ascii_lower_case(name);
  return lower == "content-length" || lower == "transfer-encoding" || lower == "connection" ||
         lower == "date";
}

// A line break in a value would begin a header, or a body, of somebody else's making.
std::string one_line(std::string value) {
  std::replace_if(value.begin(), value.end(), is_control_character, ' ');
  return value;
}

void append_header(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\r\n");
}

// Up to the headers that say how the body ends.
std::string begin_head(int status, const std::vector<Header>& headers, const AnswerForm& form) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  text.append(reason_of(status)).append("\r\n");
  append_header(text, "Date", date_text());
  append_header(text, "Connection", form.keeps_alive ? "keep-alive" : "close");
  for (const Header& header : headers)
    if (is_token(header.name) && !is_servers_own(header.name))
      append_header(text, header.name, one_line(header.value));
  return text;
}

bool sends_body(int status, const AnswerForm& form) { return form.has_body && status_has_body(status); }

}  // namespace

std::string whole_answer_text(const Response& response, const AnswerForm& form) {
  std::string text = begin_head(response.status, response.headers, form);
  if (status_has_body(response.status))
    append_header(text, "Content-Length", std::to_string(response.body.size()));
  text += "\r\n";
  if (sends_body(response.status, form)) text += response.body;
  return text;
}

std::string answer_head_text(int status, const std::vector<Header>& headers, const AnswerForm& form) {
  std::string text = begin_head(status, headers, form);
  if (status_has_body(status) && form.allows_chunks) append_header(text, "Transfer-Encoding", "chunked");
  return text + "\r\n";
}

std::string answer_piece_text(std::string piece, int status, const AnswerForm& form) {
  if (piece.empty() || !sends_body(status, form)) return {};
  if (!form.allows_chunks) return piece;
  char size_line[24];
  std::snprintf(size_line, sizeof size_line, "%zx\r\n", piece.size());
  return piece.insert(0, size_line).append("\r\n");
}

std::string answer_end_text(int status, const AnswerForm& form) {
  return sends_body(status, form) && form.allows_chunks ? "0\r\n\r\n" : "";
}

}  // namespace octavo::http
