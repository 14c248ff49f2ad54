#include "app/commands/wanted_model.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "app/hub/checksum.h"
#include "app/hub/hub_cache.h"
#include "engine/base/ascii.h"
#include "engine/base/clock.h"
#include "engine/base/columns.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"

namespace octavo::app {
namespace {

constexpr std::string_view kMainRevision = "main";

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string((whole + 59) / 60) + " min";
  return fixed_text(static_cast<double>(whole) / 3600, 1) + " h";
}

std::string progress_text(const hub::DownloadProgress& progress) {
  const double fraction =
      progress.total > 0 ? static_cast<double>(progress.received) / static_cast<double>(progress.total) : 1.0;
  const std::string percent = std::to_string(static_cast<int>(fraction * 100)) + " %";
  switch (progress.stage) {
    case hub::DownloadStage::kWaiting: return "another program downloads it; waiting";
    case hub::DownloadStage::kVerifying: return "verifying " + escape_for_message(progress.file);
    case hub::DownloadStage::kRetrying: return percent + " · trying again: " + progress.trouble;
    case hub::DownloadStage::kReceiving: break;
  }
  std::string text = percent + " of " + bytes_text(progress.total);
  if (progress.bytes_per_s > 0)
    text += " · " + bytes_text(static_cast<std::int64_t>(progress.bytes_per_s)) + "/s";
  if (progress.seconds_left) text += " · " + time_text(*progress.seconds_left) + " left";
  return text;
}

// A first look names no file; what is found here needs no network.
bool names_a_hub_model(const std::string& name) {
  return name.empty() || (model::parse_model_name(name) && !name.ends_with(".gguf")) ||
         (model::parse_model_name(name) && name.find(':') != std::string::npos);
}

bool is_stopped() { return InterruptGuard::interrupted(); }

Error has_another_sha256(const std::string& what, const std::string& sha256, const std::string& rest) {
  return {ErrorCode::kDamagedFile,
          what + " has the SHA-256 " + sha256 + ", not the one that --sha256 gives" + rest};
}

Result<void> check_content(const std::filesystem::path& path, const std::string& wanted) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{
        ErrorCode::kInvalidArgument,
        "--sha256 is for a model of one file, and " + path_for_message(path) + " is a folder: leave it out",
        "--sha256"};
  }
  OCTAVO_TRY(const std::string found, hub::sha256_of_file(path, is_stopped));
  if (found == wanted) return {};
  return has_another_sha256(path_for_message(path), found, "");
}

// What a hub tells of its only file.
Result<void> check_told(const hub::HubPlace& place, const hub::HubRepository& repository,
                        const std::string& wanted) {
  if (repository.files.size() != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "--sha256 is for a model of one file, and '" + escape_for_message(repository.name) +
                     "' has " + std::to_string(repository.files.size()) + ": leave it out",
                 "--sha256"};
  }
  const hub::HubFile& file = repository.files.front();
  if (file.sha256.empty() || file.sha256 == wanted) return {};
  return has_another_sha256("'" + escape_for_message(file.path) + "' at " + place.host(), file.sha256,
                            "; nothing was downloaded");
}

Error with_the_way(Error error, const std::string& name) {
  const std::string what = name.empty() ? "the default model" : "it";
  if (name.empty()) return error;  // says so itself
  error.message += "; --download fetches " + what + " from the hub";
  return error;
}

}  // namespace

bool ask_on_terminal(const std::string& question) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return false;
  const std::string line = escape_for_message(question, 2000) + " [y/N] ";
  std::fputs(line.c_str(), stderr);
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  return answer == "y" || answer == "Y" || answer == "yes";
}

