#!/usr/bin/env python3
"""Runs the tests of the starter plugins: run.py [-v] [-k PATTERN] [test_module ...]"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

if __name__ == "__main__":
    # Without names, every test_*.py of this directory.
    named = [word for word in sys.argv[1:] if word.startswith("test_")]
    modules = None if named else "discover"
    options = sys.argv[1:]
    if modules:
        options = [modules, "-s", str(HERE), "-t", str(HERE), *options]
    unittest.main(module=None, argv=["run.py", *options])
