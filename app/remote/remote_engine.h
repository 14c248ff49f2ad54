// A model that runs elsewhere, behind the interface of an engine: requests become completions, what
// streams back becomes events. Chats and comparisons need not know the difference.
//
// What a remote model does not report stays unknown: there is no pool here, no map of blocks, no account of a
// prompt but what the server's usage tells, no count of tokens before it answers. The pool's getters are
// empty; `description()` has device "remote", no blocks, and max_model_len 0 where the server does not tell.
// Tokens are those of the log-probabilities where they were asked for and are given, else pieces of text.
//
// Thread: as Engine; one of its own for all connections. A cancel closes the request's connection. Only what
// the server cannot have seen, or was told to send again (429, 503), is sent again, and never once an answer
// has begun.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/remote/endpoint.h"
#include "engine/base/clock.h"
#include "engine/engine.h"

namespace octavo::app {

// A remote model where paths of files stand: "http://127.0.0.1:8000/v1#its name". Holds no key.
struct RemoteModelName {
  std::string address;
  std::string model;
};
bool is_remote_model(std::string_view path);
std::string remote_model_path(const RemoteModelName& name);
// Normal, or what is wrong with it. The model may be empty: the server's first.
Result<RemoteModelName> parse_remote_model(std::string_view path);

struct RemoteEngineOptions {
  RemoteModelName name;
  std::string key = {};
  std::string ca_file = {};
  http::TransferLimits limits = {};
  const Clock* clock = nullptr;                   // none: a steady one
  std::function<std::uint64_t()> draw_seed = {};  // none: the system's; of requests that have no seed
};

// Asks the server for its models first: fails with a sentence where nobody answers, the key is refused, or
// the model is not there.
Result<std::unique_ptr<Engine>> connect_remote_engine(const RemoteEngineOptions& options,
                                                      LoadProgress progress = {});

// Whether this is one.
bool is_remote(const EngineDescription& description);

}  // namespace octavo::app
