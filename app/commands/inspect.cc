#include "app/commands/inspect.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/inspect_recording.h"
#include "app/commands/request_json.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/metrics/recording_file.h"
#include "engine/model/inspection.h"
#include "engine/model/model_config.h"
#include "engine/model/model_files.h"
#include "engine/model/model_source.h"
#include "engine/model/shapes.h"
#include "engine/model/weights.h"
#include "engine/model_preview.h"

namespace octavo::app {
namespace {

constexpr std::uint64_t kBlockSize = 16;  // tokens; the engine's default

struct InspectOptions {
  std::string model;
  std::string shape;
  std::uint64_t precision = 2;  // bytes of a key's or value's element
  std::optional<std::uint64_t> num_tokens, batch_size;
  std::string memory;
  std::optional<std::int64_t> at_step;  // of a recording
  bool json = false;
};

// What is said of keys, values and states, for a file and for a named shape alike.
struct KvReport {
  model::KvShape shape;
  std::uint64_t precision = 0;
  std::uint64_t bytes_per_token = 0;
  std::uint64_t bytes_per_block = 0;
  std::uint64_t num_tokens = 0, batch_size = 0, total_bytes = 0;  // of --tokens and --batch
  std::uint64_t bytes_per_state = 0;  // of a sequence's recurrent layers; 0: there are none
  std::uint64_t weight_bytes = 0;
  std::optional<std::uint64_t> memory_bytes;
  model::KvCapacity capacity;  // of memory_bytes
};

Error wrong_option(std::string option, std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message), .subject = std::move(option)};
}

Error too_large() {
  return wrong_option(
      "--tokens",
      "this needs more bytes than 64 bits can count; use a smaller --tokens, --batch or --precision");
}

// ---- the arithmetic

// What sequences share memory with, and what each has beside its keys and values.
struct OtherBytes {
  std::uint64_t weights = 0;
  std::uint64_t state = 0;
};

Result<KvReport> report_kv(const InspectOptions& options, const model::KvShape& shape,
                           std::uint64_t default_tokens, const OtherBytes& others) {
  KvReport report;
  report.shape = shape;
  report.precision = options.precision;
  report.weight_bytes = others.weights;
  report.bytes_per_state = others.state;
  report.num_tokens = options.num_tokens.value_or(default_tokens);
  report.batch_size = options.batch_size.value_or(1);
  const auto per_token = model::kv_bytes_per_token(shape, options.precision);
  const auto per_block = model::kv_bytes(shape, options.precision, kBlockSize, 1);
  const auto total = model::kv_bytes(shape, options.precision, report.num_tokens, report.batch_size);
  if (!per_token || !per_block || !total) return too_large();
  report.bytes_per_token = *per_token;
  report.bytes_per_block = *per_block;
  report.total_bytes = *total;
  if (options.memory.empty()) return report;
  report.memory_bytes = parse_bytes(options.memory);
  if (!report.memory_bytes) {
    return wrong_option("--memory", "--memory is \"" + escape_for_message(options.memory) +
                                        "\"; give an amount such as 512MiB or 24GiB");
  }
  std::uint64_t taken = 0;
  if (__builtin_mul_overflow(others.state, report.batch_size, &taken) ||
      __builtin_add_overflow(taken, others.weights, &taken)) {
    return too_large();
  }
  const auto capacity = model::kv_capacity(shape, options.precision, kBlockSize, *report.memory_bytes, taken);
  if (!capacity) return too_large();
  report.capacity = *capacity;
  return report;
}

// ---- as text

std::string amount(std::uint64_t bytes) {
  return exact_bytes_text(bytes) + " (" + with_thousands(bytes) + " bytes)";
}

std::string capacity_text(const KvReport& report) {
  std::string others = "weights of " + exact_bytes_text(report.weight_bytes);
  if (report.bytes_per_state > 0)
    others += " and states of " + exact_bytes_text(report.bytes_per_state * report.batch_size);
  if (report.capacity.num_blocks == 0)
    return "no block of " + std::to_string(kBlockSize) + " tokens fits next to the " + others;
  return with_thousands(report.capacity.num_blocks) +
         " blocks = " + with_thousands(report.capacity.num_tokens) + " tokens, next to " + others;
}

