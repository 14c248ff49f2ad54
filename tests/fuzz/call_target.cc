// A body that a client sends, in each protocol of the server: requests that are in range, and an answer whose
// frames and whole body are JSON; or one line that says why not. The first byte chooses the protocol.
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "app/server/chat_completions.h"
#include "app/server/completions.h"
#include "app/server/messages.h"
#include "app/server/responses.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/target.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::fuzz {
namespace {

constexpr std::string_view kWords[] = {
    "{\"prompt\": \"a\"}",
    "\"prompt\": ",
    "\"prompt\": [[1, 2], [3]]",
    "\"messages\": [",
    "{\"role\": \"user\", \"content\": \"a\"}",
    "{\"role\": \"assistant\", \"content\": null}",
    "{\"role\": \"system\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}]}",
    "{\"role\": \"tool\", \"tool_call_id\": \"a\", \"content\": \"b\"}",
    "\"input\": ",
    "\"instructions\": \"a\"",
    "\"model\": \"a\"",
    "\"max_tokens\": 9",
    "\"max_completion_tokens\": 9",
    "\"max_output_tokens\": 9",
    "\"n\": 2",
    "\"best_of\": 3",
    "\"use_beam_search\": true",
    "\"echo\": true",
    "\"logprobs\": 2",
    "\"logprobs\": true",
    "\"top_logprobs\": 2",
    "\"prompt_logprobs\": 1",
    "\"stop\": [\"x\"]",
    "\"stop_sequences\": [\"x\"]",
    "\"stream\": true",
    "\"stream_options\": {\"include_usage\": true}",
    "\"temperature\": 0.5",
    "\"logit_bias\": {\"1\": 2}",
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]",
    "\"tools\": [{\"name\": \"f\", \"input_schema\": {}}]",
    "\"tool_choice\": \"auto\"",
    "\"tool_choice\": \"required\"",
    "\"tool_choice\": {\"type\": \"any\"}",
    "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {}}}",
    "\"structured_outputs\": {\"regex\": \"a\"}",
    "\"guided_choice\": [\"a\"]",
    "\"text\": {\"format\": {\"type\": \"json_object\"}}",
    "\"output_config\": {\"format\": {\"type\": \"json_object\"}}",
    "\"thinking\": {\"type\": \"enabled\"}",
    "\"system\": \"a\"",
    "\"seed\": -1",
    "\"diagnostics\": {\"previous_message_id\": \"msg_a\"}",
    "\"prompt_cache_options\": {\"comparison_response_id\": \"resp_a\"}",
    "{\"type\": \"tool_use\", \"id\": \"a\", \"name\": \"f\", \"input\": {}}",
    "{\"type\": \"tool_result\", \"tool_use_id\": \"a\", \"content\": [{\"type\": \"text\", \"text\": "
    "\"b\"}]}",
    "{\"type\": \"function_call\", \"call_id\": \"a\", \"name\": \"f\", \"arguments\": \"{}\"}",
    "{\"type\": \"function_call_output\", \"call_id\": \"a\", \"output\": \"b\"}",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\ud800",
    "\xff",
    "\n"};

constexpr std::array kProtocols = {app::parse_completion, app::parse_chat_completion, app::parse_message_call,
                                   app::parse_response_call};

const app::ServedModel& model() {
  static testing::SpellingTokenizer tokenizer;
  static const app::ServedModel served = [] {
    tokenizer.token("Rain");
    tokenizer.token("<think>\xff");
    app::ServedModel one{.names = {"a"}, .tokenizer = &tokenizer};
    one.description.max_model_len = 64;
    one.description.model.vocabulary_size = tokenizer.vocabulary_size();
    one.description.model.has_chat_template = true;
    return one;
  }();
  return served;
}

// Every piece of a stream: lines that end with an empty one, and whose data is JSON.
void check_frames(const std::string& frames) {
  for (std::size_t at = 0; at < frames.size();) {
    const std::size_t end = frames.find('\n', at);
    require(end != std::string::npos, "a stream is lines");
    const std::string_view line(frames.data() + at, end - at);
    at = end + 1;
    if (!line.starts_with("data: ") || line == "data: [DONE]") continue;
    require(app::parse_json(line.substr(6), "a frame").has_value(), "the data of a frame is JSON");
  }
  require(frames.empty() || frames.ends_with("\n\n"), "a frame is whole");
}

