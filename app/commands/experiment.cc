#include "app/commands/experiment.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/request_json.h"
#include "app/experiments/experiment_report.h"
#include "app/experiments/known_experiments.h"
#include "app/files/whole_file.h"
#include "engine/base/text.h"
#include "engine/experiments/experiment.h"
#include "engine/experiments/real/real_experiment.h"

namespace octavo::app {
namespace {

struct ExperimentCommand {
  std::string name;
  std::uint64_t seed = 1;
  double time_share = 1.0;
  std::int32_t rounds = 3;
  EngineFlags engine;  // of real ones; its threads of all
  std::string out;
  bool json = false;
};

// What simulated hardware has no use for.
constexpr const char* kOfRealOnes[] = {"--model", "--download",     "--sha256",           "--device",
                                       "--dtype", "--quantization", "--activation-dtype", "--kv-cache-dtype",
                                       "--rounds"};

Result<void> write_result_file(const std::filesystem::path& path, const std::string& bytes) {
  const int problem = write_whole_file(path, bytes);
  if (problem == 0) return {};
  return Error{.code = ErrorCode::kIo,
               .message = "'" + escape_for_message(path.string()) + "' cannot be written: " +
                          std::strerror(problem) + "; choose another folder with --out",
               .subject = "--out"};
}

Result<void> make_folder(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{.code = ErrorCode::kIo,
               .message = "the folder '" + escape_for_message(folder) +
                          "' cannot be made: " + problem.message() + "; choose another one with --out",
               .subject = "--out"};
}

// An experiment and what it found, all of it or until it was cut short.
struct Found {
  KnownExperiment experiment;
  paper::ExperimentReport report;
};

Result<void> write_results(const std::string& folder, const std::vector<Found>& found) {
  const std::filesystem::path path(folder);
  std::vector<paper::ExperimentReport> reports;
  std::string text;
  for (const auto& [experiment, report] : found) {
    const std::string& name = experiment.info.name;
    for (const auto& [format, ending] :
         {std::pair{PictureFormat::kSvg, ".svg"}, std::pair{PictureFormat::kPng, ".png"}}) {
      OCTAVO_TRY(const std::string picture, report_picture(experiment.info, report, format));
      OCTAVO_TRY_VOID(write_result_file(path / (name + ending), picture));
    }
    OCTAVO_TRY_VOID(write_result_file(path / (name + ".json"),
                                      dump_for_output(report_json(experiment.info, report)) + "\n"));
    text += report_markdown(experiment.info, report);
    reports.push_back(report);
  }
  return write_result_file(path / "results.md", "# The paper's evaluation, ours beside the paper's\n\n" +
                                                    verdict_sentence(reports) + ".\n\n" + text);
}

Result<void> list_experiments(const ExperimentCommand& command) {
  std::vector<paper::ExperimentInfo> infos;
  Json list = Json::array();
  for (const KnownExperiment& one : known_experiments()) {
    infos.push_back(one.info);
    list.push_back(info_json(one.info));
  }
  std::cout << (command.json ? dump_for_output(list) + "\n" : list_text(infos));
  return {};
}

// What a run needs; the model is looked for only where one runs.
Result<ExperimentChoice> choice_of(const ExperimentCommand& command, bool needs_model) {
  const std::int32_t num_cores = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int32_t threads = command.engine.options.threads;
  ExperimentChoice choice{.seed = command.seed,
                          .time_share = command.time_share,
                          .num_threads = threads > 0 ? threads : num_cores,
                          .num_rounds = command.rounds};
  if (needs_model) {
    OCTAVO_TRY(choice.engine, resolve(command.engine));
  }
  return choice;
}

void print(const ExperimentCommand& command, const std::vector<Found>& found) {
  std::vector<paper::ExperimentReport> reports;
  Json list = Json::array();
  for (const auto& [experiment, report] : found) {
    reports.push_back(report);
    list.push_back(report_json(experiment.info, report));
  }
  if (command.json) {
    std::cout << dump_for_output(Json{{"seed", command.seed}, {"experiments", std::move(list)}}) << '\n';
  } else if (reports.size() > 1) {
    std::cout << verdict_sentence(reports) << "\n";
  }
}

// Ctrl+C ends the experiment under way; what was measured until then is told and written all the same.
Result<void> run_experiments(const ExperimentCommand& command) {
  if (command.name == "list") return list_experiments(command);
  const std::vector<KnownExperiment> chosen = experiments_named(command.name);
  if (chosen.empty()) {  // the sentence that names what there is
    Error error = paper::run_experiment(command.name, {}).error();
    error.code = ErrorCode::kInvalidArgument;
    for (const paper::ExperimentInfo& info : paper::real_experiments()) error.message += ", " + info.name;
    error.message += ", all, real or list";
    return error;
  }
  const InterruptGuard guard;
  OCTAVO_TRY(const ExperimentChoice choice, choice_of(command, chosen.front().is_real));
  if (!command.out.empty()) OCTAVO_TRY_VOID(make_folder(command.out));
  Progress progress(/*verbose=*/false);
  std::vector<Found> found;
  std::optional<Error> problem;
  for (const KnownExperiment& experiment : chosen) {
    double last_done = 0.0;
    paper::ExperimentReport last;
    Result<paper::ExperimentReport> report =
        run_known(experiment, choice, [&](double done, const paper::ExperimentReport& so_far) {
          progress.show_fraction(experiment.info.name, done);
          if (done != last_done) last = so_far;
          last_done = done;
          return !InterruptGuard::interrupted();
        });
    progress.clear();
    if (!report) problem = std::move(report).error();
    if (problem && last_done == 0.0) break;
    found.push_back(
        {experiment, problem ? cut_short(experiment, std::move(last), last_done) : *std::move(report)});
    if (!command.json) std::cout << report_text(experiment.info, found.back().report) << '\n' << std::flush;
    if (problem) break;
  }
  if (!found.empty()) print(command, found);
  if (!found.empty() && !command.out.empty()) OCTAVO_TRY_VOID(write_results(command.out, found));
  if (problem) return *problem;
  return {};
}

Result<void> check_options(const CLI::App& command, const ExperimentCommand& options) {
  const std::vector<KnownExperiment> chosen = experiments_named(options.name);
  if (!chosen.empty() && chosen.front().is_real) return {};
  for (const char* const name : kOfRealOnes) {
    if (command.count(name) == 0) continue;
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message =
            std::string(name) +
            " goes with experiments on a real engine, such as real-serving; hardware is simulated here",
        .subject = name};
  }
  return {};
}

int exit_status(const Result<void>& result) {
  if (result) return kExitOk;
  if (result.error().code == ErrorCode::kCancelled) return kExitInterrupted;
  return report_error(result.error());
}

}  // namespace

