# regard_module(NAME [DEPENDS modules...] [LIBRARIES targets...])
#
# One folder under regard/ becomes one static library `regard_NAME` (alias regard::NAME) of its *.cc files, and,
# when tests are built, one test program `NAME_test` of its *_test.cc files, registered test by test with CTest.
# Labels come from the test's name: a suite that starts with "Slow" gets the label `slow`, one that contains
# "Thread" the label `quick-threads` (gtest_discover_tests cannot pass a list of labels); all else is `quick`.
# CTest matches labels as regular expressions: -L quick has both, -L threads the one.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_package(Threads REQUIRED)

add_library(regard_options INTERFACE)
target_include_directories(regard_options INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:include>")
target_compile_features(regard_options INTERFACE cxx_std_20)
target_link_libraries(regard_options INTERFACE Threads::Threads $<BUILD_INTERFACE:regard_build_options>)
add_library(regard_build_options INTERFACE)  # for our own sources, not for users of the installed libraries
# Results must not depend on how the compiler contracts or reorders: fused multiply-adds are written where meant.
target_compile_options(regard_build_options INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC 12 sees overlaps in std::string that are not there (PR 105651)
if(REGARD_WARNINGS_AS_ERRORS)
  target_compile_options(regard_build_options INTERFACE -Werror)
endif()
if(REGARD_SANITIZE)
  target_compile_options(regard_build_options INTERFACE -fsanitize=${REGARD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(regard_build_options INTERFACE -fsanitize=${REGARD_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# clang-tidy checks a file when it is compiled, so only what changed is checked again. The checksum in its command
# line makes a change of the rules a change of every file.
if(REGARD_CLANG_TIDY)
  find_program(REGARD_CLANG_TIDY_PROGRAM NAMES clang-tidy-14 REQUIRED)
  set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/.clang-tidy")
  file(SHA1 "${CMAKE_SOURCE_DIR}/.clang-tidy" rules)
  set(CMAKE_CXX_CLANG_TIDY
    "${REGARD_CLANG_TIDY_PROGRAM};--quiet;--warnings-as-errors=*;--extra-arg=-DREGARD_TIDY_RULES=${rules}")
endif()

function(regard_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT REGARD_TESTS OR NOT ARG_SOURCES)
    return()
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  if(REGARD_CLANG_TIDY)
    # The path-sensitive analysis would take three quarters of a test's time, and mostly follow GoogleTest's macros;
    # a test's speed matters to nobody.
    set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "${CMAKE_CXX_CLANG_TIDY};--checks=-clang-analyzer-*,-performance-*")
  endif()
  target_link_libraries(${name} PRIVATE regard_options regard_test_support ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE REGARD_SHARED_DIR="${REGARD_SHARED_DIR}" REGARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} TEST_FILTER "-*Slow*:*Thread*" DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS quick TIMEOUT 300)
  gtest_discover_tests(${name} TEST_FILTER "*Thread*-*Slow*" TEST_SUFFIX " " DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS quick-threads TIMEOUT 300)
  gtest_discover_tests(${name} TEST_FILTER "*Slow*" TEST_SUFFIX "  " DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS slow TIMEOUT 1200)
endfunction()

function(regard_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;TEST_DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  file(GLOB tests CONFIGURE_DEPENDS "*_test.cc")
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  set(modules ${ARG_DEPENDS})
  list(TRANSFORM modules PREPEND "regard_")
  if(sources)
    add_library(regard_${name} STATIC ${sources})
    target_link_libraries(regard_${name} PUBLIC regard_options ${modules} ${ARG_LIBRARIES})
  else()
    add_library(regard_${name} INTERFACE)
    target_link_libraries(regard_${name} INTERFACE regard_options ${modules} ${ARG_LIBRARIES})
  endif()
  add_library(regard::${name} ALIAS regard_${name})
  list(TRANSFORM ARG_TEST_DEPENDS PREPEND "regard_")
  regard_test(${name}_test SOURCES ${tests} LIBRARIES regard_${name} ${ARG_TEST_DEPENDS})
endfunction()
