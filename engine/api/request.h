// What is asked of the engine, and the whole answer as the offline API gives it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo {

enum class Role { kSystem, kUser, kAssistant, kTool };

std::string_view role_name(Role role);
std::optional<Role> parse_role(std::string_view name);

// A function that a model asked to be called.
struct ToolCall {
  std::string id = {};  // by which the result names it; clients and templates use it as it is
  std::string name = {};
  std::string arguments = {};  // a JSON object, as it was written
  bool operator==(const ToolCall&) const = default;
};

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;
  // For an unedited answer: the ids that were generated for it, without the end token. They are used again
  // instead of tokenising `content`, so that the next turn finds its blocks. Empty: tokenise.
  std::vector<TokenId> token_ids = {};
  std::vector<ToolCall> tool_calls = {};  // of an answer, behind its content
  std::string tool_call_id = {};          // of a result: the call that it answers
};

struct TextPrompt {
  std::string text;
  bool parse_special = false;  // whether text such as <|im_end|> may become a special token
};
struct ChatPrompt {
  std::vector<ChatMessage> messages;  // run through the model's chat template, generation prompt added
  // The last message is the beginning of an answer, which generation continues.
  bool continue_answer = false;
  TemplateValues template_values = {};
  // What the model may ask to be called: a JSON list of {"type": "function", "function": {"name",
  // "description", "parameters"}}, as templates read it. Empty: nothing.
  std::string tools = {};
};
struct TokenPrompt {
  std::vector<TokenId> token_ids;
};
using Prompt = std::variant<TextPrompt, ChatPrompt, TokenPrompt>;

// Who waits for the answer. While there is anything interactive, background requests take turns of the steps,
// and give up their blocks for it (engine/scheduler/README.md); among their like all are first come, first
// served. Nothing of this changes a token.
enum class RequestPriority : std::uint8_t {
  kInteractive,  // a person, at the screen
  kBackground,   // a program
};

// What a row of numbers for a whole prompt is made of: the model's last hidden states, after its output norm.
enum class Pooling : std::uint8_t {
  kLast,  // that of the last token
  kMean,  // the mean of all
};
std::string_view pooling_name(Pooling pooling);

// Asks for such a row instead of an answer: nothing is generated, and `sampling` counts for nothing.
struct EmbeddingParams {
  Pooling pooling = Pooling::kLast;
  bool normalise = true;  // to the length 1
};

struct GenerationRequest {
  Prompt prompt;
  SamplingParams sampling = {};
  std::string cache_salt = {};  // requests share prefix blocks only with requests of the same salt
  // How long what it leaves in the prefix cache is worth keeping. None: kChat for a ChatPrompt, else
  // kScratch. The system message of a ChatPrompt is kept as kSystemPrompt at least.
  std::optional<RetentionClass> retention = {};
  RequestPriority priority = RequestPriority::kInteractive;
  bool reports_prompt_progress = false;           // by PromptProgress events
  std::optional<EmbeddingParams> embedding = {};  // then there are no outputs, and EmbeddingComputed tells
};

enum class FinishReason { kStop, kLength, kAbort, kError };
std::string_view finish_reason_name(FinishReason reason);

// null | the stop string | the token id that ended the output
using StopReason = std::variant<std::monostate, std::string, TokenId>;

struct TokenLogprob {
  TokenId token_id;
  float logprob;  // natural; minus infinity is possible
};

struct RequestMetrics {
  std::int64_t queue_us = 0;  // submit -> first scheduled
  std::int64_t ttft_us = 0;   // submit -> first token
  std::int64_t tpot_us = 0;   // mean time per later token
  std::int64_t e2e_us = 0;    // submit -> end
  std::int32_t num_preemptions = 0;
  std::int32_t num_draft_tokens = 0;     // guessed ahead, for all outputs
  std::int32_t num_accepted_tokens = 0;  // of these, what became tokens of an output
  PromptAccount prompt = {};             // all 0 until the first token
  PrefixMiss prefix_miss = {};           // of the first admission
};

// One token of a beam search's tree. Nodes are numbered in order of birth.
struct BeamNode {
  std::int32_t parent = -1;  // -1: follows the prompt
  TokenId token_id = -1;
  float logprob = 0.0f;
  double cumulative_logprob = 0.0;
};

// What one step did to the tree. A beam has died when no live node descends from it.
struct BeamStep {
  std::int32_t first_node = 0;      // number of the first of `nodes`
  std::vector<BeamNode> nodes;      // born in this step
  std::vector<std::int32_t> live;   // the beams still running, best first
  std::vector<std::int32_t> ended;  // born as the end of a hypothesis
};

struct CompletionOutput {
  std::int32_t index = 0;
  std::string text;                // valid UTF-8, cut before the stop string or token
  std::vector<TokenId> token_ids;  // with the EOS or stop token that ended it
  std::vector<float> logprobs;     // of each token
  // Of each token: the best, best first, or logprob_token_ids in their order; empty when not asked.
  std::vector<std::vector<TokenLogprob>> top_logprobs;
  double cumulative_logprob = 0.0;
  std::optional<double> score = {};  // beams
  FinishReason finish_reason = FinishReason::kAbort;
  StopReason stop_reason = {};
  std::string finish_detail = {};  // one sentence where the reason alone would not explain it
};

struct RequestOutput {
  RequestId request_id;
  std::vector<TokenId> prompt_token_ids;
  std::vector<std::optional<float>> prompt_logprobs;  // first is nullopt; empty when not asked
  // Of each prompt token, best first; of the first none. Empty when no alternatives were asked for.
  std::vector<std::vector<TokenLogprob>> prompt_top_logprobs = {};
  std::int32_t num_cached_tokens = 0;  // of the first admission
  std::uint64_t seed = 0;
  std::vector<CompletionOutput> outputs;
  std::vector<BeamStep> beam_steps = {};  // the whole tree of a beam search
  std::vector<float> embedding = {};      // as long as the model is wide; empty when not asked
  std::optional<Error> error = {};
  RequestMetrics metrics = {};
};

}  // namespace octavo
