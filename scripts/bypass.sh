#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries every known way out of a sandbox under ours and under others that are installed, and prints one table of verdicts.
#   scripts/bypass.sh [BUILD]     BUILD: a build tree with tests (default build/dev). Needs root.
# Other launchers are looked for in PATH, or named: BWRAP=... NSJAIL=... LANDRUN=... NONO=... SANDLOCK=...
# The results are left in BUILD/bypass, one JSON object per line and id. Fails where an id gets out of ours, or where one that a
# bare run must show does not get out of nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
build=${1:-build/dev}
program=$build/tests/bin/oarlock-bypass
results=$build/bypass
[[ -x $program ]] || { echo "build $program first: cmake --build $build --target oarlock-bypass oarlock" >&2; exit 2; }
mkdir -p "$results"
rm -f "$results"/*.jsonl
failed=0

run() {
  local name=$1
  shift
  printf '%-12s ' "$name" >&2
  timeout 600 "$program" --json "$@" >"$results/$name.jsonl"
}
# Named by a variable, or installed.
find_launcher() {
  local named=${!1:-}
  if [[ -n $named ]]; then echo "$named"; else command -v "$2"; fi
}
other() {
  local name=$1 path=$2
  shift 2
  if [[ -n $path ]]; then run "$name" --proven "$results/bare.jsonl" --under "$path $*" || true; fi
}

run bare --bare || failed=1
ours="$PWD/$build/bin/oarlock sandbox-exec {policy} --"
run oarlock --proven "$results/bare.jsonl" --broker --under "$ours" || failed=1
run oarlock-uid --proven "$results/bare.jsonl" --broker --as nobody --under "$ours" || failed=1
other landlock "$PWD/$program" --landlock '{proxy_port}' '{tools}' '{work}' --
other bwrap "$(find_launcher BWRAP bwrap)" --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
  --ro-bind /etc /etc --proc /proc --dev /dev --ro-bind '{tools}' '{tools}' --bind '{work}' '{work}' --unshare-all --share-net --die-with-parent --
other nsjail "$(find_launcher NSJAIL nsjail)" -Mo --really_quiet --disable_rlimits --time_limit 0 -N -R /usr -R /lib -R /lib64 -R /bin -R /etc \
  -R '{tools}' -B '{work}' --
other landrun "$(find_launcher LANDRUN landrun)" --rox /usr --rox /lib --rox /lib64 --rox /bin --ro /etc --ro /proc --rox '{tools}' --rw '{work}' \
  --connect-tcp '{proxy_port}'
other nono "$(find_launcher NONO nono)" run --silent --read /usr --read /lib --read /lib64 --read /bin --read /etc --read '{tools}' --allow '{work}' \
  --allow-connect-port '{proxy_port}' --
other sandlock "$(find_launcher SANDLOCK sandlock)" run -r /usr -r /lib -r /lib64 -r /bin -r /etc -r /proc -r '{tools}' -w '{work}' \
  --net-allow '127.0.0.1:{proxy_port}' --

/usr/bin/python3 tests/bypass/table.py "$program" "$results" || failed=1
exit "$failed"
