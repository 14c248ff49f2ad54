# The part of the sentencepiece library that octavo_tokenizer uses: byte-pair encoding, without training, files, and the
# reading of serialised models. Built from the pinned sources, because Debian 12's 0.1.97 reads out of bounds on crafted
# models (CVE-2026-1260).
set(OCTAVO_SENTENCEPIECE "${octavo_cache_home}/octavo/sentencepiece-0.2.1" CACHE PATH
    "Where packaging/setup unpacked sentencepiece/{src,third_party}")
set(sentencepiece_folder ${OCTAVO_SENTENCEPIECE}/sentencepiece)
if(NOT EXISTS ${sentencepiece_folder}/src/bpe_model.cc)
  message(FATAL_ERROR "sentencepiece is not in ${OCTAVO_SENTENCEPIECE}: run packaging/setup")
endif()
file(GLOB protobuf_lite_sources ${sentencepiece_folder}/third_party/protobuf-lite/*.cc)
add_library(octavo_sentencepiece STATIC
  ${sentencepiece_folder}/src/bpe_model.cc ${sentencepiece_folder}/src/error.cc
  ${sentencepiece_folder}/src/model_interface.cc ${sentencepiece_folder}/src/normalizer.cc
  ${sentencepiece_folder}/src/util.cc ${sentencepiece_folder}/src/builtin_pb/sentencepiece_model.pb.cc
  ${sentencepiece_folder}/third_party/absl/flags/flag.cc
  ${protobuf_lite_sources})
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/sentencepiece/config.h
     CONTENT "#define VERSION \"0.2.1\"\n#define PACKAGE \"sentencepiece\"\n#define PACKAGE_STRING PACKAGE\n#define INSTALL_DATADIR \"\"\n")
target_include_directories(octavo_sentencepiece SYSTEM PUBLIC
  ${CMAKE_BINARY_DIR}/sentencepiece ${sentencepiece_folder} ${sentencepiece_folder}/src
  ${sentencepiece_folder}/src/builtin_pb ${sentencepiece_folder}/third_party/protobuf-lite
  ${sentencepiece_folder}/third_party)
target_compile_definitions(octavo_sentencepiece PUBLIC HAVE_PTHREAD=1 _USE_INTERNAL_STRING_VIEW)
target_compile_options(octavo_sentencepiece PRIVATE -w)
target_link_libraries(octavo_sentencepiece PUBLIC Threads::Threads)
