// Failures as clients are told: a status, and the object that OpenAI's clients read. Anthropic's shape:
// messages.h.
#pragma once

#include <string>
#include <string_view>

#include "app/json/json_text.h"
#include "engine/base/result.h"

namespace octavo::app {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;     // one sentence
  std::string param = {};  // the field it is about; empty: null
  std::string code = {};   // "context_length_exceeded", "model_not_found", ...; empty: null
};

// With the type that goes with the status.
ApiError api_error(int status, std::string sentence);

// What an engine's or a parser's failure is to a client: never a status that clients try again for what will
// not get better.
ApiError api_error_of(const Error& error);

// {"error": {"message", "type", "param", "code"}}
Json openai_error(const ApiError& error);

// The type that goes with a status ("invalid_request_error", "authentication_error", ...).
std::string_view error_type_of(int status);

}  // namespace octavo::app
