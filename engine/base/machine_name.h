// What a person calls the processor of this machine, for reports of measurements.
#pragma once

#include <string>

namespace octavo {

// As the system names it ("AMD EPYC 7B13"); "unknown processor" where it does not. Any thread.
std::string processor_name();

}  // namespace octavo
