#include "tests/fuzz/json_mutation.h"

#include <algorithm>
#include <iterator>

namespace octavo::fuzz {
namespace {

using Json = nlohmann::ordered_json;

std::ptrdiff_t signed_of(std::size_t value) { return static_cast<std::ptrdiff_t>(value); }

Json parsed(std::string_view text) { return Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false); }

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json& part : value) collect(part, all);
}

Json& any_part(Json& root, Random& random) {
  std::vector<Json*> all;
  collect(root, all);
  return *all[random.below(all.size())];
}

void change_array(Json& array, Json value, Random& random) {
  const auto at = std::next(array.begin(), signed_of(random.below(array.size() + 1)));
  if (at == array.end() || random.one_in(2))
    array.insert(at, std::move(value));
  else
    array.erase(at);
}

}  // namespace

JsonMutator::JsonMutator(std::span<const std::string_view> dictionary) : dictionary_(dictionary) {
  for (const std::string_view word : dictionary) {
    if (Json value = parsed(word); !value.is_discarded()) {
      values_.push_back(std::move(value));
    } else if (const Json object = parsed("{" + std::string(word) + "}"); object.is_object()) {
      for (const auto& [name, member] : object.items()) members_.emplace_back(name, member);
    }
  }
  for (const char* const simple : {"null", "true", "{}", "[]", "\"a\"", "1"})
    values_.push_back(parsed(simple));
}

// One of the dictionary, or a copy of one that stands elsewhere.
Json JsonMutator::any_value(Json& root, Random& random) const {
  if (random.one_in(3)) return any_part(root, random);
  const std::size_t which = random.below(values_.size() + members_.size());
  return which < values_.size() ? values_[which] : members_[which - values_.size()].second;
}

void JsonMutator::change_object(Json& object, Json value, Random& random) const {
  if (!members_.empty() && (object.empty() || random.one_in(2))) {
    const auto& [name, member] = members_[random.below(members_.size())];
    object[name] = random.one_in(4) ? std::move(value) : member;
  } else if (!object.empty()) {
    const auto one = std::next(object.begin(), signed_of(random.below(object.size())));
    if (random.one_in(2))
      object.erase(one);
    else
      one.value() = std::move(value);
  }
}

void JsonMutator::change(Json& root, Random& random) const {
  Json value = any_value(root, random);
  Json& place = any_part(root, random);
  if (place.is_object() && !random.one_in(8))
    change_object(place, std::move(value), random);
  else if (place.is_array() && !random.one_in(8))
    change_array(place, std::move(value), random);
  else
    place = std::move(value);
}

void JsonMutator::mutate(Bytes& input, std::size_t begin, std::size_t max_size, Random& random,
                         const MutateBytes& mutate_plainly) const {
  begin = std::min(begin, input.size());
  if (!random.one_in(4)) {
    Json root = parsed({reinterpret_cast<const char*>(input.data()) + begin, input.size() - begin});
    if (!root.is_discarded()) {
      for (std::size_t i = 0, count = 1 + random.below(3); i < count; ++i) change(root, random);
      const std::string text = root.dump(-1, ' ', false, Json::error_handler_t::replace);
      if (begin + text.size() <= max_size) {
        input.resize(begin);
        input.insert(input.end(), text.begin(), text.end());
        return;
      }
    }
  }
  mutate_text(input, max_size, random, dictionary_, mutate_plainly);
}

}  // namespace octavo::fuzz
