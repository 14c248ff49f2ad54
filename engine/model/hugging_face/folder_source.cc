#include "engine/model/hugging_face/folder_source.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/hugging_face/families.h"
#include "engine/model/hugging_face/vocabulary_defaults.h"
#include "engine/model/hugging_face/vocabulary_files.h"
#include "engine/model/json_file.h"

namespace octavo::model {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTokenizerConfigBytes = std::uint64_t{16} << 20;

// What stands before the names of a text's weights: alone, or in a model with eyes or ears.
constexpr std::string_view kStems[] = {
    "model.",
    "model.language_model.",
    "language_model.model.",
    "transformer.",
    "model.decoder.",
    "decoder.",
    "model.text_model.",
    "backbone.",
    "",
    "language_model.",
    "model.model.",
};

// Weights of eyes, ears, and what they say: text does not pass through them. And of layers that guess further
// tokens, which are published beside the model.
constexpr std::string_view kOtherInputs[] = {
    "vision_tower.",
    "model.vision_tower.",
    "multi_modal_projector.",
    "model.multi_modal_projector.",
    "visual.",
    "model.visual.",
    "audio_tower.",
    "model.audio_tower.",
    "vision_model.",
    "model.vision_model.",
    "model.connector.",
    "connector.",
    "model.embed_vision.",
    "model.embed_audio.",
    "embed_vision.",
    "embed_audio.",
    "model.vision_embed_tokens.",
    "patch_merger.",
    "vision_encoder.",
    "vision_language_adapter.",
    "mtp.",
    "model.mtp.",
};

std::string find_stem(const SafetensorsFiles& files, std::string_view embedding) {
  for (const std::string_view stem : kStems) {
    if (files.find(std::string(stem) + std::string(embedding)) != nullptr) return std::string(stem);
  }
  return "model.";
}

std::string find_head_stem(const SafetensorsFiles& files) {
  for (const std::string_view stem : {"", "language_model.", "model."}) {
    if (files.holds(std::string(stem) + "lm_head.")) return std::string(stem);
  }
  return "";
}

// As people call it: "org/name" in the hub's cache, models--org--name/snapshots/commit; else the folder's
// own.
std::string name_of(const fs::path& folder) {
  const fs::path own = folder.has_filename() ? folder : folder.parent_path();
  if (own.parent_path().filename() != "snapshots") return own.filename().string();
  std::string name = own.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--", kBetween = "--";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  if (const std::size_t place = name.find(kBetween); place != std::string::npos)
    name.replace(place, kBetween.size(), "/");
  return name;
}

Error unknown_family(const FolderConfig& config) {
  const std::string type = config.model_type();
  return {ErrorCode::kUnsupported,
          escape_for_message(config.file_name(), 1000) +
              (type.empty() ? std::string(": model_type is missing")
                            : ": model_type is \"" + escape_for_message(type) + "\"") +
              "; supported are " + supported_families() + ": choose a model of one of these, or a GGUF file",
          "model_type"};
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) &&
         fs::symlink_status(folder / "config.json", ignored).type() != fs::file_type::not_found;
}

Result<FolderSource> FolderSource::open(const fs::path& folder) {
  OCTAVO_TRY(FolderConfig config, FolderConfig::read(folder));
  const Family* const family = find_family(config.model_type());
  if (family == nullptr) return unknown_family(config);
  OCTAVO_TRY(auto format, find_weight_format(config.whole_file(), folder));
  OCTAVO_TRY(SafetensorsFiles opened, SafetensorsFiles::open(folder));
  auto files = std::make_unique<SafetensorsFiles>(std::move(opened));
  const std::string_view architecture =
      family->architecture_of == nullptr ? family->architecture : family->architecture_of(config);
  Translation translation(config, *files, architecture, find_stem(*files, family->embedding),
                          find_head_stem(*files));
  family->translate(translation);
  translation.finish();
  if (config.problem()) return *config.problem();
  translation.metadata.add_text("general.type", "model");
  translation.metadata.add_text("general.name", name_of(folder));
  FolderSource source(std::move(files), std::move(translation.metadata));
  source.format_ = std::move(format);
  OCTAVO_TRY_VOID(source.make_tensors(translation.recipes, source.format_.get()));
  source.add_untaken(translation.ignored);
  return source;
}

