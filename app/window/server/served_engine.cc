#include "app/window/server/served_engine.h"

#include <filesystem>
#include <utility>

#include "app/server/client_lines.h"

namespace octavo::app {
namespace {

// Chats have none: by how much is reused a program could else find out what a person wrote, token by token.
constexpr const char* kSaltOfClients = "clients/";

}  // namespace

std::vector<std::string> served_model_names(const ModelDescription& model) {
  std::vector<std::string> names;
  const std::string file = std::filesystem::path(model.path).stem().string();
  if (!file.empty()) names.push_back(file);
  if (!model.name.empty() && model.name != file) names.push_back(model.name);
  if (names.empty()) names.emplace_back("octavo");
  return names;
}

ServedEngine::ServedEngine(SharedEngine& engine, std::shared_ptr<RequestLog> log, ServedEngineOptions options)
    : engine_(engine), log_(std::move(log)), options_(std::move(options)) {}

ServedEngine::~ServedEngine() {
  service_.reset();
  reader_.reset();
  log_->close();
}

Service& ServedEngine::service(ServerDoor& door) {
  if (service_) return *service_;
  reader_ = engine_.open_reader();
  service_ = std::make_unique<Service>(
      *reader_, ServiceOptions{.model_names = served_model_names(engine_.description().model),
                               .priority = RequestPriority::kBackground,
                               .version = options_.version,
                               .new_hex = random_hex,
                               .unix_time_ms = options_.unix_time_ms,
                               .clock = options_.clock,
                               .log = log_.get(),
                               .cache_salt = kSaltOfClients,
                               .answered = [&door](const AnsweredCall& call) { door.note(call); }});
  return *service_;
}

void ServedEngine::cancel_all() {
  if (service_) service_->cancel_all();
}

}  // namespace octavo::app
