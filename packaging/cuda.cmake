# The CUDA backend: octavo_cuda is kernels/cuda by nvcc, so that a program with it starts where there is no driver. The
# runtime is static and looks for the driver itself; cuBLASLt is opened when a device is (kernels/cuda/matmul/library.h).
# tests/nvcc includes this file too, in a project of its own.
get_filename_component(octavo_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(octavo_cuda_default AUTO)
if(DEFINED ENV{OCTAVO_CUDA})  # packaging/test
  set(octavo_cuda_default $ENV{OCTAVO_CUDA})
endif()
set(OCTAVO_CUDA ${octavo_cuda_default} CACHE STRING "The CUDA backend: ON, OFF, or AUTO (if there is an nvcc)")
set_property(CACHE OCTAVO_CUDA PROPERTY STRINGS AUTO ON OFF)
# Machine code for each, and for devices to come what their driver translates. One of them makes a quick build.
set(OCTAVO_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90-real;100-real;120" CACHE STRING "As CMAKE_CUDA_ARCHITECTURES")

set(octavo_oldest_cuda 13.0)  # that it has been built with

if(NOT OCTAVO_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "OCTAVO_CUDA is '${OCTAVO_CUDA}'; it must be AUTO, ON or OFF")
endif()
if(OCTAVO_CUDA STREQUAL "OFF" OR OCTAVO_SANITIZE)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(OCTAVO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OCTAVO_CUDA is ON, but nvcc was not found: install the CUDA toolkit (${octavo_oldest_cuda} or newer) and put nvcc on the PATH")
  endif()
  message(WARNING "nvcc was not found: this build of Octavo runs on the CPU only (-DOCTAVO_CUDA=OFF silences this warning)")
  return()
endif()

if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${OCTAVO_CUDA_ARCHITECTURES})
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS octavo_oldest_cuda)
  set(octavo_is_old "${CMAKE_CUDA_COMPILER} is version ${CMAKE_CUDA_COMPILER_VERSION}; Octavo needs ${octavo_oldest_cuda} or newer")
  if(OCTAVO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OCTAVO_CUDA is ON, but ${octavo_is_old}")
  endif()
  message(WARNING "${octavo_is_old}: this build of Octavo runs on the CPU only (-DOCTAVO_CUDA=OFF silences this warning)")
  return()
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it yet
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
file(GLOB_RECURSE octavo_cuda_sources CONFIGURE_DEPENDS ${octavo_root}/kernels/cuda/*.cu)
add_library(octavo_cuda STATIC ${octavo_cuda_sources})
set_target_properties(octavo_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static POSITION_INDEPENDENT_CODE ON)
target_include_directories(octavo_cuda PRIVATE ${octavo_root})
# -fmad: in device code a product may be fused with the sum it goes to. Kernels state what their results mean to within
# rounding (kernels/cuda/matmul/matmul.h, attention/attention.h), and the same kernel gives the same bits.
target_compile_options(octavo_cuda PRIVATE --expt-relaxed-constexpr -fmad=true
  -Xcompiler=-Wall,-Wextra,-Wconversion,-fno-fast-math,-ffp-contract=off,-fstack-protector-strong)
