// The client over real sockets of this machine: many answers on one thread, and whatever goes wrong ends one
// request alone, with a sentence.

#include "app/http_client/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/openai_server.h"

namespace octavo::http {
namespace {

using std::chrono::milliseconds;
using testing::OpenAiServer;

constexpr std::chrono::seconds kGivenUpAfter{30};  // nothing that goes well waits so long

// What came of one request.
struct Heard {
  int status = 0;
  std::string type;
  std::string body;
  std::vector<std::string> pieces;
  std::optional<TransferEnd> end;
  int num_ends = 0;
};

TransferHandlers writing_to(Heard& heard) {
  return {.on_head =
              [&heard](const AnswerHead& head) {
                heard.status = head.status;
                heard.type = head.header("content-type");
              },
          .on_body =
              [&heard](std::string_view piece) {
                heard.body += piece;
                heard.pieces.emplace_back(piece);
              },
          .on_end =
              [&heard](const TransferEnd& end) {
                heard.end = end;
                ++heard.num_ends;
              }};
}

bool wait_until(Client& client, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kGivenUpAfter;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    client.wait(milliseconds(20));
  }
  return true;
}

class ClientTest : public ::testing::Test {
 protected:
  Heard ask(ClientRequest request) {
    Heard heard;
    client_.start(std::move(request), writing_to(heard));
    EXPECT_TRUE(wait_until(client_, [&] { return heard.end.has_value(); }));
    return heard;
  }

