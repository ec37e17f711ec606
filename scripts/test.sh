#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test but the nightly ones.
#   scripts/test.sh [dev|asan|tsan]   (default: dev)
# Some live tests need root and say so when they are skipped; a run in which every live test was skipped has
# shown nothing and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-dev}
build=build/$preset
jobs=$(nproc)

scripts/install-deps.sh build test
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" -j "$jobs"

# Two passes: what holds a bound on time runs alone.
status=0
results=()
run() {
  local file=$PWD/$build/$1.xml
  shift
  # Not by the preset: its own exclusion and one given here must *both* match for a test to be left out.
  ctest --test-dir "$build" --output-on-failure --no-tests=error --progress --output-junit "$file" "$@" ||
    status=1
  results+=("$file")
}
# Many wait more than they work.
run tests -LE 'nightly|timing' -j "$((jobs + 1))"
if ! ctest --test-dir "$build" -N -L timing -LE nightly | grep -q '^Total Tests: 0$'; then
  run timing -L timing -LE nightly -j 1
fi
ctest --test-dir "$build" --show-only=json-v1 >"$build/tests.json"
# Sanitizers leave tests out; without them each statement of tests/contract/ids.txt must have been proved by one that ran.
checked=()
if [[ $preset == dev || $preset == release ]]; then checked=(--ids); fi
python3 scripts/check-results.py "${checked[@]}" "$build/tests.json" "${results[@]}" || status=1
exit $status
