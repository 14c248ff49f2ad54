#include "app/hub/hub_place.h"

#include <cstdlib>
#include <string_view>

#include "app/files/whole_file.h"
#include "app/http_client/address.h"
#include "engine/base/ascii.h"
#include "engine/base/home_folder.h"
#include "engine/model/model_files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTokenBytes = 4096;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_true(const char* name) {
  const std::string value = ascii_lower_case(variable(name));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

std::string token_in(const fs::path& path) {
  std::string text;
  std::error_code error;
  if (fs::file_size(path, error) > kMostTokenBytes || error) return {};
  return app::read_whole_file(path, text) == 0 ? std::string(without_blanks(text)) : std::string();
}

std::string find_token() {
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (std::string token(without_blanks(variable(name))); !token.empty()) return token;
  if (const auto path = environment_path("HF_TOKEN_PATH")) return token_in(*path);
  const fs::path home = environment_path("HF_HOME").value_or(cache_folder() / "huggingface");
  return token_in(home / "token");
}

}  // namespace

std::string HubPlace::host() const { return http::host_of(endpoint); }

HubPlace hub_place_from_environment() {
  HubPlace place;
  if (std::string endpoint(without_blanks(variable("HF_ENDPOINT"))); !endpoint.empty())
    place.endpoint = std::move(endpoint);
  while (place.endpoint.ends_with('/')) place.endpoint.pop_back();
  place.cache = model::hugging_face_cache();
  place.token = find_token();
  place.is_offline = is_true("HF_HUB_OFFLINE");
  return place;
}

}  // namespace octavo::hub
