#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each statement of ids.txt has a test: traceability_test.py BUILD_DIRECTORY Traceability.NAME"""

import functools
import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from contract_ids import Ids, ids_of, tests_by_id  # noqa: E402

SKIPPED = 77  # the code that CTest is told of


@functools.cache
def listing():
    """What CTest would run in the build directory."""
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)


def names_of(tests, nightly=True):
    return sorted(name for name, labels in tests.items() if nightly or "nightly" not in labels)


class Traceability(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.ids = Ids()

    def test_ids_are_whole(self):
        self.assertEqual(self.ids.problems, [])
        self.assertEqual(self.ids.wrong_counts(), {})
        self.assertLessEqual(len(self.ids.absent), 20, "the list of what is not here is a short one")

    def test_no_name_carries_an_id_that_is_none(self):
        wrong = {test["name"]: sorted(ids_of(test["name"]) - set(self.ids.statement)) for test in listing()["tests"]}
        self.assertEqual({name: ids for name, ids in wrong.items() if ids}, {})

    def test_each_statement_has_a_test(self):
        self.ids.print_absent()
        tests = tests_by_id(listing())
        lacking = []
        for one, statement in self.ids.statement.items():
            # The long ones of the night prove an escape too; what was asked for is proved by every run.
            has = names_of(tests.get(one, {}), nightly=one.startswith("E-"))
            if not has and one not in self.ids.absent and one not in self.ids.awaited:
                lacking.append(f"{one}: {statement}")
        self.assertEqual(lacking, [])

    def test_what_is_not_here_or_awaited_has_no_test(self):
        """A mark that has outlived its reason goes."""
        tests = tests_by_id(listing())
        self.assertEqual(sorted(set(self.ids.absent) & set(tests)), [], "marked as not here")
        for reason in set(self.ids.awaited.values()):
            waiting = [one for one, why in self.ids.awaited.items() if why == reason]
            self.assertTrue(any(one not in tests for one in waiting), f"nothing is awaited any more: {reason}")

    def test_R_OB_01_each_area_of_the_contract_has_tests(self):
        self.assertGreaterEqual(len(self.ids.areas), 15)
        self.each_has_tests(self.ids.areas)

    def test_R_MO_44_each_gap_of_a_launcher_alone_is_tested_by_default(self):
        self.assertEqual(sorted(self.ids.threats, key=lambda name: int(name[1:])), [f"G{i}" for i in range(1, 19)])
        self.each_has_tests(self.ids.threats)

    def test_a_statement_whose_tests_were_all_skipped_is_told(self):
        spec = importlib.util.spec_from_file_location("check_results", ROOT / "scripts/check-results.py")
        results = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(results)
        self.ids.may_skip = {"R-OB-03": "this machine"}
        outcomes = [("a.R_OB_02_R_OB_05_X", "skipped"), ("b.R_OB_05_Y", "passed"), ("c.R_OB_03_Z", "skipped"), ("d.E05_E06_V", "skipped"),
                    ("bypass.E-06", "passed"), ("plain", "skipped")]
        told = [line.split(":")[0] for line in results.unproved(outcomes, self.ids)]
        self.assertEqual(told, ["R-OB-02", "E-05"])

    def test_names_carry_ids_in_every_spelling(self):
        self.assertEqual(ids_of("x_test.Contract/Calls.R_OB_29_R_MO_03_Signals/Root"), {"R-OB-29", "R-MO-03"})
        self.assertEqual(ids_of("traceability.R_OX_01_each"), {"R-OX-01"})
        self.assertEqual(ids_of("hostile_test.Target.E92_E132_E152_Memory/Node"), {"E-92", "E-132", "E-152"})
        self.assertEqual(ids_of("Hostile/Doors.LeadNowhere/E05_Foreign"), {"E-05"})
        self.assertEqual(ids_of("bypass.E-20"), {"E-20"})
        self.assertEqual(ids_of("a.TakesE2E_Things.Version1E5_HTTP_R_OB_1"), set())

    def each_has_tests(self, named):
        tests = tests_by_id(listing())
        for name, ids in named.items():
            with self.subTest(name):
                self.assertTrue(ids)
                self.assertEqual(sorted(set(ids) - set(self.ids.statement)), [])
                self.assertEqual([one for one in ids if not names_of(tests.get(one, {}), nightly=False)], [])


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    # A program that was not built stands for all of its tests.
    absent = [test["name"] for test in listing()["tests"] if test["name"].endswith("_NOT_BUILT")]
    if absent:
        print(f"not every test is built: {', '.join(absent[:5])} ...")
        sys.exit(SKIPPED)
    unittest.main()
