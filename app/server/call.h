// What a protocol makes of one HTTP call: requests for the engine, and the answer that is built of their
// events, whole or as a stream. The service (service.h) knows no protocol beyond this.
//
// Thread: values; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/json/json_text.h"
#include "app/requests/prompt_diagnostics.h"
#include "app/requests/prompt_parts.h"
#include "app/server/api_error.h"
#include "engine/api/event.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// The model as clients see it. Its tokenizer outlives it.
struct ServedModel {
  std::vector<std::string> names;  // that requests may use; the first is told in answers
  std::int64_t created = 0;        // seconds since 1970
  EngineDescription description = {};
  const tokenizer::Tokenizer* tokenizer = nullptr;

  const std::string& name() const { return names.front(); }
};

// What distinguishes one call from another of the same body.
struct CallIdentity {
  std::string hex;           // 32 digits of base 16, lower case, of which answers make their ids
  std::int64_t created = 0;  // seconds since 1970
};

// The answer of one call. Requests have the indexes of Call::requests.
class Answer {
 public:
  virtual ~Answer() = default;

  // Takes an event in, and gives what a client that streams is sent for it: whole frames, or nothing.
  virtual std::string add(std::size_t request, const EngineEvent& event) = 0;

  // Whether all requests have ended.
  virtual bool done() const = 0;
  // How the prompt differs from the one that the call names (Call::compared_with); before anything is told.
  virtual void compared(const PromptDivergence&) {}
  // Of the first request that failed.
  virtual const std::optional<Error>& failure() const = 0;

  // The frames that a stream begins with, before any event, and ends with, when all requests have ended well.
  virtual std::string first_frames() = 0;
  virtual std::string last_frames() = 0;
  // What shows a client that the server still works on it, while a long prompt is computed.
  virtual std::string waiting_frames() { return ": still at work\n\n"; }
  // A frame that tells a client in mid-stream what went wrong; the last of its stream.
  virtual std::string failure_frames(const ApiError& error) = 0;

  // The body of the answer to a client that does not stream. REQUIRES: done(), and no failure.
  virtual std::string body() = 0;
};

struct Call {
  std::vector<GenerationRequest> requests;  // at least one
  bool stream = false;
  std::unique_ptr<Answer> answer;
  std::vector<std::string> notes = {};  // what was changed of the prompt on the way, a few words each
  std::vector<MessageName> names = {};  // of the messages of a chat, where they are not those of ChatPrompt
  // The answer whose prompt this one is compared with; of a call with one request.
  std::optional<std::string> compared_with = {};
};

// A body as one protocol reads it. Errors name their field as subject; ApiError says which status that is.
using ParseCall = Result<Call> (*)(const Json& body, const ServedModel& model, const CallIdentity& identity);

}  // namespace octavo::app
