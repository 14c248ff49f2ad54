#include "app/probe/probe_report.h"

#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNotes = 16, kMaxNoteBytes = 200, kMaxMessageBytes = 4'000;

std::optional<ErrorCode> code_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    if (error_code_name(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

bool has_fields(const Json& json, std::initializer_list<const char*> names) {
  if (!json.is_object() || json.size() != names.size()) return false;
  for (const char* name : names) {
    if (!json.contains(name)) return false;
  }
  return true;
}

bool read_text(const Json& json, std::size_t most_bytes, std::string& text) {
  if (!json.is_string()) return false;
  const auto& given = json.get_ref<const std::string&>();
  if (given.size() > most_bytes) return false;
  text = escape_for_message(given, most_bytes);
  return true;
}

bool read_notes(const Json& json, std::vector<std::string>& notes) {
  if (!json.is_array() || json.size() > kMaxNotes) return false;
  for (const Json& entry : json) {
    if (!read_text(entry, kMaxNoteBytes, notes.emplace_back())) return false;
  }
  return true;
}

bool read_refusal(const Json& json, std::optional<Error>& refusal) {
  if (json.is_null()) return true;
  std::string code;
  Error error;
  if (!has_fields(json, {"code", "message", "subject"}) || !read_text(json["code"], kMaxNoteBytes, code) ||
      !read_text(json["message"], kMaxMessageBytes, error.message) || error.message.empty() ||
      !read_text(json["subject"], kMaxMessageBytes, error.subject)) {
    return false;
  }
  const auto known = code_named(code);
  if (!known) return false;
  error.code = *known;
  refusal = std::move(error);
  return true;
}

}  // namespace

std::string write_probe_report(const ProbeReport& report) {
  Json json = {{"in_force", report.confinement.in_force},
               {"missing", report.confinement.missing},
               {"refusal", nullptr}};
  if (report.refusal) {
    json["refusal"] = {{"code", error_code_name(report.refusal->code)},
                       {"message", escape_for_message(report.refusal->message, kMaxMessageBytes / 2)},
                       {"subject", escape_for_message(report.refusal->subject)}};
  }
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

std::optional<ProbeReport> read_probe_report(std::string_view line) {
  if (line.empty() || line.size() > kMaxProbeReportBytes || line.find('\n') != line.size() - 1)
    return std::nullopt;
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  ProbeReport report;
  if (json.is_discarded() || !has_fields(json, {"in_force", "missing", "refusal"}) ||
      !read_notes(json["in_force"], report.confinement.in_force) ||
      !read_notes(json["missing"], report.confinement.missing) ||
      !read_refusal(json["refusal"], report.refusal)) {
    return std::nullopt;
  }
  return report;
}

}  // namespace octavo::app
