#include "app/commands/generate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/template_values_json.h"
#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/generation_progress.h"
#include "app/commands/input.h"
#include "app/commands/request_json.h"
#include "app/commands/start_engine.h"
#include "engine/base/text.h"
#include "engine/engine.h"
#include "engine/output_collector.h"

namespace octavo::app {
namespace {

struct GenerateOptions {
  EngineFlags engine;
  SamplingParams sampling;
  std::vector<std::string> prompts;
  std::string prompt_file, messages_file, requests_file;
  std::optional<std::string> template_values;  // JSON
  bool parse_special = false;
  bool json = false;
};

// A request, or why it is none: the others go on.
struct PlannedRequest {
  GenerationRequest request;
  std::optional<Error> error;
};

Result<void> plan_requests_file(const GenerateOptions& options, std::vector<PlannedRequest>& planned) {
  OCTAVO_TRY(const std::string text, read_input(options.requests_file));
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where =
        "line " + std::to_string(line_number) + " of " + escape_for_message(options.requests_file);
    Result<GenerationRequest> request = Error{};
    if (Result<Json> json = parse_json(line, where); json.has_value()) {
      request = request_from_json(*json, options.sampling, options.parse_special, where);
    } else {
      request = std::move(json).error();
    }
    if (request.has_value()) {
      planned.push_back({.request = *std::move(request), .error = std::nullopt});
    } else {
      planned.push_back({.request = {}, .error = std::move(request).error()});
    }
  }
  return {};
}

// Everything that the command line names, in the order: prompts, prompt file, messages file, requests file.
Result<std::vector<PlannedRequest>> plan_requests(const GenerateOptions& options) {
  std::vector<PlannedRequest> planned;
  const auto add_text = [&](std::string text) {
    planned.push_back(
        {.request = {.prompt = TextPrompt{.text = std::move(text), .parse_special = options.parse_special},
                     .sampling = options.sampling},
         .error = {}});
  };
  for (const std::string& prompt : options.prompts) {
    if (prompt == "-") {
      OCTAVO_TRY(std::string text, read_input(prompt));
      add_text(std::move(text));
    } else {
      add_text(prompt);
    }
  }
  if (!options.prompt_file.empty()) {
    OCTAVO_TRY(std::string text, read_input(options.prompt_file));
    add_text(std::move(text));
  }
  if (!options.messages_file.empty()) {
    OCTAVO_TRY(const std::string text, read_input(options.messages_file));
    OCTAVO_TRY(const Json json, parse_json(text, escape_for_message(options.messages_file)));
    OCTAVO_TRY(std::vector<ChatMessage> messages,
               messages_from_json(json, escape_for_message(options.messages_file)));
    ChatPrompt prompt{.messages = std::move(messages)};
    if (options.template_values) {
      OCTAVO_TRY(prompt.template_values,
                 parse_template_values(*options.template_values, "--chat-template-kwargs"));
    }
    planned.push_back({.request = {.prompt = std::move(prompt), .sampling = options.sampling}, .error = {}});
  } else if (options.template_values) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "--chat-template-kwargs goes with --messages-file: nothing else has a template"};
  }
  if (!options.requests_file.empty()) OCTAVO_TRY_VOID(plan_requests_file(options, planned));
  if (planned.empty()) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = "nothing to generate: give --prompt, --prompt-file, --messages-file or --requests-file"};
  }
  return planned;
}

// Text on standard output; on a terminal, what could control it is taken out.
class TextPrinter {
 public:
  void print(std::string_view text) const {
    const std::string safe = terminal_ ? strip_terminal_controls(text) : std::string(text);
    std::fwrite(safe.data(), 1, safe.size(), stdout);
    std::fflush(stdout);
  }

 private:
  bool terminal_ = isatty(STDOUT_FILENO) != 0;
};

