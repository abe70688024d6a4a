"""Runs suites of tests against a built program.

    run.py [PROGRAM | --holdfast PROGRAM] [--trials N] [--seed N] [SUITE | Class.test]... [-k PATTERN]

Without names, all of the directory. PROGRAM is build/dev/bin/holdfast unless HOLDFAST_BIN names another directory.
"""

import argparse
import os
import sys
import unittest
from pathlib import Path

from .postgres import find_programs
from .wait import end_in_order

BIN = Path(os.environ.get("HOLDFAST_BIN", Path(__file__).resolve().parents[2] / "build/dev/bin"))


def parser(document):
    """The arguments that all suites have; sets the environment that they read as soon as it has read these."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--holdfast", help="the program, which may also be the first word")
    parser.add_argument("names", nargs="*", help="what to run of it, all without names")
    parser.add_argument("-k", dest="patterns", action="append", metavar="PATTERN", help="only tests of such names")
    return parser


def read(arguments):
    if arguments.names and "/" in arguments.names[0]:
        arguments.holdfast = arguments.names.pop(0)
    program = Path(arguments.holdfast or BIN / "holdfast").resolve()
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not built")
    os.environ["HOLDFAST_TEST_PROGRAM"] = str(program)
    end_in_order()
    return arguments


def run(arguments, module=None):
    """Runs the named tests, of a module or of modules; returns the exit status."""
    loader = unittest.TestLoader()
    if arguments.patterns:
        loader.testNamePatterns = [one if "*" in one else f"*{one}*" for one in arguments.patterns]
    if arguments.names:
        suite = loader.loadTestsFromNames(arguments.names, module)
    else:
        suite = loader.loadTestsFromModule(module)
    return not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()


def without_server():
    """What a suite that needs a server of its own returns where none is installed; ctest counts it as skipped."""
    if not find_programs():
        print("skipped: the programs of a PostgreSQL server are not installed")
        return 77
    return 0


def main(file):
    """Runs the test_*.py beside `file`."""
    here = Path(file).resolve().parent
    sys.path.insert(0, str(here))
    suites = sorted(path.stem for path in here.glob("test_*.py"))
    words = parser(__doc__)
    words.add_argument("--trials", type=int, default=3, help="kills at random moments (3)")
    words.add_argument("--seed", type=int, default=1, help="of these moments (1)")
    arguments = read(words.parse_args())
    os.environ["HOLDFAST_TEST_TRIALS"], os.environ["HOLDFAST_TEST_SEED"] = str(arguments.trials), str(arguments.seed)
    arguments.names = ["test_" + name.removeprefix("test_") for name in arguments.names] or suites
    if wrong := {name.split(".")[0] for name in arguments.names} - set(suites):
        words.error(f"no such suite: {', '.join(sorted(wrong))}")
    sys.exit(run(arguments))
