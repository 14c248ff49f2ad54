// Checks a model file in a child process before this one touches it: no network, no other files, limited
// memory and time (confinement.h). A defect that the file meets there ends the child, and here one sentence
// says so.
//
// Thread: any; waits for the child, usually some ten milliseconds. Several at once are fine.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "app/probe/probe_child.h"
#include "app/probe/probe_report.h"
#include "engine/base/result.h"

namespace octavo::app {

struct ProbeOptions {
  ProbeDepth depth = ProbeDepth::kWhole;
  std::string program = "/proc/self/exe";  // is started as PROGRAM --probe DEPTH PATH
  std::chrono::milliseconds timeout{30'000};
  std::function<bool()> cancelled = {};  // asked every 50 ms
};

// Errors: what the child found wrong with the file; kDamagedFile when it crashed, took too long or said
// nothing that can be understood; kIo when it could not be started: a file that was not checked is not
// opened; kCancelled.
Result<ProbeReport> probe_model(const std::string& path, const ProbeOptions& options = {});

// For a person: that the check was confined, or which protections this machine could not give.
std::string confinement_text(const Confinement& confinement);

}  // namespace octavo::app
