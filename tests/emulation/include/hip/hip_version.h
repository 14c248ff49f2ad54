// The version of HIP whose names hip_runtime.h has.
#pragma once

#define HIP_VERSION_MAJOR 6
