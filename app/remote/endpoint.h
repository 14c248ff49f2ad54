// Where a server of models is, and how it is asked: OpenAI's protocol, whoever speaks it.
//
// Values; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/http_client/client.h"
#include "engine/base/result.h"

namespace octavo::app {

// An address and what it is allowed to cost to ask it.
struct Endpoint {
  std::string address;                     // as normal_address gives it: "http://127.0.0.1:8000/v1"
  std::string key = {};                    // empty: none is sent. Never part of a sentence or a file.
  std::vector<http::Header> headers = {};  // further ones, of every request
};

// What a person types, as an address that paths are appended to: a scheme where there is none, no slash at
// the end, and "/v1" where there is no path (some servers have another, such as /v3). Fails with a sentence
// for what is no address of http or https, or holds a user or a question mark.
Result<std::string> normal_address(std::string_view typed);

// Of the server itself, where /metrics and /health are: the address without its last part.
std::string server_root(const std::string& address);

// "http" to a machine that is not this one: whoever is on the way can read it.
bool is_readable_on_the_way(const std::string& address);

// A GET without a body, a POST with one, with the endpoint's key and headers. `url` is of the same server.
http::ClientRequest request_at(std::string url, const Endpoint& endpoint, std::string body = {});

// One model that a server has.
struct RemoteModel {
  std::string id;
  // In tokens, prompt and answer together: vLLM's max_model_len, llama.cpp's meta.n_ctx; 0: not told
  std::int32_t context_len = 0;
  bool operator==(const RemoteModel&) const = default;
};

// The body of an answer to GET models.
Result<std::vector<RemoteModel>> read_models(std::string_view body);

// Asks for them and waits.
Result<std::vector<RemoteModel>> list_models(http::Client& client, const Endpoint& endpoint,
                                             const std::function<bool()>& is_stopped = {});

// One sentence for an answer that is no success: the status, and what the server says itself, wherever its
// protocol puts it. kIo where asking again may help (429, 5xx), else kInvalidArgument.
Error error_of_answer(int status, std::string_view body, const std::string& address);

}  // namespace octavo::app
