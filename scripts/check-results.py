#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up CTest's JUnit files and fails where nothing was proved.

That is: a test failed, every live test was skipped, or, with --ids, every test of a statement of tests/contract/ids.txt was.

check-results.py [--ids] TESTS.json RESULTS.xml...    TESTS.json: `ctest --show-only=json-v1`, for the labels
"""

import json
import sys
import xml.etree.ElementTree as ElementTree

from contract_ids import Ids, ids_of


def labels_of(listing):
    """Test name -> its labels."""
    tests = {}
    for test in listing["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        tests[test["name"]] = properties.get("LABELS", [])
    return tests


def outcomes_of(path):
    """(test name, "passed" | "failed" | "skipped") of one JUnit file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") == "fail" or case.find("failure") is not None:
            yield case.get("name"), "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            yield case.get("name"), "skipped"
        else:
            yield case.get("name"), "passed"


def unproved(outcomes, ids):
    """A line for each statement whose tests all were skipped in this run, where ids.txt does not say that they may be."""
    by_id = {}
    for name, outcome in outcomes:
        for one in ids_of(name):
            by_id.setdefault(one, []).append(outcome)
    lines = []
    for one, statement in ids.statement.items():
        # Without any: of the night alone, which traceability_test.py sees to.
        if one in by_id and set(by_id[one]) == {"skipped"} and one not in ids.may_skip:
            lines.append(f"{one}: {statement}: all of its tests were skipped")
    return lines


def main(arguments):
    with_ids = arguments[:1] == ["--ids"]
    arguments = arguments[with_ids:]
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    with open(arguments[0], encoding="utf-8") as file:
        labels = labels_of(json.load(file))
    everything, live, named = [], [], []
    for path in arguments[1:]:
        for name, outcome in outcomes_of(path):
            everything.append(outcome)
            named.append((name, outcome))
            if "live" in labels.get(name, []):
                live.append(outcome)

    def line(outcomes):
        return ", ".join(f"{outcomes.count(what)} {what}" for what in ("passed", "failed", "skipped"))

    print(f"live: {line(live)}")
    print(f"tests: {line(everything)}")
    if len(live) == live.count("skipped"):
        print("check-results: not one live test ran; nothing was proved about this kernel", file=sys.stderr)
        return 1
    if with_ids:
        ids = Ids()
        ids.print_absent()
        missing = unproved(named, ids)
        for text in missing:
            print(f"check-results: {text}", file=sys.stderr)
        if missing:
            return 1
    return 1 if "failed" in everything or "passed" not in everything else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
