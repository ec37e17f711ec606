#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long runs: full counts and everything that scripts/test.sh leaves out, on an optimised build with tests;
# then clang-tidy with its analyzer, which .ci/run leaves out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/nightly

scripts/install-deps.sh build test programs programs-big tidy
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOARLOCK_TESTS=ON >/dev/null
cmake --build "$build" -j "$(nproc)"

# Every small change of the filters takes an hour of one CPU: beside all that follows.
ctest --test-dir "$build" -R '^filter_mutation_nightly\.' --output-on-failure --no-tests=error \
  --output-junit "$PWD/$build/mutations.xml" >"$build/mutations.log" 2>&1 &
mutations=$!
trap 'kill "$mutations" 2>/dev/null || true' EXIT
ctest --test-dir "$build" -L nightly -E '^filter_mutation_nightly\.' --output-on-failure --no-tests=error \
  --output-junit "$PWD/$build/tests.xml"

# .ci/run has time for a selection only.
for sanitizer in asan tsan; do
  cmake --preset "$sanitizer" -DOARLOCK_SANITIZE_ALL=ON >/dev/null
  scripts/test.sh "$sanitizer"
done

cmake --workflow --preset tidy

result=0
wait "$mutations" || result=$?
trap - EXIT
tail -n 20 "$build/mutations.log"
exit "$result"
