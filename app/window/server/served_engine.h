// What reads an engine beside the chats: the list of requests, and once the server was switched on, the
// service that answers programs.
//
// UI thread; may end on another. The engine outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/requests/request_log.h"
#include "app/server/service.h"
#include "app/window/models/engine_closer.h"
#include "app/window/server/server_door.h"
#include "engine/base/clock.h"
#include "engine/shared_engine.h"

namespace octavo::app {

// What a model is called by programs: the name of its file, and its own.
std::vector<std::string> served_model_names(const ModelDescription& model);

struct ServedEngineOptions {
  std::function<std::int64_t()> unix_time_ms = {};
  const Clock* clock = nullptr;  // outlives it
  std::string version = {};      // of the program
};

class ServedEngine final : public EngineReader {
 public:
  // The log gets the engine's events from whoever made both.
  ServedEngine(SharedEngine& engine, std::shared_ptr<RequestLog> log, ServedEngineOptions options);
  // Ends answers under way, and what the log still could find out with the engine's tokenizer.
  ~ServedEngine() override;

  // Begins with the first call. Then it stays, also while nobody leads to it: it must not end before its
  // engine, nor on the window's thread.
  Service& service(ServerDoor& door);
  // Ends answers under way.
  void cancel_all();
  // Whether programs still wait for answers.
  bool is_busy() const override { return service_ && service_->num_open_requests() > 0; }

 private:
  SharedEngine& engine_;
  const std::shared_ptr<RequestLog> log_;
  const ServedEngineOptions options_;
  std::unique_ptr<Engine> reader_;    // of the service
  std::unique_ptr<Service> service_;  // ends before its reader
};

}  // namespace octavo::app
