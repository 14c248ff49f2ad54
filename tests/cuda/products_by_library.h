// Products of a device with the matrix library, for tests.
#pragma once

#include <gtest/gtest.h>

#include "kernels/cuda/matmul/library.h"
#include "tests/cuda/product_bench.h"

namespace octavo::kernels::cuda {

class ProductsByLibrary : public ::testing::Test {
 protected:
  // Float32 goes by the library from 9 rows on, other unquantised types from 16, quantised ones from 129.
  static constexpr TensorType kTypes[] = {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                          TensorType::kQ4_K, TensorType::kQ5_0};

  void TearDown() override { close_library(library_); }

  ProductOptions options(HalfParts parts = HalfParts::kOne) const {
    return {.half_parts = parts, .num_multiprocessors = 8, .library = library_};
  }
  static testing::OwnedMatrix matrix(TensorType type) {
    return testing::random_matrix(type, 70, columns_for(type, 288), 3);
  }

  cublasLtHandle_t library_ = open_library();
};

}  // namespace octavo::kernels::cuda
