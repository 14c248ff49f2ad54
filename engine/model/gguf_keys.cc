#include "engine/model/gguf_keys.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/file_mapping.h"

namespace octavo::model {
namespace {

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

}  // namespace

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  append_number(bytes, std::uint64_t{text.size()});
  const auto all = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), all.begin(), all.end());
}

Result<void> GgufKeys::copy(const GgufFile& file, std::span<const std::string_view> except) {
  OCTAVO_TRY(const std::vector<std::filesystem::path> files, files_of_model(file.path()));
  OCTAVO_TRY(const std::unique_ptr<FileMapping> mapping, FileMapping::open(files.front()));
  KeyWalker walker(mapping->bytes());
  walker.number<std::uint32_t>();  // magic
  walker.number<std::uint32_t>();  // version
  walker.number<std::uint64_t>();  // tensors
  const auto num_keys = walker.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < num_keys && walker.is_good(); ++i) {
    const std::size_t begin = walker.position();
    const std::string_view key = walker.text();
    const auto value_type = value_type_from(walker.number<std::uint32_t>());
    if (!value_type) {
      walker.fail();
      break;
    }
    walker.skip_value(*value_type);
    if (!walker.is_good() || std::ranges::find(except, key) != except.end()) continue;
    const auto raw = mapping->bytes().subspan(begin, walker.position() - begin);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    ++count_;
  }
  OCTAVO_TRY_VOID(mapping->verify_unchanged());
  if (!walker.is_good()) {
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(file.path()) + " changed while it was read: try again"};
  }
  return {};
}

// ---- sources of another format

Result<void> GgufKeys::translate(const Metadata& metadata) {
  for (std::size_t i = 0; i < metadata.num_keys(); ++i) {
    const std::string_view key = metadata.key_at(i);
    OCTAVO_TRY(const bool is_list, metadata.is_array(key));
    OCTAVO_TRY_VOID(is_list ? translate_list(metadata, key) : translate_value(metadata, key));
  }
  return {};
}

// Typed access is the only one there is: each type in turn.
Result<void> GgufKeys::translate_value(const Metadata& metadata, std::string_view key) {
  if (const auto text = metadata.get<std::string_view>(key)) {
    add_text(key, *text);
  } else if (const auto flag = metadata.get<bool>(key)) {
    add_flag(key, *flag);
  } else if (const auto number = metadata.get<float>(key)) {
    add_float(key, *number);
  } else if (const auto whole = metadata.get<std::uint32_t>(key)) {
    add_u32(key, *whole);
  } else {
    OCTAVO_TRY(const auto below_zero, metadata.get<std::int32_t>(key));
    start(key, ValueType::kI32);
    append_number(bytes_, below_zero);
  }
  return {};
}

Result<void> GgufKeys::translate_list(const Metadata& metadata, std::string_view key) {
  if (const auto flags = metadata.get<std::vector<bool>>(key)) {
    add_numbers(key, ValueType::kBool, std::vector<std::uint8_t>(flags->begin(), flags->end()));
  } else if (const auto numbers = metadata.get<std::vector<float>>(key)) {
    add_numbers(key, ValueType::kF32, *numbers);
  } else {
    OCTAVO_TRY(const auto whole, metadata.get<std::vector<std::int32_t>>(key));
    add_numbers(key, ValueType::kI32, whole);
  }
  return {};
}

void GgufKeys::add_vocabulary(const tokenizer::Vocabulary& vocabulary) {
  add_text("tokenizer.ggml.model", vocabulary.model);
  if (!vocabulary.split_pattern.empty()) add_text("tokenizer.ggml.pre", vocabulary.split_pattern);
  const auto add_texts = [&](std::string_view key, const std::vector<std::string>& texts) {
    start_list(key, ValueType::kString, texts.size());
    for (const std::string& text : texts) append_text(bytes_, text);
  };
  add_texts("tokenizer.ggml.tokens", vocabulary.tokens);
  if (!vocabulary.scores.empty()) add_numbers("tokenizer.ggml.scores", ValueType::kF32, vocabulary.scores);
  if (!vocabulary.kinds.empty()) add_numbers("tokenizer.ggml.token_type", ValueType::kI32, vocabulary.kinds);
  if (!vocabulary.merges.empty()) add_texts("tokenizer.ggml.merges", vocabulary.merges);
  const auto add_id = [&](std::string_view key, std::optional<TokenId> id) {
    if (id) add_u32(key, static_cast<std::uint32_t>(*id));
  };
  const std::vector<TokenId>& ends = vocabulary.further_eos_token_ids;
  add_id("tokenizer.ggml.bos_token_id", vocabulary.bos_token_id);
  add_id("tokenizer.ggml.eos_token_id", vocabulary.eos_token_id);
  add_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown_token_id);
  add_id("tokenizer.ggml.eot_token_id", !ends.empty() ? std::optional(ends[0]) : std::nullopt);
  add_id("tokenizer.ggml.eom_token_id", ends.size() > 1 ? std::optional(ends[1]) : std::nullopt);
  add_flag("tokenizer.ggml.add_bos_token", vocabulary.add_bos_token);
  add_flag("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
  if (vocabulary.remove_extra_whitespaces) add_flag("tokenizer.ggml.remove_extra_whitespaces", true);
  const std::string& rules = vocabulary.precompiled_charsmap;
  if (!rules.empty())
    add_numbers("tokenizer.ggml.precompiled_charsmap", ValueType::kU8,
                std::vector<std::uint8_t>(rules.begin(), rules.end()));
  if (!vocabulary.chat_template.empty()) add_text("tokenizer.chat_template", vocabulary.chat_template);
}

void GgufKeys::add_advice(const SamplingAdvice& advice) {
  const auto add = [&](std::string_view key, const std::optional<double>& value) {
    if (value) add_float(key, static_cast<float>(*value));
  };
  add("general.sampling.temp", advice.temperature);
  add("general.sampling.top_p", advice.top_p);
  add("general.sampling.min_p", advice.min_p);
  add("general.sampling.penalty_repeat", advice.repetition_penalty);
  if (!advice.top_k) return;
  start("general.sampling.top_k", ValueType::kI32);
  append_number(bytes_, *advice.top_k);
}

// ---- values

void GgufKeys::start(std::string_view key, ValueType type) {
  append_text(bytes_, key);
  append_number(bytes_, static_cast<std::uint32_t>(type));
  ++count_;
}

void GgufKeys::start_list(std::string_view key, ValueType type, std::size_t count) {
  start(key, ValueType::kArray);
  append_number(bytes_, static_cast<std::uint32_t>(type));
  append_number(bytes_, std::uint64_t{count});
}

void GgufKeys::add_u32(std::string_view key, std::uint32_t value) {
  start(key, ValueType::kU32);
  append_number(bytes_, value);
}

void GgufKeys::add_float(std::string_view key, float value) {
  start(key, ValueType::kF32);
  append_number(bytes_, value);
}

void GgufKeys::add_flag(std::string_view key, bool value) {
  start(key, ValueType::kBool);
  append_number(bytes_, std::uint8_t{value});
}

void GgufKeys::add_text(std::string_view key, std::string_view value) {
  start(key, ValueType::kString);
  append_text(bytes_, value);
}

template <class T>
void GgufKeys::add_numbers(std::string_view key, ValueType type, const std::vector<T>& values) {
  start_list(key, type, values.size());
  const auto raw = std::as_bytes(std::span(values));
  bytes_.insert(bytes_.end(), raw.begin(), raw.end());
}

}  // namespace octavo::model