  SteadyClock clock_;
  Client client_{clock_};
};

void echo(const Request& request, const Reply& reply) {
  reply.send({.status = 200,
              .headers = {{"Content-Type", "text/plain"}},
              .body = request.method + " " + request.path + " " + std::string(request.header("x-name")) +
                      " " + request.body});
}

TEST_F(ClientTest, SendsMethodPathHeadersAndBody) {
  OpenAiServer server(echo);
  const Heard got = ask({.url = server.root() + "/a", .headers = {{"X-Name", "value"}}});
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.type, "text/plain");
  EXPECT_EQ(got.body, "GET /a value ");
  EXPECT_FALSE(got.end->error);
  const std::string body(300'000, 'b');
  EXPECT_EQ(ask({.method = "POST", .url = server.root() + "/b", .body = body}).body, "POST /b  " + body);
}

TEST_F(ClientTest, AStatusIsNoError) {
  OpenAiServer server(
      [](const Request&, const Reply& reply) { reply.send({.status = 404, .body = "gone"}); });
  const Heard got = ask({.url = server.root() + "/"});
  EXPECT_EQ(got.status, 404);
  EXPECT_EQ(got.body, "gone");
  EXPECT_FALSE(got.end->error);
}

TEST_F(ClientTest, PiecesComeWhenTheyAreSentNotAtTheEnd) {
  std::optional<Reply> held;
  std::mutex mutex;
  OpenAiServer server([&](const Request&, const Reply& reply) {
    const std::lock_guard lock(mutex);
    held = reply;
    OpenAiServer::begin_stream(reply);
    reply.write("first");
  });
  Heard heard;
  client_.start({.url = server.root() + "/"}, writing_to(heard));
  ASSERT_TRUE(wait_until(client_, [&] { return heard.body == "first"; }));
  EXPECT_EQ(heard.num_ends, 0);
  {
    const std::lock_guard lock(mutex);
    held->write(" second");
    held->end();
  }
  ASSERT_TRUE(wait_until(client_, [&] { return heard.num_ends == 1; }));
  EXPECT_EQ(heard.body, "first second");
}

TEST_F(ClientTest, TwoHundredAnswersStreamOnOneThread) {
  std::vector<Reply> held;
  std::mutex mutex;
  OpenAiServer server([&](const Request&, const Reply& reply) {
    const std::lock_guard lock(mutex);
    held.push_back(reply);
    OpenAiServer::begin_stream(reply);
    if (held.size() < 200) return;
    for (int piece = 0; piece < 5; ++piece)
      for (const Reply& each : held) each.write(std::to_string(piece));
    for (const Reply& each : held) each.end();
    held.clear();
  });
  std::vector<Heard> heard(200);
  std::size_t num_ended = 0;
  for (Heard& each : heard) {
    TransferHandlers handlers = writing_to(each);
    handlers.on_end = [&num_ended, inner = handlers.on_end](const TransferEnd& end) {
      inner(end);
      ++num_ended;
    };
    client_.start({.url = server.root() + "/"}, std::move(handlers));
  }
  ASSERT_TRUE(wait_until(client_, [&] { return num_ended == 200; }));
  for (const Heard& each : heard) {
    EXPECT_EQ(each.body, "01234");
    EXPECT_FALSE(each.end->error) << each.end->error->message;
  }
  EXPECT_EQ(client_.num_open(), 0u);
}

TEST_F(ClientTest, ConnectionsAreUsedAgain) {
  OpenAiServer server(echo);
  for (int i = 0; i < 20; ++i) ask({.url = server.root() + "/"});
  EXPECT_EQ(server.server().num_connections(), 1u);
}

TEST_F(ClientTest, CancelClosesTheConnectionAndNobodyIsToldOfIt) {
  std::atomic<bool> has_left = false;
  OpenAiServer server([&](const Request&, const Reply& reply) {
    OpenAiServer::begin_stream(reply);
    reply.write("first");
    // Held by nobody: the callback must not, so a copy is kept in a place of its own.
    static std::optional<Reply> held;
    held = reply;
    reply.on_client_left([&] { has_left = true; });
  });
  Heard heard;
  const TransferId id = client_.start({.url = server.root() + "/"}, writing_to(heard));
  ASSERT_TRUE(wait_until(client_, [&] { return heard.body == "first"; }));
  client_.cancel(id);
  EXPECT_EQ(client_.num_open(), 0u);
  EXPECT_TRUE(wait_until(client_, [&] { return has_left.load(); }));
  EXPECT_EQ(heard.num_ends, 0);
  client_.cancel(id);  // nothing
}

TEST_F(ClientTest, AHandlerMayCancelItsOwnRequestAndStartAnother) {
  OpenAiServer server(echo);
  Heard second;
  TransferId first_id = 0;
  int num_pieces = 0;
  first_id = client_.start({.url = server.root() + "/1"},
                           {.on_body =
                                [&](std::string_view) {
                                  ++num_pieces;
                                  client_.cancel(first_id);
                                  client_.start({.url = server.root() + "/2"}, writing_to(second));
                                },
                            .on_end = [&](const TransferEnd&) { ADD_FAILURE() << "it was cancelled"; }});
  ASSERT_TRUE(wait_until(client_, [&] { return second.end.has_value(); }));
  EXPECT_EQ(num_pieces, 1);
  EXPECT_EQ(second.body, "GET /2  ");
}

TEST_F(ClientTest, NobodyThereIsASentenceAndNothingArrived) {
  std::string root;
  {
    OpenAiServer gone(echo);
    root = gone.root();
  }
  const Heard got = ask({.url = root + "/v1/models?secret=yes"});
  ASSERT_TRUE(got.end->error);
  EXPECT_EQ(got.end->error->code, ErrorCode::kIo);
  EXPECT_EQ(got.end->error->message,
            "nobody answers at " + root + "; check the address, and whether the server runs");
  EXPECT_FALSE(got.end->may_have_arrived);
}

TEST_F(ClientTest, BadAddressesAndHeadersAreRefused) {
  for (const char* const url : {"", "file:///etc/passwd", "ftp://127.0.0.1/", "http://", "gopher://x"}) {
    const Heard got = ask({.url = url});
    ASSERT_TRUE(got.end->error) << url;
    EXPECT_EQ(got.end->error->code, ErrorCode::kInvalidArgument) << got.end->error->message;
  }
  OpenAiServer server(echo);
  const Heard got =
      ask({.url = server.root() + "/", .headers = {{"Authorization", "Bearer a\r\nX-Evil: b"}}});
  ASSERT_TRUE(got.end->error);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(ClientTest, NoPasswordOfAnAddressIsInASentence) {
  const Heard got = ask({.url = "http://me:secret@127.0.0.1:1/v1"});
  ASSERT_TRUE(got.end->error);
  EXPECT_EQ(got.end->error->message.find("secret"), std::string::npos) << got.end->error->message;
}

TEST_F(ClientTest, NoRedirectIsFollowed) {
  OpenAiServer other(echo);
  OpenAiServer server([&](const Request&, const Reply& reply) {
    reply.send({.status = 307, .headers = {{"Location", other.root() + "/"}}});
  });
  const Heard got = ask({.url = server.root() + "/", .headers = {{"Authorization", "Bearer key"}}});
  EXPECT_EQ(got.status, 307);
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(ClientTest, AnAnswerThatIsTooLongIsEnded) {
  OpenAiServer server([](const Request&, const Reply& reply) {
    OpenAiServer::begin_stream(reply);
    for (int i = 0; i < 100; ++i) reply.write(std::string(1'000, 'x'));
    reply.end();
  });
  const Heard got = ask({.url = server.root() + "/", .limits = {.body_bytes = 10'000}});
  ASSERT_TRUE(got.end->error);
  EXPECT_EQ(got.end->error->code, ErrorCode::kTooLong);
  EXPECT_LE(got.body.size(), 10'000u);
}

TEST_F(ClientTest, AnAnswerThatBreaksOffIsAnError) {
  OpenAiServer server([](const Request&, const Reply& reply) {
    OpenAiServer::begin_stream(reply);
    reply.write("half");
  });  // nobody ends it
  const Heard got = ask({.url = server.root() + "/"});
  EXPECT_EQ(got.body, "half");
  ASSERT_TRUE(got.end->error);
  EXPECT_NE(got.end->error->message.find("closed the connection"), std::string::npos)
      << got.end->error->message;
  EXPECT_TRUE(got.end->may_have_arrived);
}

TEST(ClientTimes, ASilentServerIsGivenUpByTheClockThatIsGiven) {
  static std::optional<Reply> held;
  std::atomic<bool> has_come = false;
  OpenAiServer server([&](const Request&, const Reply& reply) {
    held = reply;
    has_come = true;
  });
  ManualClock clock;
  Client client(clock);
  Heard heard;
  client.start({.url = server.root() + "/", .limits = {.idle_time = milliseconds(60'000)}},
               writing_to(heard));
  ASSERT_TRUE(wait_until(client, [&] { return has_come.load(); }));
  clock.advance_us(59'000'000);
  client.wait(milliseconds(0));
  EXPECT_EQ(heard.num_ends, 0);
  clock.advance_us(1'000'001);
  client.wait(milliseconds(0));
  ASSERT_EQ(heard.num_ends, 1);
  EXPECT_NE(heard.end->error->message.find("sent nothing for"), std::string::npos);
  EXPECT_EQ(client.num_open(), 0u);
  held.reset();
}

TEST_F(ClientTest, WakeUpEndsAWaitFromAnyThread) {
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(20));
    client_.wake_up();
  });
  const auto begin = std::chrono::steady_clock::now();
  client_.wait(std::chrono::duration_cast<milliseconds>(kGivenUpAfter));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kGivenUpAfter);
  waker.join();
}

TEST_F(ClientTest, FetchGivesAWholeAnswerOrStops) {
  OpenAiServer server(echo);
  const auto got = fetch(client_, {.url = server.root() + "/x"});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "GET /x  ");
  static std::optional<Reply> held;
  OpenAiServer silent([](const Request&, const Reply& reply) { held = reply; });
  const auto stopped = fetch(client_, {.url = silent.root() + "/"}, [] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(client_.num_open(), 0u);
  held.reset();
}

}  // namespace
}  // namespace octavo::http
