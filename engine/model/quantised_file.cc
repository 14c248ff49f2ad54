#include "engine/model/quantised_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/gguf_vocabulary.h"
#include "engine/model/hugging_face/model_card.h"
#include "engine/model/hugging_face/vocabulary_files.h"
#include "engine/model/inspection.h"
#include "engine/model/model_config.h"
#include "engine/model/model_tensors.h"
#include "kernels/quantize.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

constexpr std::array kEnds = {"token_embd.weight", "output.weight", "per_layer_token_embd.weight"};
constexpr std::array kKept = {"_norm",       "ffn_gate_inp", "ssm_conv1d",           "shortconv.conv",
                              "ssm_alpha",   "ssm_beta",     "per_layer_model_proj", "position_embd",
                              "token_types", "ssm_dt"};
constexpr std::string_view kDroppedKeys[] = {"general.file_type", "general.quantization_version", "split.no",
                                             "split.count", "split.tensors.count"};
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

// llama.cpp's numbers of what most of a file is.
std::uint32_t file_type_of(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return 2;
    case TensorType::kQ4_1: return 3;
    case TensorType::kQ8_0: return 7;
    case TensorType::kQ5_0: return 8;
    case TensorType::kQ5_1: return 9;
    case TensorType::kQ4_K: return 14;
    case TensorType::kQ5_K: return 16;
    case TensorType::kQ6_K: return 18;
    case TensorType::kF16: return 1;
    case TensorType::kBF16: return 32;
    default: return 0;
  }
}

// FNV-1a of words of eight bytes.
std::uint64_t hash_on(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;

bool contains_any(std::string_view name, const auto& parts) {
  return std::ranges::any_of(parts, [name](std::string_view part) { return name.find(part) != name.npos; });
}

// Packed weights of a folder that GGUF has a type for are copied; the others, and those with a scale beside
// them or in another order, are refused.
Result<void> check_floats(const FolderSource& folder, const SourceTensor& tensor) {
  const auto type = tensor.type();
  const RowReader* const reader = folder.reader_of(tensor);
  const bool has_more =
      reader != nullptr && (reader->scale_of(0) != 1.0f || !reader->column_order_of(0).empty());
  if (type && kernels::tensor_type_from(tensor.type_number) && !has_more) return {};
  return Error{
      ErrorCode::kUnsupported,
      path_for_message(folder.path()) + ": the weights of \"" +
          escape_for_message(folder.stored_name(tensor.name)) +
          "\" are packed already, in a form that no GGUF file has: start from the model that was packed",
      folder.stored_name(tensor.name)};
}

std::optional<TensorType> wanted_type(const SourceTensor& tensor, TensorType type) {
  const auto own = tensor.type();
  if (!own || kernels::traits_of(*own).quantised || tensor.num_dimensions < 2) return std::nullopt;
  if (!tensor.name.ends_with(".weight") || contains_any(tensor.name, kKept)) return std::nullopt;
  const bool is_end = std::ranges::find(kEnds, std::string_view(tensor.name)) != kEnds.end();
  return kernels::type_for_columns(is_end ? type_of_ends(type) : type, tensor.dimensions[0]);
}

}  // namespace

Result<QuantisedFile> QuantisedFile::plan(const GgufFile& file, TensorType type) {
  QuantisedFile planned(file, file.header().alignment());
  for (const GgufTensor& source : file.tensors()) {
    planned.add_tensor(source, wanted_type(source, type));
  }
  OCTAVO_TRY_VOID(planned.check_matrices(type));
  GgufKeys keys;
  OCTAVO_TRY_VOID(keys.copy(file, kDroppedKeys));
  planned.write_header(std::move(keys), type);
  return planned;
}

