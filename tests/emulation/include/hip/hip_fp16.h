// float16, which HIP gives the names that CUDA gives it.
#pragma once

#include <cuda_fp16.h>
