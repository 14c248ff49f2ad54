// HTTP over TLS, over real sockets of this machine and with certificates that are made here.

#include "app/server/http/tls.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "app/server/http/server.h"
#include "tests/server/http_client.h"

namespace octavo::http {
namespace {

using namespace std::chrono_literals;

// A self-signed certificate and its key, as files.
class Certificate {
 public:
  explicit Certificate(const std::filesystem::path& folder, const std::string& name,
                       const char* password = nullptr)
      : certificate_file(folder / (name + ".crt")), key_file(folder / (name + ".key")) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* const subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
    std::FILE* file = std::fopen(certificate_file.c_str(), "w");
    PEM_write_X509(file, certificate);
    std::fclose(file);
    file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key, password != nullptr ? EVP_aes_128_cbc() : nullptr, nullptr, 0, nullptr,
                         const_cast<char*>(password));
    std::fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  std::string certificate_file, key_file;
};

// Waits for what it asks for.
class TlsClient {
 public:
  explicit TlsClient(int most_version = TLS1_3_VERSION, std::string_view protocols = {}) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_max_proto_version(context_, most_version);
    if (!protocols.empty())
      SSL_CTX_set_alpn_protos(context_, reinterpret_cast<const unsigned char*>(protocols.data()),
                              static_cast<unsigned>(protocols.size()));
    ssl_ = SSL_new(context_);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connect(std::uint16_t port) {
    if (!socket_.connect(port)) return false;
    SSL_set_fd(ssl_, socket_.descriptor());
    return SSL_connect(ssl_) == 1;
  }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl_, &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int count =
          SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 20'000)));
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  std::string read_until(std::string_view end) {
    char buffer[4096];
    while (received_.find(end) == std::string::npos) {
      const int count = SSL_read(ssl_, buffer, sizeof buffer);
      if (count <= 0) break;
      received_.append(buffer, static_cast<std::size_t>(count));
    }
    const std::size_t found = received_.find(end);
    const std::size_t length = found == std::string::npos ? received_.size() : found + end.size();
    std::string taken = received_.substr(0, length);
    received_.erase(0, length);
    return taken;
  }
  bool renegotiate() {
    if (SSL_renegotiate(ssl_) != 1) return false;
    return SSL_do_handshake(ssl_) == 1 && send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") &&
           !read_until("</answer>").empty();
  }
  void vanish() { socket_.close(); }