void add_sha256_option(CLI::App& command, std::string& sha256) {
  command.add_option("--sha256", sha256, "SHA-256 that the model's file must have")
      ->transform([](std::string text) -> std::string {
        if (text.size() != 64 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
          throw CLI::ValidationError("--sha256", "give its 64 hexadecimal digits");
        return ascii_lower_case(text);
      });
}

Result<std::filesystem::path> download_with_progress(const hub::HubPlace& place,
                                                     const hub::HubRepository& wanted,
                                                     const std::string& sha256) {
  if (!sha256.empty()) OCTAVO_TRY_VOID(check_told(place, wanted, sha256));
  const hub::HubFile& first = wanted.files.front();
  const bool is_verified = !first.sha256.empty() && !hub::is_here(place.cache, wanted.name, first);
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  const SteadyClock clock;
  std::int64_t shown_us = 0;
  hub::DownloadOptions options;
  options.on_progress = [&](const hub::DownloadProgress& progress) {
    if (InterruptGuard::interrupted()) return hub::DownloadWish::kPause;
    if (is_terminal && clock.now_us() - shown_us > 200'000) {
      shown_us = clock.now_us();
      const std::size_t columns = terminal_columns(STDERR_FILENO).value_or(80);
      std::fprintf(stderr, "\r\x1b[K%s", cut_to_columns(progress_text(progress), columns - 1).c_str());
      std::fflush(stderr);
    }
    return hub::DownloadWish::kGoOn;
  };
  auto path = hub::download(place, wanted, clock, options);
  if (is_terminal) std::fputs("\r\x1b[K", stderr);
  if (!path && path.error().code == ErrorCode::kCancelled)
    return Error{ErrorCode::kCancelled, path.error().message + "; the same command goes on from here"};
  if (!path || sha256.empty() || is_verified) return path;
  if (auto right = check_content(*path, sha256); !right) {
    if (right.error().code != ErrorCode::kDamagedFile) return right.error();
    OCTAVO_TRY_VOID(hub::remove_cached(place.cache, wanted.name, first.path));
    Error error = std::move(right).error();
    error.message += ", so it was removed";
    return error;
  }
  return path;
}

Result<hub::HubRepository> find_on_hub(hub::HubClient& client, const std::string& name,
                                       const std::string& revision) {
  model::ModelName wanted{.repository = name};
  if (name.empty()) {
    wanted = {model::kDefaultModel.repository, model::kDefaultModel.file};
  } else if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
    wanted = {name.substr(0, colon), name.substr(colon + 1)};
  }
  OCTAVO_TRY(hub::HubRepository repository, client.repository(wanted.repository, revision));
  const auto chosen = hub::choose_model(repository, wanted.file);
  if (chosen) {
    repository.files = chosen->files;
  } else if (auto folder = hub::folder_files(repository.files);
             !folder.empty() && wanted.file.empty() && hub::gguf_models(repository.files).empty()) {
    repository.files = std::move(folder);
  } else {
    return chosen.error();
  }
  return repository;
}

Result<std::filesystem::path> find_wanted_model(const std::string& name, MissingModel missing,
                                                const std::string& sha256) {
  auto found = model::find_model(name);
  if (found && !sha256.empty()) OCTAVO_TRY_VOID(check_content(*found, sha256));
  if (found || found.error().code != ErrorCode::kNotFound || !names_a_hub_model(name)) return found;
  const hub::HubPlace place = hub::hub_place_from_environment();
  const std::string what = name.empty() ? std::string("The default model") : "'" + name + "'";
  if (missing == MissingModel::kRefuse) return with_the_way(found.error(), name);
  if (missing == MissingModel::kAsk &&
      !ask_on_terminal(what + " is not on this machine. Ask " + place.host() + " for it?"))
    return with_the_way(found.error(), name);
  const SteadyClock clock;
  hub::HubClient client(place, clock, [] { return InterruptGuard::interrupted(); });
  OCTAVO_TRY(const hub::HubRepository wanted, find_on_hub(client, name, std::string(kMainRevision)));
  const std::string size = bytes_text(wanted.bytes());
  const std::string where = path_for_message(place.cache);
  if (missing == MissingModel::kAsk &&
      !ask_on_terminal("Download " + wanted.name + ": " + wanted.files.front().path + ", " + size +
                       ", from " + place.host() + " into " + where + "?"))
    return Error{ErrorCode::kCancelled, "nothing was downloaded"};
  Progress(/*verbose=*/false)
      .say("downloading " + wanted.name + ", " + size + ", from " + place.host() + " into " + where);
  OCTAVO_TRY(const std::filesystem::path path, download_with_progress(place, wanted, sha256));
  const bool is_folder = path.extension() != ".gguf";
  return is_folder ? path.parent_path() : path;
}

}  // namespace octavo::app
