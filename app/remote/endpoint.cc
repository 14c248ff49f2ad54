#include "app/remote/endpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/json/json_text.h"
#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostModels = 4'096;
constexpr std::size_t kSentenceBytes = 400;  // of what a server says

Error no_address(std::string_view typed, const std::string& why) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = "'" + escape_for_message(typed) + "' is no address of a server: " + why,
          .subject = "address"};
}

// "127.0.0.1:8000" of "http://127.0.0.1:8000/v1".
std::string_view authority_of(std::string_view address) {
  address.remove_prefix(std::min(address.size(), address.find("://") + 3));
  return address.substr(0, address.find('/'));
}

std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_port(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, is_digit) &&
         std::stoi(std::string(text)) <= 65'535;
}

std::int32_t context_len_of(const Json& model) {
  const auto whole = [](const Json& object, const char* name) -> std::int32_t {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_integer()) return 0;
    const auto value = found->get<std::int64_t>();
    return value > 0 && value <= INT32_MAX ? static_cast<std::int32_t>(value) : 0;
  };
  if (const std::int32_t length = whole(model, "max_model_len"); length > 0) return length;
  const auto meta = model.find("meta");
  return meta != model.end() && meta->is_object() ? whole(*meta, "n_ctx") : 0;
}

// What a server says went wrong: {"error": {"message"}}, {"error": "..."}, {"message"}, {"detail"}.
std::string words_of_server(std::string_view body) {
  const Result<Json> json = parse_json(body, "the answer");
  const auto text_at = [](const Json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
  };
  if (!json || !json->is_object()) {
    const std::string_view line = without_blanks(body.substr(0, body.find('\n')));
    return line.starts_with('<') ? std::string() : std::string(line);  // a page for browsers
  }
  if (const auto error = json->find("error"); error != json->end() && error->is_object()) {
    if (std::string said = text_at(*error, "message"); !said.empty()) return said;
  }
  for (const char* const name : {"error", "message", "detail"})
    if (std::string said = text_at(*json, name); !said.empty()) return said;
  return {};
}

std::string advice_for(int status) {
  switch (status) {
    case 401:
    case 403: return "check the key";
    case 404: return "check the address and the model's name";
    case 429: return "try again later";
    default: return status >= 500 ? "look into the server's log" : "";
  }
}

}  // namespace

Result<std::string> normal_address(std::string_view typed) {
  std::string address(without_blanks(typed));
  if (address.empty()) return no_address(typed, "it is empty");
  if (address.find("://") == std::string::npos) address.insert(0, "http://");
  const std::size_t scheme_end = address.find("://");
  const std::string scheme = ascii_lower_case(address.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https")
    return no_address(typed, "it must begin with http:// or https://");
  address.replace(0, scheme_end, scheme);
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '\\'; };
  if (std::ranges::any_of(address, is_odd)) return no_address(typed, "it holds blanks or control characters");
  if (address.find_first_of("?#") != std::string::npos)
    return no_address(typed, "leave out '?' and '#' and what follows");
  const std::string_view authority = authority_of(address);
  if (authority.find('@') != std::string_view::npos)
    return no_address("...", "leave out the user in front of '@'; keys have a field of their own");
  const std::string_view host = host_of(authority);
  const std::string_view behind = authority.substr(host.size());
  if (host.empty()) return no_address(typed, "it has no host");
  if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1))))
    return no_address(typed, "its port is no number from 0 to 65535");
  const std::size_t path_begin = scheme_end + 3 + authority.size();
  while (address.ends_with('/')) address.pop_back();
  if (address.size() <= path_begin) address += "/v1";
  return address;
}

std::string server_root(const std::string& address) {
  const std::size_t host = std::min(address.size(), address.find("://") + 3);
  const std::size_t last = address.rfind('/');
  return last != std::string::npos && last >= host ? address.substr(0, last) : address;
}

bool is_readable_on_the_way(const std::string& address) {
  const std::string_view host = host_of(authority_of(address));
  const bool is_here = host == "localhost" || host == "[::1]" || host.starts_with("127.");
  return address.starts_with("http://") && !is_here;
}

http::ClientRequest request_at(std::string url, const Endpoint& endpoint, std::string body) {
  http::ClientRequest request{.method = body.empty() ? "GET" : "POST", .url = std::move(url)};
  request.headers = endpoint.headers;
  if (!endpoint.key.empty()) request.headers.push_back({"Authorization", "Bearer " + endpoint.key});
  if (!body.empty()) request.headers.push_back({"Content-Type", "application/json"});
  request.body = std::move(body);
  return request;
}

Result<std::vector<RemoteModel>> read_models(std::string_view body) {
  OCTAVO_TRY(const Json json, parse_json(body, "the list of models"));
  const auto data = json.is_object() ? json.find("data") : json.end();
  if (!json.is_object() || data == json.end() || !data->is_array())
    return Error{ErrorCode::kUnsupported,
                 "the server's list of models is not of OpenAI's form; check the address"};
  std::vector<RemoteModel> models;
  for (const Json& model : *data) {
    const auto id = model.is_object() ? model.find("id") : model.end();
    if (!model.is_object() || id == model.end() || !id->is_string()) continue;
    if (models.size() == kMostModels) break;
    models.push_back({id->get<std::string>(), context_len_of(model)});
  }
  return models;
}

Result<std::vector<RemoteModel>> list_models(http::Client& client, const Endpoint& endpoint,
                                             const std::function<bool()>& is_stopped) {
  http::ClientRequest request = request_at(endpoint.address + "/models", endpoint);
  request.limits.idle_time = std::chrono::seconds(30);
  request.limits.body_bytes = 16 * 1024 * 1024;
  OCTAVO_TRY(const http::Response response, http::fetch(client, std::move(request), is_stopped));
  if (response.status != 200) return error_of_answer(response.status, response.body, endpoint.address);
  return read_models(response.body);
}

Error error_of_answer(int status, std::string_view body, const std::string& address) {
  const std::string_view host = authority_of(address);
  std::string sentence = escape_for_message(host) + " answered " + std::to_string(status);
  const std::string said = words_of_server(body);
  if (!said.empty()) sentence += ": " + escape_for_message(said, kSentenceBytes);
  const std::string advice = advice_for(status);
  if (!advice.empty()) sentence += "; " + advice;
  const bool is_ours = status >= 400 && status < 500 && status != 429;
  return {.code = is_ours ? ErrorCode::kInvalidArgument : ErrorCode::kIo, .message = std::move(sentence)};
}

}  // namespace octavo::app
