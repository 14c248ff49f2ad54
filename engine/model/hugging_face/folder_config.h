// config.json of a Hugging Face folder, read by name. The file is untrusted: values have a type, or are an
// error, and what they may be is held against the engine's ranges later (config_ranges.h), in the same words
// as for any other file.
//
// The first value that is missing or of another type is remembered; it and all later ones read as if they
// were 0 or empty, so that a translation reads as a list of what it takes. Whoever translates asks problem()
// at the end. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::model {

// What a value may be called: the first of these that is there and not null.
using ConfigNames = std::initializer_list<std::string_view>;

class FolderConfig {
 public:
  // Of a model with eyes or ears, what it says of its text is found in its text_config.
  static Result<FolderConfig> read(const std::filesystem::path& folder);

  const std::string& file_name() const { return file_name_; }
  const std::string& model_type() const { return model_type_; }  // "llama"
  const nlohmann::json& whole_file() const { return whole_; }

  bool has(std::string_view name) const { return find({name}) != nullptr; }
  std::int64_t whole(ConfigNames names) const;
  std::int64_t whole_or(ConfigNames names, std::int64_t otherwise) const;
  double number(ConfigNames names) const;
  double number_or(ConfigNames names, double otherwise) const;
  bool flag_or(std::string_view name, bool otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  // Empty: there is no such list.
  std::vector<std::string> texts(std::string_view name) const;
  std::vector<std::int64_t> wholes(std::string_view name) const;
  std::vector<float> numbers(std::string_view name) const;
  // A nested object with the same manners; empty where there is none.
  FolderConfig object(std::string_view name) const;
  bool is_empty() const { return text_.empty(); }

  // A value that configurations of a family leave out where it is this one.
  void assume(std::string_view name, nlohmann::json value);

  // Remembers that a value cannot be had; the sentence follows its name.
  void refuse(std::string_view name, ErrorCode code, std::string_view sentence) const;
  // `object`s included.
  const std::optional<Error>& problem() const { return *problem_; }

 private:
  FolderConfig() : problem_(std::make_shared<std::optional<Error>>()) {}
  const nlohmann::json* find(ConfigNames names) const;
  void wrong_type(ConfigNames names, std::string_view wanted) const;

  std::string file_name_, model_type_, path_;  // path_: of a nested object, "rope_scaling."
  nlohmann::json whole_, text_;
  std::shared_ptr<std::optional<Error>> problem_;
};

}  // namespace octavo::model
