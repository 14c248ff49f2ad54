// What is asked of an engine, as a request of OpenAI's protocol. Pure; any thread.
#pragma once

#include <string>

#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

struct RemoteCall {
  std::string path;  // "/chat/completions" for messages, "/completions" for a text that is to be continued
  std::string body;
};

// Fields that OpenAI's protocol has always go; those of vLLM and llama.cpp (top_k, min_p, repetition_penalty,
// min_tokens, ignore_eos, bad_words, chat_template_kwargs) only where they differ from "off", since other
// servers may refuse them. Thinking of earlier answers stays here: templates drop it anyway.
// Refused in one sentence, since the answer would be another one: prompts of token ids, whose numbers mean
// something else there, beams, best_of, log-probabilities of prompts, and what names token ids.
//   seed  the request's own, or one that was drawn for it
Result<RemoteCall> remote_call(const GenerationRequest& request, const std::string& model,
                               std::uint64_t seed);

}  // namespace octavo::app
