// Models that are on this disk already, whoever put them there: our own folder, the Hugging Face cache, and
// those of LM Studio, Ollama, Jan and llama.cpp. Each content is listed once. Nothing is copied or changed.
//
// Functions of the disk; any thread. Folders are other programs': bounded in depth and number, links to
// folders are not followed, and what cannot be read is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo::hub {

enum class ModelOwner { kOctavo, kHuggingFace, kLmStudio, kOllama, kJan, kLlamaCpp };
const char* owner_name(ModelOwner owner);  // "LM Studio"

struct LocalModel {
  std::filesystem::path path;  // of its first file
  std::string name;            // "org/name:file", "llama3.2:3b", or the file's
  ModelOwner owner = ModelOwner::kOctavo;
  std::int64_t bytes = 0;  // of all its files
};

// Where one program keeps models.
struct ModelPlace {
  ModelOwner owner = ModelOwner::kOctavo;
  std::filesystem::path folder;
};

// All that are known on this machine, by the programs' own variables (HF_HOME, OLLAMA_MODELS, LLAMA_CACHE …);
// whether they are there or not. Earlier ones come first where the same content is in several.
std::vector<ModelPlace> model_places();

inline constexpr std::size_t kMostLocalModels = 2000;

// Sorted by owner, then name.
std::vector<LocalModel> find_local_models(const std::vector<ModelPlace>& places);

}  // namespace octavo::hub
