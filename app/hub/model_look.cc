#include "app/hub/model_look.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <system_error>
#include <vector>

#include "app/files/file_descriptor.h"
#include "engine/base/format.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"
#include "engine/model/byte_source.h"
#include "engine/model/gguf_header.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFetchBytes = std::int64_t{1} << 20;  // at once
constexpr std::size_t kMostShards = 64;

// A folder that goes with this object.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string name = ((error ? fs::path("/tmp") : parent) / "octavo-look.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return Error{ErrorCode::kIo,
                   "cannot make a folder in " + path_for_message(parent) + ": " + std::strerror(errno)};
    return ScratchFolder(name);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// The file on the hub: what is read is fetched once, and kept in a file with holes.
class RemoteSource final : public model::ByteSource {
 public:
  RemoteSource(HubClient& client, const HubRepository& repository, const HubFile& file,
               app::FileDescriptor kept)
      : client_(client), repository_(repository), file_(file), kept_(std::move(kept)) {}

  std::uint64_t size() const override { return static_cast<std::uint64_t>(file_.bytes); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto begin = static_cast<std::int64_t>(offset);
    const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
    for (std::int64_t piece = begin / kFetchBytes; piece * kFetchBytes < end; ++piece)
      OCTAVO_TRY_VOID(fetch(piece));
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t count =
          ::pread(kept_.get(), out.data() + done, out.size() - done, begin + static_cast<off_t>(done));
      if (count <= 0) return Error{ErrorCode::kIo, "what was fetched of a header cannot be read again"};
      done += static_cast<std::size_t>(count);
    }
    return {};
  }

 private:
  Result<void> fetch(std::int64_t piece) const {
    if (fetched_.contains(piece)) return {};
    if (static_cast<std::int64_t>(fetched_.size() + 1) * kFetchBytes > kMostHeaderBytes) {
      return Error{ErrorCode::kTooLong, "its header has more than " + bytes_text(kMostHeaderBytes) +
                                            ", so it cannot be looked into before it is downloaded"};
    }
    const ByteRange range{piece * kFetchBytes, std::min(file_.bytes, (piece + 1) * kFetchBytes)};
    OCTAVO_TRY(const std::string bytes, client_.read(repository_, file_, range));
    if (::pwrite(kept_.get(), bytes.data(), bytes.size(), range.begin) != static_cast<ssize_t>(bytes.size()))
      return Error{ErrorCode::kIo, std::string("a header cannot be kept: ") + std::strerror(errno)};
    fetched_.insert(piece);
    return {};
  }

  HubClient& client_;
  const HubRepository& repository_;
  const HubFile& file_;
  app::FileDescriptor kept_;
  mutable std::set<std::int64_t> fetched_;
};

ModelFit judge(std::int64_t needed, std::int64_t read_bytes, std::int64_t available,
               double read_bytes_per_s) {
  if (needed > available) return ModelFit::kNever;
  const double tokens_per_s = read_bytes_per_s / static_cast<double>(std::max<std::int64_t>(1, read_bytes));
  return tokens_per_s < kReadingTokensPerS ? ModelFit::kSlow : ModelFit::kFits;
}

std::string sentence_of(std::int64_t needed, ModelFit fit) {
  const char* const how = fit == ModelFit::kFits   ? ""
                          : fit == ModelFit::kSlow ? ", and is slow here"
                                                   : ", more than is free";
  return "Needs " + bytes_text(needed) + " of memory" + how;
}

// As far as its header is: the file's name inside `folder`, which the scout of a split model reads.
Result<void> fetch_header(HubClient& client, const HubRepository& repository, const HubFile& file,
                          const fs::path& path) {
  app::FileDescriptor kept(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!kept.ok() || ::ftruncate(kept.get(), file.bytes) != 0)
    return Error{ErrorCode::kIo, "cannot write " + path_for_message(path) + ": " + std::strerror(errno)};
  const RemoteSource source(client, repository, file, std::move(kept));
  OCTAVO_TRY([[maybe_unused]] const auto header, model::GgufHeader::parse(source, file.path));
  return {};
}

// The scratch file's name is nobody's business.
Error in_words_of_the_hub(Error error, const fs::path& scratch, const std::string& path) {
  for (const std::string& name : {path_for_message(scratch), scratch.string()}) {
    for (std::size_t at; (at = error.message.find(name)) != std::string::npos;)
      error.message.replace(at, name.size(), escape_for_message(path));
  }
  return error;
}

}  // namespace

const char* fit_name(ModelFit fit) {
  switch (fit) {
    case ModelFit::kFits: return "fits";
    case ModelFit::kSlow: return "slow";
    case ModelFit::kNever: return "does not fit";
  }
  return "";
}

ModelNeed estimate_need(std::int64_t file_bytes, std::int64_t read_bytes, std::int64_t available_bytes,
                        double read_bytes_per_s) {
  ModelNeed need{.needed_bytes = file_bytes + file_bytes / 5, .read_bytes = read_bytes};
  need.fit = judge(need.needed_bytes, read_bytes, available_bytes, read_bytes_per_s);
  need.sentence = sentence_of(need.needed_bytes, need.fit);
  return need;
}

Result<ModelNeed> plan_need(const ModelPreview& preview, const EngineOptions& options,
                            std::int64_t available_bytes, double read_bytes_per_s) {
  OCTAVO_TRY(const MemoryPlan plan, preview.plan(options, available_bytes));
  const ModelDescription described = preview.describe();
  const std::int64_t blocks_per_context = (plan.max_model_len + plan.block_size - 1) / plan.block_size;
  const auto of_one_context = [&](std::int64_t num_blocks) {
    return std::min(num_blocks, blocks_per_context);
  };
  ModelNeed need{.needed_bytes = plan.weight_bytes + plan.working_bytes +
                                 of_one_context(plan.num_blocks) * plan.bytes_per_block +
                                 of_one_context(plan.num_window_blocks) * plan.bytes_per_window_block +
                                 plan.bytes_per_state,
                 .read_bytes = plan.weight_bytes};
  if (described.num_experts > 0) {
    need.read_bytes -=
        described.expert_bytes / described.num_experts * (described.num_experts - described.num_used_experts);
  }
  need.fit = plan.refusal ? ModelFit::kNever : judge(0, need.read_bytes, available_bytes, read_bytes_per_s);
  need.sentence = sentence_of(need.needed_bytes, need.fit);
  return need;
}

Result<ModelPreview> look_into(HubClient& client, const HubRepository& repository, const GgufModel& model,
                               const CheckHeader& check) {
  if (model.files.size() > kMostShards)
    return Error{ErrorCode::kUnsupported,
                 "'" + escape_for_message(model.path) + "' has too many files to look into"};
  OCTAVO_TRY(const ScratchFolder folder, ScratchFolder::make());
  const auto scratch_of = [&](const HubFile& file) { return folder.path() / fs::path(file.path).filename(); };
  for (const HubFile& file : model.files)
    OCTAVO_TRY_VOID(fetch_header(client, repository, file, scratch_of(file)));
  const fs::path first = scratch_of(model.files.front());
  if (check) {
    if (const auto checked = check(first); !checked)
      return in_words_of_the_hub(checked.error(), first, model.path);
  }
  auto preview = ModelPreview::open(first);
  if (!preview) return in_words_of_the_hub(preview.error(), first, model.path);
  return preview;
}

}  // namespace octavo::hub
