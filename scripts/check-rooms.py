#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: the arrows between rooms, and which file may see which library.

The arrows are drawn in docs/ARCHITECTURE.md. A violation is printed as FILE:LINE: text, and the exit
code is then 1. With --self-test it checks instead that each rule finds a violation made for it.
"""

import argparse
import pathlib
import re
import sys

# A room may include itself and the rooms named here. `notif` is the contract with the kernel; all use it.
ARROWS = {
    "notif": set(),
    "policy": {"notif"},
    "audit": {"notif"},
    "proxyport": {"notif"},
    "child": {"policy", "notif"},
    "supervisor": {"proxyport", "audit", "notif"},
    "inspect": {"audit", "proxyport", "policy", "notif"},
    "cli": {"child", "supervisor", "inspect", "audit", "policy", "notif"},
}

# Files that stand apart from their room: the front is static and small, so it may see the launcher's rooms
# alone.
NARROWER = {"cli/front_main.cc": {"child", "policy", "notif"}}

# Libraries: a pattern over the include's text, the places that may have it, and the reason.
LIBRARIES = [
    (r"<liburing", ["notif/ring.cc"], "liburing is seen by the ring alone"),
    (r"<seccomp\.h>", ["notif/filter/"], "libseccomp is seen by the filter generator alone"),
    (r"<linux/(seccomp|landlock)\.h>", ["notif/abi/"], "the build host's headers are older than the kernel"),
]

# Libraries that cost seconds per file: never in a header of a room, so that nobody pays without asking.
HEAVY = r"<(nlohmann/|gtest/|gmock/|spdlog/|fmt/|CLI/|CLI11|boost/|prometheus/|openssl/|z3)"
HEAVY_ALLOWED = {"notif/json.h"}  # it exists to be that header, and says so

# Numbers and names of the two interfaces stand in notif/abi, as constants of ours.
RAW_NAMES = [
    (r"\b(LANDLOCK_[A-Z_]+|(SYS|__NR)_landlock_\w+)\b",
     ["notif/abi/"], "Landlock's names stand in notif/abi alone"),
    (r"\b(SECCOMP_(SET_MODE|FILTER_FLAG|USER_NOTIF|IOCTL|RET)_[A-Z_]+|(SYS|__NR)_seccomp)\b",
     ["notif/abi/", "notif/filter/"], "seccomp's names stand in notif/abi, and in the filter generator"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+(<[^>]+>|"[^"]+")')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def strip_comment(line):
    """Without a line comment and without the text of strings; block comments are not used in this tree."""
    return STRING.sub('""', line).split("//")[0]


def is_in(name, places):
    return any(name == place or (place.endswith("/") and name.startswith(place)) for place in places)


def check_include(name, included):
    room = name.split("/")[0]
    if included.startswith('"'):
        other = included[1:-1].split("/")[0]
        allowed = NARROWER.get(name, ARROWS[room]) | ({room} if name not in NARROWER else set())
        if "/" not in included:
            yield f"{included} has no room: name headers from the root of the tree"
        elif other in ARROWS and other not in allowed:
            yield f"{name if name in NARROWER else room} may not include {other}/"
        elif other in ("tests", "bench"):
            yield f"{room} may not include {other}/"
    for pattern, places, reason in LIBRARIES:
        if re.match(pattern, included) and not is_in(name, places):
            yield f"{included}: {reason}"
    if name.endswith(".h") and re.match(HEAVY, included) and name not in HEAVY_ALLOWED:
        yield f"{included} in a header: it belongs into the .cc that uses it"


def check_text(name, text):
    """Yields (line number, complaint) for one file of a room."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            for complaint in check_include(name, match.group(1)):
                yield number, complaint
            continue
        for pattern, places, reason in RAW_NAMES:
            found = re.search(pattern, strip_comment(line))
            if found and not is_in(name, places):
                yield number, f"{found.group(0)}: {reason}"


def check_tree(root):
    complaints = []
    files = 0
    for room in ARROWS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            files += 1
            name = path.relative_to(root).as_posix()
            found = check_text(name, path.read_text("utf-8"))
            complaints += [f"{name}:{number}: {text}" for number, text in found]
    return files, complaints


SELF_TEST = [
    ("child/a.cc", '#include "supervisor/shard.h"', True),
    ("supervisor/a.cc", '#include "child/roots.h"', True),
    ("supervisor/a.h", '#include "policy/policy.h"', True),
    ("notif/a.cc", '#include "audit/record.h"', True),
    ("audit/a.cc", '#include "policy/policy.h"', True),
    ("proxyport/a.cc", '#include "audit/record.h"', True),
    ("policy/a.cc", '#include "tests/support/process.h"', True),
    ("cli/front_main.cc", '#include "audit/reader.h"', True),
    ("cli/front_main.cc", '#include "child/launcher.h"', False),
    ("cli/a.cc", '#include "audit/reader.h"', False),
    ("cli/a.cc", '#include "reader.h"', True),
    ("supervisor/a.cc", "#include <liburing.h>", True),
    ("notif/ring.cc", "#include <liburing.h>", False),
    ("child/a.cc", "#include <seccomp.h>", True),
    ("notif/filter/a.cc", "#include <seccomp.h>", False),
    ("child/a.h", "#include <nlohmann/json.hpp>", True),
    ("child/a.cc", "#include <nlohmann/json.hpp>", False),
    ("notif/json.h", "#include <nlohmann/json.hpp>", False),
    ("child/a.cc", "#include <linux/landlock.h>", True),
    ("child/a.cc", "  syscall(SYS_landlock_add_rule, fd);", True),
    ("child/a.cc", "  // SYS_landlock_add_rule is 445", False),
    ("policy/a.cc", '  "SECCOMP_FILTER_FLAG_LOG",', False),
    ("supervisor/a.cc", "  ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n);", True),
]


def self_test():
    wrong = [f"{name}: {text!r} should be {'refused' if bad else 'accepted'}"
             for name, text, bad in SELF_TEST if bool(list(check_text(name, text))) != bad]
    return len(SELF_TEST), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="check the rules themselves")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    count, complaints = self_test() if arguments.self_test else check_tree(root)
    for complaint in complaints:
        print(complaint)
    what = "rules" if arguments.self_test else "files"
    print(f"check-rooms: {count} {what}, {len(complaints)} violations")
    return 1 if complaints or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
