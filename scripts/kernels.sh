#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian's kernels in qemu and runs our tests inside, as built in BUILD_DIR.
#   scripts/kernels.sh [BUILD_DIR] [--ci | --all | NAME...]      (default: build/dev --ci)
#     --ci    6.1 and the newest that there is, with a selection of the tests
#     --all   every name of `series` below and what is newer, with every live test
#     NAME    6.1, 7.2 ...: these, with every live test
#   --tests TEST,TEST...      these binaries only, of tests/bin
#   --filter PATTERN          gtest's filter for them
#   --limit SECONDS           for one kernel (280 with --ci, else 2400): a busy machine may need more
# Kernels are kept in build/kernels, the log of each boot too. A kernel that cannot be had is skipped, with the reason, and counted.
# Exit: 0 all that ran passed, 1 something failed, 77 nothing could run on this machine.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

series=(6.1 6.12 7.0 7.1 7.2 7.3)
# Where Debian keeps them. The archive's address comes from the machine's own sources.
suites=(bookworm bookworm-backports trixie-backports sid)
security_suites=(bookworm-security trixie-security)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=$PWD/build/kernels
fresh_days=7  # a stable update may come any day; a week-old kernel is still Debian's

# What fits into five minutes on two kernels: what has most to do with the kernel.
ci_tests=(kernels_report_test kernels_old_test kernels_yama_test child_landlock_test filter_live_test ring_test launch_test
  broker_test run_test task_test hostile_doors_test hostile_caller_test)
# Leaves a kernel behind that lets nobody look at a process.
last_test=kernels_yama_test
# Without the label live, and of interest here all the same.
more_tests=(child_landlock_test ring_test abi_test)
declare -A left_out=(
  [programs_test]="runs git, curl, wget and tinyproxy, which the initramfs does not hold"
  [toolchain_test]="runs compilers and package managers, which the initramfs does not hold"
  [shared_memory_test]="runs half a dozen large programs, which the initramfs does not hold"
  [terminal_test]="runs editors and multiplexers, which the initramfs does not hold"
  [workspace_test]="runs git and editors, which the initramfs does not hold"
  [cost_test]="counts instructions and time of this machine, not of an emulated one"
  [endurance_signals_test]="its rates are those of a real CPU"
  [endurance_flat_test]="long, and about our own memory and descriptors, not about the kernel"
  [endurance_death_test]="long; its short cousin is RunTest.LostSupervisorFailsClosed"
)
# Tests that an emulated CPU cannot pass, by program.
declare -A without=(
  [filter_live_test]="FilterLive.TheKernelCachesAllowedCalls"  # times BPF code, which is translated twice here
)
declare -A without_in_ci=(
  [hostile_doors_test]="*/E33_*:*/E34_*:*/E35_*:*/E36_*"  # addresses, which the supervisor judges by itself
  [launch_test]="LaunchTest.LaunchedTwoHundredTimes"  # a minute for what --all repeats
)
# What programs the tests run; python3 comes with its library.
programs=(sh bash cat cp echo env false grep head id ip kill ln ls mkdir mount mv prlimit ps python3 readlink rm sed seq setarch setpriv setsid
  sleep stat strace stty tail tee test timeout touch true umount uname unshare xargs)

say() { echo "kernels: $*"; }
skip_all() {
  say "skipped: $*"
  exit 77
}

build=build/dev
mode=--ci
names=() only_tests=() filter='*' limit=''
while (($# > 0)); do
  case $1 in
    --ci | --all) mode=$1 ;;
    --tests) IFS=, read -ra only_tests <<<"$2"; shift ;;
    --filter) filter=$2; shift ;;
    --limit) limit=$2; shift ;;
    [0-9]*) names+=("$1") mode=names ;;
    -*) sed -n '3,13s/^# \?//p' "$0" >&2; exit 64 ;;
    *) build=$1 ;;
  esac
  shift
done
build=$(realpath -e "$build") || exit 64
[[ -x $build/bin/oarlock ]] || { say "'$build' holds no bin/oarlock: build it first" >&2; exit 1; }

[[ $(uname -m) == x86_64 ]] || skip_all "the kernels are those of x86-64"
scripts/install-deps.sh kernels || skip_all "qemu-system-x86 and busybox-static cannot be installed here"
qemu-system-x86_64 --version >/dev/null 2>&1 || skip_all "qemu-system-x86_64 does not run here"
memory=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
((memory > 2500)) || skip_all "a guest takes 2.5 GB of memory, and $memory MB are left"
mkdir -p "$cache/logs" || exit
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT

# --- kernels -----------------------------------------------------------------------------------------------------------------