std::string tell(app::Answer& answer, std::size_t request, const SamplingParams& sampling) {
  const RequestId id{request + 1};
  std::string frames = answer.add(request, RequestAccepted{id, {3, 4}, 1});
  frames += answer.add(request, RequestAdmitted{id, 1, 0});
  for (std::int32_t output = 0; output < sampling.num_outputs(); ++output) {
    // Thinking, text, and a call in pieces, whose arguments are cut.
    for (const std::string& text :
         {std::string("<think>a</think>"), std::string("Rain"),
          std::string("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\""), std::string(": [1, ")}) {
      const TokenId token = text == "Rain" ? 3 : 4;
      TokensGenerated event{.request_id = id,
                            .output_index = output,
                            .token_ids = {token},
                            .logprobs = {-1.0f},
                            .top_logprobs = {},
                            .text = text};
      if (sampling.num_top_logprobs() > 0) event.top_logprobs = {{{token, -1.0f}, {3, -1.0f}}};
      frames += answer.add(request, event);
    }
    frames += answer.add(request, OutputFinished{.request_id = id, .output_index = output});
  }
  RequestFinished finished{id, {}, {}};
  if (sampling.prompt_logprobs) finished.prompt_logprobs = {std::nullopt, -2.0f};
  return frames + answer.add(request, finished);
}

void run(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const std::string_view text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const auto body = app::parse_json(text, "the body");
  if (!body) return;
  auto call = kProtocols[input[0] % kProtocols.size()](*body, model(), {std::string(32, 'a'), 1});
  if (!call) {
    const std::string& line = call.error().message;
    require(!line.empty() && line.find('\n') == std::string::npos && line.find('\x1b') == std::string::npos,
            "an error is one printable line");
    return;
  }
  require(!call->requests.empty(), "a call asks for something");
  for (const GenerationRequest& request : call->requests) {
    const auto* const chat = std::get_if<ChatPrompt>(&request.prompt);
    require(chat == nullptr || call->names.size() == chat->messages.size(), "each message has a name");
    if (chat != nullptr) app::render_parts(*chat, call->names, 0, *model().tokenizer);
  }
  if (call->compared_with) {
    using Found = app::PromptDivergence::Found;
    call->answer->compared({.found = input.size() % 2 == 0 ? Found::kTools : Found::kNoSuchRequest});
  }
  std::string frames = call->answer->first_frames();
  for (std::size_t i = 0; i < call->requests.size(); ++i) {
    require(validate(call->requests[i].sampling, model().tokenizer->vocabulary_size()).has_value(),
            "what is let through is in range");
    frames += tell(*call->answer, i, call->requests[i].sampling);
  }
  require(call->answer->done() && !call->answer->failure(), "an answer ends when all requests have ended");
  if (call->stream) return check_frames(frames + call->answer->last_frames());
  require(app::parse_json(call->answer->body(), "the answer").has_value(), "an answer is JSON");
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  static const JsonMutator mutator(kWords);
  mutator.mutate(input, /*begin=*/1, max_size, random, mutate_bytes);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> seeds;
  for (const std::string_view text :
       {R"(0{"prompt": "a", "max_tokens": 2, "logprobs": 1, "echo": true})",
        R"(0{"prompt": ["a", "b"], "n": 2, "stream": true, "stream_options": {"include_usage": true}})",
        R"(1{"messages": [{"role": "user", "content": "a"}], "stream": true, "logprobs": true})",
        R"(2{"model": "a", "max_tokens": 2, "messages": [{"role": "user", "content": "a"}], "stream": true})",
        R"(3{"input": "a", "stream": true})"})
    seeds.emplace_back(text.begin(), text.end());
  return seeds;
}

}  // namespace

const Target kCallTarget = {"call", 1024, run, mutate, seeds};

}  // namespace octavo::fuzz
