// Events come out the same however their bytes are cut.

#include "app/http_client/event_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace octavo::http {
namespace {

using Events = std::vector<ServerEvent>;

Events read_at_once(std::string_view bytes) {
  EventStream stream;
  return stream.feed(bytes);
}

TEST(EventStream, ReadsWhatTheStandardSays) {
  const struct {
    const char* name;
    std::string bytes;
    Events events;
  } cases[] = {
      {"LF", "data: a\n\ndata: b\n\n", {{"", "a"}, {"", "b"}}},
      {"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", {{"", "a"}, {"", "b"}}},
      {"CR", "data: a\r\rdata: b\r\r", {{"", "a"}, {"", "b"}}},
      {"a name", "event: delta\ndata: {}\n\n", {{"delta", "{}"}}},
      {"several lines of data", "data: one\ndata: two\n\n", {{"", "one\ntwo"}}},
      {"an empty line of data", "data\n\n", {{"", ""}}},
      {"no blank behind the colon", "data:a\n\n", {{"", "a"}}},
      {"only the first blank goes", "data:  a\n\n", {{"", " a"}}},
      {"comments", ": still here\n\n:\ndata: a\n\n", {{"", "a"}}},
      {"other fields", "id: 7\nretry: 10\ndata: a\nwhat: else\n\n", {{"", "a"}}},
      {"a name without data is no event", "event: ping\n\ndata: a\n\n", {{"", "a"}}},
      {"a byte order mark",
       "\xef\xbb\xbf"
       "data: a\n\n",
       {{"", "a"}}},
      {"an event that breaks off", "data: a\n\ndata: {\"half\":", {{"", "a"}}},
      {"characters of several bytes",
       "data: \xf0\x9f\x98\x80 \xc3\xa9\n\n",
       {{"", "\xf0\x9f\x98\x80 \xc3\xa9"}}},
  };
  for (const auto& c : cases) EXPECT_EQ(read_at_once(c.bytes), c.events) << c.name;
}

TEST(EventStream, AnyCutGivesTheSameEvents) {
  const std::string bytes =
      ": hello\r\nevent: a\r\ndata: \xe2\x82\xac 1\r\n\r\ndata: two\rdata: lines\r\rdata: x\n\nevent: "
      "z\ndata: end\n\n";
  const Events whole = read_at_once(bytes);
  ASSERT_EQ(whole.size(), 4u);
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      EventStream stream;
      Events events;
      for (const std::string& part :
           {bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)}) {
        for (ServerEvent& event : stream.feed(part)) events.push_back(std::move(event));
      }
      ASSERT_EQ(events, whole) << "cut at " << first << " and " << second;
    }
  }
}

TEST(EventStream, AnEventThatIsTooLongEndsTheStream) {
  EventStream stream(/*most_bytes=*/32);
  EXPECT_EQ(stream.feed("data: short\n\n").size(), 1u);
  EXPECT_FALSE(stream.has_overflowed());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(stream.feed("data: 1234567\n").empty());
  EXPECT_TRUE(stream.has_overflowed());
  EXPECT_TRUE(stream.feed("\n\ndata: later\n\n").empty());
}

TEST(EventStream, ALineWithoutEndIsBounded) {
  EventStream stream(/*most_bytes=*/1'000);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(stream.feed(std::string(100, 'x')).empty());
  EXPECT_TRUE(stream.has_overflowed());
}

}  // namespace
}  // namespace octavo::http
