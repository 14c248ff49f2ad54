// octavo._engine: the engine as Python sees it. Plain values cross the border; octavo/llm.py makes vLLM's
// names of them. The interpreter's lock is released while anything loads, waits or computes.
//
// Thread: any; calls that wait for events go one at a time (llm.py holds a lock).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "engine/api/option_names.h"
#include "engine/base/overloaded.h"
#include "engine/engine.h"
#include "engine/model/model_files.h"
#include "engine/output_collector.h"

namespace nb = nanobind;

namespace octavo {
namespace {

// ---- failures as exceptions: our one sentence is the message

[[noreturn]] void raise(const Error& error) {
  PyObject* type = PyExc_RuntimeError;
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kDamagedFile:
    case ErrorCode::kTooLong: type = PyExc_ValueError; break;
    case ErrorCode::kNotFound: type = PyExc_FileNotFoundError; break;
    case ErrorCode::kOutOfMemory: type = PyExc_MemoryError; break;
    case ErrorCode::kIo: type = PyExc_OSError; break;
    case ErrorCode::kInvalidLogits:
    case ErrorCode::kDevice:
    case ErrorCode::kDeviceLost:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal: break;
  }
  PyErr_SetString(type, error.message.c_str());
  throw nb::python_error();
}

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

void succeed_or_raise(const Result<void>& result) {
  if (!result) raise(result.error());
}

// ---- dictionaries to values; names are checked in Python

template <class T>
void take(const nb::dict& from, const char* name, T& into) {
  if (!from.contains(name) || from[name].is_none()) return;
  try {
    into = nb::cast<T>(from[name]);
  } catch (const std::exception&) {
    raise({ErrorCode::kInvalidArgument, std::string(name) + " has a value of the wrong type"});
  }
}

template <class T>
void take(const nb::dict& from, const char* name, std::optional<T>& into) {
  if (!from.contains(name) || from[name].is_none()) return;
  T value{};
  take(from, name, value);
  into = std::move(value);
}

template <class T>
void take_one_of(const nb::dict& from, const char* name, T& into, NamedValues<T> values) {
  std::optional<std::string> wanted;
  take(from, name, wanted);
  if (!wanted) return;
  std::string known;
  for (const auto& [text, value] : values) {
    if (*wanted == text) {
      into = value;
      return;
    }
    known += known.empty() ? text : std::string(", ") + text;
  }
  raise({ErrorCode::kInvalidArgument, std::string(name) + " is '" + *wanted + "'; it can be " + known});
}

EngineOptions options_of(const nb::dict& from) {
  EngineOptions options;
  take(from, "model", options.model);
  take_one_of(from, "device", options.device, kDeviceNames);
  take(from, "threads", options.threads);
  take_one_of(from, "dtype", options.dtype, kWeightTypeNames);
  take_one_of(from, "kv_cache_dtype", options.kv_cache_dtype, kKvCacheTypeNames);
  take_one_of(from, "preemption_mode", options.preemption_mode, kPreemptionPolicyNames);
  take_one_of(from, "quantization", options.quantisation, kWeightQuantisationNames);
  take(from, "block_size", options.block_size);
  take(from, "num_kv_blocks", options.num_kv_blocks);
  take(from, "kv_cache_memory", options.kv_cache_memory);
  take(from, "gpu_memory_utilization", options.gpu_memory_utilization);
  take(from, "swap_space", options.swap_space);
  take(from, "max_model_len", options.max_model_len);
  take(from, "max_num_seqs", options.max_num_seqs);
  take(from, "max_num_batched_tokens", options.max_num_batched_tokens);
  take(from, "enable_prefix_caching", options.enable_prefix_caching);
  take(from, "tensor_parallel_size", options.tensor_parallel_size);
  bool enforce_eager = false;
  take(from, "enforce_eager", enforce_eager);
  options.cuda_graphs = !enforce_eager;
  return options;
}

// {kind, texts}, as sampling_params.py makes it.
std::optional<StructuredOutput> structured_output_of(const nb::dict& from) {
  std::optional<std::pair<std::string, std::vector<std::string>>> said;
  take(from, "structured_outputs", said);
  if (!said) return std::nullopt;
  auto& [kind, texts] = *said;
  if (kind == "json_object") return AnyJsonObject{};
  if (kind == "choice") return ChoiceOfTexts{std::move(texts)};
  if (texts.size() == 1) {
    if (kind == "json") return JsonSchema{texts.front()};
    if (kind == "regex") return RegularExpression{texts.front()};
    if (kind == "grammar") return GrammarText{texts.front()};
    if (kind == "structural_tag") return StructuralTag{texts.front()};
  }
  raise({ErrorCode::kInvalidArgument, "structured_outputs has no form '" + kind + "'"});
}

SamplingParams sampling_of(const nb::dict& from) {
  SamplingParams params;
  take(from, "n", params.n);
  take(from, "best_of", params.best_of);
  take(from, "temperature", params.temperature);
  take(from, "top_p", params.top_p);
  take(from, "top_k", params.top_k);
  take(from, "min_p", params.min_p);
  take(from, "presence_penalty", params.presence_penalty);
  take(from, "frequency_penalty", params.frequency_penalty);
  take(from, "repetition_penalty", params.repetition_penalty);
  take(from, "seed", params.seed);
  take(from, "max_tokens", params.max_tokens);
  take(from, "min_tokens", params.min_tokens);
  take(from, "stop", params.stop);
  take(from, "stop_token_ids", params.stop_token_ids);
  take(from, "include_stop_str_in_output", params.include_stop_str_in_output);
  take(from, "ignore_eos", params.ignore_eos);
  take(from, "skip_special_tokens", params.skip_special_tokens);
  take(from, "logprobs", params.logprobs);
  take(from, "logprob_token_ids", params.logprob_token_ids);
  take(from, "prompt_logprobs", params.prompt_logprobs);
  take(from, "logit_bias", params.logit_bias);
  take(from, "allowed_token_ids", params.allowed_token_ids);
  take(from, "bad_words", params.bad_words);
  take(from, "beam_width", params.beam_width);
  take(from, "length_penalty", params.length_penalty);
  take(from, "early_stopping", params.early_stopping);
  params.structured_output = structured_output_of(from);
  return params;
}

ToolCall tool_call_of(const nb::dict& from) {
  ToolCall call;
  take(from, "id", call.id);
  take(from, "name", call.name);
  take(from, "arguments", call.arguments);
  return call;
}

ChatMessage message_of(const nb::dict& from) {
  std::string role_said;
  take(from, "role", role_said);
  const std::optional<Role> role = parse_role(role_said);
  if (!role) {
    raise({ErrorCode::kInvalidArgument,
           "a message has the role '" + role_said + "'; it can be system, user, assistant or tool"});
  }
  ChatMessage message{.role = *role, .content = {}};
  take(from, "content", message.content);
  take(from, "tool_call_id", message.tool_call_id);
  std::vector<nb::dict> calls;
  take(from, "tool_calls", calls);
  for (const nb::dict& call : calls) message.tool_calls.push_back(tool_call_of(call));
  return message;
}

// As chats.py makes it.
struct Chat {
  ChatPrompt prompt;
  bool add_generation_prompt = true;
};

Chat chat_of(const nb::dict& from) {
  Chat chat;
  std::vector<nb::dict> messages;
  take(from, "messages", messages);
  for (const nb::dict& message : messages) chat.prompt.messages.push_back(message_of(message));
  if (messages.empty())
    raise({ErrorCode::kInvalidArgument, "messages: the list is empty; give at least one message"});
  take(from, "continue_final_message", chat.prompt.continue_answer);
  take(from, "add_generation_prompt", chat.add_generation_prompt);
  take(from, "tools", chat.prompt.tools);
  nb::dict values;
  take(from, "template_values", values);
  for (const auto& [name, value] : values) {
    TemplateValue& into = chat.prompt.template_values[nb::cast<std::string>(name)];
    if (!nb::try_cast(value, into)) {
      raise({ErrorCode::kInvalidArgument, "the template's value '" + nb::cast<std::string>(name) +
                                              "' must be a text, a whole number, or True or False"});
    }
  }
  succeed_or_raise(validate(chat.prompt.template_values));
  return chat;
}

// A chat that goes on with its last message is that without it, and then the text of it.
std::size_t num_rendered(const Chat& chat) {
  const std::vector<ChatMessage>& messages = chat.prompt.messages;
  if (!chat.prompt.continue_answer) return messages.size();
  if (messages.back().role != Role::kAssistant || messages.size() < 2) {
    raise({ErrorCode::kInvalidArgument,
           "continue_final_message: only an answer that follows another message can be continued"});
  }
  return messages.size() - 1;
}

TemplateInputs inputs_of(const Chat& chat) {
  using std::chrono::system_clock;
  TemplateInputs inputs(system_clock::to_time_t(system_clock::now()), chat.prompt.template_values);
  inputs.tools = chat.prompt.tools;
  inputs.add_generation_prompt = chat.add_generation_prompt || chat.prompt.continue_answer;
  return inputs;
}

// ---- values to Python

nb::object python_of(const StopReason& reason) {
  return std::visit(Overloaded{[](std::monostate) -> nb::object { return nb::none(); },
                               [](const std::string& text) -> nb::object { return nb::cast(text); },
                               [](TokenId id) -> nb::object { return nb::cast(id); }},
                    reason);
}

nb::list python_of(const std::vector<TokenLogprob>& tokens) {
  nb::list list;
  for (const TokenLogprob& token : tokens) list.append(nb::make_tuple(token.token_id, token.logprob));
  return list;
}

nb::list python_of(const std::vector<std::vector<TokenLogprob>>& rows) {
  nb::list list;
  for (const auto& row : rows) list.append(python_of(row));
  return list;
}

nb::dict python_of(const CompletionOutput& output) {
  nb::dict dict;
  dict["index"] = output.index;
  dict["text"] = output.text;
  dict["token_ids"] = output.token_ids;
  dict["logprobs"] = output.logprobs;
  dict["top_logprobs"] = python_of(output.top_logprobs);
  dict["cumulative_logprob"] = output.cumulative_logprob;
  dict["finish_reason"] = std::string(finish_reason_name(output.finish_reason));
  dict["stop_reason"] = python_of(output.stop_reason);
  return dict;
}

nb::dict python_of(const RequestOutput& answer) {
  nb::dict dict;
  dict["prompt_token_ids"] = answer.prompt_token_ids;
  dict["prompt_logprobs"] = answer.prompt_logprobs;
  dict["prompt_top_logprobs"] = python_of(answer.prompt_top_logprobs);
  dict["num_cached_tokens"] = answer.num_cached_tokens;
  dict["seed"] = answer.seed;
  nb::list outputs;
  for (const CompletionOutput& output : answer.outputs) outputs.append(python_of(output));
  dict["outputs"] = outputs;
  return dict;
}

class PythonEngine {
 public:
  explicit PythonEngine(const nb::dict& from) {
    EngineOptions options = options_of(from);
    auto engine = [&]() -> Result<std::unique_ptr<Engine>> {
      const nb::gil_scoped_release released;
      OCTAVO_TRY(const auto path, model::find_model(options.model));
      options.model = path.string();
      return Engine::create(options);
    }();
    engine_ = value_or_raise(std::move(engine));
  }

