#include "app/commands/serve.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/input.h"
#include "app/commands/start_engine.h"
#include "app/server/client_lines.h"
#include "app/server/http/server.h"
#include "app/server/service.h"
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/engine.h"

namespace octavo::app {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::chrono::milliseconds kTick{50};  // in which a signal is noticed

struct ServeOptions {
  EngineFlags engine;
  http::ServerOptions server;
  std::string model;  // as vLLM takes it: behind the command
  std::vector<std::string> served_names, allowed_hosts, allowed_origins;
  std::optional<std::string> key, key_file, tls_certificate, tls_key;
  bool no_key = false;
  std::size_t max_waiting_requests = 256;
  double shutdown_timeout = 30;
  bool log_requests = false, log_request_texts = false;
  std::vector<std::string> passed_over;  // options that mean nothing here
};

// What vLLM's command line has, and nothing here stands for. Each is taken with a value, so that commands
// that people have go on working.
constexpr std::array kPassedOver = {"--tokenizer-mode",    "--load-format", "--num-scheduler-steps",
                                    "--uvicorn-log-level", "--max-log-len", "--response-role"};
constexpr std::array kPassedOverFlags = {"--multi-step-stream-outputs",
                                         "--trust-remote-code",
                                         "--enforce-eager",
                                         "--disable-log-requests",
                                         "--disable-log-stats",
                                         "--enable-chunked-prefill",
                                         "--disable-frontend-multiprocessing"};

Result<std::string> key_of(const ServeOptions& options, bool is_loopback) {
  const int num_given = (options.key ? 1 : 0) + (options.key_file ? 1 : 0) + (options.no_key ? 1 : 0);
  const auto refused = [](std::string sentence) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(sentence), .subject = "api_key"};
  };
  if (num_given > 1) return refused("give one of --api-key, --api-key-file and --no-api-key");
  if (options.no_key && !is_loopback) {
    return refused("--no-api-key goes with this machine alone: listen to 127.0.0.1, or give a key");
  }
  if (options.no_key) return std::string();
  std::string key = options.key.value_or("");
  if (options.key_file) {
    OCTAVO_TRY(key, read_input(*options.key_file));
    key.erase(std::find_if(key.begin(), key.end(), [](char c) { return c == '\n' || c == '\r'; }), key.end());
  }
  if (!options.key && !options.key_file) return new_server_key();
  if (key.empty()) return refused("the key is empty: give one, or --no-api-key");
  return key;
}

Result<std::shared_ptr<const http::TlsIdentity>> tls_of(const ServeOptions& options) {
  if (options.tls_certificate.has_value() != options.tls_key.has_value()) {
    const char* const given = options.tls_key ? "--tls-key" : "--tls-certificate";
    const char* const missing = options.tls_key ? "--tls-certificate" : "--tls-key";
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = std::string(given) + " goes with " + missing + ": give both",
                 .subject = options.tls_key ? "tls_key" : "tls_certificate"};
  }
  if (!options.tls_key) return std::shared_ptr<const http::TlsIdentity>();
  return http::TlsIdentity::load(*options.tls_certificate, *options.tls_key);
}

std::vector<std::string> model_names(const ServeOptions& options, const EngineDescription& description) {
  std::vector<std::string> names = options.served_names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  if (names.empty()) {
    add(options.engine.options.model);
    add(std::filesystem::path(description.model.path).stem().string());
    add(description.model.name);
  }
  return names;
}

// Lines that people paste where their programs want them.
void say_how_to_use(const std::string& address, const ServeOptions& options, const std::string& key,
                    bool key_is_new, const std::string& model) {
  std::fprintf(stderr, "octavo: listening on %s\noctavo: model: %s\n", address.c_str(),
               escape_for_message(model).c_str());
  if (key_is_new) {
    std::fprintf(stderr, "octavo: the key, made for this run and shown once: %s (--api-key sets one)\n",
                 key.c_str());
  }
  ServedAddress served{.address = address, .model = model};
  if (options.key_file && *options.key_file != "-") {
    served.key_file = std::filesystem::absolute(*options.key_file).string();
  } else if (!key.empty()) {
    served.key = key_is_new ? key : "YOUR_KEY";
  }
  for (const PastedLine& line : client_lines(served))
    std::fprintf(stderr, "octavo: %s: %s\n", line.program.c_str(),
                 escape_for_message(line.text, 2000).c_str());
}

// Answers that run may end; what still runs then is cancelled, and told so.
void shut_down(http::Server& server, Service& service, double timeout_s) {
  server.stop_accepting();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  while (server.num_open_answers() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kTick);
  service.cancel_all();
  for (int i = 0; i < 40 && server.num_open_answers() > 0; ++i) std::this_thread::sleep_for(kTick);
}