Result<QuantisedFile> QuantisedFile::plan(const FolderSource& folder, TensorType type) {
  OCTAVO_TRY(const ModelConfig config, read_model_config(folder.metadata()));
  OCTAVO_TRY_VOID(find_model_tensors(folder, config));  // what cannot be loaded is not worth writing
  constexpr std::uint64_t kUsualAlignment = 32;
  QuantisedFile planned(folder, kUsualAlignment);
  for (const SourceTensor& source : folder.tensors()) {
    OCTAVO_TRY_VOID(check_floats(folder, source));
    std::optional<TensorType> wanted = wanted_type(source, type);
    if (!wanted && (source.num_dimensions < 2 || contains_any(source.name, kKept))) wanted = TensorType::kF32;
    planned.add_tensor(source, wanted);
  }
  OCTAVO_TRY_VOID(planned.check_matrices(type));
  GgufKeys keys;
  OCTAVO_TRY_VOID(keys.translate(folder.metadata()));
  keys.add_text("general.size_label", size_label(folder, config));
  if (const std::string licence = licence_of_card(folder.path()); !licence.empty())
    keys.add_text("general.license", licence);
  keys.add_advice(folder.sampling_advice());
  OCTAVO_TRY(const tokenizer::Vocabulary given, folder.read_vocabulary());
  OCTAVO_TRY(const auto architecture, folder.metadata().get<std::string_view>("general.architecture"));
  OCTAVO_TRY(tokenizer::Vocabulary vocabulary, gguf_vocabulary(given, architecture));
  OCTAVO_TRY(const UnusedMeanings unused, read_unused_meanings(folder.path(), given));
  if (!vocabulary.unknown_token_id) vocabulary.unknown_token_id = unused.unknown;
  planned.notice_ = vocabulary.notice;
  keys.add_vocabulary(vocabulary);
  if (unused.padding)
    keys.add_u32("tokenizer.ggml.padding_token_id", static_cast<std::uint32_t>(*unused.padding));
  planned.write_header(std::move(keys), type);
  return planned;
}

void QuantisedFile::add_tensor(const SourceTensor& source, std::optional<TensorType> type) {
  Tensor tensor{&source, TensorType::kF32, false, source.num_bytes, data_bytes_};
  if (type) {
    const kernels::TensorTypeTraits& traits = kernels::traits_of(*type);
    tensor.type = *type;
    tensor.is_made = true;
    tensor.num_bytes =
        static_cast<std::uint64_t>(source.num_elements / traits.block_elements * traits.block_bytes);
    if (source.num_dimensions > 1) {
      bytes_before_ += source.num_bytes;
      bytes_after_ += tensor.num_bytes;
      ++num_quantised_;
    }
  }
  data_bytes_ += (tensor.num_bytes + alignment_ - 1) / alignment_ * alignment_;
  tensors_.push_back(tensor);
}

Result<void> QuantisedFile::check_matrices(TensorType type) const {
  if (num_quantised_ > 0) return {};
  return Error{ErrorCode::kUnsupported, path_for_message(source_->path()) +
                                            " holds no matrix of 16- or 32-bit floats that could become " +
                                            std::string(kernels::traits_of(type).name) +
                                            ": start from a file with F32, F16 or BF16"};
}

void QuantisedFile::write_header(GgufKeys keys, TensorType type) {
  keys.add_u32("general.file_type", file_type_of(type));
  keys.add_u32("general.quantization_version", 2);
  constexpr std::uint32_t kMagic = 0x46554747, kVersion = 3;  // "GGUF"
  append_number(header_, kMagic);
  append_number(header_, kVersion);
  append_number(header_, std::uint64_t{tensors_.size()});
  append_number(header_, keys.count());
  header_.insert(header_.end(), keys.bytes().begin(), keys.bytes().end());
  add_tensor_list();
}

void QuantisedFile::add_tensor_list() {
  for (const Tensor& tensor : tensors_) {
    append_text(header_, tensor.source->name);
    append_number(header_, tensor.source->num_dimensions);
    for (std::uint32_t i = 0; i < tensor.source->num_dimensions; ++i)
      append_number(header_, static_cast<std::uint64_t>(tensor.source->dimensions[i]));
    append_number(header_,
                  tensor.is_made ? static_cast<std::uint32_t>(tensor.type) : tensor.source->type_number);
    append_number(header_, tensor.offset);
  }
  data_offset_ = (header_.size() + alignment_ - 1) / alignment_ * alignment_;
  header_.resize(static_cast<std::size_t>(data_offset_));
}

