#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the tree itself, one CTest test each: tree_test.py TestName."""

import functools
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".h", ".cc", ".py", ".sh", ".cmake"}
# Not ours to sign, or without a comment of its own: data, and what a standard text must be.
BINARY = {".png", ".gz", ".bpf"}


@functools.cache
def files():
    """What git tracks or would track; without git, everything but build trees."""
    try:
        # Whoever owns the tree: a container's build user need not.
        git = ["git", "-C", ROOT, "-c", f"safe.directory={ROOT}"]
        listed = subprocess.run(git + ["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True).stdout
        names = [name.decode() for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if name.split("/")[0] not in ("build", ".git", "Testing")]
    return [ROOT / name for name in sorted(set(names)) if (ROOT / name).is_file()]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def text_of(name):
    return (ROOT / name).read_text("utf-8")


@functools.cache
def version():
    return re.search(r"project\(oarlock VERSION ([0-9.]+)", text_of("CMakeLists.txt")).group(1)


def declared_tests():
    """Every name that a page may call a test by: "Suite.Case", a program of ours, a CTest test of its own."""
    names = {"tree." + name.removeprefix("test_") for name in dir(Tree) if name.startswith("test_")}
    for path in files():
        if not name_of(path).startswith("tests/"):
            continue
        if path.suffix == ".cc":
            cases = re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", path.read_text("utf-8"))
            names |= {f"{suite}.{case}" for suite, case in cases}
        elif path.name == "CMakeLists.txt":
            names |= set(re.findall(r"oarlock_add_(?:test|repo_check)\(\s*([\w.]+)", path.read_text("utf-8")))
    return names


class Tree(unittest.TestCase):
    maxDiff = None

    def test_every_source_names_its_licence(self):
        missing = []
        for path in files():
            name = name_of(path)
            signed = path.suffix in SOURCES or path.name == "CMakeLists.txt" or name.startswith(".ci/")
            if signed and LICENCE not in "\n".join(path.read_text("utf-8").splitlines()[:3]):
                missing.append(name)
        self.assertEqual(missing, [])
        self.assertIn("Apache License", text_of("LICENSE"))
        self.assertIn("Version 2.0, January 2004", text_of("LICENSE"))

    def test_changelog_has_this_version(self):
        headings = re.findall(r"^## \[([^\]]+)\]", text_of("CHANGELOG.md"), re.MULTILINE)
        self.assertIn(version(), headings)
        self.assertEqual(headings[0] if headings[0] != "Unreleased" else headings[1], version())

    def test_readme_commands_exist(self):
        readme = text_of("README.md")
        for command in ("scripts/demo.sh", "scripts/test.sh"):
            self.assertIn(command, readme)
        for mentioned in set(re.findall(r"\b(?:scripts|examples|docs)/[\w./-]*\w", readme)):
            self.assertTrue((ROOT / mentioned).exists(), f"README.md names {mentioned}, which is not there")

    def test_links_between_pages_lead_somewhere(self):
        broken = []
        for path in files():
            if path.suffix != ".md":
                continue
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
                if "://" not in target and not (path.parent / target).exists():
                    broken.append(f"{name_of(path)}: {target}")
        self.assertEqual(broken, [])

    def test_tests_named_in_the_guarantees_exist(self):
        text = text_of("docs/GUARANTEES.md")
        named = set(re.findall(r"`(\w+\.\w+)`", text)) | set(re.findall(r"`(\w+_test)`", text))
        self.assertEqual(sorted(named - declared_tests()), [])
        # Each promise has a heading of its own, with at least one test below it.
        sections = re.split(r"^## (G\d)\b", text, flags=re.MULTILINE)[1:]
        promised = dict(zip(sections[::2], sections[1::2]))
        self.assertEqual(sorted(promised), [f"G{i}" for i in range(1, 9)])
        for promise, body in promised.items():
            self.assertTrue(re.search(r"`\w+\.\w+`", body), f"{promise} names no test")

    def test_tests_named_by_the_bypass_suite_exist(self):
        named = set()
        for path in files():
            if name_of(path).startswith("tests/bypass/") and path.name.endswith("_rows.cc"):
                for reason in re.findall(r'\.elsewhere = "([^"]*)"', path.read_text("utf-8")):
                    named |= set(re.findall(r"\b[A-Z]\w+\.[A-Z]\w+", reason))
        self.assertGreater(len(named), 30)
        self.assertEqual(sorted(named - declared_tests()), [])

    def test_no_file_knows_whose_machine_it_was_made_on(self):
        # Spelt in pieces, so that this file does not hold what it looks for.
        hosts = ["deb.deb" + "ian.org", "secur" + "ity.debian.org", "snap" + "shot.debian.org",
                 "py" + "pi.org", "pythonhos" + "ted.org", "npm" + "js.org", "npm" + "js.com",
                 "cra" + "tes.io",
                 "proxy.go" + "lang.org", "maven" + ".org", "maven" + ".apache.org", "docker" + ".io",
                 "gh" + "cr.io", "qu" + "ay.io"]
        places = ["/wo" + "rk/main", "/wo" + "rk/shared", "/Us" + "ers/", str(ROOT) + "/"]
        found = []
        for path in files():
            if path.suffix in BINARY:
                continue
            text = path.read_text("utf-8", errors="replace")
            found += [f"{name_of(path)}: {what}" for what in hosts + places if what in text]
        self.assertEqual(found, [])

    def test_shell_scripts_parse(self):
        scripts = [path for path in files() if path.suffix == ".sh" or name_of(path).startswith(".ci/")]
        self.assertGreaterEqual(len(scripts), 3)
        for script in scripts:
            checked = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, f"{name_of(script)}: {checked.stderr}")
            first = script.read_text("utf-8").splitlines()[0]
            self.assertEqual(first, "#!/usr/bin/env bash", name_of(script))
            self.assertTrue(script.stat().st_mode & 0o111, f"{name_of(script)} is not executable")

    def test_python_scripts_parse(self):
        for path in files():
            if path.suffix == ".py":
                compile(path.read_text("utf-8"), str(path), "exec")

    def test_what_cmake_asks_for_is_installed_by_the_script(self):
        packages = {"Threads": "g++", "PkgConfig": "pkg-config", "OpenSSL": "libssl-dev",
                    "spdlog": "libspdlog-dev", "CLI11": "libcli11-dev", "nlohmann_json": "nlohmann-json3-dev",
                    "GTest": "libgtest-dev", "liburing": "liburing-dev", "libseccomp": "libseccomp-dev",
                    "z3": "libz3-dev", "benchmark": "libbenchmark-dev", "libsystemd": "libsystemd-dev",
                    "libcares": "libc-ares-dev", "prometheus-cpp": "prometheus-cpp-dev",
                    "Boost": "libboost-dev"}
        # A directory that only an option adds has a set of its own beside the product's, which its script installs.
        sets = {"": ["build"], "tests": ["build", "test"], "bench": ["build", "bench"]}
        for directory, script in {"tests": "scripts/test.sh", "bench": "scripts/bench.sh"}.items():
            self.assertIn(" ".join(["scripts/install-deps.sh", *sets[directory]]) + "\n", text_of(script))
            self.assertRegex(text_of("CMakeLists.txt"), rf"if\(OARLOCK_\w+\)\n(  .*\n)*  add_subdirectory\({directory}\)\n")
        listed = {directory: subprocess.run([ROOT / "scripts/install-deps.sh", "--list", *names], check=True,
                                            capture_output=True, text=True).stdout.split()
                  for directory, names in sets.items()}
        for path in files():
            if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
                continue
            text = path.read_text("utf-8")
            asked = re.findall(r"find_package\((\S+?)[\s)]", text)
            for modules in re.findall(r"pkg_check_modules\(\w+((?: [\w.+-]+)+)\)", text):
                asked += [word for word in modules.split() if word.lower() == word]
            for name in asked:
                self.assertIn(name, packages, f"{name_of(path)}: tell this test the Debian package of {name}")
                top = name_of(path).split("/")[0]
                self.assertIn(packages[name], listed.get(top, listed[""]), f"{name_of(path)} asks for {name}")


if __name__ == "__main__":
    unittest.main()
