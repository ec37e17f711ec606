#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets of tests/fuzz with clang 19 and runs each for so many seconds, one after the other, from its corpus.
#   scripts/fuzz.sh [SECONDS [TARGET...]]   (default: 600, all)
#   MERGE=1 scripts/fuzz.sh ...             also takes what reaches new code into tests/fuzz/corpus, minimised
# What falls is left in build/fuzz/findings, and the exit code is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-600}
shift || true
targets=("$@")
if ((${#targets[@]} == 0)); then targets=(policy gate wire audit); fi
bin=build/fuzz/tests/bin findings=build/fuzz/findings

scripts/install-deps.sh build test fuzz
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "$(nproc)" --target "${targets[@]/#/fuzz-}"

status=0
mkdir -p "$findings"
for target in "${targets[@]}"; do
  corpus=tests/fuzz/corpus/$target work=build/fuzz/corpus/$target log=build/fuzz/$target.log
  mkdir -p "$work"
  options=(-timeout=20 -max_len=8192 "-artifact_prefix=$findings/$target-" -print_final_stats=1)
  if [[ -f tests/fuzz/$target.dict ]]; then options+=("-dict=tests/fuzz/$target.dict"); fi
  if "$bin/fuzz-$target" "-max_total_time=$seconds" "${options[@]}" "$work" "$corpus" >"$log" 2>&1; then
    coverage=$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1)
    speed=$(grep -oE 'average_exec_per_sec: *[0-9]+' "$log" | grep -oE '[0-9]+')
    echo "fuzz.$target: $seconds s, ${speed:-?} inputs a second, $coverage"
  else
    status=1
    echo "fuzz.$target: FAILED, see $findings and $log" >&2
    tail -n 40 "$log" >&2
  fi
  if [[ -n "${MERGE:-}" ]]; then
    merged=$(mktemp -d)
    "$bin/fuzz-$target" -set_cover_merge=1 -use_counters=0 -max_len=2048 "$merged" "$corpus" "$work" >/dev/null 2>&1
    rm -rf "$corpus" && cp -r "$merged" "$corpus" && rm -rf "$merged" && chmod -R u=rwX,go=rX "$corpus"
  fi
done
exit $status
