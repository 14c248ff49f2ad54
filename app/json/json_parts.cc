#include "app/json/json_parts.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace octavo::app {
namespace {

using nlohmann::json;

// A value stands here while it is open, and moves into the one around it when it ends. (The library's own
// parser with a callback looks through a whole list after each object in it.)
class PartReader final : public nlohmann::json_sax<json> {
 public:
  explicit PartReader(const TakePart& take) : take_(take) {}

  json take_rest() { return std::move(rest_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& value) override { return put(json::binary(std::move(value))); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool key(string_t& key) override {
    path_.back() = std::move(key);
    return true;
  }
  bool end_object() override {
    json object = close();
    return take_(path_, object) || put(std::move(object));
  }
  bool end_array() override { return put(close()); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  bool open(json container) {
    open_.push_back(std::move(container));
    path_.emplace_back();
    return true;
  }

  json close() {
    json container = std::move(open_.back());
    open_.pop_back();
    path_.pop_back();
    return container;
  }

  bool put(json value) {
    if (open_.empty()) {
      rest_ = std::move(value);
    } else if (open_.back().is_array()) {
      open_.back().push_back(std::move(value));
    } else {
      open_.back().get_ref<json::object_t&>().insert_or_assign(*std::move(path_.back()), std::move(value));
    }
    return true;
  }

  const TakePart& take_;
  std::vector<json> open_;  // from the outside in
  JsonPath path_;           // of what comes next: as many as are open
  json rest_;
};

}  // namespace

json parse_in_parts(std::string_view text, const TakePart& take) {
  PartReader reader(take);
  if (!json::sax_parse(text, &reader)) return json(json::value_t::discarded);
  return reader.take_rest();
}

}  // namespace octavo::app
