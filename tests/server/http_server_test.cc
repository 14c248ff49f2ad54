// The server over real sockets of this machine. Waits end with what is waited for; the long limit on each of
// them only ends a test that has failed.

#include "app/server/http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "app/files/file_descriptor.h"
#include "tests/server/http_client.h"

namespace octavo::http {
namespace {

using namespace std::chrono_literals;

// Counts what happens on another thread.
class Counter {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool reaches(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kFailedAfter, [&] { return count_ >= count; });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"; }

std::string post_of(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

// A server whose requests are answered with what they said, kept for a test to answer, dropped, or
// answered in pieces at once: /echo, /keep, /drop, /pieces. A head with X-No is refused.
class HttpServerTest : public ::testing::Test {
 protected:
  void start(const Limits& limits = {}) {
    auto server = Server::listen(
        {.port = 0, .limits = limits},
        [this](const Request& head) -> std::optional<Response> {
          heads_.add();
          if (!head.has_header("x-no")) return std::nullopt;
          return Response{.status = 403, .body = "no"};
        },
        [this](Request request, Reply reply) { handle(std::move(request), std::move(reply)); },
        [](int status, const std::string& sentence) { return Response{.status = status, .body = sentence}; });
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = *std::move(server);
  }
  void TearDown() override {
    server_.reset();
    kept_.clear();
  }

  HttpClient connect() {
    HttpClient client;
    EXPECT_TRUE(client.connect(server_->port()));
    return client;
  }

  // The i-th request for /keep.
  Reply kept(std::size_t index) {
    EXPECT_TRUE(num_kept_.reaches(static_cast<int>(index) + 1));
    const std::lock_guard lock(mutex_);
    return kept_.at(index);
  }
  void forget_kept() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }

  std::unique_ptr<Server> server_;
  Counter heads_, num_kept_;

 private:
  void handle(Request request, Reply reply) {
    if (request.path == "/drop") return;
    if (request.path == "/pieces") {
      reply.begin(200, {});
      reply.write("one");
      reply.write("two");
      return reply.end();
    }
    if (request.path == "/keep") {
      {
        const std::lock_guard lock(mutex_);
        kept_.push_back(std::move(reply));
      }
      return num_kept_.add();
    }
    reply.send({.body = request.method + " " + request.path + " " + request.body});
  }

  std::mutex mutex_;
  std::vector<Reply> kept_;
};

// ---- requests and answers

TEST_F(HttpServerTest, AnswersOneRequestBehindAnotherOnOneConnection) {
  start();
  HttpClient client = connect();
  for (int i = 0; i < 3; ++i) {
    const std::string answer = client.ask(post_of("/echo", std::to_string(i)));
    EXPECT_EQ(body_of(answer), "POST /echo " + std::to_string(i));
    EXPECT_NE(answer.find("\r\nConnection: keep-alive\r\n"), std::string::npos);
    EXPECT_NE(answer.find("\r\nDate: "), std::string::npos);
  }
  EXPECT_EQ(server_->num_connections(), 1u);
}

TEST_F(HttpServerTest, AnswersRequestsThatComeTogetherInTheirOrder) {
  start();
  HttpClient client = connect();
  client.send(get("/keep") + post_of("/echo", "a") + get("/echo"));
  kept(0).send({.body = "first"});
  EXPECT_EQ(body_of(client.read_answer()), "first");
  EXPECT_EQ(body_of(client.read_answer()), "POST /echo a");
  EXPECT_EQ(body_of(client.read_answer()), "GET /echo ");
}

TEST_F(HttpServerTest, ReadsABodyThatComesSlowly) {
  start();
  HttpClient client = connect();
  const std::string request = post_of("/echo", "slow");
  for (const char c : request) {
    ASSERT_TRUE(client.send({&c, 1}));
    std::this_thread::sleep_for(100us);
  }
  EXPECT_EQ(body_of(client.read_answer()), "POST /echo slow");
}

TEST_F(HttpServerTest, ReadsAndWritesBodiesOfManyPackets) {
  start();
  HttpClient client = connect();
  const std::string body(5'000'000, 'x');
  EXPECT_EQ(body_of(client.ask(post_of("/echo", body))), "POST /echo " + body);
  EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
}

TEST_F(HttpServerTest, StreamsFromAnotherThreadAndKeepsTheConnection) {
  start();
  HttpClient client = connect();
  for (std::size_t i = 0; i < 3; ++i) {
    client.send(get("/keep"));
    std::thread writer([reply = kept(i)] {
      reply.begin(200, {{"Content-Type", "text/event-stream"}});
      for (int piece = 0; piece < 100; ++piece) reply.write("data: " + std::to_string(piece % 10) + "\n\n");
      reply.write("");
      reply.end();
    });
    const std::string head = client.read_head();
    EXPECT_NE(head.find("Transfer-Encoding: chunked"), std::string::npos);
    EXPECT_NE(head.find("Connection: keep-alive"), std::string::npos);
    std::string expected;
    for (int piece = 0; piece < 100; ++piece)
      expected += "9\r\ndata: " + std::to_string(piece % 10) + "\n\n\r\n";
    EXPECT_EQ(client.read_until("\r\n0\r\n\r\n"), expected + "0\r\n\r\n");
    writer.join();
  }
  EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
}

TEST_F(HttpServerTest, SendsPiecesAsTheyCome) {
  start();
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  reply.begin(200, {});
  EXPECT_EQ(status_of(client.read_head()), 200);
  reply.write("one");
  EXPECT_EQ(client.read_until("one\r\n"), "3\r\none\r\n");
  reply.write("two");
  EXPECT_EQ(client.read_until("two\r\n"), "3\r\ntwo\r\n");
  EXPECT_EQ(server_->num_open_answers(), 1u);
  reply.end();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(becomes_true([&] { return server_->num_open_answers() == 0; }));
}

TEST_F(HttpServerTest, StreamsFromItsOwnThread) {
  start();
  HttpClient client = connect();
  client.send(get("/pieces") + get("/echo"));
  EXPECT_EQ(status_of(client.read_head()), 200);
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.read_answer()), "GET /echo ");
}

TEST_F(HttpServerTest, KeepsWhatASlowClientHasNotTaken) {
  start();
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  reply.begin(200, {});
  std::string expected;
  for (int i = 0; i < 3'000; ++i) {
    const std::string piece(4096, static_cast<char>('a' + i % 26));
    reply.write(piece);
    expected += "1000\r\n" + piece + "\r\n";
  }
  reply.end();
  EXPECT_EQ(status_of(client.read_head()), 200);
  EXPECT_TRUE(client.read_bytes(expected.size()) == expected);
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
}

// A writer that never pauses, and a client that takes all it can.
TEST_F(HttpServerTest, AFastStreamDelaysNobody) {
  start();
  HttpClient fast = connect(), client = connect();
  fast.send(get("/keep"));
  std::atomic<bool> is_over = false;
  std::thread writer([&, reply = kept(0)] {
    reply.begin(200, {});
    while (!is_over) reply.write(std::string(100'000, 'x'));
    reply.end();
  });
  std::thread reader([&] {
    while (!fast.read_bytes(1'000'000).empty()) {
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
  is_over = true;
  writer.join();
  server_.reset();
  reader.join();
}

TEST_F(HttpServerTest, AnswersHeadLikeGetWithoutTheBody) {
  start();
  HttpClient client = connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n" + get("/echo"));
  EXPECT_NE(client.read_head().find("Content-Length: 10\r\n"), std::string::npos);
  EXPECT_EQ(body_of(client.read_answer()), "GET /echo ");
  client.send("HEAD /keep HTTP/1.1\r\nHost: a\r\n\r\n" + get("/echo"));
  const Reply reply = kept(0);
  reply.begin(200, {});
  reply.write("never sent");
  reply.end();
  EXPECT_EQ(status_of(client.read_head()), 200);
  EXPECT_EQ(body_of(client.read_answer()), "GET /echo ");
}

TEST_F(HttpServerTest, AnswersHttp1_0AndCloses) {
  start();
  HttpClient client = connect();
  const std::string answer = client.ask("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(answer), "GET /echo ");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.has_ended());

  HttpClient other = connect();
  other.send("GET /keep HTTP/1.0\r\n\r\n");
  const Reply reply = kept(0);
  reply.begin(200, {});
  reply.write("one");
  reply.write("two");
  reply.end();
  EXPECT_EQ(body_of(other.read_to_end()), "onetwo");
  EXPECT_FALSE(other.was_reset());
}

TEST_F(HttpServerTest, ClosesBehindAnAnswerWhenAskedTo) {
  start();
  HttpClient client = connect();
  const std::string answer = client.ask("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.has_ended());
}

TEST_F(HttpServerTest, TellsAClientThatWaitsToGoOn) {
  start();
  HttpClient client = connect();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n";
  client.send(head + "\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(body_of(client.ask("ab")), "POST /echo ab");
  client.send(head + "X-No: 1\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 403) << "and no 100 before";
  EXPECT_TRUE(client.has_ended());
}

// ---- refusals

TEST_F(HttpServerTest, RefusesABodyThatIsAnnouncedTooLargeBeforeItComes) {
  start({.body_bytes = 100});
  HttpClient client = connect();
  const std::string answer =
      client.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
  EXPECT_EQ(status_of(answer), 413);
  EXPECT_EQ(body_of(answer), "The body is larger than 100 bytes.");
  EXPECT_EQ(heads_.count(), 0) << "nobody is asked about what is refused";
}

TEST_F(HttpServerTest, LetsAClientThatIsStillSendingReadItsRefusal) {
  start();
  HttpClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-No: 1\r\nContent-Length: 500000\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(500'000, 'x')));
  EXPECT_EQ(status_of(client.read_answer()), 403);
  client.close_sending();
  EXPECT_TRUE(client.has_ended());
  EXPECT_FALSE(client.was_reset());
}

TEST_F(HttpServerTest, DropsOnlySoMuchOfARefusedBody) {
  start();
  HttpClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nX-No: 1\r\nContent-Length: 8000000\r\n\r\n");
  const std::string piece(64 * 1024, 'x');
  std::size_t num_bytes = 0;
  EXPECT_TRUE(becomes_true([&] {
    for (int i = 0; i < 100; ++i, num_bytes += piece.size())
      if (!client.send(piece)) return true;
    return false;
  })) << "it reads for ever";
  EXPECT_LT(num_bytes, 64u * 1024 * 1024) << "with what the system keeps for both sides";
}

TEST_F(HttpServerTest, RefusesWhatIsNoRequest) {
  start();
  HttpClient client = connect();
  EXPECT_EQ(status_of(client.ask("GET / HTTP/1.1\r\n\r\n")), 400);
  EXPECT_TRUE(client.has_ended());
  HttpClient other = connect();
  EXPECT_EQ(body_of(other.ask(get("/echo"))), "GET /echo ") << "and the others do not notice";
}

// ---- replies and clients that go

TEST_F(HttpServerTest, AnswersForAReplyThatNobodyKept) {
  start();
  HttpClient client = connect();
  EXPECT_EQ(status_of(client.ask(get("/drop"))), 500);
  EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
  client.send(get("/keep"));
  kept(0);
  forget_kept();
  EXPECT_EQ(status_of(client.read_answer()), 500);
}

TEST_F(HttpServerTest, CutsAStreamThatNobodyEnds) {
  start();
  HttpClient client = connect(), old_client = connect();
  client.send(get("/keep"));
  kept(0).begin(200, {});
  kept(0).write("begun");
  old_client.send("GET /keep HTTP/1.0\r\n\r\n");
  kept(1).begin(200, {});
  EXPECT_EQ(status_of(old_client.read_head()), 200);
  forget_kept();
  EXPECT_EQ(body_of(client.read_to_end()), "5\r\nbegun\r\n") << "without a last chunk";
  EXPECT_TRUE(old_client.has_ended());
  EXPECT_TRUE(old_client.was_reset()) << "or it would look whole";
}

TEST_F(HttpServerTest, SaysOnceThatAClientHasLeft) {
  start();
  Counter left;
  std::optional<HttpClient> client(connect());
  client->send(get("/keep"));
  const Reply reply = kept(0);
  std::thread::id thread;
  reply.on_client_left([&] {
    thread = std::this_thread::get_id();
    left.add();
  });
  reply.begin(200, {});
  client.reset();
  ASSERT_TRUE(left.reaches(1));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_TRUE(becomes_true([&] { return server_->num_open_answers() == 0; }));
  reply.write("nobody");
  reply.end();
  server_.reset();
  EXPECT_EQ(left.count(), 1);
}

TEST_F(HttpServerTest, SaysAtOnceThatAClientHadLeft) {
  start();
  std::optional<HttpClient> client(connect());
  client->send(get("/keep"));
  const Reply reply = kept(0);
  client.reset();
  ASSERT_TRUE(becomes_true([&] { return server_->num_connections() == 0; }));
  Counter left;
  reply.on_client_left([&] { left.add(); });
  EXPECT_TRUE(left.reaches(1));
}

TEST_F(HttpServerTest, SaysThatAClientHadLeftThoughPiecesWaited) {
  start({.waiting_bytes = 100'000'000});
  std::optional<HttpClient> client(connect());
  client->send(get("/keep"));
  const Reply reply = kept(0);
  reply.begin(200, {});
  EXPECT_EQ(status_of(client->read_head()), 200);
  for (int i = 0; i < 4'000; ++i) reply.write(std::string(10'000, 'x'));
  client.reset();
  ASSERT_TRUE(becomes_true([&] { return server_->num_connections() == 0; }));
  Counter left;
  reply.on_client_left([&] { left.add(); });
  EXPECT_TRUE(left.reaches(1));
}

TEST_F(HttpServerTest, TakesAnEndOfSendingForLeaving) {
  start();
  HttpClient client = connect();
  client.send(get("/keep"));
  Counter left;
  kept(0).on_client_left([&] { left.add(); });
  client.close_sending();
  EXPECT_TRUE(left.reaches(1));
}

TEST_F(HttpServerTest, SaysNothingOfClientsThatLeaveBehindTheirAnswer) {
  start();
  Counter left;
  for (std::size_t i = 0; i < 20; ++i) {
    HttpClient client = connect();
    client.send(get("/keep"));
    const Reply reply = kept(i);
    reply.on_client_left([&] { left.add(); });
    reply.send({.body = "all"});
  }
  EXPECT_TRUE(becomes_true([&] { return server_->num_connections() == 0; }));
  EXPECT_EQ(left.count(), 0);
}

TEST_F(HttpServerTest, DropsAClientThatLetsTooMuchWait) {
  start({.waiting_bytes = 100'000});
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  Counter left;
  reply.on_client_left([&] { left.add(); });
  reply.begin(200, {});
  EXPECT_TRUE(becomes_true([&] {
    reply.write(std::string(50'000, 'x'));
    return left.count() > 0;
  }));
  EXPECT_EQ(left.count(), 1);
  EXPECT_TRUE(becomes_true([&] { return server_->num_connections() == 0; }));
}

TEST_F(HttpServerTest, DropsAClientThatTakesNothing) {
  start({.write_time = 50ms});
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  Counter left;
  reply.on_client_left([&] { left.add(); });
  reply.begin(200, {});
  // More than the system keeps for both sides. One piece may be longer than what may wait.
  reply.write(std::string(40'000'000, 'x'));
  EXPECT_TRUE(left.reaches(1));
}

TEST_F(HttpServerTest, RepliesMayOutliveTheServer) {
  start();
  HttpClient client = connect(), streaming = connect();
  client.send(get("/keep"));
  const Reply whole = kept(0);
  streaming.send(get("/keep"));
  const Reply pieces = kept(1);
  Counter left;
  pieces.on_client_left([&] { left.add(); });
  pieces.begin(200, {});
  server_.reset();
  EXPECT_EQ(left.count(), 1) << "by the end of the server";
  EXPECT_TRUE(client.has_ended());
  whole.send({.body = "nobody"});
  pieces.write("nobody");
  pieces.end();
  whole.on_client_left([&] { left.add(); });
  EXPECT_EQ(left.count(), 1);
}

TEST_F(HttpServerTest, NothingKeepsWhatACallbackHeldWhenServerAndRepliesAreGone) {
  start();
  HttpClient client = connect(), streaming = connect();
  client.send(get("/keep"));
  kept(0);
  streaming.send(get("/keep"));
  const auto held = std::make_shared<int>();
  kept(1).on_client_left([held] {});
  server_.reset();
  kept(0).on_client_left([held] {});
  EXPECT_EQ(held.use_count(), 2) << "called is forgotten; what came too late waits with its reply";
  forget_kept();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(HttpServerTest, EndsWhileOthersWrite) {
  start();
  std::vector<HttpClient> clients;
  std::vector<std::thread> writers;
  std::atomic<bool> is_over = false;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.push_back(connect());
    clients.back().send(get("/keep"));
    writers.emplace_back([&, reply = kept(i)] {
      reply.begin(200, {});
      while (!is_over) {
        reply.write("piece");
        std::this_thread::yield();
      }
      reply.end();
    });
  }
  for (HttpClient& client : clients) EXPECT_EQ(status_of(client.read_head()), 200);
  server_.reset();
  is_over = true;
  for (std::thread& writer : writers) writer.join();
}

// ---- time

TEST_F(HttpServerTest, EndsAHeadThatTakesTooLong) {
  start({.head_time = 50ms});
  HttpClient client = connect();
  client.send("GET /echo HT");
  EXPECT_EQ(status_of(client.read_answer()), 408);
  EXPECT_TRUE(client.has_ended());
}

TEST_F(HttpServerTest, EndsAHeadThatComesAByteAtATime) {
  start({.head_time = 50ms});
  HttpClient client = connect();
  client.send("GET /");
  EXPECT_TRUE(becomes_true([&] { return client.has_input() || !client.send("a"); }));
  EXPECT_EQ(status_of(client.read_answer()), 408) << "before the line is too long";
}

TEST_F(HttpServerTest, EndsABodyThatTakesTooLong) {
  start({.body_time = 50ms});
  HttpClient client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(client.read_answer()), 408);
  EXPECT_TRUE(client.has_ended());
}

TEST_F(HttpServerTest, EndsIdleConnectionsWithoutAWord) {
  start({.idle_time = 50ms});
  HttpClient unused = connect(), used = connect();
  used.ask(get("/echo"));
  EXPECT_TRUE(unused.has_ended());
  EXPECT_TRUE(used.has_ended());
}

TEST_F(HttpServerTest, WaitsForAnAnswerLongerThanForAClient) {
  start({.head_time = 20ms, .body_time = 20ms, .idle_time = 5s, .write_time = 20ms});
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  std::this_thread::sleep_for(100ms);
  reply.send({.body = "late"});
  EXPECT_EQ(body_of(client.read_answer()), "late");
}

TEST_F(HttpServerTest, GivesTimeOnlyToClientsForWhomSomethingWaits) {
  start({.write_time = 2s});
  HttpClient client = connect();
  client.send(get("/keep"));
  const Reply reply = kept(0);
  reply.begin(200, {});
  EXPECT_EQ(status_of(client.read_head()), 200);
  const std::string piece(12'000'000, 'x');  // more than the system keeps: some waits for a moment
  reply.write(piece);
  EXPECT_TRUE(client.read_bytes(piece.size() + 10) == "b71b00\r\n" + piece + "\r\n");
  std::this_thread::sleep_for(2'300ms);
  reply.write("late");
  EXPECT_EQ(client.read_until("late\r\n"), "4\r\nlate\r\n");
}

// ---- many connections

TEST_F(HttpServerTest, IdleConnectionsDelayNobody) {
  start();
  std::vector<HttpClient> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(connect());
  }
  HttpClient client = connect();
  EXPECT_EQ(body_of(client.ask(get("/echo"))), "GET /echo ");
  EXPECT_EQ(server_->num_connections(), 301u);
  for (HttpClient& other : idle) ASSERT_EQ(body_of(other.ask(get("/echo"))), "GET /echo ");
}

TEST_F(HttpServerTest, TurnsNewClientsAwayWhileAllOthersAreBusy) {
  start({.num_connections = 2});
  HttpClient first = connect(), second = connect();
  first.send(get("/keep"));
  second.send(get("/keep"));
  const Reply reply = kept(0);
  kept(1);
  HttpClient third = connect();
  EXPECT_TRUE(third.has_ended());
  reply.send({.body = "answered"});
  EXPECT_EQ(body_of(first.read_answer()), "answered");
  EXPECT_EQ(server_->num_connections(), 2u);
}

TEST_F(HttpServerTest, NewClientsDoNotPushOutNewClients) {
  start({.num_connections = 2});
  const auto begin = std::chrono::steady_clock::now();
  HttpClient first = connect(), second = connect(), third = connect();
  const std::string answer = third.ask(get("/echo"));
  if (std::chrono::steady_clock::now() - begin > 900ms) GTEST_SKIP() << "this machine took too long";
  EXPECT_EQ(answer, "");
  EXPECT_EQ(status_of(first.ask(get("/echo"))), 200);
  EXPECT_EQ(status_of(second.ask(get("/echo"))), 200);
}

TEST_F(HttpServerTest, TheLongestIdleConnectionGivesWay) {
  start({.num_connections = 4});
  HttpClient busy = connect(), first = connect(), second = connect(), third = connect();
  busy.send(get("/keep"));
  const Reply reply = kept(0);
  for (HttpClient* client : {&second, &third, &first}) EXPECT_EQ(status_of(client->ask(get("/echo"))), 200);
  EXPECT_TRUE(becomes_true([&] { return status_of(connect().ask(get("/echo"))) == 200; }));
  EXPECT_TRUE(second.has_ended());
  EXPECT_EQ(status_of(first.ask(get("/echo"))), 200);
  EXPECT_EQ(status_of(third.ask(get("/echo"))), 200);
  reply.send({.body = "answered"});
  EXPECT_EQ(body_of(busy.read_answer()), "answered");
}

// No more files than are open now; the old limit comes back with the end.
class FullProcess {
 public:
  FullProcess() {
    ::getrlimit(RLIMIT_NOFILE, &old_limit_);
    const app::FileDescriptor next(::dup(0));
    const rlimit limit{static_cast<rlim_t>(next.get()), old_limit_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~FullProcess() { ::setrlimit(RLIMIT_NOFILE, &old_limit_); }

 private:
  rlimit old_limit_{};
};

std::chrono::microseconds process_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_F(HttpServerTest, WaitsQuietlyWhenTheSystemHasNoMoreFiles) {
  start();
  HttpClient client, other = connect();
  EXPECT_EQ(status_of(other.ask(get("/echo"))), 200);
  {
    const FullProcess full;
    ASSERT_TRUE(client.connect(server_->port()));
    client.send(get("/echo"));
    const auto time_before = process_time();
    std::this_thread::sleep_for(400ms);
    EXPECT_LT(process_time() - time_before, 200ms) << "it tries again and again";
    EXPECT_EQ(server_->num_connections(), 1u);
    EXPECT_EQ(status_of(other.ask(get("/echo"))), 200);
  }
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

// ---- the server's own ends

TEST_F(HttpServerTest, ClosesBehindItsLastAnswersWhenItStopsAccepting) {
  start();
  HttpClient idle = connect(), busy = connect();
  EXPECT_EQ(status_of(idle.ask(get("/echo"))), 200);
  busy.send(get("/keep"));
  const Reply reply = kept(0);
  server_->stop_accepting();
  EXPECT_TRUE(idle.has_ended());
  EXPECT_TRUE(becomes_true([&] { return !HttpClient().connect(server_->port()); }));
  EXPECT_EQ(server_->num_open_answers(), 1u);
  reply.send({.body = "the last"});
  const std::string answer = busy.read_answer();
  EXPECT_EQ(body_of(answer), "the last");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(busy.has_ended());
  EXPECT_TRUE(becomes_true([&] { return server_->num_open_answers() == 0; }));
}

TEST_F(HttpServerTest, ClosesBehindAStreamThatHadBegunWhenItStopsAccepting) {
  start();
  HttpClient client = connect();
  client.send(get("/keep"));
  kept(0).begin(200, {});
  EXPECT_EQ(status_of(client.read_head()), 200);
  server_->stop_accepting();
  EXPECT_TRUE(becomes_true([&] { return !HttpClient().connect(server_->port()); }));
  kept(0).end();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(client.has_ended());
}

Result<std::unique_ptr<Server>> listen_at(const std::string& host, std::uint16_t port) {
  return Server::listen(
      {.host = host, .port = port}, [](const Request&) { return std::optional<Response>(); },
      [](Request, Reply reply) { reply.send({}); },
      [](int status, const std::string&) { return Response{.status = status}; });
}

TEST(HttpServer, SaysWhatIsWrongWithAnAddress) {
  const auto first = listen_at("127.0.0.1", 0);
  ASSERT_TRUE(first.has_value());
  const std::uint16_t port = (*first)->port();
  const auto second = listen_at("localhost", port);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().message, "cannot listen at localhost:" + std::to_string(port) +
                                        ": another program has this port: end it, or choose another port");
  const auto foreign = listen_at("192.0.2.1", 8000);  // of documents (RFC 5737)
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().message.find("cannot listen at 192.0.2.1:8000: this machine has no such address"),
            0u);
  for (const std::string host : {"example.org", "", "127.0.0.1 ", "300.0.0.1"}) {
    const auto name = listen_at(host, 1);
    ASSERT_FALSE(name.has_value()) << host;
    EXPECT_EQ(name.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(name.error().message.find("\"" + host + "\", port 1"), std::string::npos);
  }
}

TEST(HttpServer, KnowsWhetherOnlyThisMachineReachesIt) {
  EXPECT_TRUE((*listen_at("127.0.0.1", 0))->is_loopback());
  EXPECT_TRUE((*listen_at("127.1.2.3", 0))->is_loopback());
  EXPECT_TRUE((*listen_at("localhost", 0))->is_loopback());
  EXPECT_FALSE((*listen_at("0.0.0.0", 0))->is_loopback());
  if (const auto server = listen_at("::1", 0); server.has_value()) {
    EXPECT_TRUE((*server)->is_loopback());
  }
  if (const auto server = listen_at("::", 0); server.has_value()) {
    EXPECT_FALSE((*server)->is_loopback());
  }
}

}  // namespace
}  // namespace octavo::http
