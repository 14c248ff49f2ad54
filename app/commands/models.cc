#include "app/commands/models.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/request_json.h"
#include "app/commands/wanted_model.h"
#include "app/hub/hub_cache.h"
#include "app/hub/local_models.h"
#include "app/hub/model_look.h"
#include "engine/base/columns.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/gguf_file.h"
#include "engine/model/model_files.h"
#include "engine/runner/runner_plan.h"
#include "kernels/machine_limits.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

struct ModelsOptions {
  std::string name;
  std::string revision = "main";
  std::string sha256 = {};
  int limit = 20;
  bool json = false, yes = false, unchecked = false;
};

std::string without_end_spaces(std::string text) {
  text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

void print_line(const Json& json) { std::cout << dump_for_output(json) << '\n'; }

// Columns as wide as their widest cell. Where a terminal is too narrow, the last one has lines of its own.
void print_rows(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = strip_terminal_controls(row[i]);
      widths[i] = std::max(widths[i], count_columns(row[i]) + 2);
    }
  }
  const std::size_t width = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const std::optional<std::size_t> columns = terminal_columns(STDOUT_FILENO);
  const bool is_narrow = columns && width > *columns + 2;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool has_own_line = is_narrow && i > 0 && i + 1 == row.size() && !row[i].empty();
      if (has_own_line) line = without_end_spaces(line) + "\n    ";
      line += pad_to_columns(row[i], widths[i]);
    }
    std::cout << without_end_spaces(line) << '\n';
  }
}

// What is no row, for a person.
void print_note(const std::string& sentence) { std::cerr << sentence << '\n'; }

// A name that a hub does not know may be one that somebody remembers in part.
Error with_search(Error error, const std::string& name) {
  const std::string words = name.substr(name.rfind('/') + 1);
  if (error.code != ErrorCode::kNotFound || words.empty()) return error;
  error.message += ", or find it with `octavo models search " + words + "`";
  return error;
}

const char* gate_text(hub::Gate gate) { return gate == hub::Gate::kAsks ? "gated" : ""; }

hub::HubClient client_for(const Clock& clock) {
  return {hub::hub_place_from_environment(), clock, [] { return InterruptGuard::interrupted(); }};
}

// ---- search

Result<void> run_search(const ModelsOptions& options) {
  const SteadyClock clock;
  hub::HubClient client = client_for(clock);
  OCTAVO_TRY(const std::vector<hub::HubModel> models, client.search(options.name, options.limit));
  if (options.json) {
    Json list = Json::array();
    for (const hub::HubModel& model : models) {
      list.push_back({{"name", model.name},
                      {"licence", text_or_null(model.licence)},
                      {"gated", model.gate == hub::Gate::kAsks},
                      {"downloads", model.downloads},
                      {"likes", model.likes}});
    }
    print_line({{"endpoint", client.place().endpoint}, {"models", list}});
    return {};
  }
  std::vector<std::vector<std::string>> rows;
  for (const hub::HubModel& model : models)
    rows.push_back(
        {model.name, with_thousands(model.downloads) + " downloads", model.licence, gate_text(model.gate)});
  print_rows(std::move(rows));
  if (models.empty())
    print_note(client.place().host() +
               " has no GGUF model with this in its name; try fewer words, or other ones");
  return {};
}

// ---- show

struct ShownModel {
  hub::GgufModel model;
  std::optional<hub::ModelNeed> need = {};  // nullopt: it does not run here
  bool is_checked = false;                  // by its header
  std::string problem = {};                 // why it does not run
  bool is_here = false;
};

double measured_read_speed() {
  const auto reads =
      kernels::measure_reads(static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency())), 3);
  if (!reads || reads->empty()) return hub::kUsualReadBytesPerS;
  return *std::ranges::max_element(*reads);
}