 private:
  HttpClient socket_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  std::string received_;
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest()
      : folder_(std::filesystem::path(::testing::TempDir()) / ("octavo_tls_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TlsTest() override { std::filesystem::remove_all(folder_); }

  // Answers with the size of the body; "/stream" goes on until its client leaves.
  void start(Limits limits = {}) {
    const Certificate own(folder_, "own");
    auto identity = TlsIdentity::load(own.certificate_file, own.key_file);
    ASSERT_TRUE(identity) << identity.error().message;
    auto server = Server::listen(
        {.port = 0, .limits = limits, .tls = *identity}, [](const Request&) { return std::nullopt; },
        [this](Request request, Reply reply) {
          if (request.path != "/stream")
            return reply.send({.body = std::to_string(request.body.size()) + "</answer>"});
          reply.begin(200, {});
          reply.on_client_left([this] { has_left_ = true; });
          writers_.emplace_back([this, reply] {
            while (!has_left_) {
              reply.write(std::string(1000, 'x'));
              std::this_thread::sleep_for(1ms);
            }
          });
        },
        [](int status, const std::string& sentence) { return Response{.status = status, .body = sentence}; });
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  void TearDown() override {
    has_left_ = true;
    for (std::thread& writer : writers_) writer.join();
    server_.reset();
  }
  std::uint16_t port() const { return server_->port(); }
  std::string sentence_of(const std::string& certificate, const std::string& key) const {
    const auto loaded = TlsIdentity::load(certificate, key);
    return loaded ? std::string() : loaded.error().subject + ": " + loaded.error().message;
  }

  const std::filesystem::path folder_;
  std::atomic<bool> has_left_ = false;
  std::vector<std::thread> writers_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, RequestsAreAnsweredOneAfterTheOtherOnOneConnection) {
  start();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(version, std::string_view("\x02h2\x08http/1.1", 12));
    ASSERT_TRUE(client.connect(port()));
    EXPECT_EQ(client.protocol(), "http/1.1");
    const std::string body(300'000, 'b');
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(client.read_until("</answer>").ends_with("\r\n\r\n0</answer>"));
    EXPECT_TRUE(client.read_until("</answer>").ends_with("\r\n\r\n0</answer>"));
    ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + body));
    EXPECT_TRUE(client.read_until("</answer>").ends_with("\r\n\r\n300000</answer>"));
  }
}

TEST_F(TlsTest, OldVersionsAndOtherProtocolsAreRefused) {
  start();
  EXPECT_FALSE(TlsClient(TLS1_1_VERSION).connect(port()));
  EXPECT_FALSE(TlsClient(TLS1_3_VERSION, std::string_view("\x02h2", 3)).connect(port()));
  EXPECT_TRUE(TlsClient().connect(port()));
}

TEST_F(TlsTest, NobodyNegotiatesAgain) {
  start();
  TlsClient client(TLS1_2_VERSION);
  ASSERT_TRUE(client.connect(port()));
  EXPECT_FALSE(client.renegotiate());
}

TEST_F(TlsTest, PlainHttpIsToldWhatToDo) {
  start();
  HttpClient client;
  ASSERT_TRUE(client.connect(port()));
  ASSERT_TRUE(client.send("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n"));
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("https://"), std::string::npos) << answer;
  EXPECT_FALSE(client.was_reset());
}

TEST_F(TlsTest, WhatIsNoHandshakeEndsAndOthersGoOn) {
  start();
  for (const std::string_view bytes :
       {std::string_view("\x16\x03\x01\xff\xff garbage", 13), std::string_view("SSH-2.0-x\r\n"),
        std::string_view("\0\0\0\0\0\0\0\0", 8)}) {
    HttpClient client;
    ASSERT_TRUE(client.connect(port()));
    client.send(bytes);
    client.close_sending();
    client.read_to_end();
  }
  TlsClient good;
  ASSERT_TRUE(good.connect(port()));
  ASSERT_TRUE(good.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_TRUE(good.read_until("</answer>").ends_with("0</answer>"));
  EXPECT_TRUE(becomes_true([&] { return server_->num_connections() == 1; }));
}

TEST_F(TlsTest, AHandshakeThatIsNotFinishedHasTheTimeOfAHead) {
  start({.head_time = 50ms, .idle_time = 60'000ms});
  HttpClient silent, half;
  ASSERT_TRUE(silent.connect(port()));
  ASSERT_TRUE(half.connect(port()));
  ASSERT_TRUE(half.send(std::string_view("\x16\x03\x01\x02\x00\x01", 6)));  // of a greeting
  EXPECT_TRUE(silent.has_ended());
  EXPECT_TRUE(half.has_ended());
}

TEST_F(TlsTest, HandshakesThatWaitGiveWayToClients) {
  start({.head_time = 60'000ms, .num_connections = 2});
  HttpClient first, second;
  ASSERT_TRUE(first.connect(port()));
  ASSERT_TRUE(second.connect(port()));
  ASSERT_TRUE(becomes_true([&] { return server_->num_connections() == 2; }));
  std::this_thread::sleep_for(1100ms);  // a newcomer is not pushed out within a second
  EXPECT_TRUE(TlsClient().connect(port()));
  EXPECT_TRUE(first.has_ended());
}

TEST_F(TlsTest, AClientThatLeavesInAStreamIsNoticed) {
  start();
  TlsClient client;
  ASSERT_TRUE(client.connect(port()));
  ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
  ASSERT_NE(client.read_until("xxxx"), "");
  client.vanish();
  EXPECT_TRUE(becomes_true([&] { return has_left_.load(); }));
}

TEST_F(TlsTest, WhatIsWrongWithTheFilesIsOneSentence) {
  const Certificate own(folder_, "own"), other(folder_, "other"), locked(folder_, "locked", "secret");
  const std::string missing = folder_ / "missing";
  EXPECT_EQ(sentence_of(own.certificate_file, own.key_file), "");
  EXPECT_NE(sentence_of(missing, own.key_file).find("tls_certificate: the certificate"), std::string::npos);
  EXPECT_NE(sentence_of(own.key_file, own.key_file).find("cannot be read"), std::string::npos);
  EXPECT_NE(sentence_of(own.certificate_file, missing).find("tls_key: the key"), std::string::npos);
  EXPECT_NE(sentence_of(own.certificate_file, other.key_file).find("is not that of the certificate"),
            std::string::npos);
  EXPECT_NE(sentence_of(locked.certificate_file, locked.key_file).find("without a password"),
            std::string::npos);
}

}  // namespace
}  // namespace octavo::http
