#include "engine/model/hugging_face/vocabulary_json.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/json_file.h"
#include "engine/model/limits.h"

namespace octavo::model::vocabulary {
namespace {

// "a b" -> a, b; false: it is not two parts.
bool append_parts(std::string_view merge, std::vector<std::string>& parts) {
  const std::size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) return false;
  parts.emplace_back(merge.substr(0, space));
  parts.emplace_back(merge.substr(space + 1));
  return true;
}

// Builds a tree of what is small, and hands over what is long. Where the long lists stand is known by the
// names on the way: {"model": {"vocab": ..., "merges": ...}}, or the whole file.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  enum class Kind { kTree, kTokenizer, kTokenIds };

  explicit Reader(Kind kind, TokenLists* lists) : kind_(kind), lists_(lists) {}

  Json take_root() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return list_ == List::kNone ? add(nullptr) != nullptr : in_list_fails(); }
  bool boolean(bool value) override { return list_ == List::kNone ? add(value) != nullptr : in_list_fails(); }
  bool number_integer(number_integer_t value) override { return number(value, static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    if (list_ == List::kNone) return add(value) != nullptr;
    return number(fits ? static_cast<std::int64_t>(value) : INT64_MAX, static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    if (list_ == List::kNone) return add(value) != nullptr;
    if (list_ != List::kScores || depth_ != list_depth_ + 1) return in_list_fails();
    lists_->tokens.back().score = value;
    return true;
  }
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(/*is_object=*/true); }
  bool start_array(std::size_t) override { return open(/*is_object=*/false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class List { kNone, kIds, kScores, kMerges };

  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  bool in_list_fails() {
    return fail(list_ == List::kMerges ? "has merges that are not two texts"
                                       : "has a vocabulary that is not of texts and numbers");
  }
  bool number(std::int64_t value, double as_float);
  bool open(bool is_object);
  bool close();
  bool open_in_list(bool is_object);
  // The list that begins with the value to come, if it is one.
  List list_ahead(bool is_object) const;
  Json* add(Json value);

  Kind kind_;
  TokenLists* lists_;
  Json root_;
  std::vector<Json*> open_;         // of the tree, from the outside in
  std::vector<std::string> names_;  // under which each of them stands
  std::string name_;                // of the value to come
  std::size_t depth_ = 0, num_values_ = 0;
  List list_ = List::kNone;
  std::size_t list_depth_ = 0;  // of the list's own brackets
  std::string problem_;
};

Reader::List Reader::list_ahead(bool is_object) const {
  if (kind_ == Kind::kTokenIds && depth_ == 0 && is_object) return List::kIds;
  const bool in_model = kind_ == Kind::kTokenizer && depth_ == 2 && names_.back() == "model";
  if (!in_model) return List::kNone;
  if (name_ == "vocab") return is_object ? List::kIds : List::kScores;
  return name_ == "merges" && !is_object ? List::kMerges : List::kNone;
}

bool Reader::open(bool is_object) {
  if (depth_ >= kMaxDepth) return fail("is nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (list_ != List::kNone) {
    ++depth_;
    return open_in_list(is_object);
  }
  list_ = list_ahead(is_object);
  ++depth_;
  if (list_ != List::kNone) {
    list_depth_ = depth_;
    lists_->has_scores |= list_ == List::kScores;
    return true;
  }
  Json* const value = add(is_object ? Json::object() : Json::array());
  if (value == nullptr) return false;
  open_.push_back(value);
  names_.push_back(std::exchange(name_, {}));
  return true;
}

// [text, score] and [left, right].
bool Reader::open_in_list(bool is_object) {
  const bool is_pair = !is_object && depth_ == list_depth_ + 1 && list_ != List::kIds;
  if (!is_pair) return in_list_fails();
  if (list_ == List::kMerges) return lists_->parts.size() % 2 == 0 ? true : in_list_fails();
  if (lists_->tokens.size() >= static_cast<std::size_t>(kMaxVocabularySize))
    return fail("has more than " + std::to_string(kMaxVocabularySize) + " tokens");
  lists_->tokens.push_back({{}, static_cast<std::int64_t>(lists_->tokens.size()), 0});
  return true;
}

bool Reader::close() {
  if (list_ == List::kNone) {
    open_.pop_back();
    names_.pop_back();
  } else if (depth_ == list_depth_) {
    list_ = List::kNone;
  } else if (list_ == List::kMerges && lists_->parts.size() % 2 != 0) {
    return in_list_fails();
  }
  --depth_;
  return true;
}

bool Reader::key(string_t& name) {
  if (list_ == List::kNone) {
    name_ = std::move(name);
    return true;
  }
  if (list_ != List::kIds) return in_list_fails();
  if (lists_->tokens.size() >= static_cast<std::size_t>(kMaxVocabularySize))
    return fail("has more than " + std::to_string(kMaxVocabularySize) + " tokens");
  lists_->tokens.push_back({std::move(name), -1, 0});
  return true;
}

bool Reader::number(std::int64_t value, double as_float) {
  if (list_ == List::kNone) return add(value) != nullptr;
  if (list_ == List::kIds) {
    if (value < 0 || value >= kMaxVocabularySize)
      return fail("has the id " + std::to_string(value) + "; ids are 0 to " +
                  std::to_string(kMaxVocabularySize - 1));
    lists_->tokens.back().id = value;
    return true;
  }
  if (list_ != List::kScores || depth_ != list_depth_ + 1) return in_list_fails();
  lists_->tokens.back().score = as_float;
  return true;
}

bool Reader::string(string_t& value) {
  if (list_ == List::kNone) return add(std::move(value)) != nullptr;
  if (list_ == List::kScores && depth_ == list_depth_ + 1) {
    lists_->tokens.back().text = std::move(value);
    return true;
  }
  if (list_ != List::kMerges) return in_list_fails();
  if (lists_->parts.size() >= 2 * kMaxMerges)
    return fail("has more than " + std::to_string(kMaxMerges) + " merges");
  if (depth_ == list_depth_ + 1) {
    lists_->parts.push_back(std::move(value));
    return true;
  }
  return append_parts(value, lists_->parts)
             ? true
             : fail("has the merge \"" + escape_for_message(value, 60) + "\", which is not two parts");
}

Json* Reader::add(Json value) {
  if (++num_values_ > kMaxValues) {
    fail("holds more than " + std::to_string(kMaxValues) + " values");
    return nullptr;
  }
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Json& parent = *open_.back();
  if (parent.is_array()) return &parent.emplace_back(std::move(value));
  Json& place = parent[name_];
  place = std::move(value);
  return &place;
}

Result<Json> parse(std::string_view text, const std::string& name, Reader::Kind kind, TokenLists* lists) {
  Reader reader(kind, lists);
  const bool is_good = Json::sax_parse(text.begin(), text.end(), &reader);
  if (!is_good) return damaged(name, reader.problem());
  return reader.take_root();
}

}  // namespace

Error damaged(const std::string& name, const std::string& what) {
  return {ErrorCode::kDamagedFile, name + " " + what + ": download the folder again", name};
}

Error unsupported(const std::string& name, const std::string& what) {
  return {ErrorCode::kUnsupported, name + " " + what + ": choose another model", name};
}

Result<std::optional<std::string>> read_file(const std::filesystem::path& folder, const std::string& name,
                                             std::size_t max_bytes) {
  Result<std::string> text = read_text_file(folder / name, max_bytes);
  if (text) return std::optional<std::string>(*std::move(text));
  if (text.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  return std::move(text).error();
}

Result<Json> read_object(const std::filesystem::path& folder, const std::string& name) {
  Result<Json> object = read_json_file(folder / name, kMaxConfigBytes);
  if (!object && object.error().code == ErrorCode::kNotFound) return Json::object();
  if (!object) return std::move(object).error();
  if (!object->is_object()) return damaged(name, "is not a JSON object");
  return object;
}

Result<Json> parse_tokenizer(std::string_view text, TokenLists& lists) {
  OCTAVO_TRY(Json object, parse(text, "tokenizer.json", Reader::Kind::kTokenizer, &lists));
  if (!object.is_object()) return damaged("tokenizer.json", "is not a JSON object");
  return object;
}

Result<std::vector<TokenEntry>> parse_token_ids(std::string_view text, const std::string& name) {
  TokenLists lists;
  OCTAVO_TRY(const Json rest, parse(text, name, Reader::Kind::kTokenIds, &lists));
  if (!rest.is_null()) return damaged(name, "is not a JSON object of texts and ids");
  return std::move(lists.tokens);
}

Result<std::vector<std::string>> parse_merge_lines(std::string_view text) {
  std::vector<std::string> parts;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (is_first && line.starts_with("#version"))) continue;
    if (parts.size() >= 2 * kMaxMerges)
      return damaged("merges.txt", "has more than " + std::to_string(kMaxMerges) + " merges");
    if (!append_parts(line, parts))
      return damaged("merges.txt",
                     "has the line \"" + escape_for_message(line, 60) + "\", which is not two parts");
  }
  return parts;
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto place = object.find(key);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

std::optional<std::string> find_text(const Json& object, const char* key) {
  const Json* const value = find(object, key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

bool flag(const Json& object, const char* key, bool otherwise) {
  const Json* const value = find(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

std::optional<std::int64_t> find_whole(const Json& object, const char* key) {
  const Json* const value = find(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT32_MAX))
    return INT64_MAX;
  return value->get<std::int64_t>();
}

}  // namespace octavo::model::vocabulary
