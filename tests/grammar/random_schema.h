// JSON schemas from a seed, with every keyword that is kept.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace octavo::testing {

class SchemaDrawer {
 public:
  explicit SchemaDrawer(std::uint64_t seed) : random_(seed) {}

  nlohmann::json draw() {
    nlohmann::json schema = object(2);
    if (one_in(3)) {
      schema["$defs"] = {{"part", typed(1)}};
      schema["properties"]["ref"] = {{"$ref", "#/$defs/part"}};
      schema["required"].push_back("ref");
    }
    return schema;
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool one_in(int chances) { return below(chances) == 0; }

 private:
  nlohmann::json object(int depth) {
    nlohmann::json schema = {
        {"type", "object"}, {"properties", nlohmann::json::object()}, {"required", nlohmann::json::array()}};
    const int count = 1 + below(3);
    for (int i = 0; i < count; ++i) {
      const std::string name = std::string(1, static_cast<char>('a' + i)) + (one_in(4) ? " \"q\"" : "");
      schema["properties"][name] = typed(depth - 1);
      if (!one_in(3)) schema["required"].push_back(name);
    }
    if (one_in(4)) schema["additionalProperties"] = one_in(2) ? nlohmann::json(false) : typed(0);
    return schema;
  }

  nlohmann::json typed(int depth) {
    switch (below(depth > 0 ? 11 : 8)) {
      case 0: return {{"type", "boolean"}};
      case 1: return {{"type", "null"}};
      case 2: {
        nlohmann::json schema = {{"type", "integer"}};
        const int least = below(400) - 200;
        if (one_in(2)) schema[one_in(2) ? "minimum" : "exclusiveMinimum"] = least;
        if (one_in(2)) schema[one_in(2) ? "maximum" : "exclusiveMaximum"] = least + 3 + below(200);
        if (schema.size() == 1 && one_in(2)) schema["multipleOf"] = 2 + below(9);
        return schema;
      }
      case 3: {
        const double least = (below(4000) - 2000) / 100.0;
        return {{"type", "number"},
                {"minimum", least},
                {one_in(2) ? "maximum" : "exclusiveMaximum", least + 0.5 + below(100)}};
      }
      case 4: {
        nlohmann::json schema = {{"type", "string"}};
        const int least = below(3);
        if (one_in(2)) schema["minLength"] = least;
        schema["maxLength"] = least + 1 + below(6);
        return schema;
      }
      case 5: return {{"type", "string"}, {"pattern", "^[a-c]{2,4}$"}};
      case 6: return {{"enum", {"one", 2, nullptr, true, "with \"quotes\" and \\"}}};
      case 7: return {{"const", {{"k", {1, "two", false}}}}};
      case 8: return object(depth);
      case 9: {
        const int least = below(3);
        nlohmann::json schema = {{"type", "array"},
                                 {"minItems", least},
                                 {"maxItems", least + below(3)},
                                 {"items", typed(depth - 1)}};
        if (one_in(3)) schema["prefixItems"] = {typed(0)};
        return schema;
      }
      default: return {{"anyOf", {{{"type", "null"}}, typed(depth - 1)}}};
    }
  }

  std::mt19937_64 random_;
};

}  // namespace octavo::testing
