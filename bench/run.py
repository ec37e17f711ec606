#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One interleaved measurement of what Oarlock costs, beside the bare kernel.

Every round runs every variant once, in an order that turns with the round, so that whatever else the machine does hits them
all. A figure is the median over the rounds of each run's median; a ratio is the median of the rounds' own ratios, with the
quartiles as its spread. Before anything is measured each variant is proved: the granted address is reached and the server
counts it, the forbidden one is refused and the server counts nothing.
"""
import argparse
import datetime
import errno
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

# operation, samples per run, variants beside "native"
OPERATIONS = {
    "connect": (1000, ["static", "floor", "private", "oarlockd"]),
    "connect-unix": (1000, ["static", "floor", "private", "oarlockd"]),
    "socket": (4000, ["static", "floor", "private", "oarlockd"]),
    "getppid": (4000, ["static", "wall", "private", "oarlockd"]),
    "read": (4000, ["static", "wall", "private", "oarlockd"]),
    "openat": (1000, ["static", "wall", "private", "oarlockd"]),
    "stat": (2000, ["static", "wall", "private", "oarlockd"]),
    # Enough of them to outlast what a supervisor that has just started still does beside them.
    "fork": (1500, ["static", "wall", "private", "oarlockd"]),
}
# operation: what it is compared with, the bound, the aim
TARGETS = {
    "connect": ("floor", 1.25, 1.10),
    "connect-unix": ("floor", 1.25, 1.10),
    "socket": ("floor", 1.15, 1.15),
    "getppid": ("native", 1.05, 1.05),
    "read": ("native", 1.05, 1.05),
    "openat": ("native", 1.05, 1.05),
    "stat": ("native", 1.05, 1.05),
    "fork": ("native", 1.03, 1.03),
}
# Milliseconds over bare fork and exec.
LAUNCH_TARGETS = {"oarlockd": 1.5, "private": 4.0}
OURS = ("private", "oarlockd")


def fail(text):
    sys.exit(f"bench: {text}")


class Bench:
    def __init__(self, build, directory):
        self.directory = directory
        self.programs = build / "bench"
        self.client = str(self.programs / "oarlock-bench-client")
        self.oarlock = str(build / "bin/oarlock")
        # The broker's directory is its own.
        (directory / "broker").mkdir()
        self.broker = str(directory / "broker/broker.sock")
        self.server = subprocess.Popen(
            [self.programs / "oarlock-bench-server", self.broker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port, self.forbidden = self.server.stdout.readline().split()
        self.policy = directory / "policy.json"
        self.policy.write_text(json.dumps({
            "version": 1, "module": "bench", "ro": [str(self.programs)], "net": "egress-allowlist",
            "proxy_port": int(self.port), "broker_socket": self.broker}))
        (directory / "run").mkdir()
        (directory / "log").mkdir()
        self.admit = str(directory / "run/admit.sock")
        self.daemon = subprocess.Popen(
            [build / "bin/oarlockd", "--socket", self.admit, "--log", str(directory / "log/audit.jsonl")],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.daemon.stderr:
            if "ready" in line:
                break
        else:
            fail("oarlockd did not start")
        # What it says of each session must not fill its pipe.
        self.drain = subprocess.Popen(["cat"], stdin=self.daemon.stderr, stdout=subprocess.DEVNULL)

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.drain.wait()
        self.server.stdin.close()
        self.server.wait()

    def counts(self):
        self.server.stdin.write("\n")
        self.server.stdin.flush()
        return [int(word) for word in self.server.stdout.readline().split()]

    def environment(self, variant):
        own = {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(self.directory / "state")}
        if variant == "oarlockd":
            own["OARLOCK_SUPERVISOR"] = self.admit
        return own

    def around(self, variant, peer):
        if variant == "native":
            return []
        if variant in ("static", "wall"):
            return [str(self.programs / "oarlock-floor"), variant, "--"]
        if variant == "floor":
            return [str(self.programs / "oarlock-floor"), peer, "--"]
        return [self.oarlock, "sandbox-exec", str(self.policy), "--"]

    def run(self, variant, words, peer=None):
        command = self.around(variant, peer or self.port) + [self.client] + words
        done = subprocess.run(command, env=self.environment(variant), capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            fail(f"{variant} {' '.join(words)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout.split()

    def prove(self):
        for variant in ("native", "static", "wall", "floor") + OURS:
            for peer, at in ((self.port, 0), (self.broker, 2)):
                before = self.counts()
                code = int(self.run(variant, ["try", "1", peer], peer)[0])
                after = self.counts()
                if code != 0 or after[at] != before[at] + 1:
                    fail(f"{variant} does not reach {peer}: errno {code}, {after[at] - before[at]} connections")
            before = self.counts()
            code = int(self.run(variant, ["try", "1", self.forbidden])[0])
            seen = self.counts()[1] - before[1]
            judged = variant in ("floor",) + OURS
            if judged and (code != errno.EACCES or seen != 0):
                fail(f"{variant} lets the forbidden address through: errno {code}, {seen} connections")
            if not judged and (code != 0 or seen != 1):
                fail(f"{variant} does not reach the other address, so its refusal would show nothing")

    def operation(self, variant, operation, count):
        name, peer = (operation, self.port) if operation != "connect-unix" else ("connect", self.broker)
        before = self.counts()
        words = self.run(variant, [name, str(count), peer], peer)
        if name == "connect":
            at = 2 if peer == self.broker else 0
            made, expected = self.counts()[at] - before[at], count + count // 10 + 10
            if made != expected:
                fail(f"{variant} {operation}: {made} connections for {expected} connects")
        return {"p50": int(words[1]), "p99": int(words[2]), "mean": int(words[3])}

    def launch(self, count):
        words = []
        for variant in ("native",) + OURS:
            words += ["---"] if words else []
            words += [f"{name}={value}" for name, value in self.environment(variant).items()]
            words += self.around(variant, None) + [self.client, "true"]
        done = subprocess.run([self.programs / "oarlock-bench-launch", str(count)] + words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fail(f"launch: {done.stderr.strip()}")
        lines = [line.split() for line in done.stdout.splitlines()]
        return {variant: {"p50": int(line[0]), "p99": int(line[1])} for variant, line in zip(("native",) + OURS, lines)}


def median(values):
    return statistics.median(values)


def spread(values):
    ordered = sorted(values)
    return [ordered[len(ordered) // 4], ordered[(len(ordered) * 3) // 4]]


def compare(rounds, base):
    """Per variant: its median and its ratio to `base`, both over the rounds."""
    out = {}
    for variant in rounds[0]:
        ratios = [one[variant]["p50"] / one[base]["p50"] for one in rounds]
        out[variant] = {
            "median_ns": median([one[variant]["p50"] for one in rounds]), "p99_ns": median([one[variant]["p99"] for one in rounds]),
            "base": base, "ratio": round(median(ratios), 3), "ratio_quartiles": [round(r, 3) for r in spread(ratios)]}
    return out


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    return {"kernel": platform.release(), "cpu": model, "cpus": os.cpu_count(), "load_before": os.getloadavg(),
            "virtual": "hypervisor" in open("/proc/cpuinfo", encoding="utf-8").read(),
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def measure(bench, rounds, scale, only):
    raw = {operation: [] for operation in OPERATIONS if not only or operation in only}
    launches = []
    for turn in range(rounds):
        for operation, one in raw.items():
            samples, variants = OPERATIONS[operation]
            order = ["native"] + variants
            order = order[turn % len(order):] + order[:turn % len(order)]
            got = {variant: bench.operation(variant, operation, max(20, int(samples * scale))) for variant in order}
            one.append({variant: got[variant] for variant in ["native"] + variants})
        if not only or "launch" in only:
            launches.append(bench.launch(max(5, int(20 * scale))))
        print(f"\rround {turn + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return raw, launches


def judge(raw, launches):
    results, misses = {}, []
    for operation, rounds in raw.items():
        base, bound, aim = TARGETS[operation]
        result = compare(rounds, base)
        results[operation] = {"base": base, "bound": bound, "aim": aim, "variants": result}
        misses += [f"{operation} {variant}: {result[variant]['ratio']} x {base}, bound {bound}"
                   for variant in OURS if result[variant]["ratio"] > bound]
    if launches:
        over = {}
        for variant in OURS:
            extra = [(one[variant]["p50"] - one["native"]["p50"]) / 1e6 for one in launches]
            over[variant] = {"over_bare_ms": round(median(extra), 3), "quartiles_ms": [round(e, 3) for e in spread(extra)],
                             "bound_ms": LAUNCH_TARGETS[variant], "median_ns": median([one[variant]["p50"] for one in launches])}
            if over[variant]["over_bare_ms"] > LAUNCH_TARGETS[variant]:
                misses.append(f"launch {variant}: {over[variant]['over_bare_ms']} ms over bare, bound {LAUNCH_TARGETS[variant]} ms")
        results["launch"] = {"bare_ns": median([one["native"]["p50"] for one in launches]), "variants": over}
    return results, misses


def table(results):
    lines = ["| operation | variant | median | p99 | ratio | quartiles | bound |", "|---|---|---|---|---|---|---|"]
    for operation, result in results.items():
        if operation == "launch":
            lines.append(f"| launch | native | {result['bare_ns'] / 1e6:.3f} ms | | | | |")
            for variant, one in result["variants"].items():
                lines.append(f"| launch | {variant} | {one['median_ns'] / 1e6:.3f} ms | | +{one['over_bare_ms']:.2f} ms "
                             f"| {one['quartiles_ms'][0]:.2f} to {one['quartiles_ms'][1]:.2f} | +{one['bound_ms']} ms |")
            continue
        for variant, one in result["variants"].items():
            bound = f"{result['bound']} x {result['base']}" if variant in OURS else ""
            low, high = one["ratio_quartiles"]
            lines.append(f"| {operation} | {variant} | {one['median_ns'] / 1000:.2f} us | {one['p99_ns'] / 1000:.2f} us | {one['ratio']:.2f} "
                         f"| {low:.2f} to {high:.2f} | {bound} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="a build directory made with OARLOCK_BENCH=ON")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0, help="of the samples in each run")
    parser.add_argument("--only", action="append", help="an operation (repeatable); 'launch' is one")
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is missed")
    arguments = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="oarlock-bench-"))
    bench = Bench(pathlib.Path(arguments.build).resolve(), directory)
    try:
        bench.prove()
        host = machine()
        raw, launches = measure(bench, arguments.rounds, arguments.scale, arguments.only)
    finally:
        bench.stop()
        shutil.rmtree(directory)
    results, misses = judge(raw, launches)
    host["load_after"] = os.getloadavg()
    print(table(results))
    for miss in misses:
        print(f"missed: {miss}")
    if arguments.json:
        figures = {"machine": host, "rounds": arguments.rounds, "results": results, "raw": raw, "launches": launches, "missed": misses}
        pathlib.Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if arguments.check and misses else 0


if __name__ == "__main__":
    sys.exit(main())
