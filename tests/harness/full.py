"""What is tried every day, and what only in full: with HOLDFAST_TEST_FULL, which `tests/run --full` sets."""

import itertools
import os
import unittest

FULL = bool(os.environ.get("HOLDFAST_TEST_FULL"))
only_in_full = unittest.skipUnless(FULL, "only in full")
turns = itertools.count()


def some_of(values, step):
    """Every `step`th of the values, which take long; the next call begins at the next place. In full, all of them."""
    values = list(values)
    return values if FULL else values[next(turns) % step :: step]
