// Which files of a repository are a model that runs here, and which one is meant.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/hub/hub_values.h"
#include "engine/base/result.h"

namespace octavo::hub {

// One GGUF model: one file, or all of a split one.
struct GgufModel {
  std::string path;        // of its first file
  std::string type;        // "Q4_K_M", as its name says; empty where it says nothing
  std::int64_t bytes = 0;  // of all its files
  std::vector<HubFile> files = {};
  bool is_whole = true;  // false: the hub lacks some of its files
};

// The type that a file's name tells, in capitals: "model-q4_k_m.gguf" is Q4_K_M. May be empty.
std::string type_in_name(std::string_view path);

// Smallest first. Left out are files that go beside a model: of images, of quantisation.
std::vector<GgufModel> gguf_models(const std::vector<HubFile>& files);

// What `wanted` means: a path, its last part, or what only one model's name holds. Empty: the one that most
// people want, of four bits or thereabouts. An error lists what there is.
Result<GgufModel> choose_model(const HubRepository& repository, const std::string& wanted);

// The files of a model as a folder of safetensors: weights, configuration, tokenizer. Empty: it is none.
std::vector<HubFile> folder_files(const std::vector<HubFile>& files);

}  // namespace octavo::hub
