# SPDX-License-Identifier: Apache-2.0
# Flags live on one interface target that our targets link privately, so that a project which embeds
# Oarlock keeps its own.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# "bin/oarlock" finds its neighbours by a path relative to itself, so the build tree has the installed layout.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(OARLOCK_LIBEXEC_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/oarlock)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# UndefinedBehaviorSanitizer's checks take three times as long to optimise as to run.
if(OARLOCK_SANITIZE MATCHES undefined)
  set(OARLOCK_DEBUG_LEVEL -O0)
else()
  set(OARLOCK_DEBUG_LEVEL -O1)
endif()

add_library(oarlock_flags INTERFACE)
target_include_directories(oarlock_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(oarlock_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wswitch-enum -Wold-style-cast -Wnon-virtual-dtor
  -Wformat=2 -Wextra-semi -Wvla -Wundef -Wmissing-declarations -Wdate-time -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
  $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
  $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>
  $<$<CXX_COMPILER_ID:GNU>:-Wsuggest-override>
  $<$<BOOL:${OARLOCK_WERROR}>:-Werror>
  # Not -ftrivial-auto-var-init=zero: g++ 12 then leaves members of arrays on the stack without the value of their default
  # member initializer (descriptor 0 for -1, which gets closed). TaskCache's tests would show it.
  -fstack-protector-strong -fstack-clash-protection
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build
  $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection=full>
  $<$<CONFIG:Debug>:${OARLOCK_DEBUG_LEVEL}>
  $<$<CONFIG:RelWithDebInfo>:-D_FORTIFY_SOURCE=3>)
target_compile_definitions(oarlock_flags INTERFACE _GNU_SOURCE _GLIBCXX_ASSERTIONS OARLOCK_VERSION="${PROJECT_VERSION}")
target_link_options(oarlock_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
target_link_libraries(oarlock_flags INTERFACE Threads::Threads)

if(OARLOCK_SANITIZE)
  # -g1: line numbers alone, which is what reports show, and a third less time to build.
  add_compile_options(-fsanitize=${OARLOCK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${OARLOCK_SANITIZE})
endif()

# One static library per room or layer of a room.
function(oarlock_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(oarlock::${name} ALIAS ${name})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE oarlock_flags ${ARG_PRIVATE})
endfunction()
