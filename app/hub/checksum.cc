#include "app/hub/checksum.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <vector>

#include "app/hub/hub_cache.h"
#include "engine/base/check.h"

namespace octavo::hub {

struct Checksum::State {
  State() : context(EVP_MD_CTX_new()) {}
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  EVP_MD_CTX* context;
};

Checksum::Checksum(ChecksumKind kind, std::int64_t bytes) : state_(std::make_unique<State>()) {
  const EVP_MD* const method = kind == ChecksumKind::kSha256 ? EVP_sha256() : EVP_sha1();
  OCTAVO_CHECK(EVP_DigestInit_ex(state_->context, method, nullptr) == 1, "OpenSSL has no such checksum");
  if (kind == ChecksumKind::kSha256) return;
  const std::string heading = "blob " + std::to_string(bytes);
  add(std::as_bytes(std::span(heading.c_str(), heading.size() + 1)));
}
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::add(std::span<const std::byte> bytes) {
  OCTAVO_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "OpenSSL fails");
}

std::string Checksum::finish() {
  constexpr char kDigits[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  OCTAVO_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1, "OpenSSL fails");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

Result<std::string> sha256_of_file(const std::filesystem::path& path,
                                   const std::function<bool()>& is_stopped) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) return disk_error("cannot read", path, errno);
  Checksum checksum(ChecksumKind::kSha256, 0);
  std::vector<char> piece(kPieceBytes);
  while (file) {
    if (is_stopped()) return Error{ErrorCode::kCancelled, "checking the file was stopped"};
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    checksum.add(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad()) return disk_error("cannot read", path, EIO);
  return checksum.finish();
}

}  // namespace octavo::hub