void print_kv(std::ostream& out, const KvReport& report) {
  for (const model::KvLayers& layers : report.shape.kinds) {
    const bool is_first = &layers == &report.shape.kinds.front();
    out << (is_first ? "KV shape        " : "                ") << layers.num_layers << " layers, each "
        << layers.num_parts() << " x " << layers.num_kv_heads << " heads x " << layers.head_dim
        << " dimensions x " << report.precision << (report.precision == 1 ? " byte" : " bytes") << "\n";
  }
  out << "KV per token    " << amount(report.bytes_per_token) << "\n"
      << "KV per block    " << amount(report.bytes_per_block) << ", " << kBlockSize << " tokens\n"
      << "KV in all       " << amount(report.total_bytes) << ", " << with_thousands(report.num_tokens)
      << " tokens x batch " << with_thousands(report.batch_size) << "\n";
  if (report.bytes_per_state > 0)
    out << "state           " << amount(report.bytes_per_state)
        << " for each sequence, whatever its length\n";
  if (report.memory_bytes)
    out << "fits in " << exact_bytes_text(*report.memory_bytes) << "  " << capacity_text(report) << "\n";
}

std::string shown(std::string_view text) { return strip_terminal_controls(escape_for_message(text)); }

std::string dimensions_text(const model::SourceTensor& tensor) {
  std::string text;
  for (std::uint32_t i = 0; i < tensor.num_dimensions; ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(tensor.dimensions[i]);
  }
  return text;
}

void pad_to(std::string& line, std::size_t column) {
  line.append(line.size() < column ? column - line.size() : 1, ' ');
}

void print_tensors(std::ostream& out, const model::ModelSource& source) {
  for (const model::SourceTensor& tensor : source.tensors()) {
    std::string line = "  " + shown(tensor.name);
    pad_to(line, 34);
    line += tensor.type_name;
    pad_to(line, 42);
    line += dimensions_text(tensor);
    pad_to(line, 60);
    out << line << exact_bytes_text(tensor.num_bytes) << "\n";
  }
}

void print_types(std::ostream& out, const model::ModelSource& source) {
  for (const model::TypeCount& count : model::count_types(source)) {
    out << "  " << count.type << ": " << count.num_tensors << " tensors, "
        << with_thousands(count.num_elements) << " elements, " << exact_bytes_text(count.num_bytes) << "\n";
  }
}

std::string experts_text(const ModelDescription& description) {
  if (description.num_experts == 0) return "";
  return "experts         " + std::to_string(description.num_experts) + " in a layer, " +
         std::to_string(description.num_used_experts) + " used by a token, " +
         exact_bytes_text(static_cast<std::uint64_t>(description.expert_bytes)) + " in all\n";
}

// A layer may have attention beside its state, or neither.
std::string recurrent_text(const ModelDescription& description, std::int32_t num_with_attention) {
  if (description.num_recurrent_layers == 0) return "";
  return "recurrent       " + std::to_string(description.num_recurrent_layers) + " of the layers, " +
         std::to_string(num_with_attention) + " have attention\n";
}

std::string skipped_text(const ModelDescription& description) {
  if (description.num_skipped_layers == 0) return "";
  const bool is_one = description.num_skipped_layers == 1;
  return "not used        " + std::to_string(description.num_skipped_layers) +
         (is_one ? " layer that guesses" : " layers that guess") + " further tokens, " +
         exact_bytes_text(static_cast<std::uint64_t>(description.skipped_bytes)) +
         (description.predicts_next_tokens ? "; --speculative mtp uses one" : "") + "\n";
}

void print_model(std::ostream& out, const model::ModelSource& source, const ModelDescription& description,
                 std::int32_t num_with_attention) {
  out << "file            " << shown(description.path) << ", "
      << amount(static_cast<std::uint64_t>(description.file_bytes));
  if (source.num_files() > 1) out << " in " << source.num_files() << " files";
  if (source.format() != "GGUF") out << ", " << source.format();
  out << "\nname            " << shown(description.name) << "\n"
      << "architecture    " << shown(description.architecture) << ", mostly " << description.quantisation
      << "\n"
      << "parameters      " << with_thousands(description.num_parameters) << "\n"
      << "layers          " << description.num_layers << ", width " << description.embedding_length << ", "
      << model::heads_text(description) << "\n"
      << recurrent_text(description, num_with_attention) << experts_text(description)
      << skipped_text(description) << "context         " << description.context_length
      << " tokens, vocabulary of " << description.vocabulary_size << ", "
      << (description.has_chat_template ? "with" : "without") << " chat template\n";
}

// ---- as JSON

// A list with an entry for each kind of layers.
template <class Layers>
Json layers_json(const std::vector<Layers>& kinds) {
  Json list = Json::array();
  for (const Layers& layers : kinds) {
    list.push_back({{"num_layers", layers.num_layers},
                    {"num_kv_heads", layers.num_kv_heads},
                    {"head_dim", layers.head_dim}});
    if (layers.latent_dim > 0) list.back()["latent_dim"] = layers.latent_dim;
  }
  return list;
}

