// The families of models whose Hugging Face folders are read: for each `model_type` of a configuration the
// engine's architecture and what translates it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/model/hugging_face/translation.h"

namespace octavo::model {

struct Family {
  std::string_view model_type;    // of config.json, or of its text_config
  std::string_view architecture;  // the engine's
  void (*translate)(Translation&);
  // The weight by which it is found what stands before all others' names.
  std::string_view embedding = "embed_tokens.weight";
  // Of a model_type with several: which one it is.
  std::string_view (*architecture_of)(const FolderConfig&) = nullptr;
};

const Family* find_family(std::string_view model_type);  // nullptr: not translated
std::string supported_families();                        // "cohere, cohere2, ... and stablelm"

// In the files beside families.cc, by what their models have.
std::span<const Family> plain_families();  // dense attention, one feed-forward layer
std::span<const Family> gemma_families();
std::span<const Family> expert_families();     // with routed experts
std::span<const Family> recurrent_families();  // with layers that keep a state

}  // namespace octavo::model
