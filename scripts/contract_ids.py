# SPDX-License-Identifier: Apache-2.0
"""Reads tests/contract/ids.txt, and knows which tests carry which id."""

import pathlib
import re

PLACE = pathlib.Path(__file__).resolve().parent.parent / "tests/contract"
# How many there are of each sort: none is lost by an edit.
COUNTS = {"R-OB": 46, "R-OX": 8, "R-MO": 44, "E": 203}


class Ids:
    """What ids.txt says, and awaited.txt beside it where something is ("ID or sort ... | what is awaited")."""

    def __init__(self, place=PLACE):
        self.statement, self.absent, self.may_skip = {}, {}, {}
        self.areas, self.threats, self.awaited = {}, {}, {}
        self.problems = []
        for number, line in enumerate((place / "ids.txt").read_text("utf-8").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                self._take(number, [part.strip() for part in line.split("|")])
        awaited = place / "awaited.txt"
        for line in awaited.read_text("utf-8").splitlines() if awaited.exists() else []:
            if line.strip() and not line.startswith("#"):
                names, reason = (part.strip() for part in line.split("|"))
                for name in names.split():
                    self.awaited.update({one: reason for one in self.statement if one == name or one.rpartition("-")[0] == name})

    def _take(self, number, parts):
        kind, _, name = parts[0].partition(": ")
        if name:
            if len(parts) != 3 or kind not in ("area", "threat"):
                self.problems.append(f"line {number}: {parts}")
            else:
                (self.areas if kind == "area" else self.threats)[name] = parts[2].split()
            return
        good = re.fullmatch(r"R-(OB|OX|MO)-\d\d|E-\d\d\d?", parts[0]) and len(parts) in (2, 3) and 0 < len(parts[1]) <= 140
        if not good or parts[0] in self.statement:
            self.problems.append(f"line {number}: {parts}")
            return
        self.statement[parts[0]] = parts[1]
        if len(parts) == 3:
            note = re.fullmatch(r"(not here|may skip): (.{10,})", parts[2])
            if note is None:
                self.problems.append(f"line {number}: {parts[2]}")
            else:
                (self.absent if note.group(1) == "not here" else self.may_skip)[parts[0]] = note.group(2)

    def wrong_counts(self):
        """Sort -> how many there are, where that is not what it must be."""
        found = {sort: sum(1 for one in self.statement if one.rpartition("-")[0] == sort) for sort in COUNTS}
        return {sort: count for sort, count in found.items() if count != COUNTS[sort]}

    def print_absent(self):
        """The short list of what no test is about."""
        for one, reason in sorted(self.absent.items()):
            print(f"{one}: not here: {reason}")


def ids_of(test_name):
    """The ids that a CTest name carries."""
    # Behind a parameterised name CTest shows the parameter, which may be any bytes.
    test_name = test_name.split("  # GetParam()")[0]
    found = {f"R-{sort}-{number}" for sort, number in re.findall(r"(?<![A-Za-z0-9])R[_-](OB|OX|MO)[_-](\d\d)(?!\d)", test_name)}
    return found | {f"E-{int(number):02d}" for number in re.findall(r"(?<![A-Za-z0-9])E-?(\d{1,3})(?![A-Za-z0-9])", test_name)}


def tests_by_id(listing):
    """Id -> {test name: its labels}, of `ctest --show-only=json-v1`."""
    found = {}
    for test in listing["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        for one in ids_of(test["name"]):
            found.setdefault(one, {})[test["name"]] = properties.get("LABELS", [])
    return found