// What holds of every layer is said once more beside the list.
Json json_of(const KvReport& report) {
  Json json = {{"layers", layers_json(report.shape.kinds)},
               {"bytes_per_element", report.precision},
               {"bytes_per_token", report.bytes_per_token},
               {"block_size", kBlockSize},
               {"bytes_per_block", report.bytes_per_block},
               {"tokens", report.num_tokens},
               {"batch", report.batch_size},
               {"total_bytes", report.total_bytes},
               {"total", exact_bytes_text(report.total_bytes)}};
  if (report.shape.kinds.size() == 1) {
    json.update(json["layers"][0]);
    json["bytes_per_token_and_layer"] =
        report.bytes_per_token / static_cast<std::uint64_t>(report.shape.kinds.front().num_layers);
  }
  if (report.bytes_per_state > 0) json["bytes_per_state"] = report.bytes_per_state;
  if (report.memory_bytes) {
    json["memory"] = {{"bytes", *report.memory_bytes},
                      {"weight_bytes", report.weight_bytes},
                      {"kv_bytes", report.capacity.bytes},
                      {"num_blocks", report.capacity.num_blocks},
                      {"num_tokens", report.capacity.num_tokens}};
  }
  return json;
}

Json json_of(const ModelDescription& description) {
  Json json = {{"path", description.path},
               {"name", description.name},
               {"architecture", description.architecture},
               {"quantisation", description.quantisation},
               {"num_parameters", description.num_parameters},
               {"file_bytes", description.file_bytes},
               {"num_layers", description.num_layers},
               {"num_recurrent_layers", description.num_recurrent_layers},
               {"num_skipped_layers", description.num_skipped_layers},
               {"predicts_next_tokens", description.predicts_next_tokens},
               {"embedding_length", description.embedding_length},
               {"num_heads", description.num_heads},
               {"kv_layers", layers_json(description.kv_layers)},
               {"num_experts", description.num_experts},
               {"num_used_experts", description.num_used_experts},
               {"context_length", description.context_length},
               {"vocabulary_size", description.vocabulary_size},
               {"has_chat_template", description.has_chat_template}};
  if (description.kv_layers.size() == 1) {
    json["num_kv_heads"] = description.kv_layers.front().num_kv_heads;
    json["head_dim"] = description.kv_layers.front().head_dim;
    if (description.kv_layers.front().latent_dim > 0)
      json["latent_dim"] = description.kv_layers.front().latent_dim;
  }
  return json;
}

Json types_json(const model::ModelSource& source) {
  Json types = Json::object();
  for (const model::TypeCount& count : model::count_types(source)) {
    types[std::string(count.type)] = {
        {"num_tensors", count.num_tensors}, {"num_elements", count.num_elements}, {"bytes", count.num_bytes}};
  }
  return types;
}

// Shapes as the file has them: the fastest dimension first.
Json tensors_json(const model::ModelSource& source) {
  Json tensors = Json::array();
  for (const model::SourceTensor& tensor : source.tensors()) {
    const std::vector<std::int64_t> shape(tensor.dimensions.begin(),
                                          tensor.dimensions.begin() + tensor.num_dimensions);
    tensors.push_back({{"name", tensor.name},
                       {"type", std::string(tensor.type_name)},
                       {"shape", shape},
                       {"bytes", tensor.num_bytes}});
  }
  return tensors;
}

// ---- the three ways to ask

Result<std::string> inspect_shape(const InspectOptions& options) {
  const model::NamedShape* shape = model::find_shape(options.shape);
  if (shape == nullptr) {
    std::string names;
    for (const model::NamedShape& known : model::named_shapes())
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    return wrong_option(
        "--shape", "--shape is \"" + escape_for_message(options.shape) + "\"; known shapes are " + names);
  }
  const std::uint64_t weight_bytes = static_cast<std::uint64_t>(shape->num_parameters) * options.precision;
  OCTAVO_TRY(const KvReport report, report_kv(options, shape->kv(), 1, {.weights = weight_bytes}));
  if (options.json) {
    const Json json = {{"shape", std::string(shape->name)},
                       {"embedding_length", shape->embedding_length},
                       {"num_heads", shape->num_heads},
                       {"num_parameters", shape->num_parameters},
                       {"kv", json_of(report)}};
    return dump_for_output(json) + "\n";
  }
  std::ostringstream out;
  out << "shape           " << shape->name << ": " << shape->num_layers << " layers, width "
      << shape->embedding_length << ", " << shape->num_heads << " heads, "
      << with_thousands(shape->num_parameters) << " parameters\n";
  print_kv(out, report);
  return out.str();
}

