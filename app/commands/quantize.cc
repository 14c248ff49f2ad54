#include "app/commands/quantize.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "app/commands/command.h"
#include "app/files/file_descriptor.h"
#include "app/files/whole_file.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model/gguf_file.h"
#include "engine/model/hugging_face/folder_source.h"
#include "engine/model/model_files.h"
#include "engine/model/quantised_file.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;
using kernels::TensorType;

struct QuantizeOptions {
  std::string model, out;
  TensorType type = TensorType::kQ4_K;
  bool force = false, verbose = false;
};

Error io_error(const fs::path& path, std::string_view doing, int reason) {
  return {ErrorCode::kIo, path_for_message(path) + ": " + std::string(doing) + ": " + std::strerror(reason)};
}

// Gone again, unless it was kept.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(fs::path path) : path_(std::move(path)) {}
  ~UnfinishedFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

Result<void> check_target(const QuantizeOptions& options, const fs::path& source) {
  std::error_code ignored;
  const fs::path out = options.out;
  if (fs::is_directory(out, ignored)) {
    return Error{ErrorCode::kInvalidArgument, path_for_message(out) + " is a folder; name a file to write",
                 "OUT"};
  }
  if (fs::exists(out, ignored) && fs::equivalent(out, source, ignored)) {
    return Error{ErrorCode::kInvalidArgument,
                 path_for_message(out) + " is the model itself; name another file", "OUT"};
  }
  if (fs::exists(out, ignored) && !options.force) {
    return Error{ErrorCode::kInvalidArgument, path_for_message(out) + " exists; --force overwrites it",
                 "OUT"};
  }
  return {};
}

Result<void> check_space(const fs::path& folder, std::uint64_t needed) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  if (failed || space.available >= needed) return {};
  return Error{ErrorCode::kIo, path_for_message(folder) + " has room for " +
                                   exact_bytes_text(space.available) + ", and the file needs " +
                                   exact_bytes_text(needed) + ": choose another folder or free some"};
}

// One of the two.
struct OpenedSource {
  std::optional<model::FolderSource> folder;
  std::optional<model::GgufFile> file;

  Result<model::QuantisedFile> plan(TensorType type) const {
    return folder ? model::QuantisedFile::plan(*folder, type) : model::QuantisedFile::plan(*file, type);
  }
};

Result<OpenedSource> open_source(const fs::path& source) {
  OpenedSource opened;
  if (model::is_model_folder(source)) {
    OCTAVO_TRY(opened.folder, model::FolderSource::open(source));
  } else {
    OCTAVO_TRY(opened.file, model::GgufFile::open(source));
  }
  return opened;
}

Result<void> run_quantize(const QuantizeOptions& options) {
  OCTAVO_TRY(const fs::path source, model::find_model(options.model));
  OCTAVO_TRY_VOID(check_target(options, source));
  OCTAVO_TRY(const OpenedSource opened, open_source(source));
  OCTAVO_TRY(model::QuantisedFile quantised, opened.plan(options.type));
  const fs::path out = options.out;
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  OCTAVO_TRY_VOID(check_space(folder, quantised.num_bytes()));

  UnfinishedFile unfinished(out.string() + ".part");
  FileDescriptor descriptor(
      open(unfinished.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!descriptor.ok()) return io_error(unfinished.path(), "it cannot be written", errno);
  Progress progress(options.verbose);
  const InterruptGuard guard;
  const auto sink = [&](std::span<const std::byte> bytes) -> Result<void> {
    const int failed =
        write_all(descriptor.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (failed != 0) return io_error(unfinished.path(), "writing failed", failed);
    return {};
  };
  const auto report = [&](double fraction) {
    progress.show_fraction("Quantising", fraction);
    return !InterruptGuard::interrupted();
  };
  OCTAVO_TRY_VOID(quantised.write(sink, report));
  if (fsync(descriptor.get()) != 0) return io_error(unfinished.path(), "writing failed", errno);
  progress.clear();
  {
    OCTAVO_TRY(const model::GgufFile written, model::GgufFile::open(unfinished.path()));
    OCTAVO_TRY_VOID(quantised.verify(written));
  }
  if (rename(unfinished.path().c_str(), out.c_str()) != 0)
    return io_error(out, "the finished file cannot be put there", errno);
  unfinished.keep();
  if (!quantised.notice().empty()) std::cerr << "note: " << quantised.notice() << "\n";
  std::cout << path_for_message(out) << ": " << quantised.num_quantised() << " matrices, "
            << exact_bytes_text(quantised.bytes_before()) << " became "
            << exact_bytes_text(quantised.bytes_after()) << "; the file has "
            << exact_bytes_text(quantised.num_bytes()) << "\n";
  return {};
}

}  // namespace

void add_quantize_command(CLI::App& program, int& status) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* const command =
      program.add_subcommand("quantize", "Write a GGUF model with its weights quantised");
  command
      ->add_option("MODEL,--model", options->model,
                   "GGUF file or Hugging Face folder with weights in F32, F16 or BF16")
      ->required();
  command->add_option("OUT,--out", options->out, "File to write")->required();
  const std::map<std::string, TensorType> types = {
      {"F32", TensorType::kF32},   {"F16", TensorType::kF16},   {"BF16", TensorType::kBF16},
      {"Q8_0", TensorType::kQ8_0}, {"Q6_K", TensorType::kQ6_K}, {"Q5_K", TensorType::kQ5_K},
      {"Q5_1", TensorType::kQ5_1}, {"Q5_0", TensorType::kQ5_0}, {"Q4_K", TensorType::kQ4_K},
      {"Q4_1", TensorType::kQ4_1}, {"Q4_0", TensorType::kQ4_0}};
  command
      ->add_option("--type", options->type,
                   "What matrices become; embedding and output head become Q6_K, or Q8_0 beside Q8_0")
      ->required()
      ->transform(CLI::CheckedTransformer(types, CLI::ignore_case));
  command->add_flag("--force", options->force, "Overwrite the file if it exists");
  command->add_flag("--verbose", options->verbose, "Say how far it is");
  command->callback([options, &status] {
    const Result<void> result = run_quantize(*options);
    status = result.has_value()                             ? kExitOk
             : result.error().code == ErrorCode::kCancelled ? (report_error(result.error()), kExitInterrupted)
                                                            : report_error(result.error());
  });
}

}  // namespace octavo::app
