#include "app/http_client/address.h"

#include <curl/curl.h>

#include <memory>

#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::http {
namespace {

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;

std::string part_of(const Url& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string value(text);
  curl_free(text);
  return value;
}

// nullptr: no address of http or https.
Url parsed(const std::string& text) {
  Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return nullptr;
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https" ? std::move(url) : nullptr;
}

}  // namespace

Result<std::string> resolve_location(const std::string& url, std::string_view location) {
  const Error refused{ErrorCode::kUnsupported, host_of(url) + " leads on to '" +
                                                   escape_for_message(location) +
                                                   "', which is no address of http or https"};
  Url base = parsed(url);
  if (!base || location.empty()) return refused;
  if (curl_url_set(base.get(), CURLUPART_URL, std::string(location).c_str(), 0) != CURLUE_OK) return refused;
  curl_url_set(base.get(), CURLUPART_FRAGMENT, nullptr, 0);
  std::string target = part_of(base, CURLUPART_URL);
  if (!parsed(target)) return refused;
  if (url.starts_with("https:") && !target.starts_with("https:")) {
    return Error{
        ErrorCode::kUnsupported,
        host_of(url) + " leads from https to http, where anybody could change what comes; that is refused"};
  }
  return target;
}

std::string origin_of(const std::string& url) {
  const Url parts = parsed(url);
  if (!parts) return {};
  return part_of(parts, CURLUPART_SCHEME) + "://" + ascii_lower_case(part_of(parts, CURLUPART_HOST)) + ":" +
         part_of(parts, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string host_of(const std::string& url) {
  const Url parts = parsed(url);
  if (!parts) return escape_for_message(url);
  const std::string port = part_of(parts, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  return escape_for_message(part_of(parts, CURLUPART_HOST) + (port.empty() ? "" : ":" + port));
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain || kept.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

}  // namespace octavo::http
