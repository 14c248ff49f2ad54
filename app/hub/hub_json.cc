#include "app/hub/hub_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "app/json/json_text.h"
#include "engine/base/text.h"

namespace octavo::hub {
namespace {

using app::Json;

constexpr std::size_t kMostTextBytes = 200;
constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 46;  // 64 TiB

Error not_understood(std::string_view host, const std::string& why) {
  return {ErrorCode::kUnsupported, std::string(host) + " sent an answer that makes no sense: " + why};
}

Result<Json> parse(std::string_view text, std::string_view host) {
  auto json = app::parse_json(text, "it");
  if (!json) return not_understood(host, json.error().message);
  return json;
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  const auto& text = found->get_ref<const std::string&>();
  return text.size() > kMostTextBytes ? std::string() : sanitise_utf8(text);
}

// Not negative; 0 where there is none.
std::int64_t number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return 0;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMost))
    return kMost;
  return std::max<std::int64_t>(0, found->get<std::int64_t>());
}

// false | "auto" | "manual"
Gate gate_of(const Json& object) {
  const auto found = object.find("gated");
  if (found == object.end()) return Gate::kOpen;
  const bool asks = found->is_string() || (found->is_boolean() && found->get<bool>());
  return asks ? Gate::kAsks : Gate::kOpen;
}

std::string licence_of(const Json& object) {
  if (const auto card = object.find("cardData"); card != object.end())
    if (std::string licence = text_at(*card, "license"); !licence.empty()) return licence;
  const auto tags = object.find("tags");
  if (tags == object.end() || !tags->is_array()) return {};
  for (const Json& tag : *tags) {
    constexpr std::string_view kPrefix = "license:";
    if (!tag.is_string()) continue;
    const auto& text = tag.get_ref<const std::string&>();
    if (text.starts_with(kPrefix) && text.size() <= kMostTextBytes)
      return sanitise_utf8(std::string_view(text).substr(kPrefix.size()));
  }
  return {};
}

std::string name_of(const Json& object) {
  std::string name = text_at(object, "id");
  return name.empty() ? text_at(object, "modelId") : name;
}

Result<HubFile> read_file(const Json& entry, std::string_view host) {
  HubFile file;
  const auto path = entry.find("path");
  if (path == entry.end() || !path->is_string()) return not_understood(host, "a file without a path");
  file.path = path->get<std::string>();
  if (!is_safe_path(file.path) || sanitise_utf8(file.path) != file.path)
    return not_understood(host, "a file called '" + escape_for_message(file.path) + "'");
  file.bytes = number_at(entry, "size");
  if (std::string oid = text_at(entry, "oid"); is_hex(oid, 40)) file.git_oid = std::move(oid);
  if (const auto large = entry.find("lfs"); large != entry.end() && large->is_object()) {
    std::string oid = text_at(*large, "oid");
    if (oid.empty()) oid = text_at(*large, "sha256");
    if (oid.starts_with("sha256:")) oid = oid.substr(7);
    if (!is_hex(oid, 64))
      return not_understood(host, "no SHA-256 for '" + escape_for_message(file.path) + "'");
    file.sha256 = std::move(oid);
    if (const std::int64_t bytes = number_at(*large, "size"); bytes > 0) file.bytes = bytes;
  }
  if (file.blob_name().empty())
    return not_understood(host, "no checksum for '" + escape_for_message(file.path) + "'");
  if (file.bytes > kMostFileBytes)
    return not_understood(host, "'" + escape_for_message(file.path) + "' would have more than 64 TiB");
  return file;
}

}  // namespace

Result<std::vector<HubModel>> read_search(std::string_view text, std::string_view host) {
  OCTAVO_TRY(const Json json, parse(text, host));
  if (!json.is_array()) return not_understood(host, "a list of models was expected");
  std::vector<HubModel> models;
  for (const Json& entry : json) {
    if (models.size() == kMostModelsFound) break;
    if (!entry.is_object() || !is_repository_name(name_of(entry))) continue;
    models.push_back({.name = name_of(entry),
                      .licence = licence_of(entry),
                      .gate = gate_of(entry),
                      .downloads = number_at(entry, "downloads"),
                      .likes = number_at(entry, "likes")});
  }
  return models;
}

Result<HubRepository> read_repository(std::string_view text, std::string_view host) {
  OCTAVO_TRY(const Json json, parse(text, host));
  if (!json.is_object()) return not_understood(host, "a model was expected");
  HubRepository repository{.name = name_of(json), .revision = {}, .commit = text_at(json, "sha")};
  if (!is_repository_name(repository.name)) return not_understood(host, "a model without a name");
  if (!repository.commit.empty() && !is_hex(repository.commit, 40))
    return not_understood(host, "a commit called '" + escape_for_message(repository.commit) + "'");
  repository.licence = licence_of(json);
  repository.gate = gate_of(json);
  return repository;
}

Result<std::vector<HubFile>> read_files(std::string_view text, std::string_view host) {
  OCTAVO_TRY(const Json json, parse(text, host));
  if (!json.is_array()) return not_understood(host, "a list of files was expected");
  std::vector<HubFile> files;
  for (const Json& entry : json) {
    if (!entry.is_object() || text_at(entry, "type") == "directory") continue;
    if (files.size() == kMostFiles)
      return not_understood(host, "a list of more than " + std::to_string(kMostFiles) + " files");
    OCTAVO_TRY(HubFile file, read_file(entry, host));
    files.push_back(std::move(file));
  }
  return files;
}

std::string read_error(std::string_view text) {
  if (text.size() > std::size_t{64} << 10) return {};
  const auto json = app::parse_json(text, "it");
  if (!json) return {};
  return escape_for_message(text_at(*json, "error"), kMostTextBytes);
}

}  // namespace octavo::hub
