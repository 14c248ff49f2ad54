#include "engine/model/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/model/gguf_type.h"
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
constexpr std::uint64_t kBooleansAtOnce = std::uint64_t{64} << 10;
static_assert(kReadAhead >= kMaxKeyBytes && kReadAhead >= kMaxShortValueBytes);

// Keys under which a vocabulary stands: their values may be large.
constexpr std::array<std::string_view, 2> kVocabularyPrefixes = {"tokenizer.ggml.",
                                                                 "tokenizer.chat_template"};

// Rounds up to a multiple of a power of two; false when that does not fit.
bool pad_up(std::uint64_t value, std::uint64_t alignment, std::uint64_t& padded) {
  if (__builtin_add_overflow(value, alignment - 1, &padded)) return false;
  padded &= ~(alignment - 1);
  return true;
}

std::string in_quotes(std::string_view text) { return "\"" + escape_for_message(text) + "\""; }

bool is_of_vocabulary(std::string_view key) {
  return std::any_of(kVocabularyPrefixes.begin(), kVocabularyPrefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

std::uint64_t load_length(const std::byte* bytes) {
  std::uint64_t length;
  std::memcpy(&length, bytes, sizeof length);
  return length;
}

// Whether these bytes are exactly `count` strings, each with its length before it.
bool are_strings(std::span<const std::byte> bytes, std::uint64_t count) {
  std::uint64_t position = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (bytes.size() - position < 8) return false;
    const std::uint64_t length = load_length(bytes.data() + position);
    position += 8;
    if (length > bytes.size() - position) return false;
    position += length;
  }
  return position == bytes.size();
}

}  // namespace

