// Where models come from and where they are kept: the hub's address, the Hugging Face cache and the token of
// its person, from the variables that huggingface_hub reads, too.
//
// A value; any thread once made. The token is a secret: it is in no sentence, and goes to the hub's own
// address alone.
#pragma once

#include <filesystem>
#include <string>

namespace octavo::hub {

// The hub unless HF_ENDPOINT names another one. The one place where its address stands.
inline constexpr const char* kHubAddress = "https://huggingface.co";

struct HubPlace {
  std::string endpoint = kHubAddress;  // without a slash at its end
  std::filesystem::path cache = {};    // of models--ORG--NAME folders
  std::string token = {};              // empty: none
  bool is_offline = false;             // nothing may be contacted
  std::string ca_file = {};            // certificates that are trusted instead of the system's, for tests

  // "huggingface.co", for people: what is contacted.
  std::string host() const;
};

// HF_ENDPOINT; HF_HUB_CACHE, HF_HOME; HF_TOKEN, HF_TOKEN_PATH, the token file in HF_HOME; HF_HUB_OFFLINE;
// proxies are the HTTP client's.
HubPlace hub_place_from_environment();

}  // namespace octavo::hub
