#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up CTest's JUnit files and fails where nothing was proved.

That is: a test failed, or every live test was skipped.

check-results.py TESTS.json RESULTS.xml...    TESTS.json: `ctest --show-only=json-v1`, for the labels
"""

import json
import sys
import xml.etree.ElementTree as ElementTree


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


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    with open(arguments[0], encoding="utf-8") as file:
        labels = labels_of(json.load(file))
    everything, live = [], []
    for path in arguments[1:]:
        for name, outcome in outcomes_of(path):
            everything.append(outcome)
            if "live" in labels.get(name, []):
                live.append(outcome)

    def line(outcomes):
        return ", ".join(f"{outcomes.count(what)} {what}" for what in ("passed", "failed", "skipped"))

    print(f"live: {line(live)}")
    print(f"tests: {line(everything)}")
    if len(live) == live.count("skipped"):
        print("check-results: not one live test ran; nothing was proved about this kernel", file=sys.stderr)
        return 1
    return 1 if "failed" in everything or "passed" not in everything else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
