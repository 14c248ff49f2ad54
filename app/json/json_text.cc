#include "app/json/json_text.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Destroying a value that is nested a million deep is not free, though parsing it is.
constexpr std::size_t kMaxDepth = 64;
// An ordered object looks through its members for each new one.
constexpr std::size_t kMaxMembers = 4096;

// Reads a text without keeping it, as far as its shape is good. (The library's own parser with a callback
// looks through a whole list after each object in it.)
class ShapeReader final : public nlohmann::json_sax<Json> {
 public:
  bool too_deep() const { return too_deep_; }
  bool too_wide() const { return too_wide_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    too_wide_ = ++num_members_.back() > kMaxMembers;
    return !too_wide_;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool open() {
    num_members_.push_back(0);
    too_deep_ = num_members_.size() > kMaxDepth;
    return !too_deep_;
  }
  bool close() {
    num_members_.pop_back();
    return true;
  }

  std::vector<std::size_t> num_members_;  // of what is open, from the outside in
  bool too_deep_ = false, too_wide_ = false;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  const auto failed = [&](const std::string& why) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = std::string(what) + ": " + why};
  };
  ShapeReader shape;
  Json::sax_parse(text, &shape);
  if (shape.too_deep()) return failed("is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (shape.too_wide())
    return failed("has an object with more than " + std::to_string(kMaxMembers) + " members");
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& exception) {
    const std::string reason = exception.what();
    const std::size_t bracket = reason.find("] ");
    return failed("is not valid JSON (" +
                  escape_for_message(bracket == std::string::npos ? reason : reason.substr(bracket + 2)) +
                  ")");
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace octavo::app
