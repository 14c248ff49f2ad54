// The numbers of requests: ascending, and never given out twice in a process, whichever engine is asked. One
// window may have two for a while, and knows answers by their requests. Any thread.
#pragma once

#include "engine/base/ids.h"

namespace octavo {

RequestId next_request_id();

}  // namespace octavo
