// POST /v1/embeddings as OpenAI has it: a row of numbers for each input, made of the model's last hidden
// states by `pooling` (last, or mean), of length 1 unless `normalize` is false.
#pragma once

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/base/result.h"

namespace octavo::app {

Result<Call> parse_embedding(const Json& body, const ServedModel& model, const CallIdentity& identity);

// What GET /v1/models says of it: {"dimensions", "pooling": the names, the default first}.
Json embedding_description(const ServedModel& model);

}  // namespace octavo::app
