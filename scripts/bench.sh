#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the optimised product with its benchmarks and measures: pieces in one process first, then everything
# against the bare kernel in one interleaved run. docs/BENCHMARKS.md says how to read it.
#   scripts/bench.sh [options of bench/run.py]     e.g. --rounds 31, --only connect, --check
# The figures are left in build/bench/pieces.json and build/bench/figures.json. Needs root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/bench

scripts/install-deps.sh build bench
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOARLOCK_TESTS=OFF -DOARLOCK_BENCH=ON >/dev/null
cmake --build "$build" -j "$(nproc)"

"$build/bench/oarlock-bench-pieces" --benchmark_min_time=0.2 --benchmark_out="$build/pieces.json" --benchmark_out_format=json
exec python3 bench/run.py --build "$build" --json "$build/figures.json" "$@"