// Walks a file once, from the front, through a window of about a megabyte. Every number that is believed was
// read from memory of our own; what is kept is copied from the window, or read again and then checked again.
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
    OCTAVO_TRY_VOID(keep_vocabulary());
    return std::move(header_);
  }

 private:
  // ---- errors
  Error failure(ErrorCode code, std::string_view subject, std::uint64_t offset,
                const std::string& sentence) const {
    return {code, escape_for_message(header_.file_name_, 1000) + ": " + sentence, std::string(subject),
            offset};
  }
  Error damaged(std::string_view subject, std::uint64_t offset, const std::string& finding) const {
    return failure(
        ErrorCode::kDamagedFile, subject, offset,
        finding + " (at byte " + std::to_string(offset) + "); the file is damaged: download it again");
  }

  // ---- bytes
  std::uint64_t remaining() const { return source_.size() - position_; }

  // Whether the next `count` bytes are there. `what` completes "the file ends within ...".
  Result<void> check_next(std::uint64_t count, std::string_view subject, std::string_view what) const {
    if (count > remaining()) return damaged(subject, position_, "the file ends within " + std::string(what));
    if (position_ + count <= kMaxMetadataBytes) return {};  // <= size of the file: cannot wrap
    return failure(ErrorCode::kUnsupported, subject, position_,
                   "its metadata is larger than " + std::to_string(kMaxMetadataBytes >> 20) +
                       " MiB; no model that Octavo supports needs that much");
  }

  bool is_in_window(std::uint64_t offset, std::uint64_t count) const {
    return offset >= window_start_ && offset + count <= window_start_ + window_.size();
  }

  // The same, and brings them into the window.  REQUIRES: count <= kReadAhead
  Result<void> need(std::uint64_t count, std::string_view subject, std::string_view what) {
    OCTAVO_TRY_VOID(check_next(count, subject, what));
    if (is_in_window(position_, count)) return {};
    window_.resize(static_cast<std::size_t>(std::min(remaining(), kReadAhead)));
    window_start_ = position_;
    return source_.read(window_start_, window_);
  }

  // REQUIRES: in the window
  const std::byte* at(std::uint64_t offset) const { return window_.data() + (offset - window_start_); }

  // REQUIRES: needed
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, at(position_), sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  template <class T>
  Result<T> read_number(std::string_view subject, std::string_view what) {
    OCTAVO_TRY_VOID(need(sizeof(T), subject, what));
    return take<T>();
  }

  Result<std::uint64_t> read_length(std::uint64_t cap, std::string_view subject, std::string_view what) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(const std::uint64_t length, read_number<std::uint64_t>(subject, what));
    if (length <= cap) return length;
    return damaged(subject, start,
                   std::string(what) + " claims " + std::to_string(length) + " bytes; at most " +
                       std::to_string(cap) + " are allowed");
  }

  // REQUIRES: cap <= kReadAhead
  Result<std::string> read_text(std::uint64_t cap, std::string_view subject, std::string_view what) {
    OCTAVO_TRY(const std::uint64_t length, read_length(cap, subject, what));
    OCTAVO_TRY_VOID(need(length, subject, what));
    std::string text(reinterpret_cast<const char*>(at(position_)), static_cast<std::size_t>(length));
    position_ += length;
    return text;
  }

  // What a person would recognise a text file by: its first line, or a few words of it; else four bytes.
  std::string_view first_words() const {
    constexpr std::size_t kMost = 24;
    const std::string_view start(reinterpret_cast<const char*>(window_.data()),
                                 std::min(window_.size(), kMost));
    const auto end = std::ranges::find_if(start, [](char c) { return c < 0x20 || c > 0x7e; });
    const auto length = static_cast<std::size_t>(end - start.begin());
    return start.substr(0, std::max<std::size_t>(length, 4));
  }

  // ---- the stages
  Result<void> read_preamble() {
    OCTAVO_TRY_VOID(need(4, "", "its first four bytes"));
    const std::string_view start(reinterpret_cast<const char*>(at(0)), 4);
    if (start != kMagic) {
      return failure(ErrorCode::kDamagedFile, "", 0,
                     "this is not a GGUF file: it starts with " + in_quotes(first_words()) +
                         " instead of \"GGUF\"; choose a .gguf file");
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
                     "this GGUF file is big-endian; download the little-endian one");
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
      OCTAVO_TRY(const std::string key, read_text(kMaxKeyBytes, "", what));
      if (key.empty()) return damaged("", position_, what + " is empty");
      key_offsets_.push_back(position_ - key.size());
      GgufHeader::Entry entry{};
      entry.key_start = header_.bytes_.size();
      entry.key_length = static_cast<std::uint32_t>(key.size());
      const auto key_bytes = std::as_bytes(std::span(key));
      header_.bytes_.insert(header_.bytes_.end(), key_bytes.begin(), key_bytes.end());
      OCTAVO_TRY_VOID(read_value(key, entry));
      header_.entries_.push_back(entry);
    }
    return {};
  }

  Result<ValueType> read_type(const std::string& key) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(const std::uint32_t number, read_number<std::uint32_t>(key, "the type of " + in_quotes(key)));
    if (const auto type = value_type_from(number)) return *type;
    return damaged(key, start,
                   in_quotes(key) + " has value type " + std::to_string(number) + ", which does not exist");
  }

  Result<void> read_value(const std::string& key, GgufHeader::Entry& entry) {
    OCTAVO_TRY(entry.type, read_type(key));
    entry.element_type = entry.type;
    entry.count = 1;
    if (entry.type == ValueType::kArray) OCTAVO_TRY_VOID(read_array_preamble(key, entry));
    entry.value_offset = position_;
    OCTAVO_TRY_VOID(entry.element_type == ValueType::kString ? skip_strings(key, entry)
                                                             : skip_numbers(key, entry));
    entry.value_bytes = position_ - entry.value_offset;
    entry.value_start = GgufHeader::kNotKept;
    if (entry.value_bytes <= kMaxShortValueBytes) OCTAVO_TRY_VOID(keep(key, entry));
    if (header_.bytes_.size() <= kMaxShortBytes) return {};
    return failure(ErrorCode::kUnsupported, key, entry.value_offset,
                   "its keys and short values take more than " + std::to_string(kMaxShortBytes >> 20) +
                       " MiB; no model that Octavo supports needs that much");
  }

  Result<void> keep(std::string_view key, GgufHeader::Entry& entry) {
    std::vector<std::byte>& bytes = header_.bytes_;
    entry.value_start = bytes.size();
    bytes.resize(bytes.size() + static_cast<std::size_t>(entry.value_bytes));
    const auto kept = std::span(bytes).subspan(static_cast<std::size_t>(entry.value_start));
    if (is_in_window(entry.value_offset, entry.value_bytes)) {
      std::copy_n(at(entry.value_offset), kept.size(), kept.begin());
    } else {
      OCTAVO_TRY_VOID(source_.read(entry.value_offset, kept));
    }
    if (entry.element_type != ValueType::kString || are_strings(kept, entry.count)) return {};
    return failure(ErrorCode::kIo, key, entry.value_offset,
                   in_quotes(key) + " changed while it was being read; load it again");
  }

  // Only once everything else holds: of a file that is refused, nothing large is read.
  Result<void> keep_vocabulary() {
    std::uint64_t num_bytes = 0;  // of values that lie in the file: cannot wrap
    const auto is_wanted = [&](const GgufHeader::Entry& entry) {
      return entry.value_start == GgufHeader::kNotKept && is_of_vocabulary(header_.key_of(entry));
    };
    for (const GgufHeader::Entry& entry : header_.entries_) {
      if (is_wanted(entry)) num_bytes += entry.value_bytes;
      if (num_bytes > kMaxVocabularyBytes) {
        return failure(ErrorCode::kUnsupported, header_.key_of(entry), entry.value_offset,
                       "its vocabulary takes more than " + std::to_string(kMaxVocabularyBytes >> 20) +
                           " MiB; no model that Octavo supports needs that much");
      }
    }
    header_.bytes_.reserve(header_.bytes_.size() + static_cast<std::size_t>(num_bytes));
    for (GgufHeader::Entry& entry : header_.entries_) {
      if (is_wanted(entry)) OCTAVO_TRY_VOID(keep(std::string(header_.key_of(entry)), entry));
    }
    return {};
  }

  Result<void> read_array_preamble(const std::string& key, GgufHeader::Entry& entry) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(entry.element_type, read_type(key));
    if (entry.element_type == ValueType::kArray) {
      return damaged(key, start, in_quotes(key) + " is an array of arrays, which GGUF files do not use");
    }
    OCTAVO_TRY(entry.count, read_number<std::uint64_t>(key, "the length of " + in_quotes(key)));
    if (entry.count > remaining() / stored_bytes(entry.element_type)) {
      return damaged(key, start,
                     in_quotes(key) + " claims " + std::to_string(entry.count) +
                         " elements, which is more than the file can hold");
    }
    // Each string and each boolean has to be looked at; numbers are stepped over.
    const bool is_walked = entry.element_type == ValueType::kString || entry.element_type == ValueType::kBool;
    if (!is_walked || entry.count <= kMaxArrayStrings) return {};
    return damaged(key, start,
                   in_quotes(key) + " claims " + std::to_string(entry.count) +
                       (entry.element_type == ValueType::kString ? " strings" : " booleans") + "; at most " +
                       std::to_string(kMaxArrayStrings) + " are allowed");
  }

  Result<void> skip_numbers(const std::string& key, const GgufHeader::Entry& entry) {
    // The product cannot wrap: the count of an array was held against the bytes that are left.
    const std::uint64_t num_bytes = entry.count * stored_bytes(entry.element_type);
    const std::string what = "the value of " + in_quotes(key);
    OCTAVO_TRY_VOID(check_next(num_bytes, key, what));
    if (entry.element_type == ValueType::kBool) return check_booleans(key, num_bytes, what);
    position_ += num_bytes;
    return {};
  }

  Result<void> check_booleans(const std::string& key, std::uint64_t left, std::string_view what) {
    while (left > 0) {
      const std::uint64_t count = std::min(left, kBooleansAtOnce);
      OCTAVO_TRY_VOID(need(count, key, what));
      for (const std::uint64_t end = position_ + count; position_ < end; ++position_) {
        const auto value = std::to_integer<unsigned>(*at(position_));
        if (value <= 1) continue;
        return damaged(key, position_,
                       in_quotes(key) + " holds " + std::to_string(value) + ", but booleans must be 0 or 1");
      }
      left -= count;
    }
    return {};
  }

  Result<void> skip_strings(const std::string& key, const GgufHeader::Entry& entry) {
    const std::uint64_t cap = key == kChatTemplateKey ? kMaxChatTemplateBytes : kMaxStringBytes;
    const std::string what = "a string of " + in_quotes(key);
    std::uint64_t left = entry.count;
    while (left > 0) {
      left -= skip_strings_in_window(cap, left);
      if (left == 0) break;
      OCTAVO_TRY(const std::uint64_t length, read_length(cap, key, what));
      OCTAVO_TRY_VOID(check_next(length, key, what));
      position_ += length;
      --left;
    }
    return {};
  }

  // Steps over strings whose lengths stand in the window and hold; returns how many. Tens of millions may
  // follow.
  std::uint64_t skip_strings_in_window(std::uint64_t cap, std::uint64_t most) {
    const std::uint64_t end = std::min(source_.size(), kMaxMetadataBytes);
    std::uint64_t count = 0;
    for (; count < most && is_in_window(position_, 8); ++count) {
      const std::uint64_t length = load_length(at(position_));
      if (length > cap || position_ + 8 + length > end) break;  // cannot wrap: the cap is small
      position_ += 8 + length;
    }
    return count;
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
    return damaged(key(*same), key_offsets_[*(same + 1)],
                   "the key " + in_quotes(key(*same)) + " appears twice");
  }

  Result<void> read_alignment() {
    header_.alignment_ = kDefaultAlignment;
    const GgufHeader::Entry* entry = header_.find_entry(kAlignmentKey);
    if (entry == nullptr) return {};
    if (entry->type != ValueType::kU32) {
      return damaged(
          kAlignmentKey, entry->value_offset,
          "general.alignment has type " + std::string(value_type_name(entry->type)) + " instead of u32");
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
    GgufTensor tensor;
    OCTAVO_TRY(tensor.name, read_text(kMaxTensorNameBytes, "", "the name of " + what));
    if (tensor.name.empty()) return damaged("", start, what + " has no name");
    OCTAVO_TRY_VOID(read_dimensions(tensor));
    OCTAVO_TRY_VOID(read_tensor_type(tensor));
    const std::uint64_t claim_position = position_;
    OCTAVO_TRY(const std::uint64_t offset,
               read_number<std::uint64_t>(tensor.name, "the offset of " + in_quotes(tensor.name)));
    claims_.push_back({offset, claim_position, start});
    header_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Result<void> read_dimensions(GgufTensor& tensor) {
    const std::uint64_t start = position_;
    const std::string what = "the shape of " + in_quotes(tensor.name);
    OCTAVO_TRY(tensor.num_dimensions, read_number<std::uint32_t>(tensor.name, what));
    if (tensor.num_dimensions < 1 || tensor.num_dimensions > kMaxTensorDimensions) {
      return damaged(tensor.name, start,
                     in_quotes(tensor.name) + " has " + std::to_string(tensor.num_dimensions) +
                         " dimensions; 1 to " + std::to_string(kMaxTensorDimensions) + " are allowed");
    }
    tensor.num_elements = 1;
    for (std::uint32_t i = 0; i < tensor.num_dimensions; ++i) {
      const std::uint64_t position = position_;
      OCTAVO_TRY(const std::uint64_t dimension, read_number<std::uint64_t>(tensor.name, what));
      if (dimension < 1 || dimension > kMaxTensorDimension) {
        return damaged(tensor.name, position,
                       in_quotes(tensor.name) + " has a dimension of " + std::to_string(dimension));
      }
      tensor.dimensions[i] = static_cast<std::int64_t>(dimension);
      if (__builtin_mul_overflow(tensor.num_elements, tensor.dimensions[i], &tensor.num_elements)) {
        return damaged(tensor.name, position,
                       in_quotes(tensor.name) + " has more elements than 64 bits can count");
      }
    }
    return {};
  }

  Result<void> read_tensor_type(GgufTensor& tensor) {
    const std::uint64_t start = position_;
    OCTAVO_TRY(tensor.type_number,
               read_number<std::uint32_t>(tensor.name, "the type of " + in_quotes(tensor.name)));
    const std::optional<StoredTensorType> stored = stored_tensor_type(tensor.type_number);
    if (!stored) {
      return failure(ErrorCode::kUnsupported, tensor.name, start,
                     "tensor " + in_quotes(tensor.name) + " has type number " +
                         std::to_string(tensor.type_number) +
                         ", which is unknown: choose another quantisation");
    }
    tensor.type_name = stored->name;
    if (tensor.dimensions[0] % stored->block_elements != 0) {
      return damaged(tensor.name, start,
                     in_quotes(tensor.name) + " has rows of " + std::to_string(tensor.dimensions[0]) +
                         " elements, which type " + std::string(stored->name) +
                         " cannot divide into blocks of " + std::to_string(stored->block_elements));
    }
    const std::uint64_t num_blocks = static_cast<std::uint64_t>(tensor.num_elements) / stored->block_elements;
    if (__builtin_mul_overflow(num_blocks, std::uint64_t{stored->block_bytes}, &tensor.num_bytes)) {
      return damaged(tensor.name, start, in_quotes(tensor.name) + " has more bytes than 64 bits can count");
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
                   "the tensor " + in_quotes(name(*same)) + " appears twice");
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
                       "the data of " + in_quotes(tensor.name) + " is listed at " +
                           std::to_string(claims_[i].offset) + " but must be at " + std::to_string(expected));
      }
      std::uint64_t end = 0;
      const bool fits = !__builtin_add_overflow(header_.data_offset_, expected, &tensor.byte_offset) &&
                        !__builtin_add_overflow(tensor.byte_offset, tensor.num_bytes, &end) &&
                        end <= source_.size();
      if (!fits) {
        return damaged(tensor.name, claims_[i].position,
                       "the data of " + in_quotes(tensor.name) + " is outside the file of " +
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
  std::vector<std::byte> window_;  // a copy of the file's bytes from window_start_ on
  std::uint64_t window_start_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t num_tensors_ = 0, num_keys_ = 0;
  std::vector<std::uint64_t> key_offsets_;  // in the file, one for each key
  std::vector<Claim> claims_;               // one for each tensor
};

Result<GgufHeader> GgufHeader::parse(const ByteSource& source, std::string_view file_name) {
  return GgufParser(source, file_name).parse();
}

}  // namespace octavo::model
