#include "app/window/models/model_inside.h"

#include <utility>

#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/inspection.h"

namespace octavo::app {
namespace {

ui::ModelMemory shown(const MemoryPlan& plan) {
  ui::ModelMemory memory;
  memory.weight_bytes = plan.weight_bytes;
  memory.kv_bytes = plan.kv_bytes();
  memory.state_bytes = plan.state_bytes();
  memory.working_bytes = plan.working_bytes;
  memory.host_bytes = plan.host_bytes();
  memory.num_blocks = plan.num_blocks;
  memory.num_host_blocks = plan.num_host_blocks;
  memory.block_size = plan.block_size;
  memory.bytes_per_block = plan.bytes_per_block;
  memory.num_states = plan.num_states;
  memory.num_host_states = plan.num_host_states;
  memory.bytes_per_state = plan.bytes_per_state;
  memory.max_model_len = plan.max_model_len;
  return memory;
}

std::string fit_sentence(const ui::ModelMemory& memory) {
  const std::string needed = bytes_text(memory.needed_bytes());
  const std::string free = bytes_text(memory.free_bytes);
  const bool is_alone = memory.freed_bytes == 0;
  switch (memory.fit) {
    case ui::ModelFit::kUnknown: return {};
    case ui::ModelFit::kFits:
      return "Fits: needs " + needed + " of " + free + " free" +
             (is_alone ? "." : " next to the current model.");
    case ui::ModelFit::kFitsAlone:
      return "Does not fit next to the current model: only " + free +
             " are free. It fits once the current model is unloaded, which frees another " +
             bytes_text(memory.freed_bytes) + ".";
    case ui::ModelFit::kNever:
      return "Does not fit: needs at least " + needed + ", but only " +
             bytes_text(memory.free_bytes + memory.freed_bytes) +
             " are available. Choose a shorter context, a smaller pool or a smaller model.";
  }
  return {};
}

}  // namespace

std::string model_summary(const ModelDescription& description) {
  return sanitise_utf8(description.architecture) + " · " + parameters_text(description.num_parameters) +
         " parameters · " + description.quantisation;
}

ui::ModelInside model_inside(const ModelPreview& preview) {
  const ModelDescription description = preview.describe();
  const ModelOrigin origin = preview.origin();
  ui::ModelInside inside;
  inside.name = model_title(description);
  inside.context_length = description.context_length;
  inside.has_quantised_weights = preview.has_quantised_weights();
  const auto add = [&inside](const char* label, const std::string& value) {
    if (!value.empty()) inside.facts.push_back({label, sanitise_utf8(value)});
  };
  if (description.name != inside.name) add("Name in file", description.name);
  add("Architecture", description.architecture);
  add("Parameters",
      parameters_text(description.num_parameters) + " (" + with_thousands(description.num_parameters) + ")");
  add("Quantisation", description.quantisation);
  add("Layers",
      std::to_string(description.num_layers) + ", width " + with_thousands(description.embedding_length));
  add("Heads", model::heads_text(description));
  if (description.num_recurrent_layers > 0) {
    add("Recurrent", std::to_string(description.num_recurrent_layers) + " layers, " +
                         bytes_text(description.state_bytes) + " a state");
  }
  if (description.num_experts > 0) {
    add("Experts", with_thousands(description.num_experts) + ", each token uses " +
                       with_thousands(description.num_used_experts));
    add("Of experts", bytes_text(description.expert_bytes) + " of the file");
  }
  add("Context", with_thousands(description.context_length) + " tokens");
  add("Vocabulary", with_thousands(description.vocabulary_size) + " tokens");
  add("Chat template", description.has_chat_template ? "yes" : "none: plain completion");
  add("File", bytes_text(description.file_bytes));
  add("Author", origin.author.empty() ? origin.organisation : origin.author);
  add("Base model", origin.base_model);
  add("Licence", origin.licence);
  return inside;
}

ui::ModelMemory model_memory(const ModelPreview& preview, const EngineOptions& options,
                             const PresentMemory& present, std::int64_t available_bytes) {
  const std::int64_t beside_bytes = available_bytes - present.unwritten_bytes;
  auto plan = preview.plan(options, beside_bytes);
  ui::ModelFit fit = ui::ModelFit::kFits;
  if (plan && plan->refusal && present.resident_bytes > 0) {
    auto alone = preview.plan(options, available_bytes + present.resident_bytes);
    if (alone && !alone->refusal) fit = ui::ModelFit::kFitsAlone;
    if (fit == ui::ModelFit::kFitsAlone) plan = std::move(alone);
  }
  if (!plan) {
    ui::ModelMemory memory;
    memory.sentence = plan.error().message;
    return memory;
  }
  ui::ModelMemory memory = shown(*plan);
  memory.fit = plan->refusal ? ui::ModelFit::kNever : fit;
  memory.free_bytes = beside_bytes;
  memory.freed_bytes = present.resident_bytes > 0 ? present.resident_bytes + present.unwritten_bytes : 0;
  memory.sentence = fit_sentence(memory);
  return memory;
}

}  // namespace octavo::app
