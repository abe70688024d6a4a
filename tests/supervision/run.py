#!/usr/bin/env python3
"""Hostile hooks, killed workers, crowds, crawl sessions and programs, through the real program and a real database.

    tests/supervision/run.py [--trials N] [--seed N] [--holdfast FILE] [SUITE]...

Each takes seconds; with HOLDFAST_TEST_FULL, hostile and killed run as a plain user too (where we are root; a few of
the hostile ones do so always), and in several rounds. All of it runs as a plain user from the start,
too: runuser -u nobody -- ... It prints figures.
"""

import argparse
import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITES = sorted(path.stem for path in HERE.glob("test_*.py"))

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(SUITES))
parser.add_argument("--trials", type=int, default=3, help="kills at random moments (3)")
parser.add_argument("--seed", type=int, default=1, help="of these moments (1)")
parser.add_argument("--holdfast", type=Path, default=HERE.parents[1] / "build/dev/bin/holdfast")
arguments = parser.parse_args()
suites = ["test_" + name.removeprefix("test_") for name in arguments.suites] or SUITES
if wrong := set(suites) - set(SUITES):
    parser.error(f"no such suite: {', '.join(sorted(wrong))}")
if not arguments.holdfast.exists():
    sys.exit(f"{arguments.holdfast} is not built")
os.environ["HOLDFAST_TEST_PROGRAM"] = str(arguments.holdfast.resolve())
os.environ["HOLDFAST_TEST_TRIALS"], os.environ["HOLDFAST_TEST_SEED"] = str(arguments.trials), str(arguments.seed)
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "cli")]
suite = unittest.defaultTestLoader.loadTestsFromNames(suites)
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(not result.wasSuccessful())
