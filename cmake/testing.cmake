# SPDX-License-Identifier: Apache-2.0
# oarlock_add_test(name LABELS unit|live|repo... [SCALED] [TIMEOUT s] SOURCES ... LIBS ...)
# A GoogleTest program whose cases CTest knows one by one.
#   unit   no kernel features, no other programs
#   live   runs the built programs against the kernel
#   repo   checks of the tree itself
#   timing holds an acceptance bound on time, beside a control
#   proof  proves the compiled programs, whatever our own code was built with: not repeated under sanitizers
#   nightly full counts and long runs: scripts/nightly.sh only
# SCALED: its counts follow OARLOCK_SCALE (tests/support/scale.h); it is registered a second time, as "nightly.name", with full
# counts.
# Tests narrow on purpose all the time, and system macros are whatever type they are. Behind oarlock_flags, to win.
add_library(oarlock_test_flags INTERFACE)
target_compile_options(oarlock_test_flags INTERFACE -Wno-conversion -Wno-useless-cast -Wno-missing-field-initializers -Wno-dangling-else)

function(oarlock_add_test name)
  cmake_parse_arguments(ARG "SCALED" "TIMEOUT" "LABELS;SOURCES;LIBS;DEFINES" ${ARGN})
  if(OARLOCK_SANITIZE AND ARG_LABELS MATCHES "^(proof|nightly)$")
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(OARLOCK_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
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
