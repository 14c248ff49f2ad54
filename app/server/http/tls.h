// HTTP over TLS (OpenSSL): who the server is, and its connections. TLS 1.2 and later, HTTP/1.1 by ALPN, no
// renegotiation, no compression, no client certificates.
//
// A handshake is bounded as a request's head is: in time by its connection, in memory by OpenSSL, whose
// messages have limits.
#pragma once

#include <memory>
#include <string>

#include "app/server/http/transport.h"
#include "engine/base/result.h"

namespace octavo::http {

// A certificate with its key. Immutable; any thread.
class TlsIdentity {
 public:
  // From PEM files: the certificate and those that sign it, and its key without a password. Errors are one
  // sentence that names the file, with subject tls_certificate or tls_key.
  static Result<std::shared_ptr<const TlsIdentity>> load(const std::string& certificate_file,
                                                         const std::string& key_file);
  virtual ~TlsIdentity() = default;

  // The server's side of a connection. `socket` never blocks, and outlives it.
  virtual std::unique_ptr<Transport> transport(int socket) const = 0;
};

}  // namespace octavo::http
