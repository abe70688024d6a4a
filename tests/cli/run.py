#!/usr/bin/env python3
"""Runs the command line's tests against a built program: run.py PROGRAM [test_module ...] [-v] [-k PATTERN]"""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    os.environ["HOLDFAST_TEST_PROGRAM"] = str(Path(sys.argv[1]).resolve())
    names = sys.argv[2:]
    if not any(name.startswith("test_") for name in names):
        names += sorted(path.stem for path in HERE.glob("test_*.py"))
    unittest.main(module=None, argv=["run.py", *names])
