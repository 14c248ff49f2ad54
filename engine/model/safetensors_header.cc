#include "engine/model/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

static_assert(std::endian::native == std::endian::little, "the length is copied as it stands");

constexpr std::uint64_t kLengthBytes = 8;

struct StoredType {
  std::string_view name;
  SafetensorsType type;
  std::uint32_t bytes;
};
constexpr StoredType kTypes[] = {
    {"F64", SafetensorsType::kF64, 8},         {"F32", SafetensorsType::kF32, 4},
    {"F16", SafetensorsType::kF16, 2},         {"BF16", SafetensorsType::kBF16, 2},
    {"I64", SafetensorsType::kI64, 8},         {"I32", SafetensorsType::kI32, 4},
    {"I16", SafetensorsType::kI16, 2},         {"I8", SafetensorsType::kI8, 1},
    {"U8", SafetensorsType::kU8, 1},           {"BOOL", SafetensorsType::kBool, 1},
    {"F8_E4M3", SafetensorsType::kF8_E4M3, 1}, {"F8_E5M2", SafetensorsType::kF8_E5M2, 1},
    {"U64", SafetensorsType::kOther, 8},       {"U32", SafetensorsType::kOther, 4},
    {"U16", SafetensorsType::kOther, 2},       {"F8_E8M0", SafetensorsType::kOther, 1},
    {"C64", SafetensorsType::kOther, 8},
};

const StoredType* find_type(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &StoredType::name);
  return found == std::end(kTypes) ? nullptr : &*found;
}

std::string tensor_in_quotes(std::string_view text) { return "\"" + escape_for_message(text) + "\""; }

// Takes {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"a": "b"}}
// and nothing else, without keeping the document.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct Found {
    SafetensorsTensor tensor;
    std::uint64_t begin = 0, end = 0;  // of its data, behind the header
  };
  std::vector<Found> found;
  std::string problem;  // of the first thing that is wrong
  std::string subject;

  bool null() override { return fail("null where none is allowed"); }
  bool boolean(bool) override { return fail("a boolean where none is allowed"); }
  bool number_float(number_float_t, const string_t&) override {
    return fail("a number that is not whole, or too large");
  }
  bool number_integer(number_integer_t) override { return fail("a negative number"); }
  bool binary(binary_t&) override { return fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return fail("a number where none is allowed");
    if (place_ == Place::kShape) {
      if (current().shape.size() == kMaxSafetensorsDimensions) return fail("too many dimensions");
      if (value > kMaxTensorDimension) return fail("a dimension that no tensor has");
      current().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (num_offsets_ == 2) return fail("more than two data_offsets");
    (num_offsets_ == 0 ? found.back().begin : found.back().end) = value;
    ++num_offsets_;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kType) return fail("a string where none is allowed");
    current().type_name = value.substr(0, kMaxTypeNameBytes);
    if (const StoredType* const type = find_type(value)) current().type = type->type;
    place_ = Place::kTensor;
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ == Place::kTop) {
      if (name == "__metadata__") {
        place_ = Place::kBeforeMetadata;
        return true;
      }
      if (name.size() > kMaxSafetensorsNameBytes) return fail("a name that is too long");
      if (found.size() == kMaxStoredTensors) return fail("too many tensors");
      found.push_back({});
      current().name = name;
      seen_ = {};
      num_offsets_ = 0;
      place_ = Place::kBeforeTensor;
      return true;
    }
    static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
    static constexpr std::array<Place, 3> kPlaces = {Place::kType, Place::kBeforeShape,
                                                     Place::kBeforeOffsets};
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (name != kFields[i]) continue;
      if (std::exchange(seen_[i], true)) return fail("its " + name + " twice");
      place_ = kPlaces[i];
      return true;
    }
    return fail("the unknown field " + tensor_in_quotes(name));
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart: place_ = Place::kTop; return true;
      case Place::kBeforeTensor: place_ = Place::kTensor; return true;
      case Place::kBeforeMetadata: place_ = Place::kMetadata; return true;
      default: return fail("an object where none is allowed");
    }
  }
  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (!(seen_[0] && seen_[1] && seen_[2] && num_offsets_ == 2))
        return fail("no dtype, shape or two data_offsets");
      place_ = Place::kTop;
    } else if (place_ == Place::kMetadata) {
      place_ = Place::kTop;
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kBeforeShape) {
      place_ = Place::kShape;
    } else if (place_ == Place::kBeforeOffsets) {
      place_ = Place::kOffsets;
    } else {
      return fail("a list where none is allowed");
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return fail("no valid JSON at its byte " + std::to_string(position));
  }

 private:
  enum class Place : std::uint8_t {
    kStart,
    kTop,
    kBeforeMetadata,
    kMetadata,
    kBeforeTensor,
    kTensor,
    kType,
    kBeforeShape,
    kShape,
    kBeforeOffsets,
    kOffsets,
  };
  static constexpr std::size_t kMaxTypeNameBytes = 32;

  SafetensorsTensor& current() { return found.back().tensor; }
  bool fail(std::string what) {
    problem = std::move(what);
    const bool is_in_tensor = place_ != Place::kStart && place_ != Place::kTop && !found.empty() &&
                              place_ != Place::kBeforeMetadata && place_ != Place::kMetadata;
    if (is_in_tensor) subject = current().name;
    return false;
  }

  Place place_ = Place::kStart;
  std::array<bool, 3> seen_ = {};
  int num_offsets_ = 0;
};