  // With the lock released: an end waits for the step under way.
  ~PythonEngine() {
    const nb::gil_scoped_release released;
    engine_.reset();
  }

  std::uint64_t submit_text(const std::string& text, const nb::dict& params) {
    return submit({.prompt = TextPrompt{text, /*parse_special=*/true}, .sampling = sampling_of(params)});
  }
  std::uint64_t submit_tokens(const std::vector<TokenId>& ids, const nb::dict& params) {
    return submit({.prompt = TokenPrompt{ids}, .sampling = sampling_of(params)});
  }
  std::uint64_t submit_chat(const nb::dict& chat_said, const nb::dict& params) {
    const Chat chat = chat_of(chat_said);
    const bool is_usual = chat.add_generation_prompt || chat.prompt.continue_answer;
    if (is_usual) return submit({.prompt = chat.prompt, .sampling = sampling_of(params)});
    return submit({.prompt = TokenPrompt{encode_chat(chat_said)},
                   .sampling = sampling_of(params),
                   .retention = RetentionClass::kChat});
  }

  // What came since the last call: (request, output, text, token_ids), and with an empty text and output -1 a
  // request that has ended. Waits for the first of it.
  std::vector<std::tuple<std::uint64_t, std::int32_t, std::string, std::vector<TokenId>>> poll(
      double seconds) {
    std::vector<EngineEvent> events;
    {
      const nb::gil_scoped_release released;
      events = engine_->poll(std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6)));
    }
    std::vector<std::tuple<std::uint64_t, std::int32_t, std::string, std::vector<TokenId>>> news;
    for (const EngineEvent& event : events) {
      std::visit(
          [&](const auto& one) {
            using Event = std::decay_t<decltype(one)>;
            const auto answer = answers_.find(one.request_id);
            if (answer == answers_.end()) return;
            answer->second.add(event);
            const auto id = one.request_id.value;
            if constexpr (std::is_same_v<Event, TokensGenerated>) {
              news.emplace_back(id, one.output_index, one.text, one.token_ids);
            } else if constexpr (std::is_same_v<Event, RequestFinished> ||
                                 std::is_same_v<Event, RequestFailed>) {
              news.emplace_back(id, -1, std::string(), std::vector<TokenId>());
            }
          },
          event);
    }
    return news;
  }

  // The whole answer of a request that has ended, once; raises what made it fail.
  nb::dict take_answer(std::uint64_t id) {
    const auto found = answers_.find(RequestId{id});
    if (found == answers_.end()) raise({ErrorCode::kInvalidArgument, "there is no such request"});
    const std::vector<RequestOutput> answers = found->second.take();
    answers_.erase(found);
    if (answers.front().error) raise(*answers.front().error);
    return python_of(answers.front());
  }

  void cancel(std::uint64_t id) { engine_->cancel(RequestId{id}); }

  std::vector<TokenId> encode(const std::string& text, bool add_special_tokens) const {
    return value_or_raise(engine_->tokenizer().encode(text, /*parse_special=*/true, add_special_tokens));
  }
  std::string decode(const std::vector<TokenId>& ids, bool skip_special) const {
    for (const TokenId id : ids) {
      if (id < 0 || id >= engine_->tokenizer().vocabulary_size())
        raise({ErrorCode::kInvalidArgument, "token " + std::to_string(id) + " is not in the vocabulary of " +
                                                std::to_string(engine_->tokenizer().vocabulary_size())});
    }
    return engine_->tokenizer().decode(ids, skip_special);
  }

  std::vector<TokenId> encode_chat(const nb::dict& chat_said) const {
    const Chat chat = chat_of(chat_said);
    const std::span<const ChatMessage> messages(chat.prompt.messages.data(), num_rendered(chat));
    const tokenizer::Tokenizer& tokenizer = engine_->tokenizer();
    std::vector<TokenId> ids = value_or_raise(tokenizer.encode_chat(messages, inputs_of(chat)));
    if (chat.prompt.continue_answer) {
      const std::vector<TokenId> begun =
          value_or_raise(tokenizer.encode(chat.prompt.messages.back().content, /*parse_special=*/false,
                                          /*add_bos=*/false));
      ids.insert(ids.end(), begun.begin(), begun.end());
    }
    return ids;
  }
  std::string render_chat(const nb::dict& chat_said) const {
    const Chat chat = chat_of(chat_said);
    const std::span<const ChatMessage> messages(chat.prompt.messages.data(), num_rendered(chat));
    const auto spans = value_or_raise(engine_->tokenizer().apply_chat_template(messages, inputs_of(chat)));
    std::string text;
    for (const tokenizer::PromptSpan& span : spans) text += span.text;
    return text + (chat.prompt.continue_answer ? chat.prompt.messages.back().content : std::string());
  }

  nb::dict description() const {
    const EngineDescription& engine = engine_->description();
    nb::dict dict;
    dict["model"] = engine.model.path;
    dict["architecture"] = engine.model.architecture;
    dict["num_parameters"] = engine.model.num_parameters;
    dict["vocabulary_size"] = engine.model.vocabulary_size;
    dict["context_length"] = engine.model.context_length;
    dict["max_model_len"] = engine.max_model_len;
    dict["block_size"] = engine.block_size;
    dict["num_blocks"] = engine.num_blocks;
    dict["device"] = engine.device;
    dict["weight_type"] = engine.model.quantisation;
    dict["bos_token_id"] = engine_->tokenizer().bos_token_id();
    dict["eos_token_id"] = engine_->tokenizer().eos_token_id();
    dict["chat_template"] = std::string(engine_->tokenizer().chat_template_source());
    dict["notice"] = engine.notice;
    nb::dict advice;
    const SamplingAdvice& said = engine.model.sampling_advice;
    for_each_advised([&](const char* name, auto advised, auto) {
      if (said.*advised) advice[name] = *(said.*advised);
    });
    dict["sampling_advice"] = advice;
    return dict;
  }

 private:
  std::uint64_t submit(GenerationRequest request) {
    const std::int32_t num_outputs = request.sampling.num_outputs();
    const RequestId id = engine_->submit(std::move(request));
    answers_[id].expect(id, num_outputs);
    return id.value;
  }

  std::unique_ptr<Engine> engine_;
  std::unordered_map<RequestId, OutputCollector> answers_;  // of requests that nobody took yet
};

}  // namespace
}  // namespace octavo

NB_MODULE(_engine, module) {
  using octavo::PythonEngine;
  module.def("validate_sampling", [](const nb::dict& params) {
    octavo::succeed_or_raise(
        octavo::validate(octavo::sampling_of(params), std::numeric_limits<std::int32_t>::max()));
  });
  nb::class_<PythonEngine>(module, "Engine")
      .def(nb::init<const nb::dict&>())
      .def("submit_text", &PythonEngine::submit_text)
      .def("submit_tokens", &PythonEngine::submit_tokens)
      .def("submit_chat", &PythonEngine::submit_chat)
      .def("poll", &PythonEngine::poll)
      .def("take_answer", &PythonEngine::take_answer)
      .def("cancel", &PythonEngine::cancel)
      .def("encode", &PythonEngine::encode)
      .def("encode_chat", &PythonEngine::encode_chat)
      .def("render_chat", &PythonEngine::render_chat)
      .def("decode", &PythonEngine::decode)
      .def("description", &PythonEngine::description);
}
