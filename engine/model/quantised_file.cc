#include "engine/model/quantised_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "engine/base/text.h"
#include "engine/model/file_mapping.h"
#include "kernels/quantize.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

constexpr std::array kEnds = {"token_embd.weight", "output.weight", "per_layer_token_embd.weight"};
constexpr std::array kKept = {"_norm",       "ffn_gate_inp", "ssm_conv1d",           "shortconv.conv",
                              "ssm_alpha",   "ssm_beta",     "per_layer_model_proj", "position_embd",
                              "token_types", "ssm_dt"};
constexpr std::array kDroppedKeys = {"general.file_type", "general.quantization_version", "split.no",
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

template <class Number>
void append_number(std::vector<std::byte>& bytes, Number number) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  append_number(bytes, std::uint64_t{text.size()});
  const auto all = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), all.begin(), all.end());
}

// Walks over the keys of a file whose header was read before: only a file that changed since can end early.
class KeyWalker {
 public:
  explicit KeyWalker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool is_good() const { return is_good_; }
  std::size_t position() const { return position_; }

  template <class Number>
  Number number() {
    Number value = {};
    if (!skip(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + position_ - sizeof value, sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (!skip(size)) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + position_ - size, static_cast<std::size_t>(size)};
  }
  void skip_value(ValueType type) {
    if (type == ValueType::kString) {
      text();
    } else if (type == ValueType::kArray) {
      const auto element = value_type_from(number<std::uint32_t>());
      const auto count = number<std::uint64_t>();
      if (!element || *element == ValueType::kArray) return fail();
      if (*element != ValueType::kString) {
        std::uint64_t size = 0;
        if (__builtin_mul_overflow(count, stored_bytes(*element), &size)) return fail();
        skip(size);
      }
      for (std::uint64_t i = 0; *element == ValueType::kString && is_good_ && i < count; ++i) text();
    } else {
      skip(stored_bytes(type));
    }
  }
  void fail() { is_good_ = false; }

 private:
  bool skip(std::uint64_t size) {
    is_good_ = is_good_ && size <= bytes_.size() - position_;
    if (is_good_) position_ += static_cast<std::size_t>(size);
    return is_good_;
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool is_good_ = true;
};

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

std::optional<TensorType> wanted_type(const GgufTensor& tensor, TensorType type) {
  const auto own = tensor.type();
  if (!own || kernels::traits_of(*own).quantised || tensor.num_dimensions < 2) return std::nullopt;
  if (!tensor.name.ends_with(".weight") || contains_any(tensor.name, kKept)) return std::nullopt;
  const bool is_end = std::ranges::find(kEnds, std::string_view(tensor.name)) != kEnds.end();
  return kernels::type_for_columns(is_end ? type_of_ends(type) : type, tensor.dimensions[0]);
}

}  // namespace

Result<QuantisedFile> QuantisedFile::plan(const GgufFile& file, TensorType type) {
  QuantisedFile planned(file);
  const std::uint64_t alignment = file.header().alignment();
  for (const GgufTensor& source : file.tensors()) {
    Tensor tensor{&source, TensorType::kF32, false, source.num_bytes, planned.data_bytes_};
    if (const auto wanted = wanted_type(source, type)) {
      const kernels::TensorTypeTraits& traits = kernels::traits_of(*wanted);
      tensor.type = *wanted;
      tensor.is_quantised = true;
      tensor.num_bytes =
          static_cast<std::uint64_t>(source.num_elements / traits.block_elements * traits.block_bytes);
      planned.bytes_before_ += source.num_bytes;
      planned.bytes_after_ += tensor.num_bytes;
      ++planned.num_quantised_;
    }
    planned.data_bytes_ += (tensor.num_bytes + alignment - 1) / alignment * alignment;
    planned.tensors_.push_back(tensor);
  }
  if (planned.num_quantised_ == 0) {
    return Error{ErrorCode::kUnsupported, path_for_message(file.path()) +
                                              " holds no matrix of 16- or 32-bit floats that could become " +
                                              std::string(kernels::traits_of(type).name) +
                                              ": start from a file with F32, F16 or BF16"};
  }
  OCTAVO_TRY_VOID(planned.copy_keys(type));
  planned.add_tensor_list();
  return planned;
}

Result<void> QuantisedFile::copy_keys(TensorType type) {
  OCTAVO_TRY(const std::vector<std::filesystem::path> files, files_of_model(file_->path()));
  OCTAVO_TRY(const std::unique_ptr<FileMapping> mapping, FileMapping::open(files.front()));
  KeyWalker walker(mapping->bytes());
  walker.number<std::uint32_t>();  // magic
  walker.number<std::uint32_t>();  // version
  walker.number<std::uint64_t>();  // tensors
  const auto num_keys = walker.number<std::uint64_t>();
  std::vector<std::byte> keys;
  for (std::uint64_t i = 0; i < num_keys && walker.is_good(); ++i) {
    const std::size_t begin = walker.position();
    const std::string_view key = walker.text();
    const auto value_type = value_type_from(walker.number<std::uint32_t>());
    if (!value_type) {
      walker.fail();
      break;
    }
    walker.skip_value(*value_type);
    if (!walker.is_good() || std::ranges::find(kDroppedKeys, key) != kDroppedKeys.end()) continue;
    const auto raw = mapping->bytes().subspan(begin, walker.position() - begin);
    keys.insert(keys.end(), raw.begin(), raw.end());
    ++num_keys_;
  }
  OCTAVO_TRY_VOID(mapping->verify_unchanged());
  if (!walker.is_good()) {
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(file_->path()) + " changed while it was read: try again"};
  }
  for (const auto& [key, value] : {std::pair{"general.file_type", file_type_of(type)},
                                   std::pair{"general.quantization_version", std::uint32_t{2}}}) {
    append_text(keys, key);
    append_number(keys, static_cast<std::uint32_t>(ValueType::kU32));
    append_number(keys, value);
    ++num_keys_;
  }
  constexpr std::uint32_t kMagic = 0x46554747, kVersion = 3;  // "GGUF"
  append_number(header_, kMagic);
  append_number(header_, kVersion);
  append_number(header_, std::uint64_t{tensors_.size()});
  append_number(header_, num_keys_);
  header_.insert(header_.end(), keys.begin(), keys.end());
  return {};
}

