#include "app/commands/experiment.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/experiment_report.h"
#include "app/commands/request_json.h"
#include "app/files/whole_file.h"
#include "engine/base/text.h"
#include "engine/experiments/experiment.h"

namespace octavo::app {
namespace {

struct ExperimentCommand {
  std::string name;
  std::uint64_t seed = 1;
  std::int32_t threads = 0;
  double time_share = 1.0;
  std::string out;
  bool json = false;
};

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

std::vector<paper::ExperimentInfo> chosen(const std::string& name) {
  std::vector<paper::ExperimentInfo> infos;
  for (const paper::ExperimentInfo& info : paper::experiments()) {
    if (name == "all" || name == info.name) infos.push_back(info);
  }
  return infos;
}

Result<void> write_results(const std::string& folder, const std::vector<paper::ExperimentInfo>& infos,
                           const std::vector<paper::ExperimentReport>& reports) {
  const std::filesystem::path path(folder);
  std::string table =
      "# The paper's evaluation, ours beside the paper's\n\n" + verdict_sentence(reports) + ".\n\n";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    OCTAVO_TRY_VOID(write_result_file(path / (infos[i].name + ".svg"), report_svg(reports[i])));
    OCTAVO_TRY_VOID(write_result_file(path / (infos[i].name + ".json"),
                                      dump_for_output(report_json(infos[i], reports[i])) + "\n"));
    table += report_markdown(infos[i], reports[i]);
  }
  return write_result_file(path / "results.md", table);
}

Result<void> run_experiments(const ExperimentCommand& command) {
  if (command.name == "list") {
    if (!command.json) {
      std::cout << list_text(paper::experiments());
      return {};
    }
    Json list = Json::array();
    for (const paper::ExperimentInfo& info : paper::experiments()) list.push_back(info_json(info));
    std::cout << dump_for_output(list) << '\n';
    return {};
  }
  std::vector<paper::ExperimentInfo> infos = chosen(command.name);
  if (infos.empty()) {  // the sentence that names what there is
    Error error = paper::run_experiment(command.name, {}).error();
    error.code = ErrorCode::kInvalidArgument;
    error.message += ", all or list";
    return error;
  }
  if (!command.out.empty()) OCTAVO_TRY_VOID(make_folder(command.out));
  const std::int32_t num_cores = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  const paper::ExperimentOptions options{.seed = command.seed,
                                         .num_threads = command.threads > 0 ? command.threads : num_cores,
                                         .time_share = command.time_share};
  Progress progress(/*verbose=*/false);
  const InterruptGuard guard;
  std::vector<paper::ExperimentReport> reports;
  for (const paper::ExperimentInfo& info : infos) {
    Result<paper::ExperimentReport> report =
        paper::run_experiment(info.name, options, [&](double done, const paper::ExperimentReport&) {
          progress.show_fraction(info.name, done);
          return !InterruptGuard::interrupted();
        });
    progress.clear();
    if (!report) return std::move(report).error();
    reports.push_back(*std::move(report));
    if (!command.json) std::cout << report_text(info, reports.back()) << '\n' << std::flush;
  }
  if (command.json) {
    Json list = Json::array();
    for (std::size_t i = 0; i < reports.size(); ++i) list.push_back(report_json(infos[i], reports[i]));
    std::cout << dump_for_output(Json{{"seed", command.seed}, {"experiments", std::move(list)}}) << '\n';
  } else if (reports.size() > 1) {
    std::cout << verdict_sentence(reports) << "\n";
  }
  if (command.out.empty()) return {};
  return write_results(command.out, infos, reports);
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
      "Run the evaluation of the PagedAttention paper (Kwon et al. 2023) with this program's own scheduler "
      "and "
      "block manager on simulated hardware, and show it beside the paper's figures. No model is needed");
  command
      ->add_option("NAME,--name", options->name, "One of the experiments, `all`, or `list` for what there is")
      ->required();
  command
      ->add_option("--seed", options->seed, "Of lengths and arrivals: the same seed gives the same figures")
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Run so many simulations at a time (default: one for each core)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--time-share", options->time_share,
                   "Of the simulated time of each run: below 1 is sooner done, and less exact")
      ->check(CLI::Range(0.001, 10.0))
      ->capture_default_str();
  command->add_option("--out", options->out,
                      "Write a picture (SVG) and the figures (JSON) of each, and a table, here");
  command->add_flag("--json", options->json, "Print one JSON object to standard output");
  command->callback([options, &status] { status = exit_status(run_experiments(*options)); });
}

}  // namespace octavo::app
