#!/usr/bin/env python3
"""The command line's tests: tests/harness/suites.py says the arguments."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.suites import main  # noqa: E402

if __name__ == "__main__":
    main(__file__)
