#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs oarlock-bypass for CTest and keeps what came out: check.py run NAME FILE -- PROGRAM ARGUMENTS...
Checks all of one run:                                 check.py all NAME FILE PROGRAM
Checks one id in all runs:                             check.py id E-20 DIRECTORY
A bare run must let every applicable id out, one under the launcher none."""

import json
import pathlib
import subprocess
import sys

# Open by nature: under a sandbox of this kind, these and no others.
OPEN = {f"E-{n}" for n in (110, 111, 112, 113, 132, 139, 141, 142, 143, 147, 198, 199, 200, 202)}
CONFIGURATIONS = [f"{who}-{broker}" for who in ("root", "nocap", "nobody") for broker in ("none", "broker")]
SKIP = 77


def read(path):
    rows = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        rows[row["id"]] = row
    return rows


def wrong(row, bare):
    """What is wrong with a line, or nothing."""
    verdict = row["verdict"]
    allowed = {"escaped", "not-applicable"} if bare else {"held", "not-applicable"}
    if not bare and row["id"] in OPEN:
        allowed.add("open-by-design")
    if verdict not in allowed:
        return f"{row['id']} {verdict}: {row['detail']}"
    if verdict == "not-applicable" and (not row["detail"] or row["detail"].startswith(("not tried:", "the launch was refused"))):
        return f"{row['id']} was not tried: {row['detail']}"
    return None


def run(name, out, command):
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stderr)
    if done.returncode == 2 and "needs root" in done.stderr:
        print("skipped: needs root, to be able to see what happens outside")
        return SKIP
    out.write_text(done.stdout, "utf-8")
    return 0 if done.returncode in (0, 1) else 1


def whole(name, out, program):
    out = pathlib.Path(out)
    if not out.exists():
        print("skipped: there are no results")
        return SKIP
    rows = read(out)
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    missing = [line.split("\t")[0] for line in listed if line.split("\t")[0] not in rows]
    problems = [problem for row in rows.values() if (problem := wrong(row, name == "bare"))]
    for verdict in ("held", "escaped", "open-by-design", "not-applicable"):
        print(sum(row["verdict"] == verdict for row in rows.values()), verdict)
    for row in rows.values():
        if row["verdict"] == "not-applicable":
            print(f"{row['id']:6} not-applicable: {row['detail']}")
    for problem in problems:
        print("WRONG:", problem)
    for which in missing:
        print("WRONG:", which, "has no line")
    return 1 if problems or missing else 0


def one(which, directory):
    result = 0
    found = 0
    for name in ["bare", *CONFIGURATIONS]:
        path = pathlib.Path(directory) / f"{name}.jsonl"
        if not path.exists():
            continue
        found += 1
        row = read(path).get(which)
        if row is None:
            print(f"WRONG: {name}: no line")
            result = 1
            continue
        print(f"{name:14} {row['verdict']}: {row['detail']}")
        if problem := wrong(row, name == "bare"):
            print("WRONG:", name, problem)
            result = 1
    if found == 0:
        print("skipped: there are no results")
        return SKIP
    return result


def main():
    if sys.argv[1] == "id":
        return one(sys.argv[2], sys.argv[3])
    if sys.argv[1] == "all":
        return whole(*sys.argv[2:5])
    at = sys.argv.index("--")
    return run(sys.argv[2], sys.argv[3], sys.argv[at + 1:])


if __name__ == "__main__":
    sys.exit(main())