apt_options=()
# Packages with the kernels of the archive, the newest first.
packages=''
list_packages() {
  # From 6.19 the image package is empty and the kernel is in linux-binary. 6.1 counts behind its ABI name: 6.1.0-57.
  packages=$(apt-cache "${apt_options[@]}" pkgnames linux- | sed -nE 's/^linux-(image|binary)-([0-9]+\.[0-9]+\.[0-9].*)-cloud-amd64$/\2 \1/p' |
    awk '{split($1, part, /[.-]/); if ($2 == "binary" || part[1] * 100 + part[2] < 619) print}' | sort -rV)
}

# An apt of our own, so that the machine's lists stay as they are.
make_apt() {
  local state=$cache/apt archive security suite
  # Without a Release file a target has no codename, but the suite as it was asked for.
  archive=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null | awk '$2 ~ /^(bookworm|stable|oldstable)$/ {print $1; exit}')
  security=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null | awk '$2 ~ /^[a-z]+-security$/ {print $1; exit}')
  [[ -n $archive ]] || { say "no Debian archive among this machine's apt sources"; return 1; }
  mkdir -p "$state"/{l/partial,c/archives/partial,p}
  : >"$state/status"
  {
    for suite in "${suites[@]}"; do echo "deb [signed-by=$keyring] $archive $suite main"; done
    [[ -z $security ]] || for suite in "${security_suites[@]}"; do echo "deb [signed-by=$keyring] $security $suite main"; done
  } >"$work/sources.list"
  apt_options=(-q -o Dir::State::Lists="$state/l" -o Dir::Cache="$state/c" -o Dir::Etc::SourceList="$work/sources.list"
    -o Dir::Etc::SourceParts="$state/p" -o Dir::State::status="$state/status" -o Acquire::Languages=none
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=root
    -o Acquire::Retries=2 -o Acquire::http::Timeout=30)
  if [[ -z $(find "$state/updated" -mmin -720 2>/dev/null) ]]; then
    apt-get "${apt_options[@]}" -qq update >"$cache/logs/apt" 2>&1
    list_packages
    # One suite that has gone does not take the others along.
    [[ -n $packages ]] || { say "apt-get update failed, $cache/logs/apt has it"; return 1; }
    touch "$state/updated"
  fi
  list_packages
}

# Fetches the newest kernel of a series into the cache.
fetch() {
  local name=$1 directory=$cache/$1 version kind package
  while read -r version kind; do
    package=linux-$kind-$version-cloud-amd64
    rm -rf "$work/deb" && mkdir -p "$work/deb"
    (cd "$work/deb" && apt-get "${apt_options[@]}" -qq download "$package") >>"$cache/logs/apt" 2>&1 || continue
    dpkg-deb --fsys-tarfile "$work"/deb/*.deb | tar -x -C "$work/deb" --wildcards '*/vmlinuz*' 2>/dev/null
    local image
    image=$(find "$work/deb" -name 'vmlinuz*' -type f | head -n 1)
    [[ -n $image ]] || continue
    mkdir -p "$directory" && cp "$image" "$directory/vmlinuz" && echo "$version ($(dpkg-deb -f "$work"/deb/*.deb Version))" >"$directory/version" && return 0
  done < <(grep -E "^${name//./\\.}\." <<<"$packages" | head -n 3)
  return 1
}

