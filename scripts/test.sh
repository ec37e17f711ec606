#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test but the nightly ones.
#   scripts/test.sh [dev|asan|tsan]   (default: dev)
# Some live tests need root and say so when they are skipped; a run in which every live test was skipped has shown nothing
# and fails.
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
ctest --preset "$preset" -j "$jobs" --progress -LE 'nightly|timing' --output-junit "$PWD/$build/tests.xml" || status=1
results=("$build/tests.xml")
if ! ctest --preset "$preset" -N -L timing | grep -q '^Total Tests: 0$'; then
  ctest --preset "$preset" -j 1 --progress -L timing --output-junit "$PWD/$build/timing.xml" || status=1
  results+=("$build/timing.xml")
fi
ctest --test-dir "$build" --show-only=json-v1 >"$build/tests.json"
python3 scripts/check-results.py "$build/tests.json" "${results[@]}" || status=1
exit $status
