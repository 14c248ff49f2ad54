// A JSON schema as the grammar compiler reads it: checked, so that nothing which it would pass over is lost
// silently, and written out where the compiler's reading is narrower or looser than the standard's.
//
// Kept: what json_schema.cc lists for each type, $ref within the schema, const, enum, anyOf, oneOf whose
// cases cannot overlap, allOf of one. Everything else that could make a value invalid (not, if, uniqueItems,
// contains, dependentRequired, ...) is refused by its name and place; words that are no part of the standard
// are ignored, as it says. Chosen, where a schema leaves a choice: properties come in the schema's order, and
// an object has no others than those it lists, unless additionalProperties allows them; a schema without a
// type whose keywords speak of one has that type.
//
// Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo {

inline constexpr std::size_t kDeepestSchema = 64;       // brackets within each other
inline constexpr std::size_t kMostSubschemas = 20'000;  // that are read, those behind $ref once each

// Blanks and line breaks in one place of JSON: a small model prints them to its limit where it can.
inline constexpr int kMostBlanks = 2;

// Whether JSON has more brackets within each other, those in texts left out. Deeper ones are not parsed.
bool is_nested_deeper(std::string_view json, std::size_t most);

// The schema to compile, as JSON text. The error is one sentence with a JSON pointer ("#/properties/a").
Result<std::string> read_json_schema(std::string_view schema);

}  // namespace octavo
