// Folds the events of some requests into whole answers. For callers that want results rather than a stream.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"

namespace octavo {

class OutputCollector {
 public:
  // A request to collect, and how many outputs it asked for.
  void expect(RequestId request_id, std::int32_t num_outputs);

  // Events of other requests, and of outputs that were not expected, are passed over.
  void add(const EngineEvent& event);

  bool done() const { return num_open_ == 0; }

  // The answers so far, in the order of expect(). A request that was refused has an error and no outputs.
  std::vector<RequestOutput> take() { return std::move(answers_); }

 private:
  void apply(RequestOutput& answer, const RequestAccepted& event);
  void apply(RequestOutput& answer, const RequestAdmitted& event);
  void apply(RequestOutput& answer, const TokensGenerated& event);
  void apply(RequestOutput& answer, const BeamsAdvanced& event);
  void apply(RequestOutput& answer, const RequestPreempted& event);
  void apply(RequestOutput&, const PromptProgress&) {}  // the whole answer comes behind it
  void apply(RequestOutput& answer, const EmbeddingComputed& event);
  void apply(RequestOutput& answer, const OutputFinished& event);
  void apply(RequestOutput& answer, const RequestFinished& event);
  void apply(RequestOutput& answer, const RequestFailed& event);

  void open_outputs(RequestOutput& answer);
  static CompletionOutput* find_output(RequestOutput& answer, std::int32_t output_index);

  std::vector<RequestOutput> answers_;
  std::vector<std::int32_t> num_outputs_;                 // of each answer
  std::unordered_map<RequestId, std::size_t> answer_of_;  // index into answers_
  std::size_t num_open_ = 0;
};

}  // namespace octavo
