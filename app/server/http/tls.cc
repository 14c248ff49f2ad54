#include "app/server/http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>

#include "engine/base/text.h"

namespace octavo::http {
namespace {

template <auto Free>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, FreedBy<SSL_free>>;
using BioMethod = std::unique_ptr<BIO_METHOD, FreedBy<BIO_meth_free>>;

// ---- sockets: OpenSSL's own would raise SIGPIPE

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

bool may_be_tried_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int write_to_socket(BIO* bio, const char* bytes, std::size_t length, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::send(socket_of(bio), bytes, length, MSG_NOSIGNAL);
  if (count < 0 && may_be_tried_again()) BIO_set_retry_write(bio);
  *written = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  return count > 0 ? 1 : 0;
}

int read_from_socket(BIO* bio, char* buffer, std::size_t length, std::size_t* read) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(socket_of(bio), buffer, length, 0);
  if (count < 0 && may_be_tried_again()) BIO_set_retry_read(bio);
  *read = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  return count > 0 ? 1 : 0;
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static const BioMethod kMethod = [] {
    BioMethod method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE"));
    BIO_meth_set_write_ex(method.get(), write_to_socket);
    BIO_meth_set_read_ex(method.get(), read_from_socket);
    BIO_meth_set_ctrl(method.get(), control_socket);
    return method;
  }();
  return kMethod.get();
}

// ---- connections

class TlsTransport final : public Transport {
 public:
  TlsTransport(SSL_CTX* context, int socket) : ssl_(SSL_new(context)), socket_(socket) {
    BIO* const bio = ssl_ != nullptr ? BIO_new(socket_method()) : nullptr;
    if (bio == nullptr) {
      ssl_.reset();
      return;
    }
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);  // which owns it now
    SSL_set_accept_state(ssl_.get());
  }

  Opening open() override {
    if (ssl_ == nullptr) return Opening::kFailed;
    const int result = begin([&] { return SSL_do_handshake(ssl_.get()); });
    if (result == 1) {
      is_open_ = true;
      return Opening::kDone;
    }
    if (is_waiting(result)) return Opening::kGoesOn;
    const bool is_plain = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
    ERR_clear_error();
    return is_plain ? Opening::kPlainRequest : Opening::kFailed;
  }

  Moved receive(std::span<char> buffer) override {
    const int length = static_cast<int>(std::min<std::size_t>(buffer.size(), INT_MAX));
    return moved_by(begin([&] { return SSL_read(ssl_.get(), buffer.data(), length); }));
  }

  Moved send(std::string_view bytes) override {
    const int length = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    return moved_by(begin([&] { return SSL_write(ssl_.get(), bytes.data(), length); }));
  }

  void end_sending() override {
    if (is_open_) SSL_shutdown(ssl_.get());  // says so; the answer is not waited for
    ERR_clear_error();
    ::shutdown(socket_, SHUT_WR);
  }

  bool wants_room() const override { return wants_room_; }

 private:
  // The queue of errors is the thread's: what others left there would be taken for this connection's.
  template <class Call>
  int begin(Call call) {
    ERR_clear_error();
    wants_room_ = false;
    return call();
  }

  bool is_waiting(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    wants_room_ = error == SSL_ERROR_WANT_WRITE;
    return wants_room_ || error == SSL_ERROR_WANT_READ;
  }

  Moved moved_by(int result) {
    if (result > 0) return {.num_bytes = static_cast<std::size_t>(result)};
    const bool is_over = !is_waiting(result);
    if (is_over) is_open_ = false;  // nothing may be said on a connection that failed
    ERR_clear_error();
    return {.num_bytes = 0, .is_over = is_over};
  }

  Ssl ssl_;
  const int socket_;
  bool is_open_ = false;
  bool wants_room_ = false;
};

// ---- the server's identity

constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length, const unsigned char* offered,
                    unsigned num_offered, void*) {
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, length, kHttp11, sizeof kHttp11, offered, num_offered);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// Nobody is there to be asked.
int no_password(char*, int, int, void*) { return 0; }

Error identity_error(std::string sentence, const char* subject) {
  ERR_clear_error();
  return {ErrorCode::kInvalidArgument, std::move(sentence), subject};
}

class OpenSslIdentity final : public TlsIdentity {
 public:
  explicit OpenSslIdentity(Context context) : context_(std::move(context)) {}
  std::unique_ptr<Transport> transport(int socket) const override {
    return std::make_unique<TlsTransport>(context_.get(), socket);
  }

 private:
  Context context_;
};

}  // namespace

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::load(const std::string& certificate_file,
                                                             const std::string& key_file) {
  Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr)
    return identity_error("TLS cannot be used: OpenSSL does not start", "tls_certificate");
  SSL_CTX* const tls = context.get();
  SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
  SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // A piece may be sent in parts and from another place; idle connections keep no buffers.
  SSL_CTX_set_mode(
      tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_ctrl(tls, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF,
               nullptr);  // tickets need no memory here
  SSL_CTX_set_alpn_select_cb(tls, choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(tls, no_password);
  const std::string certificate = path_for_message(certificate_file), key = path_for_message(key_file);
  if (SSL_CTX_use_certificate_chain_file(tls, certificate_file.c_str()) != 1)
    return identity_error(
        "the certificate " + certificate + " cannot be read: give a PEM file with the certificate first",
        "tls_certificate");
  if (SSL_CTX_use_PrivateKey_file(tls, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool is_of_another = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                               ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
    if (is_of_another)
      return identity_error("the key " + key + " is not that of the certificate " + certificate +
                                ": give the key that it was made for",
                            "tls_key");
    return identity_error("the key " + key + " cannot be read: give a PEM file with a key without a password",
                          "tls_key");
  }
  if (SSL_CTX_check_private_key(tls) != 1)
    return identity_error("the key " + key + " is not that of the certificate " + certificate +
                              ": give the key that it was made for",
                          "tls_key");
  return std::shared_ptr<const TlsIdentity>(std::make_shared<OpenSslIdentity>(std::move(context)));
}

}  // namespace octavo::http
