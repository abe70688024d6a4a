#!/usr/bin/env python3
"""Hostile hooks, killed workers, crowds, crawl sessions and programs, through the real program and a real database:
tests/harness/suites.py says the arguments.

Each takes seconds; with HOLDFAST_TEST_FULL, hostile and killed run as a plain user too (where we are root; a few of
the hostile ones do so always), and in several rounds. All of it runs as a plain user from the start,
too: runuser -u nobody -- ... It prints figures.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.suites import main  # noqa: E402

if __name__ == "__main__":
    main(__file__)