// What an engine would refuse is refused here with the same sentence.
Result<std::string> report_model(const InspectOptions& options, const ModelPreview& preview) {
  const auto& [source, config, tensors, tokenizer, notice] = preview.parts();
  const ModelDescription description = preview.describe();
  // Packed weights may become larger in memory than they are in their files.
  const std::int64_t weight_bytes =
      std::max(description.file_bytes, model::planned_weight_bytes(tensors, WeightType::kAuto));
  OCTAVO_TRY(const KvReport report,
             report_kv(options, model::kv_shape(config), static_cast<std::uint64_t>(config.context_length),
                       {.weights = static_cast<std::uint64_t>(weight_bytes),
                        .state = static_cast<std::uint64_t>(description.state_bytes)}));
  if (options.json) {
    Json described = json_of(description);
    described["format"] = std::string(source->format());
    const Json json = {{"model", std::move(described)},
                       {"kv", json_of(report)},
                       {"types", types_json(*source)},
                       {"tensors", tensors_json(*source)}};
    return dump_for_output(json) + "\n";
  }
  std::ostringstream out;
  std::int32_t num_with_attention = 0;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer)
    num_with_attention += config.has_attention(layer) ? 1 : 0;
  print_model(out, *source, description, num_with_attention);
  print_kv(out, report);
  if (!source->notice().empty()) out << "note            " << source->notice() << "\n";
  out << "types\n";
  print_types(out, *source);
  out << "tensors         " << source->tensors().size() << ", sizes with the fastest dimension first\n";
  print_tensors(out, *source);
  return out.str();
}

// A model whose chat template does not work is shown, and is a failure: it cannot be chatted with.
Result<void> inspect_file(const InspectOptions& options) {
  OCTAVO_TRY(const std::filesystem::path path, model::find_model(options.model));
  OCTAVO_TRY(const ModelPreview preview, ModelPreview::open(path));
  OCTAVO_TRY(const std::string text, report_model(options, preview));
  std::cout << text << std::flush;
  auto tried = preview.try_chat_template();
  if (tried) return {};
  Error error = std::move(tried).error();
  if (error.code == ErrorCode::kInvalidArgument) error.code = ErrorCode::kDamagedFile;  // no option said it
  error.message = path_for_message(path) + ": tokenizer.chat_template: " + error.message;
  return error;
}

// A recording that contradicts itself is shown, and is a failure.
Result<void> run_inspect_recording(const InspectOptions& options) {
  OCTAVO_TRY(const RecordingReport report,
             options.at_step ? report_recording_at_step(options.model, *options.at_step, options.json)
                             : report_recording(options.model, options.json));
  std::cout << report.text << std::flush;
  if (report.problem) return Error{ErrorCode::kDamagedFile, *report.problem};
  return {};
}

// Keys and values of a model are no question to a recording.
Result<void> check_asks_of_recording(const CLI::App& command, const InspectOptions& options) {
  if (!metrics::is_recording(options.model)) return {};
  for (const char* const name : {"--precision", "--tokens", "--batch", "--memory"}) {
    if (command.count(name) == 0) continue;
    return wrong_option(name, std::string(name) + " is for a model, and " +
                                  escape_for_message(options.model) + " is a recording: leave it out");
  }
  return {};
}

Result<void> run_inspect(const InspectOptions& options) {
  if (metrics::is_recording(options.model)) return run_inspect_recording(options);
  if (options.at_step) return wrong_option("--at-step", "--at-step needs a recording; give its file name");
  if (options.shape.empty()) return inspect_file(options);
  OCTAVO_TRY(const std::string text, inspect_shape(options));
  std::cout << text << std::flush;
  return {};
}

}  // namespace

void add_inspect_command(CLI::App& program, int& status) {
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 40;
  auto options = std::make_shared<InspectOptions>();
  CLI::App* const command = program.add_subcommand(
      "inspect", "Show what a model file or an event recording holds, and the size of its KV cache");
  CLI::Option* const model = command->add_option(
      "MODEL,--model", options->model,
      "Model file or folder, org/name, or a recording made with --record (default: SmolLM2-135M-Instruct)");
  command
      ->add_option("--shape", options->shape,
                   "Known model shape instead of a file: opt-30b, llama-3-8b, gpt2-xl, ...")
      ->excludes(model);
  command->add_option("--precision", options->precision, "Bytes per element of keys and values")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  command
      ->add_option("--tokens", options->num_tokens,
                   "Tokens per sequence (default: the context length; 1 with --shape)")
      ->check(CLI::Range(std::uint64_t{1}, kMaxCount));
  command->add_option("--batch", options->batch_size, "Number of sequences (default: 1)")
      ->check(CLI::Range(std::uint64_t{1}, kMaxCount));
  command->add_option(
      "--memory", options->memory,
      "Show what fits in this much memory next to the weights: 24GiB, 512MiB (default unit: MiB)");
  command
      ->add_option("--at-step", options->at_step, "For a recording: show the pools at the end of this step")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "Print one JSON object to standard output");
  command->callback([options, command, &status] {
    Result<void> result = check_asks_of_recording(*command, *options);
    if (result) result = run_inspect(*options);
    status = result.has_value() ? kExitOk : report_error(result.error());
  });
}

}  // namespace octavo::app
