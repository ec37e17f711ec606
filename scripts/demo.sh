#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Oarlock and shows its main job on real programs: what a module reaches, what it does not, and what
# the log says. Needs no privilege but sudo for missing packages. Exit 0: every step came out as it should.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-deps.sh build test
echo "Building (build/release) ..."
mkdir -p build
cmake --workflow --preset release >build/demo-build.log 2>&1 || {
  tail -n 30 build/demo-build.log >&2
  echo "demo: the build failed; all of it is in build/demo-build.log" >&2
  exit 1
}
oarlock=$PWD/build/release/bin/oarlock
oarlockd=$PWD/build/release/bin/oarlockd

place=$(mktemp -d)
chmod 755 "$place"
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$place"
}
trap cleanup EXIT

fail() {
  echo "demo: FAILED: $*" >&2
  exit 1
}
step() { printf '\n%s\n' "$*"; }
# shows COMMAND...: prints it as a person would type it.
shows() {
  local word line=
  for word; do
    if [[ $word == "$oarlock" ]]; then word=oarlock; fi
    word=${word//$place/\$DEMO}
    if [[ ! $word =~ ^[-A-Za-z0-9_./:=,\$]+$ ]]; then word="'$word'"; fi
    line+=" $word"
  done
  printf '   $%s\n' "$line"
}
# expect CODE TEXT COMMAND...: runs it and checks its exit code and that its output holds TEXT.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  shows "$@"
  "$@" >"$place/output" 2>&1 </dev/null || got=$?
  sed 's/^/     /' "$place/output"
  [[ $got == "$code" ]] || fail "exit code $got instead of $code"
  grep -qF -- "$text" "$place/output" || fail "the output lacks '$text'"
}
connections() { grep -c "^$1\$" "$place/connections" || true; }
await() {
  for ((i = 0; i < 300; ++i)); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  return 1
}

# --- the node: an origin, the agent's proxy, the module's broker, and what it must not reach ----------------
mkdir "$place/served" "$place/module" "$place/state" "$place/run" "$place/git"
echo "hello from the origin" >"$place/served/file.txt"
(
  cd "$place/git"
  # Nothing of whoever runs this.
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
  git init -q -b main .
  cp "$place/served/file.txt" hello.txt
  git add hello.txt
  git -c user.name=demo -c user.email=demo@example.invalid commit -q -m hello
  git clone -q --bare . "$place/served/repo.git"
  git -C "$place/served/repo.git" update-server-info
)
python3 scripts/demo_servers.py "$place" &
pids+=($!)
await test -e "$place/servers" || fail "the servers do not start"
# shellcheck source=/dev/null
. "$place/servers"
: "${origin:?}" "${forbidden:?}" "${proxy:?}" "${broker:?}" "${other:?}"
printf 'Port %s\nListen 127.0.0.1\nTimeout 60\nLogFile "%s"\nPidFile "%s"\n' \
  "$proxy" "$place/proxy.log" "$place/proxy.pid" >"$place/proxy.conf"
tinyproxy -d -c "$place/proxy.conf" >"$place/proxy.out" 2>&1 &
pids+=($!)
await curl -s -o /dev/null --noproxy '*' -x "http://127.0.0.1:$proxy" "http://127.0.0.1:$origin/file.txt" ||
  fail "tinyproxy does not start: $(cat "$place/proxy.out")"

# The module's home is its work directory: programs that find a file in HOME and may not read it give up.
export XDG_STATE_HOME=$place/state HOME=$place/module
unset NO_PROXY no_proxy OARLOCK_SUPERVISOR
run=("$oarlock" run --quiet --proxy-port "$proxy" --broker "$broker" --rw "$place/module")
url=http://127.0.0.1:$origin
forbidden_url=http://127.0.0.1:$forbidden/file.txt
cat >"$place/module/talk.py" <<'PYTHON'
import socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(b"ping\n")
    print(connection.recv(64).decode(), end="")
PYTHON
talk=(/usr/bin/python3 "$place/module/talk.py")

step "1. curl reaches the origin through the proxy."
expect 0 "hello from the origin" "${run[@]}" -- curl -sS "$url/file.txt"

