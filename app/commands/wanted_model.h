// The model that --model names, downloaded first where it is not on this machine and its person says so.
#pragma once

#include <filesystem>
#include <string>

#include "app/commands/command.h"
#include "app/hub/download.h"
#include "app/hub/hub_client.h"
#include "app/hub/model_choice.h"
#include "engine/base/result.h"

namespace CLI {
class App;
}

namespace octavo::app {

// --sha256: of the model's file, in lower case.
void add_sha256_option(CLI::App& command, std::string& sha256);

// What may be contacted for a model that is not here.
enum class MissingModel {
  kAsk,       // on a terminal; elsewhere an error that says what to give
  kDownload,  // --download
  kRefuse,    // an error
};

// With a `sha256` the model is one file, and has that: else an error. What is here already stays.
Result<std::filesystem::path> find_wanted_model(const std::string& name, MissingModel missing,
                                                const std::string& sha256);

// With a line of progress on a terminal. Ctrl+C pauses it, while an InterruptGuard lives. A file that has
// another SHA-256 than is given here is not downloaded where the hub tells it before, and else removed.
Result<std::filesystem::path> download_with_progress(const hub::HubPlace& place,
                                                     const hub::HubRepository& wanted,
                                                     const std::string& sha256);

// A question on standard error, answered on standard input: true for y or yes. False where either is no
// terminal.
bool ask_on_terminal(const std::string& question);

// Which model of the hub a name means; empty: the default one. The repository holds the files of it alone.
Result<hub::HubRepository> find_on_hub(hub::HubClient& client, const std::string& name,
                                       const std::string& revision);

}  // namespace octavo::app
