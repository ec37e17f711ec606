#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by .ci/run and scripts/nightly.sh. All stages run, also after one that failed.
#   stage NAME COMMAND...    runs it, with its time; exit code 77: this machine cannot, which is told and counted
#   summary TITLE            the table, and whether all went well
names=() seconds=() failed=() skipped=()
stage() {
  local name=$1 begin=$SECONDS code=0
  shift
  printf '\n===== %s\n' "$name"
  "$@" || code=$?
  case $code in
    0) ;;
    77) skipped+=("$name") ;;
    *) failed+=("$name") ;;
  esac
  names+=("$name")
  seconds+=($((SECONDS - begin)))
  printf '===== %s: %s s\n' "$name" "$((SECONDS - begin))"
}

summary() {
  printf '\n'
  for i in "${!names[@]}"; do printf '%6s s  %s\n' "${seconds[i]}" "${names[i]}"; done
  if ((${#skipped[@]} > 0)); then printf "$1 skipped: %s\n" "${skipped[@]}"; fi
  if ((${#failed[@]} > 0)); then
    printf "$1 FAILED: %s\n" "${failed[@]}"
    return 1
  fi
  echo "$1 passed"
}
