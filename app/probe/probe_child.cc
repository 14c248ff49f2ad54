#include "app/probe/probe_child.h"

#include <unistd.h>

#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "app/probe/probe_report.h"
#include "engine/model/model_source.h"
#include "engine/model_preview.h"

namespace octavo::app {
namespace {

constexpr ConfinementLimits kLimits = {
    .memory_bytes = std::uint64_t{1} << 30, .cpu_seconds = 20, .num_files = 2'048};

// What the library throws when a limit is met must not end the child without a line.
Result<void> check_without_exceptions(const std::string& path, ProbeDepth depth) {
  try {
    return check_model_file(path, depth);
  } catch (const std::bad_alloc&) {
    return Error{.code = ErrorCode::kOutOfMemory,
                 .message = "checking this model needs more than " +
                            std::to_string(kLimits.memory_bytes >> 20) +
                            " MiB of memory, so it was not opened; choose another model"};
  } catch (const std::exception&) {
    return Error{
        .code = ErrorCode::kInternal,
        .message = "checking this model failed unexpectedly, so it was not opened; choose another model"};
  }
}

bool write_whole(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

const char* probe_depth_name(ProbeDepth depth) { return depth == ProbeDepth::kHeader ? "header" : "whole"; }

Result<void> check_model_file(const std::string& path, ProbeDepth depth) {
  if (depth == ProbeDepth::kHeader) {
    OCTAVO_TRY([[maybe_unused]] const auto description, read_model_description(path));
    return {};
  }
  OCTAVO_TRY(const ModelPreview preview, ModelPreview::open(path));
  // A template that fails is told where it is used; here it only must not harm.
  (void)preview.try_chat_template();
  return {};
}

Confinement confine_for_probe(const std::string& path) {
  return confine_this_process(kLimits, model::places_of_model(path));
}

int run_probe_child(const char* depth, const std::string& path) {
  ProbeReport report;
  report.confinement = confine_for_probe(path);
  const bool is_header = std::strcmp(depth, probe_depth_name(ProbeDepth::kHeader)) == 0;
  const auto checked = check_without_exceptions(path, is_header ? ProbeDepth::kHeader : ProbeDepth::kWhole);
  if (!checked) report.refusal = checked.error();
  const bool written = write_whole(write_probe_report(report));
  _exit(written ? 0 : 1);  // nothing that the file brought into memory is torn down
}

}  // namespace octavo::app