void add_experiment_command(CLI::App& program, int& status) {
  auto options = std::make_shared<ExperimentCommand>();
  CLI::App* const command = program.add_subcommand(
      "experiment",
      "Run the evaluation of the PagedAttention paper (Kwon et al. 2023) and show it beside the paper's "
      "figures: this program's own scheduler and block manager on simulated hardware, without a model; or "
      "`real`, the whole engine with a model on this machine, lengths scaled down");
  command
      ->add_option("NAME,--name", options->name,
                   "One of the experiments, `all` on simulated hardware, `real` for all on this machine, or "
                   "`list` for what there is")
      ->required();
  command
      ->add_option("--seed", options->seed, "Of lengths and arrivals: the same seed gives the same figures")
      ->capture_default_str();
  command->add_option("--model", options->engine.options.model,
                      "Of real ones: model file, or org/name[:file] (default: SmolLM2-135M-Instruct)");
  command->add_flag("--download", options->engine.downloads,
                    "Download the model from the Hugging Face hub when it is not here");
  add_sha256_option(*command, options->engine.sha256);
  add_computing_flags(*command, options->engine.options);
  command->get_option("--threads")
      ->description(
          "Simulations at a time (default: one for each core), or CPU workers of the real engine (default: "
          "physical cores)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--rounds", options->rounds, "Of real ones: turns of each system, whose medians are told")
      ->check(CLI::Range(1, 99))
      ->capture_default_str();
  command
      ->add_option("--time-share", options->time_share,
                   "Of the time of each run: below 1 is sooner done, and less exact")
      ->check(CLI::Range(0.001, 10.0))
      ->capture_default_str();
  command->add_option("--out", options->out,
                      "Write pictures (SVG and PNG) and the figures (JSON) of each, and a table, here");
  command->add_flag("--json", options->json, "Print one JSON object to standard output");
  command->callback([options, command, &status] {
    const Result<void> goes_together = check_options(*command, *options);
    status = exit_status(goes_together ? run_experiments(*options) : goes_together);
  });
}

}  // namespace octavo::app