// Runs what was planned; streams the text when there is one output only. Answers in the order of `planned`.
// What takes longer than a second and shows nothing else has its share on the terminal.
std::vector<RequestOutput> run_requests(Engine& engine, std::vector<PlannedRequest>& planned, bool stream,
                                        Progress& progress) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<GenerationRequest> requests;
  std::vector<SamplingParams> samplings;
  for (const PlannedRequest& entry : planned) {
    if (entry.error.has_value()) continue;
    requests.push_back(entry.request);
    requests.back().reports_prompt_progress = progress.enabled();
    samplings.push_back(entry.request.sampling);
  }
  const std::vector<RequestId> ids = engine.submit_all(std::move(requests));
  OutputCollector collector;
  using Counts = GenerationProgress::Counts;
  GenerationProgress share(stream ? Counts::kPrompts : Counts::kPromptsAndOutputs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    collector.expect(ids[i], samplings[i].num_outputs());
    share.expect(ids[i], samplings[i]);
  }
  const TextPrinter printer;
  bool cancelled = false, has_begun = false;
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(std::chrono::milliseconds(100))) {
      collector.add(event);
      share.add(event);
      if (const auto* tokens = std::get_if<TokensGenerated>(&event); stream && tokens != nullptr) {
        progress.clear();
        has_begun = true;
        printer.print(tokens->text);
      }
    }
    const bool is_long = std::chrono::steady_clock::now() - begun > std::chrono::seconds(1);
    if (const auto fraction = share.fraction(); is_long && !has_begun && fraction)
      progress.show_fraction(stream ? "reading the prompt" : "generating", *fraction);
    if (InterruptGuard::interrupted() && !cancelled) {
      for (const RequestId id : ids) engine.cancel(id);
      cancelled = true;
    }
  }
  progress.clear();
  std::vector<RequestOutput> answers;
  std::vector<RequestOutput> collected = collector.take();
  std::size_t next = 0;
  for (PlannedRequest& entry : planned) {
    if (entry.error.has_value()) {
      answers.emplace_back().error = std::move(entry.error);
    } else {
      answers.push_back(std::move(collected[next++]));
    }
  }
  return answers;
}

void print_json(const Engine& engine, const std::vector<PlannedRequest>& planned,
                const std::vector<RequestOutput>& answers, double total_ms) {
  const EngineDescription& description = engine.description();
  Json json = {{"model", description.model.path}, {"device", description.device}, {"isa", description.isa}};
  json["requests"] = Json::array();
  for (std::size_t i = 0; i < answers.size(); ++i)
    json["requests"].push_back(to_json(answers[i], planned[i].request.sampling));
  json["kv"] = to_json(engine.kv_totals());
  json["timing"] = {{"load_ms", description.load_ms}, {"total_ms", total_ms}};
  std::cout << dump_for_output(json) << '\n';
}

// Several outputs follow one another, each under a line that names it.
void print_text(const std::vector<RequestOutput>& answers, bool streamed) {
  const TextPrinter printer;
  const bool several = answers.size() > 1 || (!answers.empty() && answers[0].outputs.size() > 1);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (const CompletionOutput& output : answers[i].outputs) {
      if (several)
        printer.print("--- prompt " + std::to_string(i) + ", output " + std::to_string(output.index) + "\n");
      if (!streamed) printer.print(output.text);
      printer.print("\n");
    }
  }
}

int run_generate(GenerateOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  Result<std::vector<PlannedRequest>> planned = plan_requests(options);
  if (!planned.has_value()) return report_error(planned.error());
  Progress progress(options.engine.verbose);
  const InterruptGuard guard;
  Result<std::unique_ptr<Engine>> engine = start_engine(options.engine, progress, EnginePlace::kAnywhere);
  if (InterruptGuard::interrupted()) return kExitInterrupted;
  if (!engine.has_value()) return report_error(engine.error());

  const SamplingParams& first = planned->front().request.sampling;
  const bool stream = !options.json && planned->size() == 1 && first.n == 1 && !first.beam_width;
  const std::vector<RequestOutput> answers = run_requests(**engine, *planned, stream, progress);
  const double total_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  if (options.json) {
    print_json(**engine, *planned, answers, total_ms);
  } else {
    print_text(answers, stream);
  }
  int status = kExitOk;
  for (const RequestOutput& answer : answers) {
    if (!answer.error.has_value()) continue;
    status = kExitFailed;
    if (!options.json) report_failure(answer.error->message);
  }
  return InterruptGuard::interrupted() ? kExitInterrupted : status;
}

}  // namespace

void add_generate_command(CLI::App& program, int& status) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* const command = program.add_subcommand("generate", "Generate text from prompts");
  command
      ->add_option("--prompt", options->prompts, "Prompt, used verbatim (repeatable); - reads standard input")
      ->allow_extra_args(false);
  command->add_option("--prompt-file", options->prompt_file,
                      "File that holds the prompt; - reads standard input");
  command->add_option("--messages-file", options->messages_file,
                      "File with a JSON list of {role, content}, formatted with the model's chat template");
  command->add_option("--requests-file", options->requests_file,
                      "File of JSON lines, one request each, all submitted at once");
  command->add_flag("--parse-special", options->parse_special,
                    "Parse special tokens such as <|im_end|> in prompts");
  command->add_flag("--json", options->json, "Print one JSON object to standard output");
  add_template_flag(*command, options->template_values);
  add_engine_flags(*command, options->engine);
  add_sampling_flags(*command, options->sampling);
  command->callback([options, &status] {
    // Ranges hold for every model; ids are checked against the vocabulary when the model is known.
    if (const Result<void> valid = validate(options->sampling, std::numeric_limits<std::int32_t>::max());
        !valid.has_value()) {
      status = report_error(valid.error());
      return;
    }
    status = run_generate(*options);
  });
}

}  // namespace octavo::app
