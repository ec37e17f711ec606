#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages that Oarlock needs. Does nothing, quickly, where they are all there.
#   scripts/install-deps.sh [build|test|programs|programs-big|tidy|fuzz|bench|kernels]...   (default: build test)
#   scripts/install-deps.sh --list [SET]...        prints the packages and stops
set -euo pipefail

# What CMake asks for with find_package and pkg_check_modules. The -dev packages hold the static libraries
# too.
build_packages=(
  g++ cmake ninja-build pkg-config
  libseccomp-dev       # the filter generator
  liburing-dev         # the supervisor's ring
  libssl-dev           # SHA-256
  nlohmann-json3-dev   # policies, admission, the readers of the log
  libspdlog-dev        # oarlockd's own messages
  libfmt-dev           # spdlog's formatting
  libcli11-dev         # options of oarlock and oarlockd
)
# The test libraries, and the real programs that the live tests and the demo run. tinyproxy-bin is the program
# without the service of the tinyproxy package, which would start by itself.
test_packages=(
  libgtest-dev libz3-dev
  curl wget git python3 tinyproxy-bin iproute2 strace
)
# What tests/programs runs inside the sandbox; a test whose program is missing is skipped. The first set takes seconds and goes
# into CI; the second is half a gigabyte and more, for the nightly run.
programs_packages=(gcc libc6-dev make cmake perl sqlite3 rsync tar xz-utils bzip2 openssl python3-pip)
programs_big_packages=(cargo default-jdk-headless)
programs_big_packages+=(bubblewrap)  # scripts/bypass.sh compares with it
# A node from elsewhere brings its npm with it, and Debian's would not go beside it.
command -v npm >/dev/null || programs_big_packages+=(nodejs npm)
tidy_packages=(clang-19 clang-tidy-19)
fuzz_packages=(clang-19 libclang-rt-19-dev llvm-19)  # libFuzzer, its sanitizers, and their symbolizer
bench_packages=(libbenchmark-dev python3)
kernels_packages=(qemu-system-x86 busybox-static python3)

list_only=false
if [[ "${1:-}" == --list ]]; then
  list_only=true
  shift
fi
packages=()
for set in "${@:-build test}"; do
  for name in $set; do
    case "$name" in
      build) packages+=("${build_packages[@]}") ;;
      test) packages+=("${test_packages[@]}") ;;
      programs) packages+=("${programs_packages[@]}") ;;
      programs-big) packages+=("${programs_big_packages[@]}") ;;
      tidy) packages+=("${tidy_packages[@]}") ;;
      fuzz) packages+=("${fuzz_packages[@]}") ;;
      bench) packages+=("${bench_packages[@]}") ;;
      kernels) packages+=("${kernels_packages[@]}") ;;
      *)
        echo "install-deps: unknown set '$name' (build, test, programs, programs-big, tidy, fuzz, bench, kernels)" >&2
        exit 64
        ;;
    esac
  done
done
if $list_only; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

# shellcheck source=/dev/null
system=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}") || system="unknown"
if [[ "$system" != "debian 12" ]]; then
  echo "install-deps: this is '$system', not Debian 12, which the package names and versions are for." >&2
  echo "install-deps: install the like of these yourself: ${packages[*]}" >&2
  exit 1
fi

declare -A installed=()
while read -r package status; do
  if [[ "$status" == installed ]]; then installed[$package]=yes; fi
done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  if [[ -z "${installed[$package]:-}" ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: neither root nor sudo; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install-deps: installing ${missing[*]}"
# Environment variables do not pass sudo by themselves.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
