#include "app/server/embeddings.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/server/completions.h"
#include "app/server/openai_answer.h"
#include "app/server/request_fields.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMaxEmbeddingInputs = 2048;

constexpr std::array kUnsupportedInEmbeddings = {
    UnsupportedField{"stream", Harmless::kFalse},
    UnsupportedField{"truncate_prompt_tokens", Harmless::kNothing, "send an input that fits"},
    UnsupportedField{"messages", Harmless::kEmpty, "send their text as input"},
};

// The bytes of the numbers as float32, the lowest byte first, as clients unpack them.
std::string base64_of(const std::vector<float>& values) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255u);
  }
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = i; j < i + 3; ++j)
      group = group << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0u);
    const std::size_t num_bytes = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t digit = 0; digit < 4; ++digit)
      text += digit <= num_bytes ? kDigits[group >> (18 - 6 * digit) & 63u] : '=';
  }
  return text;
}

struct EmbeddingPlan {
  std::string id;
  std::int64_t created = 0;
  std::string model;
  Pooling pooling = Pooling::kLast;
  bool as_base64 = false;
};

class EmbeddingAnswer final : public Answer {
 public:
  EmbeddingAnswer(EmbeddingPlan plan, std::size_t num_inputs) : plan_(std::move(plan)), inputs_(num_inputs) {}

  std::string add(std::size_t request, const EngineEvent& event) override {
    Input& input = inputs_[request];
    if (const auto* const accepted = std::get_if<RequestAccepted>(&event)) {
      input.num_tokens = static_cast<std::int64_t>(accepted->prompt_token_ids.size());
    } else if (const auto* const admitted = std::get_if<RequestAdmitted>(&event)) {
      input.num_cached_tokens = admitted->num_cached_tokens;
    } else if (const auto* const computed = std::get_if<EmbeddingComputed>(&event)) {
      input.embedding = plan_.as_base64 ? Json(base64_of(computed->values)) : Json(computed->values);
    } else if (std::holds_alternative<RequestFinished>(event)) {
      ++num_ended_;
    } else if (const auto* const failed = std::get_if<RequestFailed>(&event)) {
      ++num_ended_;
      if (!failure_) failure_ = failed->error;
    }
    return {};
  }

  bool done() const override { return num_ended_ == inputs_.size(); }
  const std::optional<Error>& failure() const override { return failure_; }
  // There are no streams of these.
  std::string first_frames() override { return {}; }
  std::string last_frames() override { return {}; }
  std::string failure_frames(const ApiError&) override { return {}; }

  std::string body() override {
    Json data = Json::array();
    Json details = nullptr;
    std::int64_t num_tokens = 0, num_cached_tokens = 0;
    for (std::size_t index = 0; index < inputs_.size(); ++index) {
      num_tokens += inputs_[index].num_tokens;
      num_cached_tokens += inputs_[index].num_cached_tokens;
      data.push_back(
          {{"object", "embedding"}, {"index", index}, {"embedding", std::move(inputs_[index].embedding)}});
    }
    if (num_cached_tokens > 0) details = {{"cached_tokens", num_cached_tokens}};
    return dump(Json{{"id", plan_.id},
                     {"object", "list"},
                     {"created", plan_.created},
                     {"model", plan_.model},
                     {"pooling", pooling_name(plan_.pooling)},
                     {"data", std::move(data)},
                     {"usage",
                      {{"prompt_tokens", num_tokens},
                       {"total_tokens", num_tokens},
                       {"prompt_tokens_details", std::move(details)}}}});
  }

 private:
  struct Input {
    std::int64_t num_tokens = 0, num_cached_tokens = 0;
    Json embedding = nullptr;  // null in the answer: it was cancelled
  };

  const EmbeddingPlan plan_;
  std::vector<Input> inputs_;
  std::size_t num_ended_ = 0;
  std::optional<Error> failure_;
};

Pooling read_pooling(FieldReader& fields) {
  const auto name = fields.text("pooling");
  if (!name) return EmbeddingParams{}.pooling;
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    if (*name == pooling_name(pooling)) return pooling;
  }
  fields.refuse("pooling", "\"last\" or \"mean\"");
  return {};
}

bool read_as_base64(FieldReader& fields) {
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "\"float\" or \"base64\"");
  return format == "base64";
}

// A shorter row would be one that the model was not trained to give.
void check_dimensions(FieldReader& fields, std::int32_t width) {
  const auto dimensions = fields.integer("dimensions", 1);
  if (!dimensions || *dimensions == width) return;
  fields.refuse("dimensions", std::to_string(width) + ", as many as this model has, or left out");
}

}  // namespace

Result<Call> parse_embedding(const Json& body, const ServedModel& model, const CallIdentity& identity) {
  FieldReader fields(body);
  read_model(fields, model);
  refuse_unsupported(fields, kUnsupportedInEmbeddings);
  std::vector<Prompt> inputs =
      read_prompts(fields, "input", model.description.model.vocabulary_size, kMaxEmbeddingInputs);
  const EmbeddingParams params{.pooling = read_pooling(fields),
                               .normalise = fields.flag("normalize").value_or(true)};
  EmbeddingPlan plan{.id = "embd-" + identity.hex,
                     .created = identity.created,
                     .model = model.name(),
                     .pooling = params.pooling,
                     .as_base64 = read_as_base64(fields)};
  check_dimensions(fields, model.description.model.embedding_length);
  const std::string cache_salt = read_cache_salt(fields);
  OCTAVO_TRY_VOID(fields.check());
  Call call;
  call.answer = std::make_unique<EmbeddingAnswer>(std::move(plan), inputs.size());
  for (Prompt& input : inputs)
    call.requests.push_back({.prompt = std::move(input), .cache_salt = cache_salt, .embedding = params});
  return call;
}

Json embedding_description(const ServedModel& model) {
  return {{"dimensions", model.description.model.embedding_length},
          {"pooling", {pooling_name(Pooling::kLast), pooling_name(Pooling::kMean)}}};
}

}  // namespace octavo::app
