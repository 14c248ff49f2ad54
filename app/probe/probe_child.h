// The child that checks a model file: `octavo --probe DEPTH PATH`, started by probe_model only. It confines
// itself, opens the file as the engine would, and prints one line (probe_report.h).
#pragma once

#include <string>

#include "app/probe/confinement.h"
#include "engine/base/result.h"

namespace octavo::app {

inline constexpr const char* kProbeFlag = "--probe";

// kHeader: what a list of files shows. kWhole: all that is checked before an engine reads the weights, and
// the chat template tried on a message.
enum class ProbeDepth { kHeader, kWhole };

const char* probe_depth_name(ProbeDepth depth);

// The first thing that is wrong with the file. In this process, without any confinement.
Result<void> check_model_file(const std::string& path, ProbeDepth depth);

// Confines this process to what the check of `path` needs.
Confinement confine_for_probe(const std::string& path);

// Exit status: 0 when a line was printed, whatever it says.
int run_probe_child(const char* depth, const std::string& path);

}  // namespace octavo::app
