#include "app/server/http/answer_text.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo::http {
namespace {

// All but the date, which is checked by itself.
std::string without_date(std::string text) {
  const std::size_t begin = text.find("Date: ");
  EXPECT_NE(begin, std::string::npos);
  const std::size_t end = text.find("\r\n", begin);
  EXPECT_EQ(end - begin, std::string("Date: Sun, 06 Nov 1994 08:49:37 GMT").size());
  return text.erase(begin, end + 2 - begin);
}

TEST(AnswerText, OfAWholeAnswerSaysItsLength) {
  EXPECT_EQ(without_date(whole_answer_text({.status = 200, .headers = {{"A", "b"}}, .body = "text"}, {})),
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nA: b\r\nContent-Length: 4\r\n\r\ntext");
}

TEST(AnswerText, ForHeadIsTheSameWithoutTheBody) {
  EXPECT_EQ(without_date(whole_answer_text({.body = "text"}, {.has_body = false, .keeps_alive = false})),
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n");
  const AnswerForm form = {.has_body = false};
  EXPECT_EQ(without_date(answer_head_text(200, {}, form)),
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer_piece_text("text", 200, form) + answer_end_text(200, form), "");
}

TEST(AnswerText, OfPiecesIsChunks) {
  const AnswerForm form = {};
  EXPECT_EQ(answer_piece_text(std::string(26, 'x'), 200, form), "1a\r\n" + std::string(26, 'x') + "\r\n");
  EXPECT_EQ(answer_piece_text("", 200, form), "") << "an empty chunk would be the last";
  EXPECT_EQ(answer_end_text(200, form), "0\r\n\r\n");
}

TEST(AnswerText, For1_0HasNoChunks) {
  const AnswerForm form = {.allows_chunks = false, .keeps_alive = false};
  EXPECT_EQ(without_date(answer_head_text(200, {}, form)), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer_piece_text("text", 200, form) + answer_end_text(200, form), "text");
}

TEST(AnswerText, HasNoBodyWhereTheStatusHasNone) {
  EXPECT_EQ(without_date(whole_answer_text({.status = 204, .body = "text"}, {})),
            "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer_piece_text("text", 304, {}) + answer_end_text(304, {}), "");
}

TEST(AnswerText, LetsNoHeaderMakeAnother) {
  const Response response = {.headers = {{"A", "b\r\nSet-Cookie: c\r\n\r\n<html>"},
                                         {"B\r\nC", "d"},
                                         {"E", std::string("f\0g", 3)},
                                         {"", "h"},
                                         {"content-length", "99"},
                                         {"Transfer-Encoding", "chunked"},
                                         {"Connection", "upgrade"}}};
  EXPECT_EQ(without_date(whole_answer_text(response, {})),
            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nA: b  Set-Cookie: c    <html>\r\nE: f g\r\n"
            "Content-Length: 0\r\n\r\n");
}

}  // namespace
}  // namespace octavo::http
