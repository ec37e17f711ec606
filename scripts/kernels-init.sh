#!/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a kernel that scripts/kernels.sh boots: runs the plan, reports line by line on the console, powers off.
#   @@KERNEL text                                    release, and what tests depend on
#   @@RESULT name exit passed failed skipped seconds one per test program
#   @@FAILED name / @@SKIPPED reason                 one per test
b=/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
$b mkdir -p /dev/pts /dev/shm /dev/mqueue
$b mount -t devpts -o ptmxmode=0666,mode=0620 devpts /dev/pts
$b mount -t tmpfs -o mode=1777 tmpfs /dev/shm
$b mount -t tmpfs -o mode=1777 tmpfs /tmp
$b mount -t tmpfs -o mode=0755 tmpfs /run
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup
$b ln -sf /proc/self/fd /dev/fd
$b ip link set lo up
$b hostname guest
# As a booted system has them.
ulimit -Hn 524288
ulimit -Sn 1024
# Nothing of this machine outlives the tests.
export OARLOCK_TEST_GUEST=1
# A hundredth of the rounds: a round takes fifty times as long here.
export OARLOCK_SCALE=0.01

read -r release </proc/sys/kernel/osrelease
yama=none
[ -e /proc/sys/kernel/yama/ptrace_scope ] && read -r yama </proc/sys/kernel/yama/ptrace_scope
lsm=unknown
$b mount -t securityfs securityfs /sys/kernel/security && read -r lsm </sys/kernel/security/lsm
echo "@@KERNEL $release, yama $yama, lsm $lsm"

while read -r program seconds filter; do
  name=${program##*/}
  case " $($b cat /proc/cmdline) " in *" oarlock.leave=$name "*) continue ;; esac
  begin=$($b date +%s)
  $b timeout -k 5 "$seconds" "$program" --gtest_filter="$filter" --gtest_output=xml:/run/result.xml --gtest_color=no </dev/null >/run/out 2>&1
  code=$?
  passed=$($b grep -c 'status="run" result="completed"' /run/result.xml 2>/dev/null)
  skipped=$($b grep -c 'status="run" result="skipped"' /run/result.xml 2>/dev/null)
  # gtest names each once where it ends and once in its summary.
  $b sed -n 's/^\[  FAILED  \] \([^ ]*\)\(,.*\)\? ([0-9]* ms)$/\1/p' /run/out >/run/failed
  failed=$($b wc -l </run/failed)
  [ "$code" = 0 ] || $b sed 's/^/  | /' /run/out
  while read -r test; do echo "@@FAILED $test"; done </run/failed
  $b sed -n '/: Skipped$/{n;s/^/@@SKIPPED /p}' /run/out
  echo "@@RESULT $name $code $((${passed:-0} - failed)) $failed ${skipped:-0} $(($($b date +%s) - begin))"
  $b rm -f /run/result.xml
done </plan

$b dmesg | $b grep -E 'WARNING: |BUG: |Oops|UBSAN|KASAN|hung task' | $b head -n 20 | $b sed 's/^/@@KERNEL_LOG /'
echo "@@END"
$b sync
$b poweroff -f
