// What a server of models sends us, as bytes: events, pieces of answers, lists of models, loads, refusals.
// The first byte decides where the rest is cut.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "app/http_client/event_stream.h"
#include "app/remote/answer_stream.h"
#include "app/remote/endpoint.h"
#include "app/remote/remote_metrics.h"
#include "tests/fuzz/target.h"

namespace octavo::fuzz {
namespace {

constexpr std::size_t kMostEventBytes = 200;  // small enough that inputs reach it

constexpr std::string_view kDictionary[] = {
    "data: ",
    "data:",
    "event: a\n",
    ": comment\n",
    "\n",
    "\n\n",
    "\r\n\r\n",
    "\r",
    "[DONE]",
    R"({"choices":[{"index":0,"delta":{"content":"a"}}]})",
    R"({"choices":[{"index":1,"text":"b","finish_reason":"stop"}]})",
    R"("reasoning_content":"hm",)",
    R"("logprobs":{"content":[{"token":"a","logprob":-1,"bytes":[97]}]},)",
    R"("logprobs":{"tokens":["a"],"token_logprobs":[-1],"top_logprobs":[{"a":-1}]},)",
    R"("usage":{"prompt_tokens":3,"completion_tokens":4},)",
    R"({"error":{"message":"no"}})",
    R"({"data":[{"id":"m","max_model_len":512}]})",
    "vllm:num_requests_running 3\n",
    "vllm:kv_cache_usage_perc{model_name=\"m\",a=\"}\"} 0.5\n",
    "1e999",
    "-1",
    "NaN",
    "null",
    "\xff",
    "\xe2\x82",
    "\x1b"};

bool is_printable_line(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return !text.empty();
}

void check_error(const Error& error) {
  require(is_printable_line(error.message), "a failure is one printable line");
}

std::vector<http::ServerEvent> events_of(std::string_view bytes, std::size_t num_bytes) {
  http::EventStream stream(kMostEventBytes);
  std::vector<http::ServerEvent> events;
  while (!bytes.empty()) {
    for (http::ServerEvent& event : stream.feed(bytes.substr(0, num_bytes))) {
      require(event.data.size() + event.name.size() <= kMostEventBytes, "an event has a limit");
      require(event.name.find_first_of("\r\n") == std::string::npos, "a name is one line");
      events.push_back(std::move(event));
    }
    bytes.remove_prefix(std::min(bytes.size(), num_bytes));
  }
  return events;
}

void check_chunk(const Result<app::AnswerChunk>& chunk) {
  if (!chunk) return check_error(chunk.error());
  for (const app::AnswerPiece& piece : chunk->pieces)
    require(piece.index >= 0 && piece.index <= 1'024, "a choice has a number");
  if (!chunk->usage) return;
  require(chunk->usage->num_prompt_tokens >= 0 && chunk->usage->num_output_tokens >= 0,
          "counts are not negative");
}

void check_load(const app::RemoteLoad& load) {
  for (const auto& figure : {load.kv_usage, load.num_running, load.num_waiting, load.prefix_hits})
    require(!figure || std::isfinite(*figure), "a figure is a number");
  require(!load.kv_usage || (*load.kv_usage >= 0.0 && *load.kv_usage <= 1.0), "a share is one");
}

void run(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const std::string_view bytes(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const auto whole = events_of(bytes, bytes.size());
  require(events_of(bytes, 1) == whole, "bytes one by one give the same events as all at once");
  require(events_of(bytes, 1 + input[0] % 64) == whole, "pieces give the same events as all at once");
  for (const http::ServerEvent& event : whole) check_chunk(app::read_answer_chunk(event.data));
  check_chunk(app::read_whole_answer(bytes));
  if (const auto models = app::read_models(bytes); !models) check_error(models.error());
  check_load(app::read_remote_metrics(bytes, "m"));
  check_error(app::error_of_answer(400 + input[0], bytes, "http://a/v1"));
  if (const auto address = app::normal_address(bytes)) {
    require(app::normal_address(*address) && *app::normal_address(*address) == *address,
            "a normal address stays one");
  } else {
    check_error(address.error());
  }
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  mutate_text(input, max_size, random, kDictionary, mutate_bytes);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> seeds;
  for (const std::string_view text :
       {"\x03"
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
        "\x07"
        ": hello\r\nevent: a\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\r\n\r\n",
        "\x05"
        "{\"data\":[{\"id\":\"m\",\"meta\":{\"n_ctx\":5}}]}",
        "\x09"
        "# HELP a\nvllm:num_requests_running{model_name=\"m\"} 1\nllamacpp:requests_deferred 2\n",
        "\x02"
        "http://127.0.0.1:8000/v1",
        "\x02"
        "https://[::1]:80/a/b/"})
    seeds.emplace_back(text.begin(), text.end());
  return seeds;
}

}  // namespace

const Target kAnswerTarget = {"answer", 1024, run, mutate, seeds};

}  // namespace octavo::fuzz