step "2. The same curl past the proxy is refused at once; neither server sees a connection."
before=$(connections origin)
expect 7 "Couldn't connect to server" "${run[@]}" -- curl -sS --noproxy '*' "$url/file.txt"
expect 7 "Couldn't connect to server" "${run[@]}" -- curl -sS --noproxy '*' "$forbidden_url"
[[ $(connections origin) == "$before" ]] || fail "the origin saw a connection past the proxy"
[[ $(connections forbidden) == 0 ]] || fail "the forbidden server saw a connection"
curl -sS --noproxy '*' -o /dev/null "$forbidden_url" || fail "the forbidden server does not work at all"
[[ $(connections forbidden) == 1 ]] || fail "the forbidden server does not count"
echo "   Without the sandbox the same request is answered."

step "3. git clones through the proxy."
expect 0 "hello from the origin" "${run[@]}" -- \
  sh -c "git clone -q $url/repo.git $place/module/copy && cat $place/module/copy/hello.txt"

step "4. The broker answers."
expect 0 "echo: ping" "${run[@]}" -- "${talk[@]}" "$broker"
[[ $(connections broker) == 1 ]] || fail "the broker saw no connection"

step "5. Another unix socket is refused."
expect 1 "Permission denied" "${run[@]}" -- "${talk[@]}" "$other"
[[ $(connections other) == 0 ]] || fail "the other socket saw a connection"
"${talk[@]}" "$other" >/dev/null || fail "the other socket does not work at all"
echo "   Without the sandbox the same connection is answered."

logs=("$place/state/oarlock/audit")
yama=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
if ((EUID == 0 || yama == 0)); then
  step "6. The same with a policy file and the node's supervisor, as an agent starts modules."
  cat >"$place/policy.json" <<POLICY
{"version": 1, "module": "demo", "rw": ["$place/module"], "net": "egress-allowlist", "proxy_port": $proxy,
 "broker_socket": "$broker", "supervisor": "$place/run/admit.sock"}
POLICY
  mkdir "$place/node"
  "$oarlockd" --socket "$place/run/admit.sock" --log "$place/node/audit.jsonl" 2>"$place/oarlockd.out" &
  pids+=($!)
  await grep -q "ready:" "$place/oarlockd.out" || fail "oarlockd does not start: $(cat "$place/oarlockd.out")"
  expect 0 "hello from the origin" "$oarlock" sandbox-exec "$place/policy.json" -- \
    /usr/bin/curl -sS "$url/file.txt"
  expect 7 "Permission denied" "$oarlock" sandbox-exec "$place/policy.json" -- \
    /usr/bin/curl -sSv --noproxy '*' "$url/file.txt"
  logs+=("$place/node/audit.jsonl")
else
  step "6. Skipped: Yama lets no unprivileged oarlockd look at processes that are not its children."
fi

step "7. Every refusal is in the log, and nothing else is refused there."
for log in "${logs[@]}"; do
  shows "$oarlock" audit list --log "$log"
  "$oarlock" audit list --log "$log" >"$place/output" || fail "the log cannot be read"
  # Beside refusals the list has notes: a supervisor's start, a session's end.
  grep " DENY " "$place/output" | tee -a "$place/denials" | sed "s/^/     /; s|$place|\$DEMO|"
done
# logged TIMES PATTERN: the refusals that happened above are there, as often as they happened.
logged() {
  local times
  times=$(grep -cE "$2" "$place/denials" || true)
  [[ $times == "$1" ]] || fail "the log has '$2' $times times instead of $1"
}
through_node=$((${#logs[@]} - 1))
logged 1 "DENY TCP_NOT_PROXY curl.*:$origin -> ENETUNREACH"
logged 1 "DENY TCP_NOT_PROXY curl.*:$forbidden -> ENETUNREACH"
logged 1 "DENY UNIX_NOT_BROKER python3.*other.sock -> EACCES"
logged "$through_node" "DENY TCP_NOT_PROXY curl.*:$origin -> EACCES"
refusals=$((3 + through_node))
logged "$refusals" " DENY "

echo
echo "Demo passed: what was granted worked, $refusals refusals happened, and the log has each of them."
