// What the child that checks a model file says about it, as one line of JSON over a pipe. The reader trusts
// nothing: the child has read an untrusted file, which may control it by now.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "app/probe/confinement.h"
#include "engine/base/result.h"

namespace octavo::app {

struct ProbeReport {
  Confinement confinement;
  std::optional<Error> refusal;  // what is wrong with the file; nullopt: nothing was found
};

inline constexpr std::size_t kMaxProbeReportBytes = 64 * 1024;

// One line with its line break.
std::string write_probe_report(const ProbeReport& report);

// nullopt: not exactly what write_probe_report writes. Texts come back safe to show.
std::optional<ProbeReport> read_probe_report(std::string_view line);

}  // namespace octavo::app
