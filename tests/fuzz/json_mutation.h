// Changes of JSON that leave it JSON: members and elements come, go, and take each other's place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/target.h"

namespace octavo::fuzz {

class JsonMutator {
 public:
  // Words that are values, or members as `"a": 1`, are put where such may stand.
  explicit JsonMutator(std::span<const std::string_view> dictionary);

  // Of what follows the first `begin` bytes, three times in four; otherwise, and where that is no JSON or
  // would become too long, as mutate_text.
  void mutate(Bytes& input, std::size_t begin, std::size_t max_size, Random& random,
              const MutateBytes& mutate_bytes) const;

 private:
  using Json = nlohmann::ordered_json;  // code may depend on the order of members

  Json any_value(Json& root, Random& random) const;
  void change(Json& root, Random& random) const;
  void change_object(Json& object, Json value, Random& random) const;

  std::span<const std::string_view> dictionary_;
  std::vector<Json> values_;
  std::vector<std::pair<std::string, Json>> members_;
};

}  // namespace octavo::fuzz
