// What completions and chat completions have in common: one object, whole or in chunks, of the choices of all
// requests of a call, and their usage.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "app/server/request_fields.h"
#include "engine/api/event.h"
#include "engine/base/result.h"

namespace octavo::app {

struct OpenAiForm {
  std::string id;
  std::string object, chunk_object;  // their names
  std::int64_t created = 0;
  std::string model;
  StreamFields stream = {};
  std::size_t num_requests = 1;
  std::int32_t num_choices = 1;  // of each request; outputs of higher index are not told
  bool scores_only = false;      // what is generated is no part of the answer
};

// A choice is numbered request * num_choices + output.
class OpenAiAnswer : public Answer {
 public:
  explicit OpenAiAnswer(OpenAiForm form);

  std::string add(std::size_t request, const EngineEvent& event) final;
  bool done() const final { return num_ended_ == prompts_.size(); }
  const std::optional<Error>& failure() const final { return failure_; }
  std::string last_frames() final;
  std::string failure_frames(const ApiError& error) final;

 protected:
  virtual void take_prompt(std::size_t request, const RequestAccepted& event) = 0;
  virtual std::string take_tokens(std::size_t choice, const TokensGenerated& event) = 0;
  // The last of a choice.
  virtual std::string take_end(std::size_t choice) = 0;
  virtual void take_prompt_logprobs(std::size_t request, const RequestFinished& event) = 0;

  const OpenAiForm& form() const { return form_; }
  bool streams() const { return form_.stream.stream; }
  std::size_t num_choices() const { return ends_.size(); }
  std::size_t request_of(std::size_t choice) const {
    return choice / static_cast<std::size_t>(form_.num_choices);
  }

  // "stop", "length", ...; the stop string, the token id, or null.
  Json finish_reason(std::size_t choice) const;
  Json stop_reason(std::size_t choice) const;

  // One frame with this choice.
  std::string chunk(Json choice) const;
  // The whole, without what one protocol alone adds.
  Json whole(Json choices) const;

 private:
  struct Prompt {
    std::int64_t num_tokens = 0, num_cached_tokens = 0;
  };
  struct End {
    FinishReason reason = FinishReason::kAbort;
    StopReason stop = {};
  };

  std::optional<std::size_t> choice_of(std::size_t request, std::int32_t output) const;
  std::string apply(std::size_t request, const RequestAccepted& event);
  std::string apply(std::size_t request, const RequestAdmitted& event);
  std::string apply(std::size_t request, const TokensGenerated& event);
  std::string apply(std::size_t request, const BeamsAdvanced& event);
  std::string apply(std::size_t request, const RequestPreempted& event);
  std::string apply(std::size_t request, const PromptProgress& event);
  std::string apply(std::size_t, const EmbeddingComputed&) { return {}; }  // no answer asks for one
  std::string apply(std::size_t request, const OutputFinished& event);
  std::string apply(std::size_t request, const RequestFinished& event);
  std::string apply(std::size_t request, const RequestFailed& event);
  Json head(const std::string& object, Json choices) const;
  Json usage() const;

  OpenAiForm form_;
  std::vector<Prompt> prompts_;
  std::vector<End> ends_;  // of choices
  std::size_t num_ended_ = 0;
  std::int64_t num_generated_ = 0;
  std::optional<Error> failure_;
};

// "data: {...}\n\n"
std::string data_frame(const Json& json);

// What only comes when a request has ended does not go with a stream.
void check_streams(FieldReader& fields, const SamplingParams& sampling, bool stream);

}  // namespace octavo::app