// The one that is meant by its header, the others by their size.
std::vector<ShownModel> look_at_models(hub::HubClient& client, const hub::HubRepository& repository,
                                       const std::string& chosen_path) {
  const std::int64_t available = runner::available_memory_bytes();
  const double speed = measured_read_speed();
  std::vector<ShownModel> shown;
  for (const hub::GgufModel& model : hub::gguf_models(repository.files)) {
    ShownModel one{.model = model};
    one.is_here = std::ranges::all_of(model.files, [&](const hub::HubFile& file) {
      return hub::is_here(client.place().cache, repository.name, file);
    });
    one.need = hub::estimate_need(model.bytes, model.bytes, available, speed);
    if (!model.is_whole) {
      one.need.reset();
      one.problem = "some of its files are missing";
    } else if (model.path == chosen_path) {
      one.is_checked = true;
      const auto preview = hub::look_into(client, repository, model);
      const auto need =
          preview ? hub::plan_need(*preview, {}, available, speed) : Result<hub::ModelNeed>(preview.error());
      one.need = need ? std::optional(*need) : std::nullopt;
      if (!need) one.problem = need.error().message;
    }
    shown.push_back(std::move(one));
  }
  return shown;
}

std::string need_text(const ShownModel& shown) {
  if (!shown.need) return escape_for_message(shown.problem, 300);
  return shown.need->sentence + (shown.is_checked ? "" : ", by its size") +
         (shown.is_here ? " · on this machine" : "");
}

Json need_json(const ShownModel& shown) {
  Json json = {{"path", shown.model.path},
               {"type", text_or_null(shown.model.type)},
               {"bytes", shown.model.bytes},
               {"num_files", shown.model.files.size()},
               {"sha256", text_or_null(shown.model.files.front().sha256)},
               {"checked", shown.is_checked},
               {"here", shown.is_here}};
  json["fit"] = shown.need ? hub::fit_name(shown.need->fit) : "unsupported";
  json["needed_bytes"] = shown.need ? Json(shown.need->needed_bytes) : Json(nullptr);
  json["problem"] = text_or_null(shown.problem);
  return json;
}

// Of a repository without a GGUF file.
std::string folder_text(const hub::HubRepository& repository) {
  hub::HubRepository folder{
      .name = {}, .revision = {}, .commit = {}, .files = hub::folder_files(repository.files)};
  if (folder.files.empty()) return "no GGUF file, and no folder of safetensors";
  const hub::ModelNeed need =
      hub::estimate_need(folder.bytes(), folder.bytes(), runner::available_memory_bytes());
  return "a folder of safetensors, " + bytes_text(folder.bytes()) +
         ", without a GGUF file: " + need.sentence + ", by its size; --quantization makes it smaller";
}

Result<void> run_show(const ModelsOptions& options) {
  const SteadyClock clock;
  hub::HubClient client = client_for(clock);
  const std::size_t colon = options.name.find(':');
  const std::string name = options.name.substr(0, colon);
  const auto found = client.repository(name, options.revision);
  if (!found) return with_search(found.error(), name);
  const hub::HubRepository& repository = *found;
  std::string chosen_path;
  if (!hub::gguf_models(repository.files).empty()) {
    OCTAVO_TRY(const hub::GgufModel chosen,
               hub::choose_model(
                   repository, colon == std::string::npos ? std::string() : options.name.substr(colon + 1)));
    chosen_path = chosen.path;
  }
  const std::vector<ShownModel> shown = look_at_models(client, repository, chosen_path);
  const bool is_folder = !hub::folder_files(repository.files).empty();
  if (options.json) {
    Json models = Json::array();
    for (const ShownModel& one : shown) models.push_back(need_json(one));
    print_line({{"name", repository.name},
                {"commit", repository.commit},
                {"licence", text_or_null(repository.licence)},
                {"gated", repository.gate == hub::Gate::kAsks},
                {"safetensors", is_folder},
                {"models", models}});
    return {};
  }
  std::cout << repository.name
            << (repository.licence.empty() ? "" : " · " + strip_terminal_controls(repository.licence))
            << (repository.gate == hub::Gate::kAsks ? " · gated" : "") << '\n';
  std::vector<std::vector<std::string>> rows;
  for (const ShownModel& one : shown)
    rows.push_back({one.model.path, one.model.type, bytes_text(one.model.bytes), need_text(one)});
  print_rows(std::move(rows));
  if (shown.empty()) std::cout << folder_text(repository) << '\n';
  return {};
}

// ---- get

// What no machine runs is not worth its download.
Result<void> check_before(hub::HubClient& client, const hub::HubRepository& wanted) {
  const std::vector<hub::GgufModel> models = hub::gguf_models(wanted.files);
  if (models.empty()) return {};
  const auto preview = hub::look_into(client, wanted, models.front());
  if (!preview) {
    Error error = preview.error();
    if (error.code != ErrorCode::kCancelled) error.message += " (--unchecked downloads it all the same)";
    return error;
  }
  return {};
}

