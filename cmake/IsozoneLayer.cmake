# isozone_layer(NAME SOURCES ... [DEPENDS layers] [LIBRARIES targets] [TESTS *_test.cc])
#
# A layer is a static library isozone_NAME in src/NAME, using only the layers named in DEPENDS (those below it; a test
# holds the includes against this), with its unit tests beside the code, all in one executable isozone_NAME_test.
include_guard(GLOBAL)
include(GoogleTest)

add_library(isozone_options INTERFACE)
target_compile_options(isozone_options INTERFACE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(ISOZONE_WERROR)
  target_compile_options(isozone_options INTERFACE -Werror)
endif()
if(ISOZONE_SANITIZE)
  target_compile_options(isozone_options INTERFACE -fsanitize=${ISOZONE_SANITIZE} -fno-omit-frame-pointer
                                                   -fno-sanitize-recover=all)
  target_link_options(isozone_options INTERFACE -fsanitize=${ISOZONE_SANITIZE})
endif()

# isozone_test(NAME SOURCES ... LIBRARIES ... [TIMEOUT seconds]): a GoogleTest executable; every TEST is one ctest.
function(isozone_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBRARIES;ENVIRONMENT" ${ARGN})
  if(NOT ISOZONE_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE isozone_options ${ARG_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

function(isozone_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS" ${ARGN})
  add_library(isozone_${name} STATIC ${ARG_SOURCES})
  target_include_directories(isozone_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  list(TRANSFORM ARG_DEPENDS PREPEND isozone_ OUTPUT_VARIABLE depends)
  target_link_libraries(isozone_${name} PUBLIC ${depends} ${ARG_LIBRARIES} Threads::Threads
                                        PRIVATE $<BUILD_INTERFACE:isozone_options>)
  if(ARG_TESTS)
    isozone_test(isozone_${name}_test SOURCES ${ARG_TESTS} LIBRARIES isozone_${name})
  endif()
endfunction()