skipped_kernels=()
ready=()
provide() {
  local name=$1 have=$cache/$1/vmlinuz
  if [[ -n $(find "$have" -mtime "-$fresh_days" 2>/dev/null) ]]; then
    ready+=("$name")
  elif [[ -n $packages ]] && fetch "$name"; then
    ready+=("$name")
  elif [[ -s $have ]]; then
    say "$name: the archive does not give it now, the one from $(date -r "$have" +%F) is used"
    ready+=("$name")
  else
    skipped_kernels+=("$name: $([[ -n $packages ]] && echo "not in Debian's archive any more" || echo "cannot be fetched")")
  fi
}

newest_first() { { printf '%s\n' "${series[@]}"; cut -d. -f1,2 <<<"$packages"; ls "$cache" | grep -E '^[0-9]+\.[0-9]+$'; } | sort -urV | grep .; }

choose_kernels() {
  local name
  make_apt
  case $mode in
    --ci)
      provide 6.1
      while read -r name; do
        local before=${#ready[@]}
        [[ $name == 6.1 ]] || provide "$name"
        ((${#ready[@]} == before)) || break
      done < <(newest_first)
      ;;
    --all)
      for name in $({ printf '%s\n' "${series[@]}"; cut -d. -f1,2 <<<"$packages" | awk -F. '$1 >= 7'; } | grep . | sort -uV); do provide "$name"; done
      ;;
    *) for name in "${names[@]}"; do provide "$name"; done ;;
  esac
}

# --- initramfs ---------------------------------------------------------------------------------------------------------------

root=$work/root
# A file to where it lies here, links of directories followed (/lib is one).
put() {
  local file target
  for file; do
    target=$root$(realpath "$(dirname "$file")")/$(basename "$file")
    [[ -e $target ]] && continue
    mkdir -p "$(dirname "$target")"
    cp -L "$file" "$target"
    chmod 755 "$target"
  done
}
put_libraries() { # of these programs
  ldd "$@" 2>/dev/null | sed -nE 's/^\t([^ ]+ => )?(\/[^ ]+) .*/\2/p' | sort -u | while read -r library; do put "$library"; done
}

plan_tests() {
  local test
  if ((${#only_tests[@]} > 0)); then
    printf '%s\n' "${only_tests[@]}"
  elif [[ $mode == --ci ]]; then
    printf '%s\n' "${ci_tests[@]}"
  else
    ctest --test-dir "$build" --show-only=json-v1 | python3 -c '
import json, sys
binaries = dict.fromkeys(sys.argv[1:])
for test in json.load(sys.stdin)["tests"]:
  labels = [value for item in test.get("properties", []) if item["name"] == "LABELS" for value in item["value"]]
  if "live" in labels: binaries[test["name"].split(".")[0]] = None
print(*binaries, sep="\n")' "${more_tests[@]}" | while read -r test; do [[ -n ${left_out[$test]:-} ]] || echo "$test"; done
  fi
}

make_initramfs() {
  local program path test except version
  mkdir -p "$root"/{dev,proc,sys,run,tmp,root,etc,var/log,usr/bin,usr/sbin,usr/lib,usr/lib64,usr/share,srv,home} || return
  local link
  for link in bin sbin lib lib64; do
    if [[ -L /$link ]]; then ln -s "usr/$link" "$root/$link"; else mkdir -p "$root/$link"; fi
  done
  ln -s /run "$root/var/run"
  cp /bin/busybox "$root/busybox"
  cp tests/kernels/guest_init "$root/init" && chmod 755 "$root/init"
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
  cp /etc/ld.so.cache "$root/etc/"
  cp /etc/os-release "$root/etc/"
  local found=()
  for program in "${programs[@]}"; do
    path=$(PATH=/usr/bin:/bin:/usr/sbin:/sbin type -P "$program") && put "$path" && found+=("$path")
  done
  put_libraries "${found[@]}"
  version=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  tar -C / -c --exclude=test --exclude=tests --exclude=idlelib --exclude=lib2to3 --exclude=ensurepip --exclude=tkinter --exclude=distutils \
    --exclude='config-*' --exclude=pydoc_data "usr/lib/$version" | tar -C "$root" -x
  [[ -e "$root/usr/bin/$version" ]] || put "/usr/bin/$version"
  put_libraries /usr/lib/"$version"/lib-dynload/*.so
  [[ ! -d /usr/lib/locale/C.utf8 ]] || { mkdir -p "$root/usr/lib/locale" && cp -r /usr/lib/locale/C.utf8 "$root/usr/lib/locale/"; }

  # At their own places: the tests know them by absolute paths.
  local ours=("$build"/bin/* "$build"/libexec/oarlock/*) helper
  for helper in "$build"/tests/bin/*; do
    [[ -f $helper && $helper != *_test && $helper != *_nightly ]] && ours+=("$helper")
  done
  : >"$root/plan"
  while read -r test; do
    if [[ ! -x $build/tests/bin/$test ]]; then
      say "$test: not built in $build" >&2
      return 1
    fi
    ours+=("$build/tests/bin/$test")
    except=${without[$test]:-}
    [[ $mode != --ci ]] || except+=${without_in_ci[$test]:+:${without_in_ci[$test]}}
    printf '%s %s %s\n' "$build/tests/bin/$test" 400 "$filter${except:+-$except}" >>"$root/plan"
  done < <(plan_tests | awk -v last="$last_test" '$0 == last {late = 1; next} {print} END {if (late) print last}')
  [[ -s $root/plan ]] || { say "no test to run" >&2; return 1; }
  put_libraries "${ours[@]}"
  for program in "${ours[@]}"; do
    mkdir -p "$root$(dirname "$program")"
    # Without what debuggers read: a tenth of the size.
    strip --strip-debug -o "$root$program" "$program" 2>/dev/null || cp "$program" "$root$program"
    chmod 755 "$root$program"
  done
  # Not compressed: the emulated CPU is slower at that than qemu is at copying.
  (cd "$root" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$work/initramfs" || return
  say "$(wc -l <"$root/plan") test programs, initramfs of $(($(stat -c %s "$work/initramfs") >> 20)) MiB"
}

# --- runs --------------------------------------------------------------------------------------------------------------------

# The single-threaded emulation without cmpxchg16b is the one that does not fail by itself; once in a while one does.
boot() {
  local name=$1 log=$cache/logs/$1 leave=$2 try
  for try in 1 2; do
    timeout -k 5 "$limit" qemu-system-x86_64 -accel tcg,thread=single -cpu max,-cx16 -smp 1 -m 2048 -nodefaults -no-reboot -display none \
      -serial stdio -kernel "$cache/$name/vmlinuz" -initrd "$work/initramfs" \
      -append "console=ttyS0 quiet panic=-1 oops=panic random.trust_cpu=on oarlock.leave=$leave" </dev/null >"$log" 2>&1
    local code=$?
    tr -d '\r' <"$log" >"$log.text" && mv "$log.text" "$log"
    if ((try == 1)) && grep -qE 'Oops|Kernel panic|kernel BUG' "$log"; then
      cp "$log" "$log.panic"
      continue
    fi
    return $code
  done
}

# Every program of the plan has reported, nothing failed, and something was run.
judge() {
  local name=$1 leave=$2 code=$3 seconds=$4 log=$cache/logs/$1
  python3 - "$log" "$root/plan" "$name $(cat "$cache/$name/version")" "$leave" "$code" "$seconds" <<'END'
import collections, os, re, sys
log, plan, title, leave, code, seconds = sys.argv[1:]
text = open(log, encoding="utf-8", errors="replace").read()
results = {m[1]: [int(number) for number in m[2].split()] for m in re.finditer(r"^@@RESULT (\S+) ([0-9 ]+)$", text, re.M)}
problems, passed, failed, skipped = [], 0, 0, 0
for line in open(plan):
  name = os.path.basename(line.split()[0])
  if name == leave: continue
  if name not in results:
    problems.append(f"{name}: did not report")
    continue
  exit_code, ok, bad, out = results[name][:4]
  passed, failed, skipped = passed + ok, failed + bad, skipped + out
  if exit_code != 0 or bad != 0: problems.append(f"{name}: {bad} failed, exit code {exit_code}")
  elif ok + out == 0: problems.append(f"{name}: ran no test")
if passed == 0: problems.append("not one test passed")
if "@@END" not in text: problems.append("it did not come to its end" + (" in time" if code == "124" else ""))
release = re.search(r"^@@KERNEL (.*)$", text, re.M)
print(f"kernels: {title}: {passed} passed, {failed} failed, {skipped} skipped, {seconds} s; {release[1] if release else 'it did not boot'}")
reasons = collections.Counter(m[1] for m in re.finditer(r"^@@SKIPPED (.*)$", text, re.M))
for reason, count in sorted(reasons.items()): print(f"    skipped {count}: {reason}")
for complaint in re.findall(r"^@@KERNEL_LOG (.*)$", text, re.M): print(f"    kernel: {complaint}")
if problems:
  for problem in problems: print(f"    FAILED {problem}")
  for block in re.findall(r"^@@FAILED (.*)$", text, re.M): print(f"      {block}")
  print(f"    {log} has the output")
sys.exit(1 if problems else 0)
END
}

run_one() {
  local begin=$SECONDS code=0 leave=none
  # One kernel's Yama stands for all where there is little time.
  [[ $mode != --ci || $1 == "${ready[0]}" ]] || leave=$last_test
  boot "$1" "$leave" || code=$?
  judge "$1" "$leave" "$code" "$((SECONDS - begin))"
}

choose_kernels
if ((${#ready[@]} == 0)); then
  printf 'kernels: skipped %s\n' "${skipped_kernels[@]}"
  skip_all "no kernel can be had here"
fi
make_initramfs || exit 1
[[ -n $limit ]] || limit=$([[ $mode == --ci ]] && echo 280 || echo 2400)

failed=()
at_once=$(($(nproc) > 1 && memory > 5000 ? 2 : 1))
for name in "${ready[@]}"; do
  while (($(jobs -rp | wc -l) >= at_once)); do wait -n; done
  (run_one "$name" >"$work/result.$name" 2>&1 && touch "$work/passed.$name") &
done
wait
for name in "${ready[@]}"; do
  cat "$work/result.$name"
  [[ -e $work/passed.$name ]] || failed+=("$name")
done
for line in "${skipped_kernels[@]}"; do say "skipped $line"; done
if [[ $mode != --ci ]] && ((${#only_tests[@]} == 0)); then
  for test in "${!left_out[@]}"; do say "left out $test: ${left_out[$test]}"; done | sort
fi
say "${#ready[@]} kernels, ${#failed[@]} failed, ${#skipped_kernels[@]} skipped"
((${#failed[@]} == 0))
