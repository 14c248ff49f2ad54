# What measures and checks a device: octavo_gpu_bench, octavo_cuda_device_tests and octavo_cuda_engine_tests. For
# tests/CMakeLists.txt where the build has CUDA, and for tests/nvcc. Needs octavo_kernels, octavo_runner and octavo_engine
# with CUDA in them, GoogleTest and nlohmann_json.
get_filename_component(octavo_tests_folder ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
get_filename_component(octavo_root ${octavo_tests_folder} DIRECTORY)

file(GLOB gpu_bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
list(FILTER gpu_bench_sources EXCLUDE REGEX "/toolkit_[a-z]*\\.cc$")
add_executable(octavo_gpu_bench EXCLUDE_FROM_ALL ${gpu_bench_sources} ${CMAKE_CURRENT_LIST_DIR}/toolkit_device.cc)
target_include_directories(octavo_gpu_bench SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_link_libraries(octavo_gpu_bench PRIVATE octavo_kernels nlohmann_json::nlohmann_json)

# The tests of single kernels and operations, which need nothing of the emulation, for compute-sanitizer. One of them has
# a kernel of its own: nvcc compiles it, without the C++ compiler's options.
add_library(octavo_cuda_matmul_test OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/on_device/matmul_test.cu)
target_include_directories(octavo_cuda_matmul_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/on_device ${octavo_root})
target_compile_options(octavo_cuda_matmul_test PRIVATE --expt-relaxed-constexpr -Xcompiler=-ffp-contract=off)
set(octavo_device_tests adjusted_draws_test kv_write_test operations_test paged_attention_test sample_tokens_test)
list(TRANSFORM octavo_device_tests PREPEND ${octavo_tests_folder}/cuda/)
list(TRANSFORM octavo_device_tests APPEND .cc)
add_executable(octavo_cuda_device_tests EXCLUDE_FROM_ALL $<TARGET_OBJECTS:octavo_cuda_matmul_test>
  ${octavo_device_tests} ${octavo_tests_folder}/kernels/attention_claims.cc
  ${octavo_tests_folder}/kernels/operation_claims.cc
  ${octavo_tests_folder}/kernels/operation_runs.cc ${octavo_tests_folder}/kernels/paged_problem.cc
  ${octavo_tests_folder}/kernels/test_backend.cc)
target_include_directories(octavo_cuda_device_tests BEFORE PRIVATE ${CMAKE_CURRENT_LIST_DIR}/on_device)
target_include_directories(octavo_cuda_device_tests SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
target_link_libraries(octavo_cuda_device_tests PRIVATE octavo_runner GTest::gtest GTest::gtest_main)

# Whole engines on a device: nothing of the emulation.
add_executable(octavo_cuda_engine_tests EXCLUDE_FROM_ALL ${octavo_tests_folder}/long/emulation/mixed_requests_test.cc)
target_include_directories(octavo_cuda_engine_tests BEFORE PRIVATE ${CMAKE_CURRENT_LIST_DIR}/on_device)
target_link_libraries(octavo_cuda_engine_tests PRIVATE octavo_engine GTest::gtest GTest::gtest_main
  nlohmann_json::nlohmann_json)
foreach(program octavo_cuda_device_tests octavo_cuda_engine_tests)
  target_compile_options(${program} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
