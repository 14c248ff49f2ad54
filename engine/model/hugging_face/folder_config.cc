#include "engine/model/hugging_face/folder_config.h"

#include <cmath>
#include <memory>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/json_file.h"
#include "engine/model/limits.h"
#include "engine/model/safetensors_files.h"

namespace octavo::model {

Result<FolderConfig> FolderConfig::read(const std::filesystem::path& folder) {
  constexpr std::string_view kFile = "config.json";
  OCTAVO_TRY(const std::filesystem::path path, file_in_folder(folder, kFile));
  FolderConfig config;
  config.file_name_ = (folder / kFile).string();
  OCTAVO_TRY(const std::string text, read_text_file(path, kMaxConfigBytes));
  OCTAVO_TRY(config.whole_, parse_json_text(text, config.file_name_));
  if (!config.whole_.is_object()) {
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(folder / kFile) + " holds no object; download it again"};
  }
  for (const char* name : {"text_config", "llm_config"}) {
    const auto found = config.whole_.find(name);
    if (found != config.whole_.end() && found->is_object()) config.text_ = *found;
  }
  if (config.text_.is_null()) config.text_ = config.whole_;
  // Said beside the text's configuration.
  for (const char* name : {"tie_word_embeddings", "vocab_size"}) {
    if (!config.text_.contains(name) && config.whole_.contains(name))
      config.text_[name] = config.whole_[name];
  }
  config.model_type_ = config.text_or("model_type", "");
  if (config.problem()) return *config.problem();
  return config;
}

const nlohmann::json* FolderConfig::find(ConfigNames names) const {
  if (!text_.is_object()) return nullptr;
  for (const std::string_view name : names) {
    const auto found = text_.find(name);
    if (found != text_.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

void FolderConfig::assume(std::string_view name, nlohmann::json value) {
  if (!has(name)) text_[std::string(name)] = std::move(value);
}

void FolderConfig::refuse(std::string_view name, ErrorCode code, std::string_view sentence) const {
  if (*problem_) return;
  *problem_ = Error{code,
                    escape_for_message(file_name_, 1000) + ": " + escape_for_message(path_) +
                        std::string(name) + " " + std::string(sentence),
                    path_ + std::string(name)};
}

void FolderConfig::wrong_type(ConfigNames names, std::string_view wanted) const {
  refuse(*names.begin(), ErrorCode::kDamagedFile,
         (find(names) == nullptr ? "is missing; it is " : "is not ") + std::string(wanted) +
             (find(names) == nullptr ? " that this model needs" : ", which is needed") +
             ": download the repository again");
}

std::int64_t FolderConfig::whole(ConfigNames names) const {
  const nlohmann::json* const value = find(names);
  if (value != nullptr && value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    wrong_type(names, "a whole number of this size");
    return 0;
  }
  if (value != nullptr && value->is_number_integer()) return value->get<std::int64_t>();
  wrong_type(names, "a whole number");
  return 0;
}

std::int64_t FolderConfig::whole_or(ConfigNames names, std::int64_t otherwise) const {
  return find(names) == nullptr ? otherwise : whole(names);
}

double FolderConfig::number(ConfigNames names) const {
  const nlohmann::json* const value = find(names);
  if (value != nullptr && value->is_number()) return value->get<double>();
  wrong_type(names, "a number");
  return 0.0;
}

double FolderConfig::number_or(ConfigNames names, double otherwise) const {
  return find(names) == nullptr ? otherwise : number(names);
}

bool FolderConfig::flag_or(std::string_view name, bool otherwise) const {
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) wrong_type({name}, "true or false");
  return value->is_boolean() && value->get<bool>();
}

std::string FolderConfig::text_or(std::string_view name, std::string_view otherwise) const {
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) return value->get<std::string>();
  wrong_type({name}, "a text");
  return {};
}

std::vector<std::string> FolderConfig::texts(std::string_view name) const {
  std::vector<std::string> texts;
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return texts;
  if (!value->is_array()) wrong_type({name}, "a list of texts");
  for (const nlohmann::json& each : *value) {
    if (!each.is_string()) {
      wrong_type({name}, "a list of texts");
      return {};
    }
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

std::vector<std::int64_t> FolderConfig::wholes(std::string_view name) const {
  std::vector<std::int64_t> numbers;
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return numbers;
  if (!value->is_array()) wrong_type({name}, "a list of whole numbers");
  for (const nlohmann::json& each : *value) {
    const bool is_whole =
        each.is_number_integer() && (!each.is_number_unsigned() || each.get<std::uint64_t>() <= (1ull << 62));
    if (!is_whole) {
      wrong_type({name}, "a list of whole numbers");
      return {};
    }
    numbers.push_back(each.get<std::int64_t>());
  }
  return numbers;
}

std::vector<float> FolderConfig::numbers(std::string_view name) const {
  std::vector<float> numbers;
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return numbers;
  if (!value->is_array()) wrong_type({name}, "a list of numbers");
  for (const nlohmann::json& each : *value) {
    if (!each.is_number()) {
      wrong_type({name}, "a list of numbers");
      return {};
    }
    numbers.push_back(static_cast<float>(each.get<double>()));
  }
  return numbers;
}

FolderConfig FolderConfig::object(std::string_view name) const {
  FolderConfig nested;
  nested.problem_ = problem_;
  nested.file_name_ = file_name_;
  nested.path_ = path_ + std::string(name) + ".";
  nested.text_ = nlohmann::json::object();
  const nlohmann::json* const value = find({name});
  if (value == nullptr) return nested;
  if (value->is_object()) {
    nested.text_ = *value;
  } else {
    wrong_type({name}, "an object");
  }
  return nested;
}

}  // namespace octavo::model