Result<void> run_get(const ModelsOptions& options) {
  const InterruptGuard guard;
  const SteadyClock clock;
  hub::HubClient client = client_for(clock);
  const Progress progress(/*verbose=*/false);
  progress.say("asking " + client.place().host() + " for " +
               (options.name.empty() ? "the default model" : options.name));
  const auto found = find_on_hub(client, options.name, options.revision);
  if (!found) return with_search(found.error(), options.name.substr(0, options.name.find(':')));
  const hub::HubRepository& wanted = *found;
  if (options.name.empty() && wanted.files.front().sha256 != model::kDefaultModel.sha256)
    progress.say("this is another file than the default model of this version; it is taken as " +
                 client.place().host() + " has it");
  if (!options.unchecked) OCTAVO_TRY_VOID(check_before(client, wanted));
  progress.say("downloading " + wanted.name + ", " + bytes_text(wanted.bytes()) + ", from " +
               client.place().host() + " into " + path_for_message(client.place().cache));
  OCTAVO_TRY(const fs::path path, download_with_progress(client.place(), wanted, options.sha256));
  const fs::path shown = path.extension() == ".gguf" ? path : path.parent_path();
  if (!options.json) {
    std::cout << shown.string() << '\n';
    return {};
  }
  Json files = Json::array();
  for (const hub::HubFile& file : wanted.files)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", text_or_null(file.sha256)}});
  print_line({{"name", wanted.name},
              {"commit", wanted.commit},
              {"path", shown.string()},
              {"bytes", wanted.bytes()},
              {"files", files}});
  return {};
}

// ---- list and remove

bool is_removable(const hub::LocalModel& model) {
  return model.owner == hub::ModelOwner::kOctavo || model.owner == hub::ModelOwner::kHuggingFace;
}

Result<void> run_list(const ModelsOptions& options) {
  const std::vector<hub::LocalModel> models = hub::find_local_models(hub::model_places());
  if (options.json) {
    Json list = Json::array();
    for (const hub::LocalModel& model : models) {
      list.push_back({{"name", model.name},
                      {"path", model.path.string()},
                      {"bytes", model.bytes},
                      {"owner", hub::owner_name(model.owner)},
                      {"removable", is_removable(model)}});
    }
    print_line({{"models", list}});
    return {};
  }
  std::vector<std::vector<std::string>> rows;
  for (const hub::LocalModel& model : models)
    rows.push_back({model.name, bytes_text(model.bytes), hub::owner_name(model.owner), model.path.string()});
  print_rows(std::move(rows));
  bool has_begun = false;
  const fs::path cache = model::hugging_face_cache();
  for (const std::string& name : hub::cached_repositories(cache)) {
    const std::int64_t bytes = hub::incomplete_bytes(cache, name);
    if (bytes == 0) continue;
    has_begun = true;
    print_note("of " + name + " " + bytes_text(bytes) +
               " have come: the `octavo models get` that began it goes on, and `octavo models "
               "remove " +
               name + "` removes it");
  }
  if (models.empty() && !has_begun) {
    print_note(
        "there is no model on this machine; `octavo models get` downloads the default one, and `octavo "
        "models "
        "search WORDS` finds others");
  }
  return {};
}

// What `name` means among what is here: a whole repository, or one model.
struct Removal {
  std::string repository = {};       // of the Hugging Face cache
  std::string file = {};             // of it; empty: all
  std::vector<fs::path> files = {};  // of our own folder
  std::int64_t bytes = 0;
};

Result<Removal> find_removal(const std::string& name) {
  const fs::path cache = model::hugging_face_cache();
  const std::vector<std::string> repositories = hub::cached_repositories(cache);
  if (std::ranges::find(repositories, name) != repositories.end())
    return Removal{.repository = name, .bytes = hub::cached_bytes(cache, name)};
  for (const hub::LocalModel& model : hub::find_local_models(hub::model_places())) {
    if (model.name != name && model.path != name) continue;
    if (!is_removable(model)) {
      return Error{ErrorCode::kUnsupported, "'" + escape_for_message(name) + "' belongs to " +
                                                hub::owner_name(model.owner) + ", which alone removes it"};
    }
    if (model.owner == hub::ModelOwner::kHuggingFace) {
      const std::size_t colon = model.name.find(':');
      return Removal{.repository = model.name.substr(0, colon),
                     .file = model.name.substr(colon + 1),
                     .bytes = model.bytes};
    }
    OCTAVO_TRY(std::vector<fs::path> files, model::files_of_model(model.path));
    return Removal{.files = std::move(files), .bytes = model.bytes};
  }
  return Error{ErrorCode::kNotFound,
               "there is no model '" + escape_for_message(name) + "' here; `octavo models list` names them"};
}

