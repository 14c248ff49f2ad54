// The model that answers, and choosing another, as plain values: the models that are known, what is inside
// the chosen one, the memory that it needs before it is loaded, and a load under way. app/window/model_picker
// writes them between frames; every figure of memory is the engine's (engine/model_preview.h).
//
// A `path` is the file system's own bytes and goes back with actions as it is; what is
// shown beside it is valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/sampling_advice.h"
#include "engine/api/template_values.h"
#include "ui/remote_state.h"

namespace octavo::ui {

enum class ModelPhase { kNone, kLoading, kReady };

struct ModelState {
  ModelPhase phase = ModelPhase::kNone;
  double load_fraction = 0.0;
  std::string problem = {};  // why there is none, one sentence; empty when nothing went wrong
  std::string name = {};
  std::string path = {};
  std::string quantisation = {};
  std::string details = {};  // "135 M parameters · avx512_vnni · 2 threads"
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int64_t bytes_per_block = 0;
  std::int32_t max_model_len = 0;       // 0: a remote one that does not tell
  bool is_remote = false;               // it runs elsewhere: there is no pool, and nobody counts tokens here
  bool is_demonstration = false;        // the small one that set-up fetches: quick, and often wrong
  SamplingAdvice sampling_advice = {};  // with which new chats begin
  std::vector<TemplateSwitch> template_switches = {};  // what its chats can be told about thinking
};

// ---- choosing one

struct ModelRow {
  std::string path;
  std::string file_name;
  std::string folder;
  std::string name;     // from the file, else the file's own; empty until the header is read
  std::string summary;  // "llama · 135 M parameters · Q4_1"; empty until then
  std::int64_t file_bytes = 0;
  std::int64_t last_used_ms = 0;  // since 1970, UTC; 0: never
  bool is_default = false;        // the one that set-up fetches
  std::string owner = {};         // the program whose folder it is in: "LM Studio"; empty: our own
  bool is_present = true;         // false: a recent one whose file is gone
  bool is_read = false;           // the header was read: `name`, `summary` and `problem` are known
  std::string problem;  // why it cannot be loaded, one sentence; empty when nothing speaks against it
};

// One line of "What is inside".
struct ModelFact {
  std::string label;
  std::string value;
};

// What a person chooses for a load.
struct ModelLoadOptions {
  std::int32_t max_model_len = 0;       // tokens; 0: the model's context
  std::int64_t kv_cache_mebibytes = 0;  // 0: as many as the engine would take
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;
  ActivationType activation_dtype = ActivationType::kAuto;
  friend bool operator==(const ModelLoadOptions&, const ModelLoadOptions&) = default;
};

enum class ModelFit {
  kUnknown,
  kFits,       // beside the present model
  kFitsAlone,  // when the present model goes first
  kNever
};

// Bytes, as the engine would take them.
struct ModelMemory {
  ModelFit fit = ModelFit::kUnknown;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes = 0;       // the device pool
  std::int64_t state_bytes = 0;    // of recurrent layers; 0: the model has none
  std::int64_t working_bytes = 0;  // activations, logits, scratch
  std::int64_t host_bytes = 0;     // where swapped blocks stand
  std::int64_t free_bytes = 0;     // of this machine, beside the present model
  std::int64_t freed_bytes = 0;    // what unloading the current model would free
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int32_t num_states = 0, num_host_states = 0;
  std::int32_t block_size = 16;
  std::int64_t bytes_per_block = 0, bytes_per_state = 0;
  std::int32_t max_model_len = 0;
  std::string sentence;  // whether it fits, and what to do when it does not

  std::int64_t needed_bytes() const {
    return weight_bytes + kv_bytes + state_bytes + working_bytes + host_bytes;
  }
};

// The chosen row, looked into.
struct ModelInside {
  std::string path;      // empty: nothing is chosen
  bool reading = false;  // the file, or its memory again after a change of options
  std::string problem;   // one sentence
  std::string name;
  std::vector<ModelFact> facts;
  bool is_remote = false;              // it needs no memory here, and nothing can be chosen
  std::int32_t context_length = 0;     // the most that max_model_len may be
  bool has_quantised_weights = false;  // else the type of activations has no effect
  ModelMemory memory;
};

struct ModelLoading {
  std::string path;
  std::string name;
  double fraction = 0.0;
  bool is_cancelling = false;
};

// ---- a tiny pool

enum class TinyPoolQuestion { kNone, kLend, kGiveBack };

// Of the present model, lent until a person gives its own pool back, another model is loaded or the window is
// closed.
struct TinyPoolState {
  TinyPoolQuestion question = TinyPoolQuestion::kNone;  // that is open
  bool is_lent = false;
  std::int32_t num_blocks = 0, block_size = 16;  // of the tiny pool, also while it is only asked about
};

// What the chosen model is for.
enum class ModelPurpose {
  kAnswers,     // it takes the place of the present one
  kComparison,  // it is held against it
};

struct ModelPickerState {
  bool open = false;
  ModelPurpose purpose = ModelPurpose::kAnswers;
  bool scanning = false;
  std::vector<ModelRow> rows;  // recent ones first, newest first; then by name
  ModelInside inside;
  ModelLoadOptions options;
  std::optional<ModelLoading> loading;  // while a model loads, also the first one
  std::int32_t num_running = 0;         // answers and comparisons of the present model
  RemoteDialogState remote;             // in front of the picker
};

}  // namespace octavo::ui
