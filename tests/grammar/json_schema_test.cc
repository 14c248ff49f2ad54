#include "engine/grammar/json_schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonSchemaReader, RefusesByNameAndPlaceWhatWouldBeLost) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"type":"number","multipleOf":0.5})", "'multipleOf' at # "},
      {R"({"properties":{"a":{"type":"array","uniqueItems":true}}})", "'uniqueItems' at #/properties/a "},
      {R"({"type":"array","contains":{"const":1}})", "'contains'"},
      {R"({"not":{"type":"string"}})", "'not'"},
      {R"({"if":{},"then":{}})", "'if'"},
      {R"({"dependentRequired":{"a":["b"]}})", "'dependentRequired'"},
      {R"({"type":"string","pattern":"a","maxLength":3})", "'pattern'"},
      {R"({"type":"string","format":"idn-email"})", "'format'"},
      {R"({"allOf":[{"type":"object"},{"required":["a"]}]})", "'allOf'"},
      {R"({"type":"object","anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{}}})", "'type'"},
      {R"({"anyOf":[{"type":"string"}],"minLength":2})", "'minLength'"},
      {R"({"$ref":"#/$defs/a","minLength":2,"$defs":{"a":{"type":"string"}}})", "'minLength'"},
      {R"({"$ref":"#/$defs/missing"})", "'$ref'"},
      {R"({"$ref":"https://example.com/a"})", "'$ref'"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"uniqueItems":true}}})", "'uniqueItems' at #/$defs/a "},
      {R"({"properties":{"a":{"$id":"x","type":"string"}}})", "'$id'"},
      {R"({"enum":[1,2],"type":"string"})", "'enum'"},
      {R"({"const":1,"minimum":3})", "'minimum'"},
      {R"({"properties":{"ab":{}},"patternProperties":{"^a":{"type":"integer"}}})", "'patternProperties'"},
      {R"({"properties":{"a":{}},"required":["b"],"additionalProperties":false})", "'required'"},
      {R"({"minProperties":3,"additionalProperties":true})", "'minProperties'"},
      {R"({"type":"strin"})", "'type'"},
      {R"({"type":"string","maxLength":-1})", "'maxLength'"},
      {"{", "no JSON"},
      {"[]", "must be an object"},
      {"false", "allows nothing"},
  };
  for (const auto& [schema, part] : cases) {
    const auto read = read_json_schema(schema);
    ASSERT_FALSE(read.has_value()) << schema << " became " << *read;
    EXPECT_NE(read.error().message.find(part), std::string::npos) << schema << ": " << read.error().message;
    EXPECT_EQ(read.error().subject, "structured_output");
  }
}

TEST(JsonSchemaReader, IgnoresWhatSaysNothing) {
  const std::vector<std::string> cases = {
      R"({"title":"T","description":"d","examples":[1],"x-vendor":{"not":1},"type":"string","minimum":3})",
      R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"a","type":"object"})",
      R"({"$ref":"#/$defs/a","description":"d","$defs":{"a":{"type":"string"},"unused":{"not":{}}}})",
      R"({"type":"array","items":{"type":"string"},"uniqueItems":false,"minContains":3})",
      R"({"type":"string","format":"password"})",
  };
  for (const std::string& schema : cases) {
    const auto read = read_json_schema(schema);
    EXPECT_TRUE(read.has_value()) << read.error().message;
  }
}

TEST(JsonSchemaReader, WritesOutWhatTheCompilerReadsOtherwise) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", "{}"},
      {R"({"minLength":2})", R"({"minLength":2,"type":"string"})"},
      {R"({"type":"array"})", R"({"type":"array","items":{}})"},
      {R"({"type":"array","items":[{"type":"null"}],"additionalItems":false})",
       R"({"type":"array","items":false,"prefixItems":[{"type":"null"}]})"},
      {R"({"properties":{"a":{}}})",
       R"({"properties":{"a":{}},"type":"object","additionalProperties":false})"},
      {R"({"type":"object"})", R"({"type":"object","additionalProperties":true})"},
      {R"({"required":["b"]})",
       R"({"required":["b"],"type":"object","additionalProperties":true,"properties":{"b":{}}})"},
      {R"({"$schema":"x","required":["__proto__","a name that is longer than a short text","c"]})",
       R"({"$schema":"x","required":["__proto__","a name that is longer than a short text","c"],"type":"object",)"
       R"("additionalProperties":true,"properties":{"__proto__":{},"a name that is longer than a short text":{},"c":{}}})"},
      {R"({"type":"string","enum":["a",1,"b"]})", R"({"type":"string","enum":["a","b"]})"},
      {R"({"type":"string","maxLength":3.0})", R"({"type":"string","maxLength":3})"},
      {R"({"type":"object","anyOf":[{"required":["a"]}]})",
       R"({"type":"object","anyOf":[{"required":["a"],"type":"object","additionalProperties":true,"properties":{"a":{}}}]})"},
  };
  for (const auto& [schema, expected] : cases) {
    const auto read = read_json_schema(schema);
    ASSERT_TRUE(read.has_value()) << schema << ": " << read.error().message;
    EXPECT_EQ(Json::parse(*read), Json::parse(expected)) << *read;
  }
}

TEST(JsonSchemaReader, BoundsNesting) {
  std::string schema = R"({"type":"null"})";
  for (int i = 0; i < 20; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  EXPECT_TRUE(read_json_schema(schema).has_value());
  for (int i = 0; i < 60; ++i) schema = R"({"type":"array","items":)" + schema + "}";
  const auto read = read_json_schema(schema);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("nested deeper"), std::string::npos) << read.error().message;
  EXPECT_TRUE(is_nested_deeper("[[[", 2));
  EXPECT_FALSE(is_nested_deeper(R"(["[[[\"[["])", 2));
}

}  // namespace
}  // namespace octavo