class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, std::string_view file_name)
      : source_(source), file_name_(escape_for_message(file_name, 1000)) {}

  Result<SafetensorsHeader> parse() {
    OCTAVO_TRY_VOID(read_text());
    HeaderReader reader;
    const bool is_whole = nlohmann::json::sax_parse(text_.begin(), text_.end(), &reader);
    if (!is_whole) return damaged(reader.subject, "has " + reader.problem);
    text_ = {};
    for (HeaderReader::Found& found : reader.found) OCTAVO_TRY_VOID(check(found));
    return arrange(std::move(reader.found));
  }

 private:
  Error damaged(std::string_view tensor, const std::string& finding) const {
    const std::string what = tensor.empty() ? "its header " : "tensor " + tensor_in_quotes(tensor) + " ";
    return {ErrorCode::kDamagedFile,
            file_name_ + ": " + what + finding + "; the file is damaged: download it again",
            std::string(tensor)};
  }

  Result<void> read_text() {
    if (source_.size() < kLengthBytes) return damaged("", "is cut");
    std::uint64_t length = 0;
    OCTAVO_TRY_VOID(source_.read(0, std::as_writable_bytes(std::span(&length, 1))));
    if (length > source_.size() - kLengthBytes) {
      return damaged("", "is said to have " + std::to_string(length) + " bytes, but the file has " +
                             std::to_string(source_.size()));
    }
    if (length > kMaxSafetensorsHeaderBytes) {
      return Error{ErrorCode::kUnsupported, file_name_ + ": its header has " + std::to_string(length) +
                                                " bytes, more than any model needs; choose another model"};
    }
    text_.resize(static_cast<std::size_t>(length));
    data_offset_ = kLengthBytes + length;
    return source_.read(kLengthBytes, std::as_writable_bytes(std::span(text_)));
  }

  // Whether place, shape and type say the same.
  Result<void> check(HeaderReader::Found& found) const {
    SafetensorsTensor& tensor = found.tensor;
    const std::uint64_t data_bytes = source_.size() - data_offset_;
    if (found.begin > found.end || found.end > data_bytes) {
      return damaged(tensor.name, "stands at bytes " + std::to_string(found.begin) + " to " +
                                      std::to_string(found.end) + " of " + std::to_string(data_bytes));
    }
    tensor.num_elements = 1;
    for (const std::int64_t size : tensor.shape) {
      if (__builtin_mul_overflow(tensor.num_elements, size, &tensor.num_elements))
        return damaged(tensor.name,
                       "has the shape " + safetensors_shape_text(tensor.shape) + ", which no file can hold");
    }
    tensor.num_bytes = found.end - found.begin;
    tensor.byte_offset = data_offset_ + found.begin;
    const StoredType* const type = find_type(tensor.type_name);
    if (type == nullptr) return {};  // of a size that is not known here
    std::uint64_t expected = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(tensor.num_elements), std::uint64_t{type->bytes},
                               &expected) ||
        expected != tensor.num_bytes) {
      return damaged(tensor.name, "has " + std::to_string(tensor.num_bytes) + " bytes for the shape " +
                                      safetensors_shape_text(tensor.shape) + " of " + tensor.type_name);
    }
    return {};
  }

  Result<SafetensorsHeader> arrange(std::vector<HeaderReader::Found> found) const {
    std::ranges::sort(found, {}, [](const auto& each) { return std::tie(each.begin, each.end); });
    std::uint64_t position = 0;
    for (const HeaderReader::Found& each : found) {
      if (each.begin != position) {
        return damaged(each.tensor.name,
                       each.begin < position ? "overlaps the one before it" : "has a gap before it");
      }
      position = each.end;
    }
    if (const std::uint64_t rest = source_.size() - data_offset_ - position; rest > 0)
      return damaged("", "leaves " + std::to_string(rest) + " bytes at the end of the file unused");
    SafetensorsHeader header;
    header.tensors.reserve(found.size());
    for (HeaderReader::Found& each : found) header.tensors.push_back(std::move(each.tensor));
    if (const auto twice = find_twice(header.tensors)) return damaged(*twice, "is there twice");
    return header;
  }

  static std::optional<std::string> find_twice(const std::vector<SafetensorsTensor>& tensors) {
    std::vector<std::string_view> names;
    for (const SafetensorsTensor& tensor : tensors) names.push_back(tensor.name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return std::nullopt;
    return std::string(*twice);
  }

  const ByteSource& source_;
  std::string file_name_;
  std::string text_;
  std::uint64_t data_offset_ = 0;
};

}  // namespace

std::uint32_t element_bytes(SafetensorsType type) {
  if (type == SafetensorsType::kOther) return 0;
  return std::ranges::find(kTypes, type, &StoredType::type)->bytes;
}

std::string safetensors_shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Result<SafetensorsHeader> SafetensorsHeader::parse(const ByteSource& source, std::string_view file_name) {
  return HeaderParser(source, file_name).parse();
}

}  // namespace octavo::model
