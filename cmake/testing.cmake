# SPDX-License-Identifier: Apache-2.0
# oarlock_add_test(name LABELS unit|live|repo... [SCALED] [TIMEOUT s] [UNDER address|thread|none...] SOURCES ... LIBS ...)
# A GoogleTest program whose cases CTest knows one by one.
#   unit   no kernel features, no other programs
#   live   runs the built programs against the kernel
#   repo   checks of the tree itself
#   timing holds an acceptance bound on time, beside a control
#   proof  proves the compiled programs, whatever our own code was built with: not repeated under sanitizers
#   nightly full counts and long runs: scripts/nightly.sh only
# UNDER: the sanitizers of .ci/run that it is built with, `address` where it is not said: `thread` for what runs several threads of
# ours against each other, `none` for what runs other people's programs or is slow there. OARLOCK_SANITIZE_ALL: each with all.
# SCALED: its counts follow OARLOCK_SCALE (tests/support/scale.h); it is registered a second time, as "nightly.name", with full
# counts.
# Tests narrow on purpose all the time, and system macros are whatever type they are. Behind oarlock_flags, to win.
add_library(oarlock_test_flags INTERFACE)
# Not optimised and with line numbers alone: half the time to build.
target_compile_options(oarlock_test_flags INTERFACE $<$<CONFIG:Debug>:-O0> $<$<CONFIG:Debug>:-g1> -Wno-conversion -Wno-useless-cast -Wno-missing-field-initializers -Wno-dangling-else)

function(oarlock_add_test name)
  cmake_parse_arguments(ARG "SCALED" "TIMEOUT" "LABELS;UNDER;SOURCES;LIBS;DEFINES" ${ARGN})
  if(OARLOCK_SANITIZE AND ARG_LABELS MATCHES "^(proof|nightly)$")
    return()
  endif()
  if(NOT ARG_UNDER)
    set(ARG_UNDER address)
  endif()
  if(OARLOCK_SANITIZE AND NOT OARLOCK_SANITIZE_ALL)
    string(REGEX REPLACE ",.*" "" sanitizer "${OARLOCK_SANITIZE}")
    if(NOT sanitizer IN_LIST ARG_UNDER)
      return()
    endif()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(OARLOCK_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
    # The product is built as ever; optimising a test's instrumented code takes longer than it saves.
    set_property(SOURCE ${ARG_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -O0)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main oarlock_flags oarlock_test_flags)
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINES}
    OARLOCK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OARLOCK_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bin)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SCALED)
    gtest_discover_tests(${name} TEST_PREFIX "nightly.${name}." TEST_LIST ${name}_NIGHTLY DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS nightly ENVIRONMENT OARLOCK_SCALE=1 TIMEOUT 3600 RUN_SERIAL ON)
  endif()
endfunction()

# Programs that a test runs, where the test is built at all.
function(oarlock_test_needs name)
  if(TARGET ${name})
    add_dependencies(${name} ${ARGN})
  endif()
endfunction()
