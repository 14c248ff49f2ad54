// What ended an output, as programs are told: null, the stop string, or the token id.
//
// Pure; any thread.
#pragma once

#include "app/json/json_text.h"
#include "engine/api/request.h"

namespace octavo::app {

Json stop_reason_json(const StopReason& reason);

}  // namespace octavo::app
