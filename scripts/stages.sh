#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by .ci/run and scripts/nightly.sh. All stages run, also after one that failed.
#   stage NAME COMMAND...    runs it, with its time
#   summary TITLE            the table, and whether all went well
names=() seconds=() failed=()
stage() {
  local name=$1 begin=$SECONDS
  shift
  printf '\n===== %s\n' "$name"
  if ! "$@"; then failed+=("$name"); fi
  names+=("$name")
  seconds+=($((SECONDS - begin)))
  printf '===== %s: %s s\n' "$name" "$((SECONDS - begin))"
}

summary() {
  printf '\n'
  for i in "${!names[@]}"; do printf '%6s s  %s\n' "${seconds[i]}" "${names[i]}"; done
  if ((${#failed[@]} > 0)); then
    printf "$1 FAILED: %s\n" "${failed[@]}"
    return 1
  fi
  echo "$1 passed"
}