Result<void> FolderSource::make_tensors(const std::vector<TensorRecipe>& recipes,
                                        const WeightFormat* format) {
  for (const TensorRecipe& recipe : recipes) {
    if (!recipe.parts.empty()) stored_names_.emplace(recipe.name, recipe.parts.front());
    if (by_name_.contains(recipe.name)) continue;  // under another name already
    std::vector<OpenedWeight> weights;
    for (const std::string& part : recipe.parts) {
      OCTAVO_TRY(OpenedWeight weight, open_weight(*files_, format, part));
      if (weight.weight == nullptr) break;
      weights.push_back(std::move(weight));
    }
    if (weights.size() < recipe.parts.size()) {
      if (weights.empty()) continue;  // where it is needed, it will be missed
      const std::string& missing = recipe.parts[weights.size()];
      return Error{ErrorCode::kDamagedFile,
                   path_for_message(path()) + ": tensor \"" + escape_for_message(missing) +
                       "\" is missing; download the repository again",
                   missing};
    }
    std::uint64_t stored_bytes = 0;
    for (const OpenedWeight& weight : weights) {
      for (const SafetensorsTensor* tensor : weight.tensors) {
        taken_[tensor] = true;
        stored_bytes += tensor->num_bytes;
      }
    }
    const bool is_packed = !weights.empty() && !weights.front().is_plain;
    auto made = make_tensor(recipe, std::move(weights));
    if (!made) {
      Error error = std::move(made).error();
      error.message = path_for_message(path()) + ": " + error.message;
      return error;
    }
    if (is_packed) count_unpacked(*made, stored_bytes);
    by_name_.emplace(recipe.name, tensors_.size());
    tensors_.push_back(made->tensor);
    made_.push_back(*std::move(made));
  }
  return {};
}

void FolderSource::count_unpacked(const MadeTensor& made, std::uint64_t stored_bytes) {
  const auto type = made.tensor.type();
  if (!type || kernels::traits_of(*type).quantised) return;
  ++num_unpacked_;
  packed_bytes_ += stored_bytes;
  unpacked_bytes_ += made.tensor.num_bytes;
}

void FolderSource::add_untaken(const std::vector<std::string>& ignored) {
  for (const SafetensorsTensor& stored : files_->tensors()) {
    const auto starts_so = [&](std::string_view prefix) { return stored.name.starts_with(prefix); };
    if (taken_.contains(&stored) || std::ranges::any_of(ignored, starts_so) ||
        std::ranges::any_of(kOtherInputs, starts_so))
      continue;
    SourceTensor tensor;
    tensor.name = stored.name;
    tensor.type_number = ~0u;
    tensor.type_name = "?";
    tensor.num_dimensions = 1;
    tensor.dimensions[0] = tensor.num_elements = stored.num_elements;
    tensor.num_bytes = stored.num_bytes;
    tensor.byte_offset = stored.byte_offset;
    tensor.shard = stored.shard;
    by_name_.emplace(tensor.name, tensors_.size());
    tensors_.push_back(std::move(tensor));
  }
}

const SourceTensor* FolderSource::find_tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> FolderSource::bytes_of(const SourceTensor& tensor) const {
  const std::size_t index = index_of(tensor);
  return index < made_.size() ? made_[index].bytes : std::span<const std::byte>();
}

const RowReader* FolderSource::reader_of(const SourceTensor& tensor) const {
  const std::size_t index = index_of(tensor);
  return index < made_.size() ? made_[index].reader.get() : nullptr;
}

std::string FolderSource::stored_name(std::string_view name) const {
  const auto found = stored_names_.find(name);
  return found == stored_names_.end() ? std::string(name) : found->second;
}

Result<tokenizer::Vocabulary> FolderSource::read_vocabulary() const { return model::read_vocabulary(path()); }

// Whole vocabularies take a while: where a file says it, none is read.
bool FolderSource::has_chat_template() const {
  std::error_code ignored;
  for (const char* name : {"chat_template.jinja", "chat_template.json"}) {
    if (fs::exists(path() / name, ignored)) return true;
  }
  if (const auto file = file_in_folder(path(), "tokenizer_config.json")) {
    const auto config = read_json_file(*file, kMaxTokenizerConfigBytes);
    if (config && config->is_object() && config->contains("chat_template")) return true;
  }
  const auto vocabulary = read_vocabulary();
  return vocabulary && !vocabulary->chat_template.empty();
}

SamplingAdvice FolderSource::sampling_advice() const {
  const auto advice = read_generation_defaults(path());
  return advice ? *advice : SamplingAdvice();
}

std::string FolderSource::notice() const {
  if (num_unpacked_ == 0) return {};
  const auto bytes = [](std::uint64_t count) { return bytes_text(static_cast<std::int64_t>(count)); };
  return count_text(num_unpacked_, "packed weight") + (num_unpacked_ == 1 ? " becomes" : " become") +
         " floats, " + bytes(unpacked_bytes_) + " instead of " + bytes(packed_bytes_) +
         ", since no kernel multiplies with such groups; --quantization makes them smaller";
}

}  // namespace octavo::model
