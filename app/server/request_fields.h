// The fields of a request body by name, for every protocol: typed, bounded, and with one sentence about the
// first that is wrong. Then what several protocols mean by the same fields: the model, sampling, streams,
// thinking.
//
// Thread: values; one thread at a time. A reader looks at the body, which outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo::app {

// Reads one JSON object. null is the same as absent. What is wrong gives nullopt, as what is absent does, and
// the first of it is kept: read everything, then ask check().
//
//   FieldReader fields(body);
//   const double top_p = fields.number("top_p", 0.0, 1.0).value_or(1.0);
//   OCTAVO_TRY_VOID(fields.check());
//
// The error is kInvalidArgument, one sentence such as "top_logprobs must be a whole number from 0 to 20, but
// it is 30", and its subject is the field's path ("messages[3].role").
class FieldReader {
 public:
  // `path` stands before the names of fields: "messages[3]"; empty for the body. Anything but an object is
  // the first error.
  explicit FieldReader(const Json& object, std::string path = {});

  // The member; nullptr when it is absent or null.
  const Json* find(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }

  std::optional<bool> flag(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  // 16.0 is a whole number, too: some languages have no other.
  std::optional<std::int64_t> integer(std::string_view name,
                                      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<std::int32_t> small_integer(std::string_view name,
                                            std::int32_t least = std::numeric_limits<std::int32_t>::min(),
                                            std::int32_t most = std::numeric_limits<std::int32_t>::max());
  std::optional<double> number(std::string_view name, double least = std::numeric_limits<double>::lowest(),
                               double most = std::numeric_limits<double>::max());
  // A list of texts, or one text for a list of one.
  std::optional<std::vector<std::string>> texts(std::string_view name, std::size_t most);
  std::optional<std::vector<TokenId>> token_ids(std::string_view name, std::int32_t vocabulary_size,
                                                std::size_t most = std::numeric_limits<std::size_t>::max());
  const Json* object(std::string_view name);
  const Json* list(std::string_view name, std::size_t least = 0,
                   std::size_t most = std::numeric_limits<std::size_t>::max());

  // "NAME must be RULE, but it is VALUE", with the value as JSON, cut when it is long.
  void refuse(std::string_view name, std::string_view rule);
  // "NAME is missing"
  void refuse_absent(std::string_view name);
  // Any other error.
  void fail(Error error);
  // The error of a reader of something in this object, if it has one.
  void adopt(const FieldReader& inner);

  // The path of a member, for readers and sentences about what is in it.
  std::string path_of(std::string_view name) const;

  // The first error of all.
  Result<void> check() const;
  bool ok() const { return !error_.has_value(); }

  // Members, null ones left out, that nobody has asked for. Escape them before they are shown.
  std::vector<std::string> unread() const;

 private:
  const Json* object_;  // nullptr: it is none
  std::string path_;
  std::vector<std::string_view> read_;  // names are texts of the program
  std::optional<Error> error_;
};

// "true", "a list", "-3", "\"abc...\"": a value as sentences show it, safe and short.
std::string value_for_message(const Json& value);

// A value as a token id below `vocabulary_size`; a list of these. nullopt for anything else.
std::optional<TokenId> token_id_of(const Json& value, std::int32_t vocabulary_size);
std::optional<std::vector<TokenId>> token_ids_of(const Json& list, std::int32_t vocabulary_size);

// A field that would change the text and that nothing here can do. Some values of it say nothing, and clients
// send them: null always, and these.
enum class Harmless : std::uint8_t {
  kNothing,  // null alone
  kEmpty,    // "", [], {}
  kFalse,
  kTrue,
  kZero,
  kOne,
  kTextFormat,    // {"type": "text"}
  kTextModality,  // ["text"]
  kAutoOrNone,    // "auto", "none"
};
struct UnsupportedField {
  std::string_view name;
  Harmless harmless = Harmless::kNothing;
  std::string_view instead = {};  // a clause behind the sentence: what to do
};
// The first of these that has another value is the error (kUnsupported).
void refuse_unsupported(FieldReader& fields, std::span<const UnsupportedField> unsupported);
// Those that every protocol knows: samplers that are not built, ...
std::span<const UnsupportedField> commonly_unsupported();

// `model`, absent or one of its names; else kNotFound, with the name that is there, and subject "model".
void read_model(FieldReader& fields, const ServedModel& model);

inline constexpr std::int32_t kMaxChoices = 128;     // n and best_of of a call
inline constexpr std::int32_t kMaxTopLogprobs = 20;  // logprobs and top_logprobs
inline constexpr std::size_t kMaxStopTexts = 16;     // stop and stop_sequences
inline constexpr std::size_t kMaxListed = 1024;      // logit_bias, stop_token_ids, bad_words

struct SamplingFields {
  SamplingParams sampling = {};  // max_tokens, logprobs and prompt_logprobs are the caller's
  std::int32_t num_choices =
      1;  // outputs that the client asked for: those of lower index, when there are more
};
// temperature, top_p, top_k, min_p, seed, stop, stop_token_ids, penalties, logit_bias, min_tokens,
// ignore_eos, include_stop_str_in_output, skip_special_tokens, bad_words and allowed_token_ids, by vLLM's
// names: what each protocol can say of one output. Where the request says nothing, what the model's makers
// advise holds, as vLLM follows generation_config.json; then vLLM's defaults. What Anthropic names otherwise
// (stop_sequences) is for the caller to put in.
SamplingParams read_plain_sampling(FieldReader& fields, const ServedModel& model);

// The same, and of several: n, best_of, use_beam_search with length_penalty and early_stopping.
SamplingFields read_sampling(FieldReader& fields, const ServedModel& model);

// Of the whole, when every field is read: validate() with the field as subject.
Result<void> check_sampling(const SamplingParams& sampling, const ServedModel& model);

// As many tokens as fit: the engine ends every output at the context's end.
std::int32_t tokens_to_context_end(const ServedModel& model);

// What an OpenAI client says of its stream.
struct StreamFields {
  bool stream = false;
  bool include_usage = false;           // one chunk more, with the usage
  bool continuous_usage_stats = false;  // the usage in every chunk
  bool return_progress = false;         // llama-server's: how far the prompt is, in chunks of their own
};
StreamFields read_stream(FieldReader& fields);

// `chat_template_kwargs`, and `reasoning_effort` as choose_effort().
TemplateValues read_template_values(FieldReader& fields, const ServedModel& model);

// How much to think, or whether, in the words of the model's own template; `name` is the field that says it.
// A model that has no such choice answers as ever. An effort that the template does not know is the nearest
// that it knows, and other words are refused; "none" is also no thinking where only that can be chosen. What
// `values` says already stays.
void choose_effort(FieldReader& fields, std::string_view name, const std::string& effort,
                   const ServedModel& model, TemplateValues& values);
void choose_thinking(bool thinks, const ServedModel& model, TemplateValues& values);

// vLLM's `priority`, of which less comes earlier: above 0, what is asked for waits for everything else. No
// client may come before the others: below 0 is refused.
RequestPriority read_priority(FieldReader& fields, RequestPriority usual);

// `cache_salt`; empty when there is none.
std::string read_cache_salt(FieldReader& fields);

}  // namespace octavo::app
