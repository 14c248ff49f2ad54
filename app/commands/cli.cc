#include "app/commands/cli.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "app/commands/bench.h"
#include "app/commands/chat.h"
#include "app/commands/command.h"
#include "app/commands/compare_models.h"
#include "app/commands/experiment.h"
#include "app/commands/generate.h"
#include "app/commands/inspect.h"
#include "app/commands/models.h"
#include "app/commands/quantize.h"
#include "app/commands/serve.h"
#include "app/commands/tokenize.h"
#include "kernels/backends.h"

namespace octavo::app {
namespace {

std::string version_text() {
  std::string text = "octavo " OCTAVO_VERSION " (" OCTAVO_BUILD_TYPE ")\nbackends:";
  for (const std::string& name : kernels::built_backends()) text += " " + name;
  text += "\ninstruction sets:";
  for (const std::string& name : kernels::usable_instruction_sets()) text += " " + name;
  return text;
}

// The command that was being read.
const CLI::App& last_command(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::string name_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? std::string() : name_of(*parent) + " ") + command.get_name();
}

// Sentences of CLI11 may span lines; ours do not.
std::string one_line(std::string sentence, const CLI::App& program) {
  for (char& c : sentence) {
    if (c == '\n') c = ' ';
  }
  while (!sentence.empty() && sentence.back() == ' ') sentence.pop_back();
  return sentence + "; see `" + name_of(last_command(program)) + " --help`";
}

// "A subcommand is required" leaves open which there are, and what was taken for one.
std::string required_sentence(const CLI::RequiredError& error, const CLI::App& program) {
  const CLI::App& command = last_command(program);
  const auto parts = command.get_subcommands(/*filter=*/[](const CLI::App*) { return true; });
  if (parts.empty()) return error.what();
  std::string names;
  for (const CLI::App* const part : parts) names += (names.empty() ? "" : ", ") + part->get_name();
  const std::vector<std::string> others = command.remaining();
  return "`" + name_of(command) + "` needs one of " + names +
         (others.empty() ? "" : ", and '" + others.front() + "' is none of them");
}

// "Could not convert: --threads = abc" leaves open what is wrong with it.
std::string conversion_sentence(const CLI::ConversionError& error) {
  const std::string sentence = error.what(), before = "Could not convert: ", between = " = ";
  const std::size_t middle = sentence.find(between);
  if (!sentence.starts_with(before) || middle == std::string::npos) return sentence;
  const std::string option = sentence.substr(before.size(), middle - before.size());
  const std::string value = sentence.substr(middle + between.size());
  const bool is_integer =
      !value.empty() && value.find_first_not_of("0123456789", value[0] == '-' ? 1 : 0) == std::string::npos;
  return option + " is '" + value +
         (is_integer ? "', which is out of range" : "', which is not a number it can be");
}

// What stands before a command is the window's, which does not open then: nobody would heed it.
void refuse_options_before_command(const CLI::App& program) {
  if (program.get_subcommands().empty()) return;
  for (const CLI::Option* const option : program.get_options()) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(option->get_name(),
                               "it stands before the command and would count for nothing; put it after `" +
                                   program.get_subcommands().front()->get_name() + "`");
  }
}

}  // namespace

std::string_view program_version() { return OCTAVO_VERSION; }

int run_command_line(int argc, const char* const* argv, const OpenWindow& open_window) {
  CLI::App program(
      "Octavo: local chat that shows its KV memory at work. Without a command, opens the window.", "octavo");
  program.set_version_flag("--version", version_text());
  program.set_help_all_flag("--help-all", "Print help for every command");
  program.require_subcommand(0, 1);
  int status = kExitOk;
  EngineFlags window_flags;
  add_engine_flags(program, window_flags);
  program.add_option("--recording", window_flags.recording,
                     "Open this event recording in the window, without a model");
  program.add_flag("--new-window", window_flags.new_window,
                   "Open another window; its chats are read-only while the first is open");
  program.add_option("files", window_flags.files,
                     "Files to open in the window: text to attach, exported chats, recordings, models");
  add_generate_command(program, status);
  add_chat_command(program, status);
  add_serve_command(program, OCTAVO_VERSION, status);
  add_tokenize_command(program, status);
  add_inspect_command(program, status);
  add_models_command(program, status);
  add_quantize_command(program, status);
  add_compare_models_command(program, status);
  add_bench_command(program, status);
  add_experiment_command(program, status);
  program.parse_complete_callback([&program] { refuse_options_before_command(program); });
  try {
    program.parse(argc, argv);
    if (!program.get_subcommands().empty()) return status;
  } catch (const CLI::ConversionError& error) {
    return report_failure(one_line(conversion_sentence(error), program), kExitUsage);
  } catch (const CLI::RequiredError& error) {
    return report_failure(one_line(required_sentence(error, program), program), kExitUsage);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error, std::cout, std::cerr);  // --help, --version
    return report_failure(one_line(error.what(), program), kExitUsage);
  } catch (const std::exception& error) {
    return report_failure(std::string("unexpected error: ") + error.what());
  }
  // Not by the option: what follows one that is unknown would be a file, and the first that is wrong.
  for (const std::string& file : window_flags.files) {
    std::error_code unused;
    if (std::filesystem::is_directory(file, unused))
      return report_failure("'" + file + "' is a folder; a model's is opened by --model", kExitUsage);
    if (!std::filesystem::exists(file, unused))
      return report_failure(
          "there is no command and no file '" + file + "'; check its name, or see `octavo --help`",
          kExitUsage);
  }
  if (!open_window) return report_failure("this build has no window; use `octavo chat` in the terminal");
  return open_window(window_flags);
}

}  // namespace octavo::app