bool is_loopback_host(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

int run_serve(ServeOptions& options, const std::string& version) {
  const Result<std::string> key = key_of(options, is_loopback_host(options.server.host));
  if (!key) return report_error(key.error());
  const Result<std::shared_ptr<const http::TlsIdentity>> tls = tls_of(options);
  if (!tls) return report_error(tls.error());
  options.server.tls = *tls;
  if (!options.model.empty()) options.engine.options.model = options.model;
  for (const std::string& name : options.passed_over)
    std::fprintf(stderr, "octavo: %s means nothing here and is passed over\n", name.c_str());
  Progress progress(options.engine.verbose);
  const InterruptGuard guard(StopSignals::kAndTerminate);
  Result<std::unique_ptr<Engine>> engine = start_engine(options.engine, progress);
  if (InterruptGuard::interrupted()) return kExitInterrupted;
  if (!engine) return report_error(engine.error());

  const SteadyClock clock;
  ServiceOptions service_options{.model_names = model_names(options, (*engine)->description()),
                                 .access = {.allowed_hosts = options.allowed_hosts,
                                            .allowed_origins = options.allowed_origins,
                                            .key = *key},
                                 .max_waiting_requests = options.max_waiting_requests,
                                 .version = version,
                                 .new_hex = random_hex,
                                 .unix_time_ms = unix_time_ms,
                                 .clock = &clock,
                                 .write_line = {},
                                 .lines_hold_texts = options.log_request_texts};
  if (options.log_requests || options.log_request_texts) {
    service_options.write_line = [](const std::string& line) {
      std::fprintf(stderr, "octavo: %s\n", escape_for_message(line, kLongestLine).c_str());
    };
  }
  const std::string model = service_options.model_names.front();
  Service service(**engine, std::move(service_options));
  auto server = http::Server::listen(
      options.server, [&](const http::Request& head) { return service.check_head(head); },
      [&](http::Request request, http::Reply reply) { service.handle(std::move(request), std::move(reply)); },
      Service::refuse);
  if (!server) return report_error(server.error());
  service.listens_at((*server)->port(), (*server)->is_loopback());
  const bool key_is_new = !options.key && !options.key_file && !options.no_key;
  say_how_to_use(http_address(options.server.host, (*server)->port(), options.server.tls ? "https" : "http"),
                 options, *key, key_is_new, model);
  while (!InterruptGuard::interrupted()) std::this_thread::sleep_for(kTick);
  shut_down(**server, service, options.shutdown_timeout);
  return kExitOk;
}

}  // namespace

void add_serve_command(CLI::App& program, const std::string& version, int& status) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* const command = program.add_subcommand("serve", "Serve the model to other programs over HTTP");
  command->add_option("MODEL", options->model, "The same as --model");
  command->add_option("--host", options->server.host, "Address to listen to")->capture_default_str();
  command->add_option("--port", options->server.port, "Port to listen to; 0: any that is free")
      ->capture_default_str();
  command->add_option("--api-key", options->key, "Key that clients must send (default: a new one is shown)");
  command->add_option("--api-key-file", options->key_file, "File whose first line is the key");
  command->add_flag("--no-api-key", options->no_key, "Ask for no key; on this machine alone");
  command->add_option("--tls-certificate,--ssl-certfile", options->tls_certificate,
                      "PEM file with the certificate for HTTPS, and those that sign it");
  command->add_option("--tls-key,--ssl-keyfile", options->tls_key, "PEM file with its key");
  command
      ->add_option("--allowed-host", options->allowed_hosts,
                   "Name of this server that clients may use (repeatable)")
      ->allow_extra_args(false);
  command
      ->add_option("--allowed-origin", options->allowed_origins,
                   "Web pages that may use it, such as http://localhost:3000 (repeatable)")
      ->allow_extra_args(false);
  command
      ->add_option("--served-model-name", options->served_names,
                   "Name of the model for clients (repeatable; the first is told in answers)")
      ->allow_extra_args(false);
  command
      ->add_option("--max-waiting-requests", options->max_waiting_requests,
                   "Requests that may wait; beyond, clients are asked to try again")
      ->capture_default_str();
  command
      ->add_option("--shutdown-timeout", options->shutdown_timeout,
                   "Seconds that running answers are given when the server is told to end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--log-requests", options->log_requests,
                    "Write a line about each request: how much of its prompt was reused, and why not more");
  command->add_flag("--log-request-texts", options->log_request_texts,
                    "The same, with the texts where a prompt differs from an earlier one");
  add_engine_flags(*command, options->engine);
  const auto note = [options](const std::string& name) {
    return [options, name](const CLI::results_t&) {
      options->passed_over.push_back(name);
      return true;
    };
  };
  for (const char* const name : kPassedOver) command->add_option(name, note(name))->group("");
  for (const char* const name : kPassedOverFlags)
    command->add_option(name, note(name))->expected(0)->group("");
  command->callback([options, version, &status] { status = run_serve(*options, version); });
}

}  // namespace octavo::app
