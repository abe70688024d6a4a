"""What is tried every day, and what only in full: with HOLDFAST_TEST_FULL, which `tests/run --full` sets."""

import itertools
import os
import unittest

FULL = bool(os.environ.get("HOLDFAST_TEST_FULL"))
only_in_full = unittest.skipUnless(FULL, "only in full")
turns = itertools.count()


def some_of(values, step):
    """Each `step`th of many values that take long; of the next ones asked for, others. In full, all."""
    values = list(values)
    return values if FULL else values[next(turns) % step :: step]