// Of a split model also its other files.
Result<void> remove_files(const Removal& removal) {
  const fs::path cache = model::hugging_face_cache();
  if (!removal.repository.empty() && removal.file.empty())
    return hub::remove_cached(cache, removal.repository);
  if (!removal.repository.empty()) {
    OCTAVO_TRY(const std::vector<fs::path> files, model::files_of_model(removal.file));
    for (const fs::path& file : files)
      OCTAVO_TRY_VOID(hub::remove_cached(cache, removal.repository, file.string()));
    return {};
  }
  for (const fs::path& file : removal.files) {
    std::error_code error;
    if (!fs::remove(file, error) || error) return hub::disk_error("cannot remove", file, error.value());
  }
  return {};
}

Result<void> run_remove(const ModelsOptions& options) {
  OCTAVO_TRY(const Removal removal, find_removal(options.name));
  const std::string size = bytes_text(removal.bytes);
  if (!options.yes && !ask_on_terminal("Remove " + options.name + " (" + size + ") from this machine?"))
    return Error{ErrorCode::kCancelled, "nothing was removed; --yes removes it without a question"};
  OCTAVO_TRY_VOID(remove_files(removal));
  if (options.json) {
    print_line({{"removed", options.name}, {"freed_bytes", removal.bytes}});
  } else {
    std::cout << "removed " << strip_terminal_controls(options.name) << ", " << size << '\n';
  }
  return {};
}

using Run = Result<void> (*)(const ModelsOptions&);

CLI::App* add_part(CLI::App& models, const char* name, const char* help,
                   const std::shared_ptr<ModelsOptions>& options, Run run, int& status) {
  CLI::App* const part = models.add_subcommand(name, help);
  part->add_flag("--json", options->json, "Print one JSON object to standard output");
  part->callback([options, run, &status] {
    const Result<void> result = run(*options);
    status = result                          ? kExitOk
             : InterruptGuard::interrupted() ? report_failure(result.error().message, kExitInterrupted)
                                             : report_error(result.error());
  });
  return part;
}

}  // namespace

void add_models_command(CLI::App& program, int& status) {
  const auto options = std::make_shared<ModelsOptions>();
  CLI::App* const models = program.add_subcommand("models", "Find, download, list and remove models");
  models->require_subcommand(1);
  CLI::App* const search =
      add_part(*models, "search", "Search the Hugging Face hub for models", options, run_search, status);
  search
      ->add_option_function<std::vector<std::string>>(
          "text",
          [options](const std::vector<std::string>& words) {
            for (const std::string& word : words) options->name += (options->name.empty() ? "" : " ") + word;
          },
          "Words of the model's name")
      ->required();
  search->add_option("--limit", options->limit, "Most models to list")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  CLI::App* const show = add_part(*models, "show", "What a repository of the hub has, and what fits here",
                                  options, run_show, status);
  show->add_option("repository", options->name, "org/name, or org/name:file to look into that file")
      ->required();
  show->add_option("--revision", options->revision, "Branch, tag or commit")->capture_default_str();
  CLI::App* const get =
      add_part(*models, "get", "Download a model into the Hugging Face cache", options, run_get, status);
  get->add_option("repository", options->name,
                  "org/name, or org/name:file, or org/name:TYPE such as Q4_K_M (default: the default model)");
  get->add_option("--revision", options->revision, "Branch, tag or commit")->capture_default_str();
  add_sha256_option(*get, options->sha256);
  get->add_flag("--unchecked", options->unchecked, "Download also what cannot run here");
  add_part(*models, "list", "Models on this machine, also those of other programs", options, run_list,
           status);
  CLI::App* const remove_part =
      add_part(*models, "remove", "Remove a model that Octavo or the Hugging Face cache holds", options,
               run_remove, status);
  remove_part
      ->add_option("name", options->name, "As `octavo models list` names it, or org/name for all of it")
      ->required();
  remove_part->add_flag("--yes", options->yes, "Remove it without a question");
}

}  // namespace octavo::app
