#include "engine/model/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::string_view kChatTemplateKey = "tokenizer.chat_template";
constexpr std::uint32_t kDefaultAlignment = 32;
// Least bytes that a key (length, one character, type, u8) and a tensor (length, one character, one
// dimension, type, offset) take.
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kReadAhead = std::uint64_t{1} << 20;

// Rounds up to a multiple of a power of two; false when that does not fit.
bool pad_up(std::uint64_t value, std::uint64_t alignment, std::uint64_t& padded) {
  if (__builtin_add_overflow(value, alignment - 1, &padded)) return false;
  padded &= ~(alignment - 1);
  return true;
}

std::string quoted(std::string_view text) { return "\"" + escape_for_message(text) + "\""; }

}  // namespace

// Walks a file once, from the front. `bytes_` grows ahead of `position_` as bytes are needed, so every number
// that is believed was read from memory of our own.
class GgufParser {
 public:
  GgufParser(const ByteSource& source, std::string_view file_name) : source_(source) {
    header_.file_name_ = std::string(file_name);
  }

  Result<GgufHeader> parse() {
    OCTAVO_TRY_VOID(read_preamble());
    OCTAVO_TRY_VOID(read_keys());
    OCTAVO_TRY_VOID(index_keys());
    OCTAVO_TRY_VOID(read_alignment());
    OCTAVO_TRY_VOID(read_tensors());
    OCTAVO_TRY_VOID(check_tensor_names());
    OCTAVO_TRY_VOID(place_tensors());
    header_.bytes_.resize(static_cast<std::size_t>(position_));
    header_.bytes_.shrink_to_fit();
    return std::move(header_);
  }

 private:
  // ---- errors ----
  Error failure(ErrorCode code, std::string_view subject, std::uint64_t offset,
                const std::string& sentence) const {
    return {code, escape_for_message(header_.file_name_, 1000) + ": " + sentence, std::string(subject),
            offset};
  }
  Error damaged(std::string_view subject, std::uint64_t offset, const std::string& finding) const {
    return failure(ErrorCode::kDamagedFile, subject, offset,
                   finding + " (at byte " + std::to_string(offset) + "); the file is damaged: get it again");
  }

  // ---- bytes ----
  std::uint64_t remaining() const { return source_.size() - position_; }

  // Makes the next `count` bytes available. `what` completes "the file ends within ...".
  Result<void> need(std::uint64_t count, std::string_view subject, std::string_view what) {
    if (count > remaining()) return damaged(subject, position_, "the file ends within " + std::string(what));
    const std::uint64_t end = position_ + count;  // <= size of the file: cannot wrap
    if (end > kMaxMetadataBytes) {
      return failure(ErrorCode::kUnsupported, subject, position_,
                     "its metadata is larger than " + std::to_string(kMaxMetadataBytes >> 20) +
                         " MiB; no model that Octavo runs needs that");
    }
    const std::uint64_t have = header_.bytes_.size();
    if (end <= have) return {};
    const std::uint64_t wanted =
        std::min({source_.size(), kMaxMetadataBytes, std::max(end, have + kReadAhead)});
    header_.bytes_.resize(static_cast<std::size_t>(wanted));
    return source_.read(have, std::span(header_.bytes_).subspan(static_cast<std::size_t>(have)));
  }

  // REQUIRES: needed
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, header_.bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  template <class T>
  Result<T> read_number(std::string_view subject, std::string_view what) {
    OCTAVO_TRY_VOID(need(sizeof(T), subject, what));
    return take<T>();
  }

