// Why an answer ended, in a few words for people: "finished", "stopped at END", "reached the length limit".
#pragma once

#include <string>

#include "engine/api/request.h"

namespace octavo::app {

std::string finish_text(FinishReason reason, const StopReason& stop_reason);

}  // namespace octavo::app
