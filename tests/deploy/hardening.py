#!/usr/bin/env python3
"""How the programs of a build are compiled and linked, as readelf shows it, and whose libraries they contain.

    tests/deploy/hardening.py --build DIRECTORY

Programs of a build without optimisation (CMAKE_BUILD_TYPE=Debug) are only asked what holds for them, too.
Status 77: readelf is missing.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATIC = ("holdfast-shim", "holdfast-guard")
PROGRAMS = ("holdfast", "holdfast-capture", *STATIC)


class Hardening(unittest.TestCase):
    build = None

    def read(self, program, *options):
        command = ["readelf", "-W", *options, str(self.build / "bin" / program)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def programs(self):
        debug = "CMAKE_BUILD_TYPE:STRING=Debug" in (self.build / "CMakeCache.txt").read_text()
        for program in STATIC if debug else PROGRAMS:
            if (self.build / "bin" / program).exists():
                yield program

    def test_all_are_position_independent_without_an_executable_stack(self):
        for program in PROGRAMS:
            if not (self.build / "bin" / program).exists():
                continue
            with self.subTest(program):
                self.assertRegex(self.read(program, "-h"), r"Type:\s+DYN \(Position-Independent Executable")
                self.assertRegex(self.read(program, "-l"), r"GNU_STACK\s.* RW  ")

    def test_all_addresses_are_bound_at_the_start_and_read_only(self):
        for program in self.programs():
            with self.subTest(program):
                self.assertRegex(self.read(program, "-d"), r"FLAGS\).*BIND_NOW")
                self.assertIn("GNU_RELRO", self.read(program, "-l"))

    def test_stacks_are_protected(self):
        for program in self.programs():
            with self.subTest(program):
                self.assertIn("__stack_chk_fail", self.read(program, "-s"))

    def test_buffers_are_checked(self):
        for program in self.programs():
            if program != "holdfast-shim":  # musl has no such checks
                with self.subTest(program):
                    self.assertRegex(self.read(program, "-s"), r"__\w+_chk\b")

    def test_shim_and_guard_need_no_library(self):
        for program in STATIC:
            with self.subTest(program):
                self.assertNotIn("NEEDED", self.read(program, "-d"))
                self.assertNotIn("INTERP", self.read(program, "-l"))

    def test_the_copyright_of_the_package_names_what_they_contain(self):
        listed = re.search(r"foreach\(name ([\w ]+)\)", (ROOT / "services/capture/CMakeLists.txt").read_text())
        copyright = (ROOT / "deploy/debian/copyright").read_text()
        for name in (*listed.group(1).split(), "stdc++", "musl", "glibc"):
            with self.subTest(name):
                self.assertRegex(copyright, rf"(?m)^Copyright:[^:]*\b{re.escape(name)}")
        used = {
            word
            for line in re.findall(r"(?m)^License: (.+)$", copyright)
            for word in re.split(r" and | or |[()]", line)
        }
        explained = set(re.findall(r"(?m)^License: (.+)\n ", copyright))
        self.assertEqual({word for word in used if word} - explained, set())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    Hardening.build = parser.parse_args().build.resolve()
    if not shutil.which("readelf"):
        return 77
    suite = unittest.TestLoader().loadTestsFromTestCase(Hardening)
    return not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