  // Steps over a string; its bytes lie at [position_ - length, position_) afterwards.
  Result<std::uint64_t> read_string(std::uint64_t cap, std::string_view subject, std::string_view what) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(const std::uint64_t length, read_number<std::uint64_t>(subject, what));
    if (length > cap) {
      return damaged(subject, start,
                     std::string(what) + " claims " + std::to_string(length) + " bytes; at most " +
                         std::to_string(cap) + " are allowed");
    }
    OCTAVO_TRY_VOID(need(length, subject, what));
    position_ += length;
    return length;
  }

  std::string_view text_at(std::uint64_t offset, std::uint64_t length) const {
    return {reinterpret_cast<const char*>(header_.bytes_.data()) + offset, static_cast<std::size_t>(length)};
  }

  // ---- the stages ----
  Result<void> read_preamble() {
    OCTAVO_TRY_VOID(need(4, "", "its first four bytes"));
    if (text_at(0, 4) != kMagic) {
      return failure(ErrorCode::kDamagedFile, "", 0,
                     "this is no GGUF file: it starts with " + quoted(text_at(0, 4)) +
                         " instead of \"GGUF\"; choose a file that ends in .gguf");
    }
    position_ = 4;
    OCTAVO_TRY(header_.version_, read_number<std::uint32_t>("", "the version number"));
    OCTAVO_TRY_VOID(check_version());
    OCTAVO_TRY(num_tensors_, read_number<std::uint64_t>("", "the number of tensors"));
    OCTAVO_TRY(num_keys_, read_number<std::uint64_t>("", "the number of keys"));
    OCTAVO_TRY_VOID(check_count(num_tensors_, kMaxTensors, kMinTensorBytes, 8, "tensors"));
    return check_count(num_keys_, kMaxMetadataKeys, kMinKeyBytes, 16, "keys");
  }

  Result<void> check_version() const {
    const std::uint32_t version = header_.version_;
    if (version == 2 || version == 3) return {};
    const bool swapped = version != 0 && (version & 0xffffu) == 0;
    if (swapped) {
      return failure(ErrorCode::kUnsupported, "", 4,
                     "this GGUF file was written for big-endian machines; get the little-endian file");
    }
    return failure(ErrorCode::kUnsupported, "", 4,
                   "GGUF version " + std::to_string(version) +
                       " is not supported; versions 2 and 3 are: convert the model again");
  }

  Result<void> check_count(std::uint64_t count, std::uint64_t cap, std::uint64_t least_bytes,
                           std::uint64_t offset, std::string_view what) const {
    if (count <= cap && count <= remaining() / least_bytes) return {};
    return damaged("", offset,
                   "the file claims " + std::to_string(count) + " " + std::string(what) +
                       ", which is more than it can hold");
  }

  Result<void> read_keys() {
    header_.entries_.reserve(static_cast<std::size_t>(num_keys_));
    for (std::uint64_t i = 0; i < num_keys_; ++i) {
      const std::string what = "key " + std::to_string(i);
      OCTAVO_TRY(const std::uint64_t length, read_string(kMaxKeyBytes, "", what));
      if (length == 0) return damaged("", position_, what + " is empty");
      GgufHeader::Entry entry{};
      entry.key_offset = position_ - length;
      entry.key_length = static_cast<std::uint32_t>(length);
      const std::string key(text_at(entry.key_offset, length));  // a copy: the buffer may move below
      OCTAVO_TRY_VOID(read_value(key, entry));
      header_.entries_.push_back(entry);
    }
    return {};
  }

  Result<GgufType> read_type(const std::string& key) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(const std::uint32_t number, read_number<std::uint32_t>(key, "the type of " + quoted(key)));
    if (const auto type = gguf_type_from(number)) return *type;
    return damaged(key, start,
                   quoted(key) + " has value type " + std::to_string(number) + ", which does not exist");
  }

  Result<void> read_value(const std::string& key, GgufHeader::Entry& entry) {
    OCTAVO_TRY(entry.type, read_type(key));
    entry.element_type = entry.type;
    entry.count = 1;
    if (entry.type == GgufType::kArray) OCTAVO_TRY_VOID(read_array_preamble(key, entry));
    entry.value_offset = position_;
    OCTAVO_TRY_VOID(entry.element_type == GgufType::kString ? skip_strings(key, entry)
                                                            : skip_numbers(key, entry));
    entry.value_end = position_;
    return {};
  }

  Result<void> read_array_preamble(const std::string& key, GgufHeader::Entry& entry) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(entry.element_type, read_type(key));
    if (entry.element_type == GgufType::kArray) {
      return damaged(key, start, quoted(key) + " is an array of arrays, which GGUF files do not use");
    }
    OCTAVO_TRY(entry.count, read_number<std::uint64_t>(key, "the length of " + quoted(key)));
    if (entry.count > remaining() / stored_bytes(entry.element_type)) {
      return damaged(key, start,
                     quoted(key) + " claims " + std::to_string(entry.count) +
                         " elements, which is more than the file can hold");
    }
    return {};
  }

  Result<void> skip_numbers(const std::string& key, const GgufHeader::Entry& entry) {
    // The product cannot wrap: the count of an array was held against the bytes that are left.
    const std::uint64_t num_bytes = entry.count * stored_bytes(entry.element_type);
    OCTAVO_TRY_VOID(need(num_bytes, key, "the value of " + quoted(key)));
    if (entry.element_type == GgufType::kBool) {
      for (std::uint64_t i = 0; i < num_bytes; ++i) {
        const auto value = std::to_integer<unsigned>(header_.bytes_[static_cast<std::size_t>(position_ + i)]);
        if (value > 1) {
          return damaged(
              key, position_ + i,
              quoted(key) + " holds " + std::to_string(value) + " where only 0 and 1 are booleans");
        }
      }
    }
    position_ += num_bytes;
    return {};
  }

  Result<void> skip_strings(const std::string& key, const GgufHeader::Entry& entry) {
    const std::uint64_t cap = key == kChatTemplateKey ? kMaxChatTemplateBytes : kMaxStringBytes;
    const std::string what = "a string of " + quoted(key);
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      OCTAVO_TRY([[maybe_unused]] const std::uint64_t length, read_string(cap, key, what));
    }
    return {};
  }

  // Sorting finds duplicates in O(n log n) whatever the file holds; a hash table could be made slow on
  // purpose.
  Result<void> index_keys() {
    std::vector<std::uint32_t>& order = header_.by_key_;
    order.resize(header_.entries_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](std::uint32_t index) { return header_.key_of(header_.entries_[index]); };
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return std::pair(key(a), a) < std::pair(key(b), b); });
    const auto same =
        std::adjacent_find(order.begin(), order.end(), [&](auto a, auto b) { return key(a) == key(b); });
    if (same == order.end()) return {};
    return damaged(key(*same), header_.entries_[*(same + 1)].key_offset,
                   "the key " + quoted(key(*same)) + " stands in it twice");
  }

  Result<void> read_alignment() {
    header_.alignment_ = kDefaultAlignment;
    const GgufHeader::Entry* entry = header_.find_entry(kAlignmentKey);
    if (entry == nullptr) return {};
    if (entry->type != GgufType::kU32) {
      return damaged(
          kAlignmentKey, entry->value_offset,
          "general.alignment has type " + std::string(gguf_type_name(entry->type)) + " instead of u32");
    }
    OCTAVO_TRY(header_.alignment_, header_.get<std::uint32_t>(kAlignmentKey));
    const std::uint32_t alignment = header_.alignment_;
    if (std::has_single_bit(alignment) && alignment >= kMinAlignment && alignment <= kMaxAlignment) return {};
    return damaged(kAlignmentKey, entry->value_offset,
                   "general.alignment is " + std::to_string(alignment) + "; it must be a power of two from " +
                       std::to_string(kMinAlignment) + " to " + std::to_string(kMaxAlignment));
  }

  Result<void> read_tensors() {
    // Held again against what the keys left over.
    OCTAVO_TRY_VOID(check_count(num_tensors_, kMaxTensors, kMinTensorBytes, 8, "tensors"));
    header_.tensors_.reserve(static_cast<std::size_t>(num_tensors_));
    claims_.reserve(static_cast<std::size_t>(num_tensors_));
    for (std::uint64_t i = 0; i < num_tensors_; ++i) OCTAVO_TRY_VOID(read_tensor(i));
    return {};
  }

  Result<void> read_tensor(std::uint64_t index) {
    const std::uint64_t start = position_;
    const std::string what = "tensor " + std::to_string(index);
    OCTAVO_TRY(const std::uint64_t length, read_string(kMaxTensorNameBytes, "", "the name of " + what));
    if (length == 0) return damaged("", start, what + " has no name");
    GgufTensor tensor;
    tensor.name = std::string(text_at(position_ - length, length));
    OCTAVO_TRY_VOID(read_dimensions(tensor));
    OCTAVO_TRY_VOID(read_tensor_type(tensor));
    const std::uint64_t claim_position = position_;
    OCTAVO_TRY(const std::uint64_t offset,
               read_number<std::uint64_t>(tensor.name, "the offset of " + quoted(tensor.name)));
    claims_.push_back({offset, claim_position, start});
    header_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Result<void> read_dimensions(GgufTensor& tensor) {
    const std::uint64_t start = position_;
    const std::string what = "the shape of " + quoted(tensor.name);
    OCTAVO_TRY(tensor.num_dimensions, read_number<std::uint32_t>(tensor.name, what));
    if (tensor.num_dimensions < 1 || tensor.num_dimensions > kMaxTensorDimensions) {
      return damaged(tensor.name, start,
                     quoted(tensor.name) + " has " + std::to_string(tensor.num_dimensions) +
                         " dimensions; 1 to " + std::to_string(kMaxTensorDimensions) + " are possible");
    }
    tensor.num_elements = 1;
    for (std::uint32_t i = 0; i < tensor.num_dimensions; ++i) {
      const std::uint64_t position = position_;
      OCTAVO_TRY(const std::uint64_t dimension, read_number<std::uint64_t>(tensor.name, what));
      if (dimension < 1 || dimension > kMaxTensorDimension) {
        return damaged(tensor.name, position,
                       quoted(tensor.name) + " has a dimension of " + std::to_string(dimension));
      }
      tensor.dimensions[i] = static_cast<std::int64_t>(dimension);
      if (__builtin_mul_overflow(tensor.num_elements, tensor.dimensions[i], &tensor.num_elements)) {
        return damaged(tensor.name, position,
                       quoted(tensor.name) + " has more elements than 64 bits can count");
      }
    }
    return {};
  }

  Result<void> read_tensor_type(GgufTensor& tensor) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(tensor.type_number,
               read_number<std::uint32_t>(tensor.name, "the type of " + quoted(tensor.name)));
    const std::optional<StoredTensorType> stored = stored_tensor_type(tensor.type_number);
    if (!stored) {
      return failure(ErrorCode::kUnsupported, tensor.name, start,
                     "tensor " + quoted(tensor.name) + " has type number " +
                         std::to_string(tensor.type_number) +
                         ", which is unknown: choose another quantisation");
    }
    tensor.type_name = stored->name;
    if (tensor.dimensions[0] % stored->block_elements != 0) {
      return damaged(tensor.name, start,
                     quoted(tensor.name) + " has rows of " + std::to_string(tensor.dimensions[0]) +
                         " elements, which type " + std::string(stored->name) +
                         " cannot divide into blocks of " + std::to_string(stored->block_elements));
    }
    const std::uint64_t num_blocks = static_cast<std::uint64_t>(tensor.num_elements) / stored->block_elements;
    if (__builtin_mul_overflow(num_blocks, std::uint64_t{stored->block_bytes}, &tensor.num_bytes)) {
      return damaged(tensor.name, start, quoted(tensor.name) + " has more bytes than 64 bits can count");
    }
    return {};
  }

  Result<void> check_tensor_names() const {
    std::vector<std::uint32_t> order(header_.tensors_.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto name = [&](std::uint32_t index) -> const std::string& { return header_.tensors_[index].name; };
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return std::tie(name(a), a) < std::tie(name(b), b); });
    const auto same =
        std::adjacent_find(order.begin(), order.end(), [&](auto a, auto b) { return name(a) == name(b); });
    if (same == order.end()) return {};
    return damaged(name(*same), claims_[*(same + 1)].tensor_position,
                   "the tensor " + quoted(name(*same)) + " stands in it twice");
  }

  // Offsets must be the running sum of padded sizes: no holes, no overlaps, nothing outside the file.
  Result<void> place_tensors() {
    if (!pad_up(position_, header_.alignment_, header_.data_offset_))
      return damaged("", position_, "its header is too large");
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < header_.tensors_.size(); ++i) {
      GgufTensor& tensor = header_.tensors_[i];
      if (claims_[i].offset != expected) {
        return damaged(tensor.name, claims_[i].position,
                       "the data of " + quoted(tensor.name) + " is said to be at " +
                           std::to_string(claims_[i].offset) + " and must be at " + std::to_string(expected));
      }
      std::uint64_t end = 0;
      const bool fits = !__builtin_add_overflow(header_.data_offset_, expected, &tensor.byte_offset) &&
                        !__builtin_add_overflow(tensor.byte_offset, tensor.num_bytes, &end) &&
                        end <= source_.size();
      if (!fits) {
        return damaged(tensor.name, claims_[i].position,
                       "the data of " + quoted(tensor.name) + " does not lie inside the file of " +
                           std::to_string(source_.size()) + " bytes");
      }
      std::uint64_t padded = 0;
      if (!pad_up(tensor.num_bytes, header_.alignment_, padded) ||
          __builtin_add_overflow(expected, padded, &expected)) {
        return damaged(tensor.name, claims_[i].position,
                       "the tensors' sizes add up to more than 64 bits can count");
      }
    }
    return {};
  }

  struct Claim {
    std::uint64_t offset;           // of the data, as the file says
    std::uint64_t position;         // where the file says it
    std::uint64_t tensor_position;  // where the tensor's entry starts
  };

  const ByteSource& source_;
  GgufHeader header_;
  std::uint64_t position_ = 0;
  std::uint64_t num_tensors_ = 0, num_keys_ = 0;
  std::vector<Claim> claims_;  // one for each tensor
};

Result<GgufHeader> GgufHeader::parse(const ByteSource& source, std::string_view file_name) {
  return GgufParser(source, file_name).parse();
}

}  // namespace octavo::model
