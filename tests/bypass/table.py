#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/BYPASS.md from results of oarlock-bypass: table.py PROGRAM DIRECTORY [--reasons]"""

import json
import pathlib
import subprocess
import sys

SHORT = {"held": "held", "escaped": "**escaped**", "open-by-design": "open", "not-applicable": "–"}
ORDER = ["bare", "oarlock", "oarlock-uid", "landlock", "bwrap", "nsjail", "landrun", "nono", "sandlock"]


def main():
    listed = [line.split("\t") for line in subprocess.run([sys.argv[1], "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    runs = {}
    for name in ORDER:
        path = pathlib.Path(sys.argv[2]) / f"{name}.jsonl"
        rows = {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())} if path.exists() else {}
        # A launcher that never started anything has no verdicts.
        if rows and any(row["verdict"] in ("held", "escaped") for row in rows.values()):
            runs[name] = rows
    reasons = [(which, what, why) for which, what, why in listed if runs["oarlock"][which]["verdict"] == "not-applicable"]
    print("| id | what is tried | " + " | ".join(runs) + " |")
    print("|---|---|" + "---|" * len(runs))
    for which, what, _ in listed:
        if which in {reason[0] for reason in reasons}:
            continue
        print(f"| {which} | {what} | " + " | ".join(SHORT[rows[which]["verdict"]] if which in rows else "?" for rows in runs.values()) + " |")
    for verdict in ("held", "escaped", "open-by-design"):
        print(f"| | {verdict} | " + " | ".join(str(sum(row["verdict"] == verdict for row in rows.values())) for rows in runs.values()) + " |")
    print("\nNot tried by the suite, or not possible here:\n\n| id | what | why |\n|---|---|---|")
    for which, what, _ in reasons:
        print(f"| {which} | {what} | {runs['oarlock'][which]['detail'].replace('|', '/')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
