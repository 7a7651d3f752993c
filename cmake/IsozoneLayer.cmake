# How every target of Isozone is made:
#
#   isozone_layer(NAME SOURCES ... [DEPENDS layers] [LIBRARIES targets] [TESTS *_test.cc])
#   isozone_test(NAME SOURCES ... LIBRARIES ... [TIMEOUT seconds] [LABEL unit|rocksdb|unit-rocksdb|torture])
#   isozone_benchmark(NAME SOURCES ... LIBRARIES ...)
#   isozone_fuzzer(NAME SOURCES ... LIBRARIES ...)
include_guard(GLOBAL)
include(GoogleTest)

add_library(isozone_options INTERFACE)
target_compile_options(isozone_options INTERFACE -Wall -Wextra -Wpedantic
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)
# GCC 12 warns of overlaps within its own std::string that cannot be (GCC's bug 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(isozone_options INTERFACE -Wno-restrict)
endif()
if(ISOZONE_WERROR)
  target_compile_options(isozone_options INTERFACE -Werror)
endif()
if(ISOZONE_BATCHES)
  # GCC takes the files of a batch for headers, whose types must not depend on an anonymous namespace.
  target_compile_options(isozone_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# Sanitizers must see every object and every link, so they are set for all targets and not through isozone_options.
if(ISOZONE_SANITIZE)
  add_compile_options(-fsanitize=${ISOZONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ISOZONE_SANITIZE})
  if(ISOZONE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes fences for nothing. Those of Isozone order memory that processes share, which it does not see either.
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(ISOZONE_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang: use `make fuzz`, or add -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A GoogleTest executable; every TEST is one ctest. LABEL: unit, of a layer (part of the target unit_tests); rocksdb, it
# runs RocksDB (part of the target rocksdb_tests); torture, only `make torture` is to run it.
add_custom_target(unit_tests)
add_custom_target(rocksdb_tests)
add_custom_target(benchmarks)
function(isozone_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABEL" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ISOZONE_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARG_LABEL)
    set(labels LABELS ${ARG_LABEL})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  foreach(label unit rocksdb)
    if(ARG_LABEL MATCHES ${label})
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE isozone_options ${ARG_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} ${labels})
  if(ISOZONE_BATCHES)
    isozone_precompile_test_headers(${name} "${ARG_LABEL}")
  endif()
endfunction()

# Tests repeat each other's names, so they are no batch. The first test program precompiles the headers for all; those
# that include RocksDB's may be compiled with other options and do it for themselves. clang-tidy would have to wait for
# headers to be precompiled, so clang does without.
function(isozone_precompile_test_headers name label)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  target_link_libraries(${name} PRIVATE fmt::fmt spdlog::spdlog)  # what these headers define inline may call them
  if(name STREQUAL "isozone_base_test" OR label MATCHES "rocksdb")
    target_precompile_headers(${name} PRIVATE
      <algorithm> <array> <atomic> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional> <map>
      <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <thread> <unordered_map> <variant> <vector>
      <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h> <spdlog/logger.h>)
  else()
    target_precompile_headers(${name} REUSE_FROM isozone_base_test)
  endif()
endfunction()

# A layer is a static library isozone_NAME in src/NAME, using only the layers named in DEPENDS (those below it; a test
# holds the includes against this), with its unit tests beside the code, all in one executable isozone_NAME_test.
function(isozone_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS" ${ARGN})
  add_library(isozone_${name} STATIC ${ARG_SOURCES})
  target_include_directories(isozone_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  list(TRANSFORM ARG_DEPENDS PREPEND isozone_ OUTPUT_VARIABLE depends)
  target_link_libraries(isozone_${name} PUBLIC ${depends} ${ARG_LIBRARIES} Threads::Threads
                                        PRIVATE $<BUILD_INTERFACE:isozone_options>)
  if(ARG_TESTS)
    set(label unit)
    if("isozone_rocksdb_api" IN_LIST ARG_LIBRARIES)
      set(label unit-rocksdb)
    endif()
    isozone_test(isozone_${name}_test SOURCES ${ARG_TESTS} LIBRARIES isozone_${name} LABEL ${label})
  endif()
endfunction()

# A Google Benchmark executable in BUILD/benchmarks, part of the target benchmarks, where scripts/run-benchmarks finds
# it.
function(isozone_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ISOZONE_BUILD_BENCHMARKS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE isozone_options ${ARG_LIBRARIES} benchmark::benchmark benchmark::benchmark_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  add_dependencies(benchmarks ${name})
endfunction()

# A libFuzzer target: SOURCES define LLVMFuzzerTestOneInput, fuzz/corpus/NAME holds seed inputs and every input that
# once failed. A fuzzing build makes BUILD/fuzzers/NAME for scripts/run-fuzzers; any other makes a test that feeds it
# the corpus.
if(ISOZONE_BUILD_FUZZERS)
  add_custom_target(fuzzers)
endif()
function(isozone_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(corpus ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
  if(ISOZONE_BUILD_FUZZERS)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
    add_dependencies(fuzzers ${name})
  elseif(ISOZONE_BUILD_TESTS)
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/fuzz/corpus_main.cc)
    add_test(NAME ${name}.corpus COMMAND ${name} ${corpus})
  else()
    return()
  endif()
  target_link_libraries(${name} PRIVATE isozone_options ${ARG_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()
