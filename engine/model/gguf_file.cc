#include "engine/model/gguf_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"
#include "engine/model/sampling_advice.h"
#include "engine/model/vocabulary_reader.h"

namespace octavo::model {
namespace {

constexpr std::string_view kSplitNumberKey = "split.no";
constexpr std::string_view kSplitCountKey = "split.count";
constexpr std::string_view kSplitTensorsKey = "split.tensors.count";

struct SplitName {
  std::string base;  // what stands before -00001-of-00003.gguf
  std::uint32_t number, count;
};

std::optional<std::uint32_t> parse_five_digits(std::string_view text) {
  std::uint32_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return value;
}

std::optional<SplitName> parse_split_name(const std::string& file_name) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (file_name.size() < kPattern.size()) return std::nullopt;
  const std::size_t base_size = file_name.size() - kPattern.size();
  const std::string_view ending = std::string_view(file_name).substr(base_size);
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-" || ending.substr(15) != ".gguf") return std::nullopt;
  const auto number = parse_five_digits(ending.substr(1, 5));
  const auto count = parse_five_digits(ending.substr(10, 5));
  if (!number || !count) return std::nullopt;
  return SplitName{file_name.substr(0, base_size), *number, *count};
}

}  // namespace

Result<std::vector<std::filesystem::path>> files_of_model(const std::filesystem::path& path) {
  const std::optional<SplitName> name = parse_split_name(path.filename().string());
  if (!name) return std::vector<std::filesystem::path>{path};
  if (name->count < 1 || name->count > kMaxShards || name->number < 1 || name->number > name->count) {
    return Error{ErrorCode::kDamagedFile,
                 path_for_message(path) + ": its name says it is file " + std::to_string(name->number) +
                     " of " + std::to_string(name->count) + "; 1 of 1 to 1000 of 1000 are allowed"};
  }
  std::vector<std::filesystem::path> files;
  for (std::uint32_t i = 1; i <= name->count; ++i) {
    std::array<char, 32> ending{};
    std::snprintf(ending.data(), ending.size(), "-%05u-of-%05u.gguf", i, name->count);
    files.push_back(path.parent_path() / (name->base + ending.data()));
  }
  return files;
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  OCTAVO_TRY(const auto files, files_of_model(path));
  GgufFile model;
  model.path_ = path;
  for (const std::filesystem::path& file : files) OCTAVO_TRY_VOID(model.add_file(file));
  OCTAVO_TRY_VOID(model.check_split(static_cast<std::uint32_t>(files.size())));
  OCTAVO_TRY_VOID(model.index_tensors());
  OCTAVO_TRY_VOID(model.verify_unchanged());
  return model;
}

Result<void> GgufFile::add_file(const std::filesystem::path& path) {
  OCTAVO_TRY(auto file, FileMapping::open(path));
  OCTAVO_TRY(auto header, GgufHeader::parse(*file, path.string()));
  const auto shard = static_cast<std::uint32_t>(shards_.size());
  for (const GgufTensor& tensor : header.tensors()) {
    tensors_.push_back(tensor);
    tensors_.back().shard = shard;
  }
  shards_.push_back({std::move(file), std::move(header)});
  return {};
}

Result<void> GgufFile::check_split(std::uint32_t num_files) const {
  const auto mismatch = [](const GgufHeader& header, std::string_view key, std::uint32_t found,
                           std::uint64_t expected) {
    return header.error_about(key, ErrorCode::kDamagedFile,
                              "is " + std::to_string(found) + " where the files' names and contents say " +
                                  std::to_string(expected) + "; give the files their original names");
  };
  if (num_files == 1 && !header().contains(kSplitCountKey)) return {};
  for (std::uint32_t i = 0; i < num_files; ++i) {
    const GgufHeader& shard = shards_[i].header;
    OCTAVO_TRY(const auto count, shard.get<std::uint32_t>(kSplitCountKey));
    if (count != num_files) return mismatch(shard, kSplitCountKey, count, num_files);
    OCTAVO_TRY(const auto number, shard.get<std::uint32_t>(kSplitNumberKey));
    if (number != i) return mismatch(shard, kSplitNumberKey, number, i);
    OCTAVO_TRY(const auto num_tensors, shard.get<std::uint32_t>(kSplitTensorsKey));
    if (num_tensors != tensors_.size())
      return mismatch(shard, kSplitTensorsKey, num_tensors, tensors_.size());
    if (const auto key = header().first_disagreement(shard, kSplitNumberKey)) {
      return shard.error_about(*key, ErrorCode::kDamagedFile,
                               "differs from the first file of the model; the files do not belong together");
    }
  }
  return {};
}

Result<void> GgufFile::index_tensors() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name = [&](std::uint32_t index) -> const std::string& { return tensors_[index].name; };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](auto a, auto b) { return std::tie(name(a), a) < std::tie(name(b), b); });
  const auto same = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                       [&](auto a, auto b) { return name(a) == name(b); });
  if (same == by_name_.end()) return {};
  const GgufTensor& second = tensors_[*(same + 1)];
  return Error{ErrorCode::kDamagedFile,
               escape_for_message(shards_[second.shard].header.file_name(), 1000) + ": the tensor \"" +
                   escape_for_message(second.name) +
                   "\" is also in another file of the model; the files do not belong together",
               second.name};
}

std::uint64_t GgufFile::file_bytes() const {
  std::uint64_t total = 0;  // of files that exist: cannot wrap
  for (const Shard& shard : shards_) total += shard.file->size();
  return total;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::uint32_t index, std::string_view wanted) { return tensors_[index].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

std::span<const std::byte> GgufFile::bytes_of(const GgufTensor& tensor) const {
  return shards_[tensor.shard].file->bytes().subspan(static_cast<std::size_t>(tensor.byte_offset),
                                                     static_cast<std::size_t>(tensor.num_bytes));
}

Result<tokenizer::Vocabulary> GgufFile::read_vocabulary() const { return model::read_vocabulary(header()); }

SamplingAdvice GgufFile::sampling_advice() const { return read_sampling_advice(header()); }

Result<void> GgufFile::verify_unchanged() const {
  for (const Shard& shard : shards_) OCTAVO_TRY_VOID(shard.file->verify_unchanged());
  return {};
}

}  // namespace octavo::model