void QuantisedFile::add_tensor_list() {
  for (const Tensor& tensor : tensors_) {
    append_text(header_, tensor.source->name);
    append_number(header_, tensor.source->num_dimensions);
    for (std::uint32_t i = 0; i < tensor.source->num_dimensions; ++i)
      append_number(header_, static_cast<std::uint64_t>(tensor.source->dimensions[i]));
    append_number(header_,
                  tensor.is_quantised ? static_cast<std::uint32_t>(tensor.type) : tensor.source->type_number);
    append_number(header_, tensor.offset);
  }
  const std::uint64_t alignment = file_->header().alignment();
  data_offset_ = (header_.size() + alignment - 1) / alignment * alignment;
  header_.resize(static_cast<std::size_t>(data_offset_));
}

Result<void> QuantisedFile::write(const Sink& sink, const Progress& progress) {
  written_bytes_ = 0;
  OCTAVO_TRY_VOID(sink(header_));
  for (Tensor& tensor : tensors_) OCTAVO_TRY_VOID(write_tensor(tensor, sink, progress));
  return file_->verify_unchanged();
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
  const std::span<const std::byte> stored = file_->bytes_of(*tensor.source);
  if (!tensor.is_quantised) {
    for (std::size_t first = 0; first < stored.size(); first += kPieceBytes) {
      OCTAVO_TRY_VOID(put(stored.subspan(first, std::min(kPieceBytes, stored.size() - first))));
    }
  } else {
    const std::int64_t columns = tensor.source->dimensions[0], rows = tensor.source->num_elements / columns;
    const QuantisingReader reader({{*tensor.source->type(), rows, columns, stored}}, tensor.type);
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
  const std::uint64_t alignment = file_->header().alignment();
  const std::vector<std::byte> padding(
      static_cast<std::size_t>((alignment - tensor.num_bytes % alignment) % alignment));
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
        tensor.is_quantised ? static_cast<std::size_t>(
                                  std::max<std::uint64_t>(1, kPieceBytes / row_bytes / 8 * 8) * row_bytes)
                            : kPieceBytes;
    for (std::size_t first = 0; first < bytes.size(); first += piece)
      hash = hash_on(hash, bytes.subspan(first, std::min(piece, bytes.size() - first)));
    if (hash != tensor.hash) return wrong(escape_for_message(tensor.source->name));
  }
  return written.verify_unchanged();
}

}  // namespace octavo::model
