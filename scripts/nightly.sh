#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long runs: full counts and everything that scripts/test.sh leaves out, on an optimised build with tests;
# then clang-tidy with its analyzer, which .ci/run leaves out.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
source scripts/stages.sh
build=build/nightly

prepare() {
  scripts/install-deps.sh build test programs programs-big tidy fuzz &&
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOARLOCK_TESTS=ON >/dev/null &&
    cmake --build "$build" -j "$(nproc)"
}

long_tests() {
  ctest --test-dir "$build" --output-on-failure --no-tests=error --output-junit "$PWD/$build/$1.xml" "${@:2}"
}

# .ci/run has time for a selection only.
everything_under() {
  cmake --preset "$1" -DOARLOCK_SANITIZE_ALL=ON >/dev/null && scripts/test.sh "$1"
}

finish_mutations() {
  local result=0
  wait "$mutations" || result=$?
  tail -n 20 "$build/mutations.log"
  return "$result"
}

stage "build" prepare
# Every small change of the filters takes an hour of one CPU: beside all that follows.
long_tests mutations -R '^filter_mutation_nightly\.' >"$build/mutations.log" 2>&1 &
mutations=$!
stage "full counts" long_tests tests -L nightly -E '^filter_mutation_nightly\.'
stage "every known way out, under ours and others" scripts/bypass.sh "$build"
stage "live tests on every kernel" scripts/kernels.sh "$build" --all
stage "everything under AddressSanitizer and UndefinedBehaviorSanitizer" everything_under asan
stage "everything under ThreadSanitizer" everything_under tsan
stage "fuzz targets, ten minutes each" scripts/fuzz.sh 600
stage "clang-tidy with its analyzer" cmake --workflow --preset tidy
stage "every small change of the filters" finish_mutations
summary nightly