Result<void> QuantisedFile::write(const Sink& sink, const Progress& progress) {
  written_bytes_ = 0;
  OCTAVO_TRY_VOID(sink(header_));
  for (Tensor& tensor : tensors_) OCTAVO_TRY_VOID(write_tensor(tensor, sink, progress));
  return source_->verify_unchanged();
}

Result<void> QuantisedFile::write_tensor(Tensor& tensor, const Sink& sink, const Progress& progress) {
  tensor.hash = kHashStart;
  const auto put = [&](std::span<const std::byte> bytes) -> Result<void> {
    tensor.hash = hash_on(tensor.hash, bytes);
    OCTAVO_TRY_VOID(sink(bytes));
    written_bytes_ += bytes.size();
    if (progress && !progress(static_cast<double>(written_bytes_) / static_cast<double>(data_bytes_)))
      return Error{ErrorCode::kCancelled, "quantising was cancelled; nothing was written"};
    return {};
  };
  std::span<const std::byte> stored = source_->bytes_of(*tensor.source);
  const RowReader* const source_reader = source_->reader_of(*tensor.source);
  if (!tensor.is_made) {
    std::vector<std::byte> read;
    if (source_reader != nullptr) {
      OCTAVO_TRY(read, read_tensor(*source_, *tensor.source));
      stored = read;
    }
    for (std::size_t first = 0; first < stored.size(); first += kPieceBytes) {
      OCTAVO_TRY_VOID(put(stored.subspan(first, std::min(kPieceBytes, stored.size() - first))));
    }
  } else {
    const std::int64_t columns = tensor.source->dimensions[0], rows = tensor.source->num_elements / columns;
    const QuantisingReader reader({{*tensor.source->type(), rows, columns, stored}, source_reader},
                                  tensor.type);
    const auto row_bytes = static_cast<std::int64_t>(tensor.num_bytes) / rows;
    const std::int64_t at_once =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(kPieceBytes) / row_bytes / 8 * 8);
    std::vector<std::byte> made;
    for (std::int64_t first = 0; first < rows; first += at_once) {
      const std::int64_t count = std::min(at_once, rows - first);
      made.resize(static_cast<std::size_t>(count * row_bytes));
      if (auto read = reader.read(first, count, made); !read) {
        Error error = std::move(read).error();
        error.message = escape_for_message(tensor.source->name) + ": " + error.message;
        return error;
      }
      OCTAVO_TRY_VOID(put(made));
    }
  }
  const std::vector<std::byte> padding(
      static_cast<std::size_t>((alignment_ - tensor.num_bytes % alignment_) % alignment_));
  return sink(padding);
}

Result<void> QuantisedFile::verify(const GgufFile& written) const {
  const auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::kIo, path_for_message(written.path()) + ": " + what +
                                     " is not what was written; check the disk and try again"};
  };
  if (written.tensors().size() != tensors_.size()) return wrong("the list of tensors");
  for (const Tensor& tensor : tensors_) {
    const GgufTensor* const found = written.find_tensor(tensor.source->name);
    if (found == nullptr || found->num_bytes != tensor.num_bytes ||
        found->dimensions != tensor.source->dimensions)
      return wrong(escape_for_message(tensor.source->name));
    // In the pieces in which it was hashed: these are whole words but for the last.
    std::uint64_t hash = kHashStart;
    const std::span<const std::byte> bytes = written.bytes_of(*found);
    const auto rows = static_cast<std::uint64_t>(tensor.source->num_elements / tensor.source->dimensions[0]);
    const std::uint64_t row_bytes = tensor.num_bytes / rows;
    const std::size_t piece =
        tensor.is_made ? static_cast<std::size_t>(
                             std::max<std::uint64_t>(1, kPieceBytes / row_bytes / 8 * 8) * row_bytes)
                       : kPieceBytes;
    for (std::size_t first = 0; first < bytes.size(); first += piece)
      hash = hash_on(hash, bytes.subspan(first, std::min(piece, bytes.size() - first)));
    if (hash != tensor.hash) return wrong(escape_for_message(tensor.source->name));
  }
  return written.verify_unchanged();
}

}  // namespace octavo::model
